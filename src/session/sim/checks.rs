//! What must hold in every simulated run: a function for each invariant, told from what was seen alone.
//!
//! Not judged here: I9 (`tools/tests/paths.rs`, `tools/tests/hostile.rs`, `tools/tests/shells.rs`).

mod i1;
mod i10;
mod i11;
mod i12;
mod i1_waiting;
mod i2;
mod i3;
mod i4;
mod i5;
mod i6;
mod i7;
mod i8;

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
const CHECKS: [Check; 20] = [
    ("I1", Holds::WhileRecorded, i1::mail_arrives_once_in_order_and_in_time),
    ("I1", Holds::WhileRecorded, i1_waiting::idle_readers_are_woken_at_once),
    ("I1", Holds::Always, i1_waiting::no_line_of_others_is_lost),
    ("I2", Holds::WhileRecorded, i2::nobody_is_spawned_without_the_users_word),
    ("I3", Holds::WhileRecorded, i3::nothing_is_changed_behind_a_closed_gate),
    ("I4", Holds::WhileRecorded, i4::a_request_changes_once),
    ("I5", Holds::Always, i5::histories_are_well_formed),
    ("I5", Holds::WhileRecorded, i5::histories_only_grow),
    ("I5", Holds::WhileRecorded, i5::results_are_those_of_their_calls),
    ("I6", Holds::WhileRecorded, i6::every_work_has_one_last_word),
    ("I7", Holds::WhileRecorded, i7::no_model_call_has_no_cause),
    ("I7", Holds::WhileRecorded, i7::no_turn_has_no_cause),
    ("I7", Holds::Always, i7::a_quiet_hour_wakes_nobody),
    ("I8", Holds::WhileRecorded, i8::bad_lines_are_set_aside),
    ("I8", Holds::Always, i8::bad_calls_are_answered),
    ("I10", Holds::WhileRecorded, i10::files_hold_what_was_last_written),
    ("I11", Holds::Always, i11::nothing_waits_without_a_limit),
    ("I11", Holds::WhileRecorded, i11::requests_to_end_are_answered),
    ("I11", Holds::WhileRecorded, i11::retries_are_told),
    ("I12", Holds::Always, i12::the_key_is_nowhere),
];

/// An invariant that didn't hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Violation {
    pub(super) invariant: &'static str,
    pub(super) text: String,
}

/// Everything that doesn't hold in a run.
pub(super) fn violations(log: &[Entry]) -> Vec<Violation> {
    let known = log.iter().position(|entry| matches!(entry.what, Seen::Begun { lost: true, .. })).unwrap_or(log.len());
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
