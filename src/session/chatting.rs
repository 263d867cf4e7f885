//! Two agents that do nothing but write to each other: the lead is told, and the user with it, and each further message costs its
//! sender a pause. No message waits for that, only the answer to the call that sent it. A resumed session counts anew.

use std::time::Duration;

use tokio::time::Instant;

use crate::agent::{CallEnd, Caller};
use crate::protocol::chatter::Talk;
use crate::protocol::span::in_words;
use crate::protocol::{AgentName, Message, MessageType, Metadata};

use super::Session;

/// The end of a call that is told later. It is settled already.
pub(super) struct Slowed {
    agent: AgentName,
    until: Instant,
    tell: Box<dyn FnOnce() + Send>,
}

/// Who talks with this message, if an agent does.
pub(super) fn talker(message: &Message) -> Option<&AgentName> {
    let is_agents = message.from != AgentName::system() && message.from != AgentName::user();
    (message.kind == MessageType::Message && is_agents).then_some(&message.from)
}

impl Session {
    /// Counts a message between two agents.
    pub(super) fn count_talk(&mut self, from: &AgentName, to: &AgentName) {
        if let Talk::Noticed { messages } = self.chatter.sent(from, to) {
            let (one, other) = (from.min(to), from.max(to));
            let text = format!(
                "{one} and {other} have sent each other {messages} messages and done nothing else; they are slowed down"
            );
            let (system, lead) = (AgentName::system(), AgentName::lead());
            let told = self.compose(&system, &lead, MessageType::Message, text, Metadata::default());
            self.send(&lead, vec![told]);
        }
    }

    /// Settles a call that sent a message to `to`; its end is told after a pause if the two talk too much.
    pub(super) fn settle_talk(&mut self, caller: Caller, to: Option<&AgentName>, mut end: CallEnd) {
        let pause = to.filter(|_| end.ok).map_or(0, |to| self.chatter.pause(&caller.agent, to));
        if pause == 0 {
            return self.settle_call(caller, end);
        }
        let waited = in_words(pause);
        end.text.push_str(&format!(
            "; slowed by {waited}, since you two only write to each other: do some work, or end your turn if there is none"
        ));
        let agent = caller.agent.clone();
        let tell = self.record_settled(caller, end);
        self.slowed.push(Slowed { agent, until: Instant::now() + Duration::from_secs(pause), tell });
    }

    /// When the next pause is over.
    pub(super) fn pause_deadline(&self) -> Option<Instant> {
        self.slowed.iter().map(|slowed| slowed.until).min()
    }

    /// Ends the pauses that are over.
    pub(super) fn end_pauses(&mut self) {
        let now = Instant::now();
        self.tell_slowed(|slowed| slowed.until <= now);
    }

    /// Somebody's turn is broken off, or everybody's: no pause holds it up.
    pub(super) fn end_pauses_of(&mut self, name: Option<&AgentName>) {
        self.tell_slowed(|slowed| name.is_none_or(|name| slowed.agent == *name));
    }

    fn tell_slowed(&mut self, which: impl Fn(&Slowed) -> bool) {
        for slowed in self.slowed.extract_if(.., |slowed| which(slowed)) {
            self.unit.answer(slowed.tell);
        }
    }
}
