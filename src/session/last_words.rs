//! A teammate's last words, where they are too long for a message: nobody is there any more who could be asked to shorten them.

use uuid::Uuid;

use crate::protocol::AgentName;
use crate::protocol::message::check_length;
use crate::protocol::shown::SHOWN_CHARS_MAX;

use super::Session;

/// Characters of them that are sent then: all of these are shown, and the place of the whole with them.
const KEPT_CHARS: usize = SHOWN_CHARS_MAX - 1_000;

impl Session {
    /// The text, or its beginning and where the whole of it lies.
    pub(super) fn last_words(&self, name: &AgentName, text: String) -> String {
        if check_length(&text).is_ok() {
            return text;
        }
        let path = self.settings.out_dir.join(format!("result-{name}-{}.txt", Uuid::now_v7()));
        let written = std::fs::create_dir_all(&self.settings.out_dir).and_then(|()| std::fs::write(&path, &text));
        let place = match written {
            Ok(()) => format!("the whole is in {}", path.display()),
            Err(error) => format!("the rest could not be kept: {error}"),
        };
        let cut = text.char_indices().nth(KEPT_CHARS).map_or(text.len(), |(at, _)| at);
        let left = text[cut..].chars().count();
        format!("{}\n… ({left} more characters; {place})", &text[..cut])
    }
}
