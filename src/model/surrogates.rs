//! Reads JSON that some servers write with half characters in it (`"\ud83c"` in one piece, `"\udf0d"` in the next).
//!
//! Knows nothing of what the JSON means.

use serde_json::Value;

/// Parses JSON; half characters, which no parser may accept, become U+FFFD.
///
/// # Errors
/// When it's no JSON for another reason.
pub(crate) fn parse(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text).or_else(|error| match mended(text) {
        Some(mended) => serde_json::from_str(&mended),
        None => Err(error),
    })
}

/// The text with lone surrogate escapes replaced; `None` when there are none.
fn mended(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut changed = false;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let taken = match unit(rest) {
            Some(0xD800..=0xDBFF) if matches!(rest.get(6..).and_then(unit), Some(0xDC00..=0xDFFF)) => 12,
            Some(0xD800..=0xDFFF) => {
                out.push_str("\\ufffd");
                rest = &rest[6..];
                changed = true;
                continue;
            }
            // A backslash and what it escapes; the next character may be longer than a byte.
            Some(_) | None => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
        };
        out.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    out.push_str(rest);
    changed.then_some(out)
}

/// The UTF-16 unit of an escape at the beginning of the text.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_characters_harm_nothing_but_themselves() {
        let value = parse(r#"{"a":"x\ud83cy","b":"\udf0d","c":"\ud83c\udf0d","d":"\\ud83c\n"}"#).unwrap();
        assert_eq!(value["a"], "x\u{fffd}y");
        assert_eq!(value["b"], "\u{fffd}");
        assert_eq!(value["c"], "🌍");
        assert_eq!(value["d"], "\\ud83c\n");
    }

    #[test]
    fn what_is_no_json_stays_none() {
        for text in ["{", "\\", "{\"a\":\"\\u\"}", "{\"a\":\"\\ud83c", "é\\é"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
