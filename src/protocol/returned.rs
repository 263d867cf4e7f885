//! Where mail goes that its reader will never read: back to its sender, or to the lead where its sender has ended, too.

use super::message::{Message, MessageType, OutsideMail};
use super::name::AgentName;

/// Mail on its way back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Returned {
    /// Who gets it.
    pub to: AgentName,
    /// What it was, with its text.
    pub text: String,
}

/// What becomes of a message whose reader has ended. `is_there`: does this agent live?
///
/// `None` for what asks or tells only about its reader, or about mail that has come back once: a shutdown request, `undelivered`,
/// and the runtime's other notices.
#[must_use]
pub fn returned(message: &Message, is_there: impl Fn(&AgentName) -> bool) -> Option<Returned> {
    let about_the_reader = matches!(message.kind, MessageType::ShutdownRequest | MessageType::Undelivered);
    if about_the_reader || message.from == AgentName::system() {
        return None;
    }
    let (from, reader, kind) = (&message.from, &message.to, message.kind.word());
    let (to, head) = if from.is_lead() || is_there(from) {
        (from.clone(), format!("to {reader} ({kind}), who has ended"))
    } else if *from == AgentName::user() {
        (AgentName::lead(), format!("from the user to {reader} ({kind}), who has ended"))
    } else {
        (AgentName::lead(), format!("from {from} to {reader} ({kind}), who have both ended"))
    };
    Some(Returned { to, text: format!("{head}: {}", message.content) })
}

/// Outside mail whose reader has ended: nobody knows its sender, so the lead hears of it.
#[must_use]
pub fn returned_outside(mail: &OutsideMail, reader: &AgentName) -> Returned {
    let from = mail.from.as_deref().unwrap_or("somebody");
    let text = format!("outside mail from {from:?} to {reader}, who has ended: {}", mail.content);
    Returned { to: AgentName::lead(), text }
}
