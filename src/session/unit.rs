//! What one step of the session did is recorded as one unit, and only then let out: to files, to agents, to idle readers.
//!
//! So a crash finds either all of a step in the journal or nothing of it, and nothing outside that the journal doesn't know.

use std::collections::BTreeSet;

use crate::agent::{CallEnd, Caller};
use crate::event::{Event, Item, Level, Record};
use crate::killpoint;
use crate::protocol::{AgentName, MailKey};
use crate::seam::{self, Defect};

use super::Session;

/// What is let out once it is recorded. Dropped with the session, so that who still waits for an answer gets none.
#[derive(Default)]
pub(super) struct Unit {
    items: Vec<Item>,
    /// Whose mailbox gets lines.
    letters: BTreeSet<AgentName>,
    /// Mail that has reached its reader.
    arrived: Vec<(AgentName, Vec<MailKey>)>,
    /// Agents that wait for an answer.
    answers: Vec<Box<dyn FnOnce() + Send>>,
    /// Who may have something to read.
    looks: Vec<AgentName>,
}

impl Unit {
    pub(super) fn letter_to(&mut self, name: &AgentName) {
        self.letters.insert(name.clone());
    }

    pub(super) fn arrived(&mut self, name: &AgentName, keys: Vec<MailKey>) {
        self.arrived.push((name.clone(), keys));
    }

    pub(super) fn answer(&mut self, answer: impl FnOnce() + Send + 'static) {
        self.answers.push(Box::new(answer));
    }

    pub(super) fn look_at(&mut self, name: &AgentName) {
        self.looks.push(name.clone());
    }
}

impl Session {
    pub(super) fn emit(&mut self, event: Event) -> u64 {
        let item = self.events.tell(event);
        let seq = item.seq;
        self.unit.items.push(item);
        seq
    }

    pub(super) fn notice(&mut self, level: Level, text: impl Into<String>) {
        self.emit(Event::Notice { level, text: text.into() });
    }

    pub(super) fn record(&mut self, record: Record) {
        self.emit(Event::Record(record));
    }

    /// Ends a team call: its result is recorded with what it did, and told afterwards.
    pub(super) fn settle_call(&mut self, caller: Caller, end: CallEnd) {
        let tell = self.record_settled(caller, end);
        self.unit.answer(tell);
    }

    /// Records the end of a team call; gives what tells it.
    pub(super) fn record_settled(&mut self, caller: Caller, end: CallEnd) -> Box<dyn FnOnce() + Send> {
        let Caller { agent, call_id, answer } = caller;
        let CallEnd { ok, text: result, ends_turn } = end.clone();
        self.record(Record::CallSettled { agent, call_id, ok, result, ends_turn });
        Box::new(move || {
            killpoint::pass("call_done");
            // Whose task is gone needs no answer.
            drop(answer.send(end));
        })
    }

    /// Records what the last step did, then lets it out; an idle reader that is woken by it is the next step.
    pub(super) fn commit(&mut self) {
        loop {
            self.record_changes();
            let unit = std::mem::take(&mut self.unit);
            self.events.record(&unit.items);
            for reader in &unit.letters {
                if let Err(error) = self.post.write_out(reader) {
                    self.notice(Level::Warning, format!("{error}; the message was handed over directly"));
                }
            }
            self.unacknowledged.extend(unit.arrived);
            self.acknowledge();
            unit.answers.into_iter().for_each(|answer| answer());
            unit.looks.iter().for_each(|name| self.look(name));
            if self.unit.items.is_empty() && self.unit.looks.is_empty() && self.unit.answers.is_empty() {
                return;
            }
        }
    }

    /// Lets go of mail that has arrived, once the journal has it: until then its file is the only record of it.
    fn acknowledge(&mut self) {
        let recorded = self.events.all_recorded() || seam::broken(Defect::AcknowledgeUnrecorded);
        if self.unacknowledged.is_empty() || !recorded {
            return;
        }
        killpoint::pass("acknowledge");
        for (name, keys) in std::mem::take(&mut self.unacknowledged) {
            if let Err(error) = self.post.acknowledge(&name, &keys) {
                self.notice(Level::Warning, error.to_string());
            }
        }
    }

    /// Records how members and the user's word stand, where that has changed.
    fn record_changes(&mut self) {
        let changed: Vec<_> = self.team.iter_mut().filter_map(super::Teammate::changed_state).collect();
        for state in changed {
            self.record(Record::Member { state });
        }
        if self.confirmation != self.recorded_confirmation {
            self.recorded_confirmation = self.confirmation.clone();
            self.record(Record::Confirmation { state: self.confirmation.clone() });
        }
    }
}
