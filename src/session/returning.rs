//! Mail that an ended teammate will never read: taken back, and given to somebody who can do something about it.

use crate::event::Record;
use crate::protocol::returned::{Returned, returned, returned_outside};
use crate::protocol::{AgentName, Mail, MailKey, Message, MessageType, Metadata};

use super::Session;

impl Session {
    /// What a reader was sent and has not been given.
    pub(super) fn take_back(&mut self, name: &AgentName) -> Vec<Message> {
        let mut unread = self.post.withdraw(name);
        if !unread.is_empty() {
            self.record(Record::MailTakenBack { ids: unread.iter().map(|message| message.id).collect() });
        }
        let arrived = |message: &Message| {
            let key = MailKey::Inside(message.id);
            self.unacknowledged.iter().any(|(reader, keys)| reader == name && keys.contains(&key))
        };
        unread.retain(|message| !arrived(message));
        unread
    }

    /// Sends it to who can do something about it, with its text. `inbox`: what was drained for the reader.
    pub(super) fn return_to_senders(&mut self, name: &AgentName, unread: &[Message], inbox: &[Mail]) {
        for message in unread {
            let is_there = |from: &AgentName| self.living().any(|teammate| teammate.name() == from);
            if let Some(back) = returned(message, is_there) {
                let metadata = Metadata {
                    request_id: message.metadata.request_id,
                    reply_to: (back.to == message.from).then_some(message.id),
                    ..Metadata::default()
                };
                self.send_back(back, metadata);
            }
        }
        let mut keys = Vec::new();
        for mail in inbox {
            if let Mail::Outside(outside) = mail {
                self.send_back(returned_outside(outside, name), Metadata::default());
                keys.push(mail.key());
            }
        }
        if !keys.is_empty() {
            // The lead has its text; in a later life of the reader it would come a second time.
            self.unit.arrived(name, keys);
        }
    }

    fn send_back(&mut self, Returned { to, text }: Returned, metadata: Metadata) {
        let message = self.compose(&AgentName::system(), &to, MessageType::Undelivered, text, metadata);
        self.send(&to, vec![message]);
    }
}
