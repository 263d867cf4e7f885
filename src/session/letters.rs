//! What agents write to each other: messages and broadcasts, and what they take back of it.

use std::collections::HashSet;

use uuid::Uuid;

use crate::agent::CallEnd;
use crate::event::Record;
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

    /// Takes back what its reader has not been given, wherever it waits.
    pub(super) fn withdraw_message(&mut self, by: &AgentName, text: &str) -> CallEnd {
        let letter = match self.letters.own(by, text) {
            Ok(letter) => letter.clone(),
            Err(why) => return CallEnd::error(why),
        };
        let (id, to) = (letter.id, &letter.to);
        if !letter.is_mere_talk() {
            let kind = letter.kind.word();
            return CallEnd::error(format!(
                "{id} is a {kind}, and only messages can be taken back; write what has changed"
            ));
        }
        // One whose turn has just begun was promised something to read.
        let is_being_given = self.desk(to).is_some_and(|desk| desk.busy && desk.turn_intakes == 0);
        if letter.given || is_being_given {
            return CallEnd::error(format!("{id} has arrived already: {to} has it; write what has changed"));
        }
        if self.post.withdraw_one(to, id).is_none() {
            return CallEnd::error(format!("{id} is not on its way any more: it was taken back, or {to} has ended"));
        }
        self.record(Record::MailTakenBack { ids: vec![id] });
        if let Some(desk) = self.desk_mut(to) {
            desk.inbox.retain(|mail| mail.key() != MailKey::Inside(id));
        }
        CallEnd::done(format!("taken back: {to} will not see it"))
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
