//! The plan gate: a pure function of a gate's state and a call's effect. It never lists tools and fails closed.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a tool does to the world. Every tool declares one; a tool without one doesn't compile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Looks, changes nothing.
    Read,
    /// Changes files.
    Write,
    /// Runs a program, which may do anything.
    Execute,
    /// Speaks to the team through the runtime.
    Team,
}

/// The plan gate of one teammate's present work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    /// No plan was asked for.
    #[default]
    NotRequired,
    /// A plan is required and none was submitted.
    Required,
    /// A plan waits for its review.
    Pending,
    /// The present work's plan was approved.
    Approved,
    /// The last plan was rejected; a new one must be submitted.
    Rejected,
}

/// A refusal by the gate. Its text tells the model what to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocked(pub Gate);

impl Gate {
    /// Lets a call through or says why not.
    ///
    /// # Errors
    /// [`Blocked`] for `write` and `execute` while the gate is closed.
    pub fn check(self, effect: Effect) -> Result<(), Blocked> {
        match (self.is_open(), effect) {
            (true, _) | (false, Effect::Read | Effect::Team) => Ok(()),
            (false, Effect::Write | Effect::Execute) => Err(Blocked(self)),
        }
    }

    /// Do `write` and `execute` pass?
    #[must_use]
    pub fn is_open(self) -> bool {
        match self {
            Self::NotRequired | Self::Approved => true,
            Self::Required | Self::Pending | Self::Rejected => false,
        }
    }

    /// The gate's word in events, views and texts.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::NotRequired => "not_required",
            Self::Required => "required",
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
        }
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let next = match self.0 {
            Gate::Required => "Submit a plan with submit_plan and wait for its approval",
            Gate::Pending => "Your plan waits for its approval: end your turn, you will be woken by the answer",
            Gate::Rejected => "Your plan was rejected: submit a changed one with submit_plan and wait for its approval",
            Gate::NotRequired | Gate::Approved => "Try again",
        };
        write!(f, "Blocked: plan status is {}. {next}; until then only reading is allowed.", self.0)
    }
}

impl std::error::Error for Blocked {}
