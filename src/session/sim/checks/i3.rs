//! I3: no `write` or `execute` tool runs for a teammate whose gate is closed. How the gate must stand is told here from what was
//! proposed, mailed and answered, and from nothing that the gate says of itself.
//!
//! Commands are not simulated; that they are held by the gate is tested in `agent` and `tests/it/team.rs`.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::event::{Event, Record, Status};
use crate::protocol::shown::PLAN_REQUIRED;
use crate::protocol::{AgentName, Message, MessageType, RequestStatus, RequestType};

use super::super::log::{Entry, items};

pub(super) fn nothing_is_changed_behind_a_closed_gate(log: &[Entry]) -> Vec<String> {
    let mut gates = Gates::default();
    for item in items(log) {
        gates.see(&item.event);
    }
    gates.faults
}

#[derive(Default)]
struct Gates {
    /// Who must have a plan, as the user was shown it, and as they confirmed it.
    shown: BTreeMap<String, bool>,
    proposed: BTreeMap<String, bool>,
    /// Spawned, and the first task has not been sent.
    spawning: Option<String>,
    /// Whose gate is closed, and the plan that can open it.
    closed: BTreeMap<String, Option<Uuid>>,
    faults: Vec<String>,
}

impl Gates {
    fn see(&mut self, event: &Event) {
        match event {
            Event::Proposed { proposal } | Event::ProposalChanged { proposal } => {
                let plans = proposal.members.iter().map(|member| (member.name.to_string(), member.require_plan));
                self.shown.extend(plans);
            }
            Event::Confirmed { members } => {
                let shown = |name: &AgentName| self.shown.get(name.as_str()).map(|plan| (name.to_string(), *plan));
                self.proposed.extend(members.iter().filter_map(shown).collect::<Vec<_>>());
            }
            Event::Teammate { name, status: Status::Spawning, .. } => self.spawning = Some(name.to_string()),
            Event::MailSent { message } => self.mailed(message),
            Event::RequestOpened { request } if request.kind == RequestType::Plan => {
                if let Some(plan) = self.closed.get_mut(request.from.as_str()) {
                    *plan = Some(request.id);
                }
            }
            Event::RequestEnded { request, .. } => {
                let name = request.from.as_str();
                if self.closed.get(name).is_some_and(|plan| *plan == Some(request.id)) {
                    if request.status == RequestStatus::Approved {
                        self.closed.remove(name);
                    } else {
                        self.closed.insert(name.to_owned(), None);
                    }
                }
            }
            Event::Record(Record::WriteIntended { agent, .. }) if self.closed.contains_key(agent.as_str()) => {
                self.faults.push(format!("{agent} changed a file while its gate is closed"));
            }
            _ => {}
        }
    }

    fn mailed(&mut self, message: &Message) {
        let name = message.to.to_string();
        match message.kind {
            MessageType::TaskAssignment => {
                let closes = message.metadata.other.contains_key(PLAN_REQUIRED);
                let first = self.spawning.take_if(|spawning| *spawning == name).is_some();
                if first && !closes && self.proposed.get(&name) == Some(&true) {
                    self.faults.push(format!("{name} was to have a plan, and was not told so"));
                }
                if closes {
                    self.closed.insert(name, None);
                } else {
                    self.closed.remove(&name);
                }
            }
            MessageType::PlanRequest => drop(self.closed.insert(name, None)),
            _ => {}
        }
    }
}
