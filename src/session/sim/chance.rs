//! Chance that a number decides: the same seed gives the same choices.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// SplitMix64.
#[derive(Debug)]
pub(super) struct Chance(AtomicU64);

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    pub(super) fn next(&self) -> u64 {
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        let mut z = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// From 0 up to `end`, which is not reached.
    pub(super) fn below(&self, end: usize) -> usize {
        (self.next() >> 32) as usize % end.max(1)
    }

    pub(super) fn percent(&self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(super) fn pick<'a, T>(&self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// A time between two, in milliseconds.
    pub(super) fn millis(&self, from: usize, to: usize) -> Duration {
        Duration::from_millis((from + self.below(to - from)) as u64)
    }
}
