//! What agents write to each other: messages and broadcasts.

use std::collections::HashSet;

use uuid::Uuid;

use crate::agent::CallEnd;
use crate::protocol::request::short;
use crate::protocol::{AgentName, MailKey, MessageType, Metadata};

use super::Session;

impl Session {
    pub(super) fn send_message(
        &mut self,
        by: &AgentName,
        to: &str,
        content: String,
        wake: Option<bool>,
        reply_to: Option<&str>,
    ) -> CallEnd {
        if content.trim().is_empty() {
            return CallEnd::error("the message is empty");
        }
        let Some(to) = self.recipient(to) else { return CallEnd::error(self.unknown_recipient(by, to)) };
        if to == *by {
            return CallEnd::error("that is you; write to somebody else");
        }
        let reply_to = match reply_to.map(|text| self.letters.answered(by, &to, text)).transpose() {
            Ok(reply_to) => reply_to,
            Err(why) => return CallEnd::error(why),
        };
        let metadata = Metadata { reply_to, ..waking(wake) };
        let message = self.compose(by, &to, MessageType::Message, content, metadata);
        let id = message.id;
        let ahead = self.post.waiting(&to) + self.desk(&to).map_or(0, |desk| desk.inbox.len());
        self.send(&to, vec![message]);
        let quietly = if wake == Some(false) { " without waking it" } else { "" };
        CallEnd::done(match ahead {
            0 => format!("sent to {to} (id {id}){quietly}"),
            ahead => format!("sent to {to} (id {id}){quietly}; {ahead} wait ahead of it"),
        })
    }

    pub(super) fn broadcast(&mut self, by: &AgentName, content: &str, wake: Option<bool>) -> CallEnd {
        let readers: Vec<AgentName> = self.living().map(|teammate| teammate.name().clone()).collect();
        if content.trim().is_empty() {
            return CallEnd::error("the message is empty");
        }
        if readers.is_empty() {
            return CallEnd::error("there is no living teammate to read it");
        }
        let mut sent = Vec::new();
        for reader in &readers {
            let message = self.compose(by, reader, MessageType::Broadcast, content, waking(wake));
            sent.push(format!("{reader} (id {})", short(message.id)));
            self.send(reader, vec![message]);
        }
        let quietly = if wake == Some(false) { ", waking nobody" } else { "" };
        CallEnd::done(format!("sent to {}{quietly}", sent.join(", ")))
    }
}

/// Waking is what mail does; only the contrary is said.
fn waking(wake: Option<bool>) -> Metadata {
    Metadata { wake: wake.filter(|wake| !wake), ..Metadata::default() }
}

/// The ids of the runtime's own mail among these.
pub(super) fn inside(keys: &[MailKey]) -> HashSet<Uuid> {
    let id = |key: &MailKey| match key {
        MailKey::Inside(id) => Some(*id),
        MailKey::Outside { .. } => None,
    };
    keys.iter().filter_map(id).collect()
}
