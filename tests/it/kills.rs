//! The plug is pulled at every named point and at random times, again and again, and the session goes on each time. In the end each
//! message stands in its reader's history once and in order, and each effect happened once.
//!
//! `S15_TEST_KILLS` sets how many kills there are, `S15_TEST_SEED` which. Kill points are in development builds alone.
#![allow(clippy::print_stdout, reason = "the count of kills is what one runs this for")]

mod dice;
mod ledger;
mod play;
mod stage;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use play::Play;
use stage::{End, Kill, Stage, perform};

/// Where mail can be caught half-way.
const MAIL_POINTS: [&str; 7] =
    ["append_before", "append_torn", "append_after", "claimed", "drained", "ack_before", "ack_after"];
/// Where a journal can, and where an agent can between what it does and what is recorded of it.
const OTHER_POINTS: [&str; 10] = [
    "journal_before",
    "journal_torn",
    "journal_after",
    "took_in",
    "replied",
    "tool_started",
    "write_intended",
    "tool_done",
    "call_done",
    "acknowledge",
];

/// Kills of a usual run.
const KILLS: usize = 200;
/// Plays that go on side by side.
const SIDE_BY_SIDE: usize = 2;

const PLAY: Play = Play { numbers: 20, outside: 6 };

/// A number from the environment, for a longer run or the same one again.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

#[test]
fn i1_the_play_goes_through_when_nobody_pulls_the_plug() {
    let mut stage = Stage::new(PLAY, 1);
    let as_soon_as_it_can = (0..200).map(|at| Duration::from_millis(at * 2)).collect();
    let end = stage.run(Kill::Never, as_soon_as_it_can);
    let faults = stage.faults();
    let fine = matches!(end, Ok(End::Exited(0))) && faults.is_empty();
    assert!(fine, "{}", stage.report(&format!("{end:?} {faults:#?}")));
}

#[test]
fn the_plug_is_pulled_at_each_point_of_mail() {
    if !cfg!(debug_assertions) {
        return;
    }
    for point in MAIL_POINTS {
        let mut stage = Stage::new(PLAY, 1);
        let end = stage.run(Kill::At(point, 1), Vec::new());
        let killed = matches!(end, Ok(End::Killed)) && stage.killed_at() == [point];
        assert!(killed, "{point}: {}", stage.report(&format!("{end:?}")));
    }
}

#[test]
fn i1_whatever_is_killed_and_when_each_message_is_read_once_and_each_effect_happens_once() {
    if !cfg!(debug_assertions) {
        return;
    }
    let points = [&MAIL_POINTS[..], &OTHER_POINTS].concat();
    let wanted = number("S15_TEST_KILLS").map_or(KILLS, |kills| usize::try_from(kills).unwrap());
    let seed = number("S15_TEST_SEED").unwrap_or_else(|| u64::from(std::process::id()) << 20);
    println!("S15_TEST_SEED={seed} S15_TEST_KILLS={wanted}");
    let began = Instant::now();
    let (plays, kills) = (AtomicU64::new(0), AtomicUsize::new(0));
    let fired: Mutex<BTreeMap<String, usize>> = Mutex::new(BTreeMap::new());
    let reports = Mutex::new(Vec::new());
    let work = || {
        while kills.load(Ordering::SeqCst) < wanted && reports.lock().unwrap().is_empty() {
            let seed = seed + plays.fetch_add(1, Ordering::SeqCst);
            match perform(PLAY, &points, seed) {
                Ok(done) => {
                    kills.fetch_add(done.len(), Ordering::SeqCst);
                    done.into_iter().for_each(|point| *fired.lock().unwrap().entry(point).or_default() += 1);
                }
                Err(report) => {
                    reports.lock().unwrap().push(format!("{report}\nagain: S15_TEST_SEED={seed} S15_TEST_KILLS=1"));
                }
            }
        }
    };
    std::thread::scope(|scope| (0..SIDE_BY_SIDE.min(wanted)).for_each(|_| drop(scope.spawn(work))));
    let reports = reports.into_inner().unwrap();
    assert!(reports.is_empty(), "{}", reports.join("\n\n"));
    let fired = fired.into_inner().unwrap();
    let (kills, plays) = (kills.into_inner(), plays.into_inner());
    println!("{kills} kills in {plays} plays, {:.1} s", began.elapsed().as_secs_f64());
    fired.iter().for_each(|(point, count)| println!("{count:6} {point}"));
    let never: Vec<_> = points.iter().filter(|point| !fired.contains_key(**point)).collect();
    assert!(wanted < KILLS || never.is_empty(), "these never fired: {never:?}");
}
