//! Finds the server's own words in whatever it answered an error with.
//!
//! Knows nothing of what the words mean for the call.

use serde_json::Value;

/// Longest text of a server that is shown, in characters.
const WORDS_CHARS_MAX: usize = 300;

/// What a server said of an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Words {
    /// In one line, not yet shortened; empty when it said nothing.
    pub(crate) text: String,
    /// Its codes and types, in lower case, separated by spaces.
    pub(crate) codes: String,
    /// The first of its codes that is a number.
    pub(crate) number: Option<u64>,
}

impl Words {
    /// Reads the body of an answer: JSON in any of the usual shapes, HTML (its title), or plain text.
    pub(crate) fn of_body(body: &str) -> Self {
        let trimmed = body.trim();
        if let Ok(value) = serde_json::from_str::<Value>(trimmed) {
            return Self::of_value(&value);
        }
        let text = if looks_like_html(trimmed) { html_title(trimmed) } else { trimmed.to_owned() };
        Self { text: one_line(&text), ..Self::default() }
    }

    /// Reads an error object, or an answer that has one in it.
    pub(crate) fn of_value(value: &Value) -> Self {
        let mut words = Self::default();
        words.read(value, 0);
        words.text = one_line(&words.text);
        words
    }

    /// Do its words or codes hold any of these (in lower case)?
    pub(crate) fn mention(&self, texts: &[&str]) -> bool {
        let said = self.text.to_lowercase();
        texts.iter().any(|text| said.contains(text) || self.codes.contains(text))
    }

    fn read(&mut self, value: &Value, depth: usize) {
        const DEPTH_MAX: usize = 6;
        if depth > DEPTH_MAX {
            return;
        }
        match value {
            Value::String(text) => self.say(text),
            Value::Array(items) => items.iter().take(3).for_each(|item| self.read(item, depth + 1)),
            Value::Object(fields) => {
                for key in ["code", "type", "status"] {
                    match &fields.get(key) {
                        Some(Value::String(code)) => {
                            self.number = self.number.or_else(|| code.trim().parse().ok());
                            self.codes += &format!("{} ", code.to_lowercase());
                        }
                        Some(Value::Number(code)) => self.number = self.number.or(code.as_u64()),
                        Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) | None => {}
                    }
                }
                for key in ["error", "message", "msg", "detail", "error_description", "errors"] {
                    if let Some(inner) = fields.get(key) {
                        self.read(inner, depth + 1);
                    }
                }
                if let Some(raw) = fields.get("metadata").and_then(|metadata| metadata["raw"].as_str()) {
                    self.say(raw);
                }
                if let (Some(place), true) = (fields.get("loc").and_then(Value::as_array), fields.contains_key("msg")) {
                    let path: Vec<&str> = place.iter().filter_map(Value::as_str).collect();
                    self.say(&format!("({})", path.join(".")));
                }
                if self.text.is_empty() && depth == 0 && !fields.is_empty() {
                    self.text = value.to_string();
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn say(&mut self, text: &str) {
        let text = text.trim();
        if text.is_empty() || self.text.contains(text) {
            return;
        }
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        self.text.push_str(text);
    }
}

/// Does the text begin as a page does?
pub(crate) fn looks_like_html(text: &str) -> bool {
    text.trim_start().starts_with('<')
}

/// The title of a page, or its first heading; a page without either has nothing to say.
pub(crate) fn html_title(page: &str) -> String {
    ["title", "h1", "h2", "p"].iter().find_map(|tag| element(page, tag)).unwrap_or_default()
}

/// The text of the first such element.
fn element(page: &str, tag: &str) -> Option<String> {
    let lower = page.to_ascii_lowercase();
    let open = format!("<{tag}");
    let start = lower
        .match_indices(&open)
        .map(|(at, _)| at + open.len())
        .find(|&at| lower[at..].starts_with(['>', ' ', '\n']))?;
    let start = start + lower[start..].find('>')? + 1;
    let end = start + lower[start..].find(&format!("</{tag}"))?;
    let text = page[start..end].trim();
    (!text.is_empty() && !text.contains('<')).then(|| text.to_owned())
}

/// At most a few hundred characters, with `…` where it was cut.
pub(crate) fn shortened(text: &str) -> String {
    if text.chars().count() <= WORDS_CHARS_MAX {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(WORDS_CHARS_MAX).collect();
    short.push('…');
    short
}

/// Without line ends and other control characters, which a terminal would obey.
pub(crate) fn one_line(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_every_shape() {
        for (body, text) in [
            (
                r#"{"error":{"message":"no such key","type":"invalid_request_error","code":"invalid_api_key"}}"#,
                "no such key",
            ),
            (r#"{"error":{"message":"busy","code":503}}"#, "busy"),
            (r#"{"error":"model not loaded"}"#, "model not loaded"),
            (r#"[{"error":{"message":"API key not valid","code":400}}]"#, "API key not valid"),
            (r#"{"detail":"Not authenticated"}"#, "Not authenticated"),
            (r#"{"detail":[{"loc":["body","tools",0],"msg":"field required"}]}"#, "field required (body.tools)"),
            (r#"{"object":"error","message":"too long","code":400}"#, "too long"),
            (
                r#"{"error":{"message":"Provider returned error","metadata":{"raw":"slow down"}}}"#,
                "Provider returned error slow down",
            ),
            ("<!DOCTYPE html><html><head><TITLE lang=en>502 Bad\nGateway</TITLE></head></html>", "502 Bad Gateway"),
            ("<html><body><h1>Sign in</h1></body></html>", "Sign in"),
            ("404 page not found\n", "404 page not found"),
            ("\u{1b}[31mred\r\n", "[31mred"),
            (r#"{"ok":false}"#, r#"{"ok":false}"#),
            ("", ""),
            ("{}", ""),
        ] {
            assert_eq!(Words::of_body(body).text, text, "{body}");
        }
    }

    #[test]
    fn codes_are_kept() {
        let words = Words::of_body(r#"{"error":{"message":"x","type":"Insufficient_Quota","code":429}}"#);
        assert!(words.mention(&["insufficient_quota"]));
        assert_eq!(words.number, Some(429));
    }

    #[test]
    fn long_words_are_cut_between_characters() {
        let short = shortened(&"错".repeat(1000));
        assert_eq!(short.chars().count(), WORDS_CHARS_MAX + 1);
        assert!(short.ends_with('…'));
    }
}
