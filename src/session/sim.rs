//! The whole team runtime in virtual time: real session, agents, mailboxes and journal; models, user, disks and clock by chance.
//!
//! A seed decides everything. `S15_TEST_SEED=7 cargo test --lib sim -- --nocapture` runs one again and shows all that was seen;
//! `S15_TEST_SEEDS=5000` runs more of them.

mod chance;
mod checks;
mod defects;
mod faults;
mod life;
mod log;
mod models;
mod outside;
mod screen;
mod stage;
mod system;
mod user;
mod words;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use checks::{Violation, violations};
use faults::{Counts, Fault};

/// How many seeds are run, unless said otherwise.
const SEEDS: u64 = 300;
/// Seeds that run at once.
const THREADS: usize = 2;

/// What came of many seeds.
#[derive(Default)]
struct Tally {
    counts: Counts,
    entries: usize,
    failed: Vec<(u64, Vec<Violation>)>,
}

#[test]
fn the_invariants_hold_whatever_goes_wrong() {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let since = Instant::now();
    if let Some(seed) = number("S15_TEST_SEED") {
        let run = life::run(seed, None);
        run.log.iter().for_each(|entry| println!("{entry}"));
        let found = violations(&run.log);
        assert!(found.is_empty(), "{}", report(&[(seed, found)]));
        return;
    }
    let seeds = number("S15_TEST_SEEDS").unwrap_or(SEEDS);
    let tally = tally(seeds);
    println!("{seeds} seeds, {} entries, {:?}; {:?}", tally.entries, since.elapsed(), tally.counts);
    assert!(tally.failed.is_empty(), "{}", report(&tally.failed));
    let missing: Vec<&Fault> = Fault::ALL.iter().filter(|fault| !tally.counts.contains_key(fault)).collect();
    assert!(missing.is_empty(), "these never happened: {missing:?}");
}

fn tally(seeds: u64) -> Tally {
    let (next, tally) = (AtomicU64::new(0), Mutex::new(Tally::default()));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds {
                return;
            }
            let run = life::run(seed, None);
            let found = violations(&run.log);
            let mut tally = tally.lock().unwrap();
            run.counts.iter().for_each(|(fault, count)| *tally.counts.entry(*fault).or_default() += count);
            tally.entries += run.log.len();
            if !found.is_empty() {
                tally.failed.push((seed, found));
            }
        }
    };
    std::thread::scope(|scope| {
        (0..THREADS).for_each(|_| drop(scope.spawn(work)));
    });
    tally.into_inner().unwrap()
}

/// What failed, and how to see it.
fn report(failed: &[(u64, Vec<Violation>)]) -> String {
    let mut text = format!("{} seeds failed:\n", failed.len());
    for (seed, found) in failed.iter().take(20) {
        for violation in found.iter().take(5) {
            text.push_str(&format!("seed {seed}: {violation}\n"));
        }
        text.push_str(&format!("  S15_TEST_SEED={seed} cargo test --lib sim -- --nocapture\n"));
    }
    text
}
