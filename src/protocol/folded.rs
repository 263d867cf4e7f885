//! Notices that say the same again, shown as one: an agent's idle notices, of which the newest counts, and equal reports of its status.

use std::collections::HashMap;

use super::message::{Mail, MessageType};

/// A message, and how often it came.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Folded<'a> {
    /// The newest of them.
    pub mail: &'a Mail,
    /// 1 for what stands alone.
    pub times: usize,
}

/// The same mail in the same order, each repeated notice once, where the newest of them stood.
#[must_use]
pub fn folded(mail: &[Mail]) -> Vec<Folded<'_>> {
    let mut folded: Vec<Folded<'_>> = Vec::new();
    let mut places = HashMap::new();
    for one in mail.iter().rev() {
        match sameness(one).map(|key| *places.entry(key).or_insert(folded.len())) {
            Some(place) if place < folded.len() => folded[place].times += 1,
            Some(_) | None => folded.push(Folded { mail: one, times: 1 }),
        }
    }
    folded.reverse();
    folded
}

/// What two messages must share to be one: runtime's or outside, sender, and what they say where that matters.
fn sameness(mail: &Mail) -> Option<(bool, &str, &str)> {
    let says = match mail.kind() {
        MessageType::IdleNotification => "",
        MessageType::StatusUpdate => mail.content(),
        MessageType::Message
        | MessageType::Broadcast
        | MessageType::TaskAssignment
        | MessageType::Result
        | MessageType::Error
        | MessageType::PlanRequest
        | MessageType::PlanApprovalRequest
        | MessageType::PlanApprovalResponse
        | MessageType::ShutdownRequest
        | MessageType::ShutdownResponse
        | MessageType::Undelivered
        | MessageType::RequestExpired
        | MessageType::JobFinished
        | MessageType::TeamQuiet => return None,
    };
    Some(match mail {
        Mail::Inside(message) => (true, message.from.as_str(), says),
        Mail::Outside(outside) => (false, outside.from.as_deref().unwrap_or_default(), says),
    })
}
