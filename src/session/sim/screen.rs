//! What stands on the screen of a simulated user, as far as they act by it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use uuid::Uuid;

use crate::event::{Event, Item, Status};
use crate::protocol::{RequestStatus, RequestType};

/// What can be known by looking.
#[derive(Clone, Debug, Default)]
pub(super) struct Screen {
    pub(super) seq: u64,
    /// When something last happened.
    pub(super) at: Duration,
    /// The names of the open proposal.
    pub(super) proposed: Vec<String>,
    /// Confirmed and not yet spawned.
    pub(super) confirmed: Vec<String>,
    pub(super) question: bool,
    pub(super) members: BTreeMap<String, Status>,
    /// Plans that wait for an answer.
    pub(super) plans: BTreeSet<Uuid>,
    /// Requests to end that wait for an answer.
    pub(super) shutdowns: BTreeSet<Uuid>,
    /// Whose turn is under way.
    pub(super) busy: BTreeSet<String>,
}

impl Screen {
    pub(super) fn show(&mut self, item: &Item, at: Duration) {
        self.seq = item.seq;
        self.at = at;
        match &item.event {
            Event::Proposed { proposal } | Event::ProposalChanged { proposal } => {
                self.proposed = proposal.members.iter().map(|member| member.name.to_string()).collect();
            }
            Event::ProposalVoided { .. } => self.proposed.clear(),
            Event::Confirmed { members } => {
                self.proposed.clear();
                self.confirmed = members.iter().map(ToString::to_string).collect();
            }
            Event::Question { .. } => self.question = true,
            Event::Answered { .. } => self.question = false,
            Event::Teammate { name, status, .. } => {
                if *status == Status::Spawning {
                    self.confirmed.retain(|confirmed| confirmed != name.as_str());
                }
                if status.has_ended() {
                    self.busy.remove(name.as_str());
                }
                self.members.insert(name.to_string(), *status);
            }
            Event::RequestOpened { request } => {
                let open = match request.kind {
                    RequestType::Plan => &mut self.plans,
                    RequestType::Shutdown => &mut self.shutdowns,
                };
                open.insert(request.id);
            }
            Event::RequestEnded { request, .. } if request.status != RequestStatus::Pending => {
                self.plans.remove(&request.id);
                self.shutdowns.remove(&request.id);
            }
            Event::TurnStarted { agent } => {
                self.busy.insert(agent.to_string());
            }
            Event::TurnEnded { agent, .. } => {
                self.busy.remove(agent.as_str());
            }
            Event::Notice { text, .. } if text.starts_with("the lead's turn failed (") => {
                self.busy.remove("lead");
            }
            _ => {}
        }
    }
}
