//! The world around a simulated session: others write to its mailboxes, its disks fill up, its clock is set.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use super::faults::Fault;
use super::log::Seen;
use super::models::NAMES;
use super::stage::Stage;

/// Appends lines to mailboxes, one writer a mailbox. It lives on while the session is dead.
pub(super) async fn writes(stage: Arc<Stage>, mailboxes: PathBuf) {
    loop {
        let half = stage.scene().halves.keys().next().cloned();
        if let Some(to) = half {
            sleep(stage.chance.millis(1, 6_000)).await;
            ends(&stage, &mailboxes, &to);
        }
        sleep(stage.chance.millis(100, 60_000)).await;
        if mailboxes.is_dir() && stage.may_act() {
            begins(&stage, &mailboxes);
        }
    }
}

/// Begins a line, and ends it if it isn't one of those that come in two pieces.
fn begins(stage: &Stage, mailboxes: &Path) {
    let to = if stage.chance.percent(40) { "lead" } else { *stage.chance.pick(&NAMES) };
    let bad = stage.goes_wrong(250);
    let text = (!bad).then(|| stage.word(&format!("out-{to}")));
    let line = match &text {
        Some(text) => json!({"from": format!("out-{to}"), "content": text}).to_string(),
        None => (*stage.chance.pick(&["oops", "{\"from\":\"x\"}", "[1]", "{\"content\":\"half"])).to_owned(),
    };
    if bad {
        stage.fault(Fault::BadLine);
    }
    let torn = stage.goes_wrong(200);
    let (head, tail) = line.split_at(if torn { line.len() / 2 } else { 0 });
    stage.scene().halves.insert(to.to_owned(), (format!("{tail}\n"), text));
    if torn {
        stage.fault(Fault::TornLine);
        append(mailboxes, to, head);
        hint(stage);
    } else {
        ends(stage, mailboxes, to);
    }
}

fn ends(stage: &Stage, mailboxes: &Path, to: &str) {
    let half = stage.scene().halves.remove(to);
    let Some((rest, text)) = half else { return };
    append(mailboxes, to, &rest);
    stage.saw(Seen::Outside { to: to.to_owned(), text });
    hint(stage);
}

fn append(mailboxes: &Path, to: &str, text: &str) {
    let path = mailboxes.join(format!("{to}.jsonl"));
    OpenOptions::new().append(true).create(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

/// What a watch would say, unless it doesn't.
fn hint(stage: &Stage) {
    if stage.goes_wrong(200) {
        stage.fault(Fault::HintLost);
    } else if let Some(hint) = &stage.scene().hint {
        hint.notify_one();
    }
}

/// Fills disks for a while and sets the clock.
pub(super) async fn weather(stage: Arc<Stage>) {
    loop {
        sleep(stage.chance.millis(100, 120_000)).await;
        if stage.scene().calm {
            return;
        }
        if stage.goes_wrong(400) {
            let disk = stage.chance.below(3);
            let until = stage.elapsed() + stage.chance.millis(100, 120_000);
            stage.scene().full_until[disk] = until;
        }
        if stage.goes_wrong(150) {
            let back = stage.chance.percent(50);
            let seconds = stage.chance.below(100_000) as i64;
            stage.scene().jumped += if back { -seconds } else { seconds };
            stage.fault(Fault::ClockJump);
        }
    }
}

/// Nothing is full any more, and nothing more goes wrong here.
pub(super) fn clears_up(stage: &Stage) {
    let mut scene = stage.scene();
    (scene.calm, scene.full_until) = (true, [Duration::ZERO; 3]);
}
