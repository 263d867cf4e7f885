//! Does the simulation notice? For each defect that can be put into the program on purpose, the check of its invariant must fire.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::seam::Defect;

use super::checks::violations;
use super::life;

/// So many seeds may pass by unnoticed.
const SEEDS_MAX: u64 = 500;

/// Runs seeds until the check of `invariant` fires.
fn is_noticed(defect: Defect, invariant: &str) {
    let mut others = 0;
    for seed in 0..SEEDS_MAX {
        // A defect may run into the program's own assertions first.
        let found = catch_unwind(AssertUnwindSafe(|| violations(&life::run(seed, Some(defect)).log)));
        let found = found.unwrap_or_default();
        if let Some(violation) = found.iter().find(|violation| violation.invariant == invariant) {
            println!("{defect:?}: seed {seed}, after {others} that broke something else: {violation}");
            return;
        }
        others += usize::from(!found.is_empty());
    }
    panic!("{defect:?}: {invariant} was not seen to break in {SEEDS_MAX} seeds, though something else was in {others}");
}

macro_rules! noticed {
    ($($name:ident: $defect:ident breaks $invariant:literal;)*) => {
        $(#[test]
        fn $name() {
            is_noticed(Defect::$defect, $invariant);
        })*
    };
}

noticed! {
    i1_mail_that_is_given_twice: DeliverTwice breaks "I1";
    i1_mail_that_is_given_in_the_wrong_order: DeliverReversed breaks "I1";
    i1_mail_that_comes_late: DeliverLate breaks "I1";
    i1_a_look_that_is_left_out: NoLookWhenIdle breaks "I1";
    i1_mail_that_is_never_acknowledged: NoAcknowledge breaks "I1";
    i1_mail_that_is_acknowledged_too_early: AcknowledgeUnrecorded breaks "I1";
    i1_unread_mail_that_a_resume_forgets: ForgetUnread breaks "I1";
    i1_read_lines_that_a_resume_forgets: ForgetTaken breaks "I1";
    i1_a_settled_call_that_a_resume_forgets: ForgetSettled breaks "I1";
    i1_a_delivery_that_a_resume_forgets: ForgetDelivered breaks "I1";
    i1_typed_lines_that_a_resume_forgets: ForgetLines breaks "I1";
    i2_a_yes_to_what_was_not_seen: StaleYes breaks "I2";
    i2_a_return_that_nobody_asked_for: ReturnUnasked breaks "I2";
    i3_a_gate_that_stays_open: GateStaysOpen breaks "I3";
    i3_a_plan_that_is_not_required: PlanForgotten breaks "I3";
    i3_a_write_that_goes_on: WriteGoesOn breaks "I3";
    i4_a_second_answer: AnswerTwice breaks "I4";
    i4_an_answer_of_somebody_else: AnybodyAnswers breaks "I4";
    i5_a_result_that_is_left_out: ResultForgotten breaks "I5";
    i5_a_cut_reply_that_a_resume_forgets: CutForgotten breaks "I5";
    i6_a_work_without_a_last_word: NoLastWord breaks "I6";
    i6_a_work_with_two: LastWordTwice breaks "I6";
    i6_a_missing_idle_notification: NoIdleNotice breaks "I6";
    i7_a_look_that_comes_too_often: LookOften breaks "I7";
    i7_a_turn_for_nothing: TurnForNothing breaks "I7";
    i8_a_bad_line_that_is_dropped: BadLineDropped breaks "I8";
    i8_a_bad_call_that_counts_as_done: BadCallDone breaks "I8";
    i10_a_file_that_is_written_by_half: HalfWritten breaks "I10";
    i11_a_request_to_end_without_a_limit: NoAnswerDeadline breaks "I11";
    i11_a_panic_that_nobody_hears_of: PanicUnheard breaks "I11";
    i11_a_retry_that_is_not_told: RetryUntold breaks "I11";
    i12_a_key_that_is_shown: KeyShown breaks "I12";
}
