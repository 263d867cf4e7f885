//! What a line of a mailbox is. Pure; believes nothing that a line says of itself.

use serde_json::Value;
use uuid::Uuid;

use crate::protocol::message::CONTENT_BYTES_MAX;
use crate::protocol::message::OutsideMail;
use crate::protocol::{MailKey, Message, MessageType};

/// A line, told apart.
pub(super) enum Line {
    Blank,
    /// It carries this session's mark and an id; whether the runtime issued that id, the caller knows.
    Issued(Uuid),
    /// A whole message of another session: not for anybody who lives now.
    Old {
        session: Uuid,
    },
    /// Somebody's.
    Outside(()),
    /// No message; the reason.
    Bad(String),
}

pub(super) fn line(bytes: &[u8], session: Uuid) -> Line {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Line::Blank;
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return Line::Bad("not UTF-8".to_owned()) };
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => return Line::Bad(format!("not JSON: {error}")),
    };
    let Some(content) = value.get("content").and_then(Value::as_str) else {
        return Line::Bad("no `content` text in it".to_owned());
    };
    if content.len() > CONTENT_BYTES_MAX {
        return Line::Bad(format!("over {CONTENT_BYTES_MAX} bytes; put the text into a file and send its path"));
    }
    match serde_json::from_value::<Message>(value) {
        Ok(message) if message.session == session => Line::Issued(message.id),
        Ok(message) => Line::Old { session: message.session },
        Err(_) => Line::Outside(()),
    }
}

/// A line that [`line`] took for outside mail, or for issued when it was not.
pub(super) fn outside(bytes: &[u8], key: MailKey) -> OutsideMail {
    let value: Value = serde_json::from_slice(bytes).unwrap_or(Value::Null);
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let seconds = || {
        let seconds = value.get("ts").and_then(Value::as_f64)?;
        jiff::Timestamp::from_millisecond((seconds * 1000.0) as i64).ok().map(|at| format!("{at:.3}"))
    };
    OutsideMail {
        key,
        from: text("from"),
        kind: text("type").and_then(|word| MessageType::from_word(&word)).unwrap_or(MessageType::Message),
        content: text("content").unwrap_or_default(),
        timestamp: text("timestamp").or_else(seconds),
    }
}
