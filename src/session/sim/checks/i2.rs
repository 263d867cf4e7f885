//! I2: nobody is spawned but by the user's own word: a yes typed after the table was on screen, or the user's own `--yes`.

use std::collections::BTreeSet;

use crate::event::{Event, Record, Status};
use crate::protocol::confirm::{Verdict, verdict};

use super::super::log::{Entry, Seen};

pub(super) fn nobody_is_spawned_without_the_users_word(log: &[Entry]) -> Vec<String> {
    let mut word = Word::default();
    for entry in log {
        word.see(&entry.what);
    }
    word.faults
}

#[derive(Default)]
struct Word {
    /// The user's settings confirm every proposal.
    yes: bool,
    /// The open proposal: the event that showed it last, and its names.
    table: Option<(u64, Vec<String>)>,
    /// Consent that was typed and has confirmed nothing yet: what had been seen.
    consents: Vec<u64>,
    /// Confirmed and not yet spawned.
    confirmed: BTreeSet<String>,
    ended: BTreeSet<String>,
    stopped: BTreeSet<String>,
    /// Has the lead's present turn a line of the user's?
    has_line: bool,
    in_turn: bool,
    /// The turn that comes next is one that an earlier life began.
    goes_on: bool,
    faults: Vec<String>,
}

impl Word {
    fn see(&mut self, what: &Seen) {
        match what {
            Seen::Begun { yes, .. } => {
                self.yes = *yes;
                self.consents.clear();
                self.goes_on = self.in_turn;
            }
            Seen::Typed { text, seen } if verdict(text) == Verdict::Yes => self.consents.push(*seen),
            Seen::Item(item) => self.happened(item.seq, &item.event),
            _ => {}
        }
    }

    fn happened(&mut self, seq: u64, event: &Event) {
        match event {
            Event::Proposed { proposal } | Event::ProposalChanged { proposal } => {
                let names = proposal.members.iter().map(|member| member.name.to_string()).collect();
                self.table = Some((seq, names));
                if let Event::Proposed { .. } = event {
                    self.confirmed.clear();
                }
            }
            Event::ProposalVoided { .. } => self.table = None,
            Event::Confirmed { members } => {
                let members: Vec<String> = members.iter().map(ToString::to_string).collect();
                self.confirmed(members);
            }
            Event::Teammate { name, reason, .. } if reason == "stopped by the user" => {
                self.stopped.insert(name.to_string());
                self.ended.insert(name.to_string());
            }
            Event::Teammate { name, status, .. } => self.stands(name.to_string(), *status),
            Event::TurnStarted { agent } if agent.is_lead() => {
                self.has_line &= std::mem::take(&mut self.goes_on);
                self.in_turn = true;
            }
            Event::TurnEnded { agent, .. } if agent.is_lead() => self.in_turn = false,
            Event::Record(Record::TookIn { agent, lines, .. }) if agent.is_lead() => self.has_line |= *lines > 0,
            _ => {}
        }
    }

    fn confirmed(&mut self, members: Vec<String>) {
        let Some((shown, names)) = self.table.take() else {
            return self.faults.push(format!("{members:?} were confirmed and not proposed"));
        };
        if names != members {
            self.faults.push(format!("{members:?} were confirmed, and {names:?} were on screen"));
        }
        let consent = self.consents.iter().position(|seen| *seen >= shown);
        match consent {
            Some(at) => drop(self.consents.drain(..=at)),
            None if self.yes => {}
            None => self.faults.push(format!("{members:?} were confirmed, and nobody said yes to them")),
        }
        self.confirmed = members.into_iter().collect();
    }

    fn stands(&mut self, name: String, status: Status) {
        if status.has_ended() {
            self.ended.insert(name);
        } else if status == Status::Spawning {
            let returns = self.ended.remove(&name) && self.has_line && !self.stopped.contains(&name);
            if !self.confirmed.remove(&name) && !returns {
                self.faults.push(format!("{name} was spawned without the user's word"));
            }
            self.stopped.remove(&name);
        }
    }
}
