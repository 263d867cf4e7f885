//! A teammate's work: its version, its gate, the plan that waits. Every change of the gate is a transition here.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::gate::Gate;
use super::scope::Scope;

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
    /// What the plan that waits asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Scope>,
    /// What the approved plans of this work have opened; `None` where no plan bounds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
}

impl Work {
    /// A new piece of work. Nothing of an earlier one's approval crosses over.
    pub fn begin(&mut self, require_plan: bool) {
        self.version += 1;
        self.open = true;
        self.gate = if require_plan { Gate::Required } else { Gate::NotRequired };
        self.forget_plans();
    }

    /// A plan is required in the middle of the work: the gate closes.
    pub fn require_plan(&mut self) {
        self.gate = Gate::Required;
        self.forget_plans();
    }

    fn forget_plans(&mut self) {
        (self.plan, self.asked, self.scope) = (None, None, None);
    }

    /// A plan is submitted under a new request: the first one, or one that asks for more than what is approved.
    ///
    /// # Errors
    /// One waits already, none is required, or it asks for nothing new; the text says what to do.
    pub fn submit(&mut self, request: Uuid, asked: Scope) -> Result<(), String> {
        let asks_for_more = || self.scope.as_ref().is_some_and(|scope| !asked.is_within(scope));
        match (self.gate, self.plan) {
            (Gate::Required | Gate::Rejected, _) => {}
            (Gate::Approved, _) if asks_for_more() => {}
            (Gate::Pending, Some(waiting)) => {
                return Err(format!("your plan already waits for its review (request {waiting}); end your turn"));
            }
            (Gate::Approved, _) => return Err("your plan is approved already; go ahead".to_owned()),
            (Gate::NotRequired | Gate::Pending, _) => return Err("no plan is required for this; go ahead".to_owned()),
        }
        // A work that ended with its gate closed (with a question, say) goes on with its plan.
        self.open = true;
        self.gate = Gate::Pending;
        (self.plan, self.asked) = (Some(request), Some(asked));
        Ok(())
    }

    /// The plan was reviewed. Only the pending request of the present work moves the gate (I3). `narrowed`: less than was asked
    /// for. A refusal to open more leaves open what was.
    ///
    /// # Errors
    /// It is not that request; nothing has changed.
    pub fn reviewed(&mut self, request: Uuid, approve: bool, narrowed: Option<Scope>) -> Result<(), String> {
        if self.gate != Gate::Pending || self.plan != Some(request) {
            return Err(format!("request {request} is not the plan that waits; nothing changed"));
        }
        self.plan = None;
        let asked = self.asked.take();
        if approve && let Some(granted) = narrowed.or(asked) {
            self.scope = Some(self.scope.take().map_or_else(|| granted.clone(), |scope| scope.with(&granted)));
        }
        self.gate = if approve || self.scope.is_some() { Gate::Approved } else { Gate::Rejected };
        Ok(())
    }

    /// The plan that waits was not reviewed in time: the gate stays closed, for another one. Only a review opens it.
    pub fn plan_expired(&mut self, request: Uuid) {
        if self.plan == Some(request) {
            self.require_plan();
        }
    }

    /// The work is over. A closed gate stays closed until the next one begins.
    pub fn end(&mut self) {
        self.open = false;
        (self.plan, self.asked) = (None, None);
        self.gate = match self.gate {
            Gate::Pending => Gate::Required,
            gate @ (Gate::NotRequired | Gate::Required | Gate::Approved | Gate::Rejected) => gate,
        };
    }
}
