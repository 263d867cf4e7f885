//! Texts with holes: `[result] {name}:` finds and captures, `Thanks, ${name}.` fills in.
//!
//! Knows nothing of rules, requests or agents.

use std::collections::BTreeMap;

use serde_json::Value;

/// What the holes of the patterns took, by name.
pub(super) type Captures = BTreeMap<String, String>;

/// A text to find. A hole `{name}` takes at least one character of one line, up to the first character that
/// the text after the hole begins with (up to the end of the line when nothing follows).
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pattern {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Text(String),
    Hole(String),
}

impl Pattern {
    /// Reads a pattern. A brace that opens no hole (`{` without a plain name and `}`) stands for itself.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            let after = &rest[open + 1..];
            let Some(name) = after.split('}').next().filter(|name| is_name(name) && after.len() > name.len()) else {
                plain.push_str(&rest[..=open]);
                rest = after;
                continue;
            };
            plain.push_str(&rest[..open]);
            if plain.is_empty() && !parts.is_empty() {
                return Err(format!("{text:?}: two holes stand side by side"));
            }
            if !plain.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut plain)));
            }
            parts.push(Part::Hole(name.to_owned()));
            rest = &after[name.len() + 1..];
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        match parts.first() {
            Some(Part::Text(_)) => Ok(Self { parts }),
            Some(Part::Hole(_)) => Err(format!("{text:?}: a pattern must begin with text, not with a hole")),
            None => Err("a pattern must not be empty".to_owned()),
        }
    }

    /// The names of its holes.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Hole(name) => Some(name.as_str()),
            Part::Text(_) => None,
        })
    }

    /// What the holes took where the pattern first stands in `text`; `None` when it stands nowhere.
    pub(super) fn find(&self, text: &str) -> Option<Captures> {
        self.find_all(text).next()
    }

    /// Every place where the pattern stands, in order.
    pub(super) fn find_all<'a>(&'a self, text: &'a str) -> impl Iterator<Item = Captures> + 'a {
        let head = match self.parts.first() {
            Some(Part::Text(head)) => head.as_str(),
            Some(Part::Hole(_)) | None => "", // ruled out by `new`
        };
        text.match_indices(head).filter_map(|(at, _)| self.take_from(&text[at..]))
    }

    fn take_from(&self, text: &str) -> Option<Captures> {
        let mut captures = Captures::new();
        let mut rest = text;
        for (index, part) in self.parts.iter().enumerate() {
            match part {
                Part::Text(plain) => rest = rest.strip_prefix(plain.as_str())?,
                Part::Hole(name) => {
                    let stop = match self.parts.get(index + 1) {
                        Some(Part::Text(next)) => next.chars().next(),
                        Some(Part::Hole(_)) | None => None,
                    };
                    let end = rest.find(|c| Some(c) == stop || c == '\n').unwrap_or(rest.len());
                    let (value, after) = rest.split_at(end);
                    if value.is_empty() {
                        return None;
                    }
                    captures.insert(name.clone(), value.to_owned());
                    rest = after;
                }
            }
        }
        Some(captures)
    }
}

/// Puts captures into a text; a name that was not captured stays as it stands.
pub(super) fn fill(text: &str, captures: &Captures) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, name, after)) = next_place(rest) {
        filled.push_str(before);
        match captures.get(name) {
            Some(value) => filled.push_str(value),
            None => filled.push_str(&rest[before.len()..rest.len() - after.len()]),
        }
        rest = after;
    }
    filled.push_str(rest);
    filled
}

/// Puts captures into every text of a value.
pub(super) fn fill_value(value: &Value, captures: &Captures) -> Value {
    map_texts(value, &mut |text| Ok(fill(text, captures))).unwrap_or(Value::Null) // the function never fails
}

/// The same value with every text in it replaced.
pub(super) fn map_texts(
    value: &Value,
    change: &mut dyn FnMut(&str) -> Result<String, String>,
) -> Result<Value, String> {
    Ok(match value {
        Value::String(text) => Value::String(change(text)?),
        Value::Array(items) => {
            Value::Array(items.iter().map(|item| map_texts(item, change)).collect::<Result<_, _>>()?)
        }
        Value::Object(fields) => Value::Object(
            fields
                .iter()
                .map(|(key, item)| Ok((key.clone(), map_texts(item, change)?)))
                .collect::<Result<_, String>>()?,
        ),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    })
}

/// The names of the places `${name}` in a text.
pub(super) fn places(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = text;
    while let Some((_, name, after)) = next_place(rest) {
        names.push(name);
        rest = after;
    }
    names
}

fn next_place(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    while let Some(open) = text[from..].find("${").map(|at| from + at) {
        let after = &text[open + 2..];
        if let Some((name, rest)) = after.split_once('}').filter(|(name, _)| is_name(name)) {
            return Some((&text[..open], name, rest));
        }
        from = open + 2;
    }
    None
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pattern: &str, text: &str) -> Option<Vec<(String, String)>> {
        Pattern::new(pattern).unwrap().find(text).map(|captures| captures.into_iter().collect())
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn a_hole_ends_where_the_text_after_it_begins() {
        let text = "[Team events]\n[plan_approval_request request_id=3f-2a] auth: a plan";
        let pattern = "[plan_approval_request request_id={request_id}] {name}:";
        assert_eq!(found(pattern, text), Some(vec![pair("name", "auth"), pair("request_id", "3f-2a")]));
        assert_eq!(found("[plan_approval_request request_id={request_id}] config", text), None);
    }

    #[test]
    fn a_hole_keeps_to_its_line_and_is_never_empty() {
        assert_eq!(found("[error] auth: {cause}", "[error] auth: no disk\nmore"), Some(vec![pair("cause", "no disk")]));
        assert_eq!(found("a={x};", "a=\n;"), None);
        assert_eq!(found("a={x};", "a=;"), None);
    }

    #[test]
    fn later_places_are_found_when_the_first_does_not_fit() {
        let pattern = Pattern::new("[result] {name}: ok").unwrap();
        let names: Vec<_> = pattern
            .find_all("[result] a: no\n[result] b: ok\n[result] c: ok")
            .map(|captures| captures["name"].clone())
            .collect();
        assert_eq!(names, ["b", "c"]);
    }

    #[test]
    fn braces_that_are_no_hole_stand_for_themselves() {
        assert_eq!(found("fn main() {}", "fn main() {}"), Some(vec![]));
        assert_eq!(found("{\"a\": 1}", "x {\"a\": 1}"), Some(vec![]));
    }

    #[test]
    fn a_pattern_without_a_beginning_is_refused() {
        assert!(Pattern::new("").is_err());
        assert!(Pattern::new("{name} ends").unwrap_err().contains("begin with text"));
        assert!(Pattern::new("x{a}{b}").unwrap_err().contains("side by side"));
    }

    #[test]
    fn filling_replaces_what_was_captured_and_nothing_else() {
        let captures = Captures::from([pair("name", "auth")]);
        assert_eq!(fill("${name}: ${other} $name ${", &captures), "auth: ${other} $name ${");
        assert_eq!(places("${name} ${other_one} ${No}"), ["name", "other_one"]);
        let value = serde_json::json!({"a": ["${name}", 1, true]});
        assert_eq!(fill_value(&value, &captures), serde_json::json!({"a": ["auth", 1, true]}));
    }
}
