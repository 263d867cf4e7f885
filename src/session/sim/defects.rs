//! Does the simulation notice? For each defect that can be put into the program on purpose, the check of its invariant must fire.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::seam::Defect;

use super::checks::violations;
use super::life;

/// So many seeds may pass by unnoticed.
const SEEDS_MAX: u64 = 100;

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
}
