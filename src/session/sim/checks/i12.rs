//! I12: the key is in no journal and in nothing that is shown. (Children and the terminal: `tests/it/` and `tools/tests/shells.rs`.)

use crate::event::Event;

use super::super::log::{Entry, Seen, items};
use super::super::stage::KEY;

pub(super) fn the_key_is_nowhere(log: &[Entry]) -> Vec<String> {
    let shown = items(log).filter(|item| match &item.event {
        Event::Text { line, .. } => line.contains(KEY),
        Event::MailSent { message } => message.content.contains(KEY),
        Event::Replied { message, .. } => message.to_string().contains(KEY),
        _ => false,
    });
    let shown = shown.map(|item| format!("the key is in event {}", item.seq));
    let journaled = log.iter().filter_map(|entry| match &entry.what {
        Seen::KeyIn { path } => Some(format!("the key is in {path}")),
        _ => None,
    });
    shown.chain(journaled).collect()
}
