//! What must hold in every simulated run: a function for each invariant, told from what was seen alone.
//!
//! Not judged here: I9 (`tools/tests/paths.rs`, `tools/tests/hostile.rs`, `tools/tests/shells.rs`).

mod i1;
mod i11;
mod i5;

use std::fmt;

use super::log::{Entry, Seen};

/// A check: the name of its invariant, how far it holds, and what of the log breaks it, a sentence each.
type Check = (&'static str, Holds, fn(&[Entry]) -> Vec<String>);

/// How far an invariant can be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    /// Whatever happens.
    Always,
    /// Until a session ends whose last steps could not be recorded: that can't be resumed, and the user was told so.
    WhileRecorded,
}

/// All of them.
const CHECKS: [Check; 4] = [
    ("I1", Holds::WhileRecorded, i1::mail_arrives_once_in_order_and_in_time),
    ("I5", Holds::Always, i5::histories_are_well_formed),
    ("I5", Holds::WhileRecorded, i5::histories_only_grow),
    ("I11", Holds::Always, i11::nothing_waits_without_a_limit),
];

/// An invariant that didn't hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Violation {
    pub(super) invariant: &'static str,
    pub(super) text: String,
}

/// Everything that doesn't hold in a run.
pub(super) fn violations(log: &[Entry]) -> Vec<Violation> {
    let known = log.iter().position(|entry| matches!(entry.what, Seen::Begun { lost: true })).unwrap_or(log.len());
    let judge = |(invariant, holds, check): &Check| {
        let found = match holds {
            Holds::Always => check(log),
            Holds::WhileRecorded => check(&log[..known]),
        };
        found.into_iter().map(|text| Violation { invariant, text })
    };
    CHECKS.iter().flat_map(judge).collect()
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.invariant, self.text)
    }
}
