//! What the runtime issued to one reader, held in memory until it is acknowledged: the truth about inside mail.
//!
//! Knows nothing of files but that a line of each message may stand in one.

use std::collections::HashSet;

use uuid::Uuid;

use crate::protocol::{Mail, MailKey, Message};
use crate::seam::{self, Defect};

/// A message that was issued and not yet acknowledged.
#[derive(Debug)]
struct Outstanding {
    message: Message,
    drained: bool,
    /// Was its line written, or given up?
    written: bool,
}

/// The messages of one reader.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// Oldest first.
    outstanding: Vec<Outstanding>,
    /// Lines of ours that may stand in a file and were not met yet.
    expected: HashSet<Uuid>,
}

impl Held {
    /// Holds messages for the reader. `written`: do their lines stand in a file already?
    pub(super) fn issue(&mut self, batch: Vec<Message>, written: bool) {
        for message in batch {
            self.expected.insert(message.id);
            self.outstanding.push(Outstanding { message, drained: false, written });
        }
    }

    /// An earlier run issued this; its line was written then, or is not missed.
    pub(super) fn restore(&mut self, message: Message, drained: bool) {
        self.outstanding.push(Outstanding { message, drained, written: true });
    }

    /// A line of this message may stand in a file.
    pub(super) fn expect(&mut self, id: Uuid) {
        self.expected.insert(id);
    }

    /// A line with this id was met: was it one of ours? Each is met once.
    pub(super) fn meet(&mut self, id: Uuid) -> bool {
        self.expected.remove(&id)
    }

    pub(super) fn is_unwritten(&self) -> bool {
        self.outstanding.iter().any(|one| !one.written)
    }

    /// The messages whose lines are to be written, once.
    pub(super) fn take_unwritten(&mut self) -> Vec<Message> {
        let unwritten = self.outstanding.iter_mut().filter(|one| !one.written);
        unwritten
            .map(|one| {
                one.written = true;
                one.message.clone()
            })
            .collect()
    }

    /// Gives the reader what it was not given yet.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Mail> {
        self.outstanding.iter_mut().filter(|one| !one.drained).map(|one| {
            one.drained = !seam::broken(Defect::DeliverTwice);
            Mail::Inside(one.message.clone())
        })
    }

    /// The messages with these keys have reached the reader.
    pub(super) fn acknowledge(&mut self, keys: &HashSet<&MailKey>) {
        self.outstanding.retain(|one| !keys.contains(&MailKey::Inside(one.message.id)));
    }

    /// Takes back what was issued and not acknowledged.
    pub(super) fn withdraw(&mut self) -> Vec<Message> {
        self.outstanding.drain(..).map(|one| one.message).collect()
    }

    /// Takes back one of them.
    pub(super) fn withdraw_one(&mut self, id: Uuid) -> Option<Message> {
        let at = self.outstanding.iter().position(|one| one.message.id == id)?;
        Some(self.outstanding.remove(at).message)
    }

    /// Issued and not yet drained.
    pub(super) fn waiting(&self) -> usize {
        self.outstanding.iter().filter(|one| !one.drained).count()
    }

    pub(super) fn is_outstanding(&self, id: Uuid) -> bool {
        self.outstanding.iter().any(|one| one.message.id == id)
    }
}
