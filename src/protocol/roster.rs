//! A teammate's work: its version, its gate, the plan that waits. Every change of the gate is a transition here.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::gate::Gate;

/// Why a teammate is idle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdleReason {
    /// Nothing to do.
    #[default]
    Done,
    /// Its plan waits for a review.
    WaitingApproval,
    /// A background command runs.
    WaitingJob,
    /// The server limits the rate.
    RateLimited,
    /// Nothing has come from the model for too long.
    Stalled,
}

impl IdleReason {
    /// Its word in notices and views.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::WaitingApproval => "waiting_approval",
            Self::WaitingJob => "waiting_job",
            Self::RateLimited => "rate_limited",
            Self::Stalled => "stalled",
        }
    }
}

/// One teammate's present or last piece of work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// 0 before the first work; raised by each.
    pub version: u32,
    /// Has it begun and not ended?
    pub open: bool,
    /// Its gate.
    pub gate: Gate,
    /// The request of its plan that waits for a review: set exactly while the gate is `pending`.
    pub plan: Option<Uuid>,
}

impl Work {
    /// A new piece of work. Nothing of an earlier one's approval crosses over.
    pub fn begin(&mut self, require_plan: bool) {
        self.version += 1;
        self.open = true;
        self.gate = if require_plan { Gate::Required } else { Gate::NotRequired };
        self.plan = None;
    }

    /// A plan is required in the middle of the work: the gate closes.
    pub fn require_plan(&mut self) {
        self.gate = Gate::Required;
        self.plan = None;
    }

    /// A plan is submitted under a new request.
    ///
    /// # Errors
    /// One waits already, or none is required; the text says what to do.
    pub fn submit(&mut self, request: Uuid) -> Result<(), String> {
        match (self.gate, self.plan) {
            (Gate::Required | Gate::Rejected, _) => {
                // A work that ended with its gate closed (with a question, say) goes on with its plan.
                self.open = true;
                self.gate = Gate::Pending;
                self.plan = Some(request);
                Ok(())
            }
            (Gate::Pending, Some(waiting)) => {
                Err(format!("your plan already waits for its review (request {waiting}); end your turn"))
            }
            (Gate::Approved, _) => Err("your plan is approved already; go ahead".to_owned()),
            (Gate::NotRequired | Gate::Pending, _) => Err("no plan is required for this; go ahead".to_owned()),
        }
    }

    /// The plan was reviewed. Only the pending request of the present work moves the gate (I3).
    ///
    /// # Errors
    /// It is not that request; nothing has changed.
    pub fn reviewed(&mut self, request: Uuid, approve: bool) -> Result<(), String> {
        if self.gate != Gate::Pending || self.plan != Some(request) {
            return Err(format!("request {request} is not the plan that waits; nothing changed"));
        }
        self.gate = if approve { Gate::Approved } else { Gate::Rejected };
        self.plan = None;
        Ok(())
    }

    /// The plan that waits was not reviewed in time: the gate stays closed, for another one.
    pub fn plan_expired(&mut self, request: Uuid) {
        if self.plan == Some(request) {
            self.require_plan();
        }
    }

    /// The work is over. A closed gate stays closed until the next one begins.
    pub fn end(&mut self) {
        self.open = false;
        self.plan = None;
        self.gate = match self.gate {
            Gate::Pending => Gate::Required,
            gate @ (Gate::NotRequired | Gate::Required | Gate::Approved | Gate::Rejected) => gate,
        };
    }
}
