//! Mail comes to its reader in portions, and is taken from files no faster than it is read.

use crate::protocol::portion::{Rest, is_backlog, portion};
use crate::protocol::{AgentName, Mail};

use super::{Desk, Session};

impl Desk {
    /// Does more than one portion lie here? Then nothing is added to it before its reader has had some.
    pub(super) fn has_backlog(&self) -> bool {
        is_backlog(&self.inbox)
    }

    /// Does it hold something that starts a turn? A backlog of mere notices does, too: behind it may lie what must not wait.
    pub(super) fn deserves_turn(&self) -> bool {
        self.inbox.iter().any(Mail::wakes) || self.has_backlog()
    }
}

impl Session {
    /// The next portion of a reader's mail, and what waits behind it.
    pub(super) fn take_portion(&mut self, name: &AgentName) -> (Vec<Mail>, Rest) {
        let waiting = self.post.waiting(name);
        let Some(desk) = self.desk_mut(name) else { return (Vec::new(), Rest::default()) };
        let mail: Vec<Mail> = desk.inbox.drain(..portion(&desk.inbox)).collect();
        (mail, Rest { count: desk.inbox.len() + waiting, at_least: desk.more_in_files })
    }
}
