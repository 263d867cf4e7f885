//! What a line of a mailbox is. Pure; believes nothing that a line says of itself.

use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::protocol::message::{CONTENT_BYTES_MAX, OutsideMail};
use crate::protocol::{MailKey, Message, MessageType};

/// Longest name or time that an outside line may show, in characters.
const SHOWN_CHARS_MAX: usize = 80;
/// Places in a broken line of the runtime's at which another line is looked for.
const STUMP_STARTS_MAX: usize = 8;

/// A line, told apart.
#[derive(Debug)]
pub(super) enum Line {
    /// Nothing stands in it.
    Blank,
    /// It carries this session's mark; whether the runtime issued that id, the caller knows. If not, it is the other thing.
    Ours { id: Uuid, or_else: Box<Line> },
    /// A whole message of another session: not for anybody who lives now.
    Old(Uuid),
    /// Somebody's.
    Outside(Said),
    /// No message; the reason.
    Bad(String),
}

/// What a line says, made safe for display.
#[derive(Debug, PartialEq)]
pub(super) struct Said {
    from: Option<String>,
    kind: MessageType,
    content: String,
    timestamp: Option<String>,
}

impl Said {
    pub(super) fn mail(self, key: MailKey) -> OutsideMail {
        let Self { from, kind, content, timestamp } = self;
        OutsideMail { key, from, kind, content, timestamp, waited: None }
    }
}

/// How each line begins that the runtime writes.
const ISSUED_HEAD: &[u8] = b"{\"id\":\"";

/// The id of a line, or of the beginning of one, if it begins as those of the runtime do. Cheap: nothing is parsed.
pub(super) fn issued_id(bytes: &[u8]) -> Option<Uuid> {
    let id = bytes.strip_prefix(ISSUED_HEAD)?.get(..uuid::fmt::Hyphenated::LENGTH)?;
    Uuid::try_parse_ascii(id).ok()
}

/// Where a line begins that somebody appended to a stump: to the beginning of a line, of the runtime's or another's, that a kill
/// has torn. `None` if it is one line.
pub(super) fn after_stump(bytes: &[u8]) -> Option<usize> {
    let begins = |at: &usize| bytes[*at..].starts_with(b"{\"");
    // Texts escape their quotes, so that few places in a stump look like the beginning of a line.
    let mut starts = (1..bytes.len()).filter(begins).take(STUMP_STARTS_MAX).peekable();
    let is_whole = || serde_json::from_slice::<IgnoredAny>(bytes).is_ok();
    if !bytes.starts_with(b"{") || starts.peek().is_none() || is_whole() {
        return None;
    }
    let says =
        |line: &[u8]| serde_json::from_slice::<Map<String, Value>>(line).is_ok_and(|it| it.contains_key("content"));
    starts.find(|at| says(&bytes[*at..]))
}

/// Tells apart what a line is for a reader of this session.
pub(super) fn line(bytes: &[u8], session: Uuid) -> Line {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Line::Blank;
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Line::Bad("not UTF-8; write the line anew as UTF-8".to_owned());
    };
    let object = match serde_json::from_str(text) {
        Ok(Value::Object(object)) => object,
        Ok(_) => return Line::Bad("not a JSON object; a line is {\"content\": \"…\"} at the least".to_owned()),
        Err(error) => return Line::Bad(format!("not JSON: {error}")),
    };
    // Only what has the form of an issued message is parsed as one: most outside lines don't.
    let marked = object.contains_key("session") && object.contains_key("id");
    let issued = marked.then(|| serde_json::from_value::<Message>(Value::Object(object.clone())).ok()).flatten();
    match issued {
        Some(message) if message.session == session => {
            Line::Ours { id: message.id, or_else: Box::new(foreign(object)) }
        }
        Some(message) => Line::Old(message.session),
        None => foreign(object),
    }
}

fn foreign(object: Map<String, Value>) -> Line {
    match object.get("content").and_then(Value::as_str) {
        None => Line::Bad("it has no text in `content`".to_owned()),
        Some(content) if content.trim().is_empty() => Line::Bad("its `content` is empty".to_owned()),
        Some(content) if content.len() > CONTENT_BYTES_MAX => Line::Bad(format!(
            "its `content` is longer than {CONTENT_BYTES_MAX} bytes; put the text into a file and send the file's path"
        )),
        Some(_) => Line::Outside(said(object)),
    }
}

fn said(mut object: Map<String, Value>) -> Said {
    let text = |key: &str| object.get(key).and_then(Value::as_str);
    let kind = text("type").and_then(MessageType::from_word).unwrap_or(MessageType::Message);
    let from = text("from").map(shown).filter(|from| !from.is_empty());
    let seconds = || ["timestamp", "ts"].iter().find_map(|key| object.get(*key).and_then(Value::as_f64));
    let timestamp = text("timestamp").map(shown).or_else(|| seconds().and_then(time));
    let content = match object.remove("content") {
        Some(Value::String(content)) => content,
        Some(_) | None => String::new(),
    };
    Said { from, kind, content, timestamp }
}

/// Seconds since 1970 as RFC 3339 with milliseconds.
fn time(seconds: f64) -> Option<String> {
    let span = jiff::SignedDuration::try_from_secs_f64(seconds).ok()?;
    jiff::Timestamp::from_duration(span).ok().map(|at| format!("{at:.3}"))
}

/// One line of visible characters: nothing that moves a cursor or turns the direction of writing.
fn shown(text: &str) -> String {
    let turns = |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.trim().chars().filter(|c| !c.is_control() && !turns(*c)).take(SHOWN_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outside(text: &str) -> Said {
        match line(text.as_bytes(), Uuid::nil()) {
            Line::Outside(said) => said,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn the_least_line_is_a_message() {
        let said = outside(r#"{"content":"hi"}"#);
        assert_eq!(said, Said { from: None, kind: MessageType::Message, content: "hi".into(), timestamp: None });
    }

    #[test]
    fn known_fields_are_taken_and_unknown_ones_harm_nothing() {
        let said = outside(r#"{"from":"ci","type":"result","content":"green","ts":1796040000.5,"x":[{"y":null}]}"#);
        assert_eq!((said.from.as_deref(), said.kind), (Some("ci"), MessageType::Result));
        assert_eq!(said.timestamp.as_deref(), Some("2026-11-30T12:00:00.500Z"));
        assert_eq!(outside(r#"{"content":"x","type":"no such word","ts":"then","from":7}"#).kind, MessageType::Message);
        assert_eq!(outside(r#"{"content":"x","ts":1e300}"#).timestamp, None);
        assert_eq!(outside("\u{feff}{\"content\":\"x\"}\r").content, "x");
    }

    #[test]
    fn a_name_moves_no_cursor() {
        let said = outside(r#"{"from":"\u001b[2Jlead\n\u202e x","content":"y"}"#);
        assert_eq!(said.from.as_deref(), Some("[2Jlead x"));
    }

    #[test]
    fn a_line_that_was_appended_to_a_stump_is_found() {
        let whole = r#"{"id":"x","content":"{\"a\":1}","metadata":{"request_id":"y"},"timestamp":"z"}"#;
        let said = r#"{"from":"ci","content":"{\"id\":\"","x":{"y":{}}}"#;
        assert_eq!(after_stump(whole.as_bytes()), None);
        assert_eq!(after_stump(said.as_bytes()), None);
        for cut in 1..whole.len() {
            let glued = format!("{}{said}", &whole[..cut]);
            assert_eq!(after_stump(glued.as_bytes()), Some(cut), "{glued}");
            assert_eq!(after_stump(&whole.as_bytes()[..cut]), None);
        }
        let stranger = "{\"from\":\"ci\",\"cont";
        assert_eq!(after_stump(format!("{stranger}{said}").as_bytes()), Some(stranger.len()), "a stranger's stump");
        assert_eq!(after_stump(format!("INFO {said}").as_bytes()), None, "no stump of a message");
    }

    #[test]
    fn i8_what_is_no_message_says_why() {
        let big = format!(r#"{{"content":"{}"}}"#, "x".repeat(CONTENT_BYTES_MAX + 1));
        let deep = format!(r#"{{"content":"x","y":{}"#, "[".repeat(100_000));
        let bad: [(&[u8], &str); 9] = [
            (b"oops", "not JSON"),
            (b"{\"content\":\"half", "not JSON"),
            (b"\0\0\0", "not JSON"),
            (b"\xff\xfe{\0", "not UTF-8"),
            (b"[1]", "not a JSON object"),
            (b"{\"from\":\"x\"}", "no text in `content`"),
            (b"{\"content\":\" \"}", "empty"),
            (big.as_bytes(), "put the text into a file"),
            (deep.as_bytes(), "not JSON"),
        ];
        for (bytes, expected) in bad {
            match line(bytes, Uuid::nil()) {
                Line::Bad(reason) => assert!(reason.contains(expected), "{reason}"),
                other => panic!("{other:?}"),
            }
        }
        assert!(matches!(line(b" \t\r", Uuid::nil()), Line::Blank));
    }
}
