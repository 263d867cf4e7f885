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

/// Appends lines to mailboxes, one writer a mailbox.
pub(super) async fn writes(stage: Arc<Stage>, mailboxes: PathBuf) {
    loop {
        sleep(stage.chance.millis(100, 60_000)).await;
        if !mailboxes.is_dir() || !stage.may_act() {
            continue;
        }
        let to = if stage.chance.percent(40) { "lead" } else { *stage.chance.pick(&NAMES) };
        let path = mailboxes.join(format!("{to}.jsonl"));
        let bad = stage.goes_wrong(250);
        let text = (!bad).then(|| stage.word(&format!("out-{to}")));
        let line = match &text {
            Some(text) => json!({"from": format!("out-{to}"), "content": text}).to_string(),
            None => stage.chance.pick(&["oops", "{\"from\":\"x\"}", "[1]", "{\"content\":\"half"]).to_string(),
        };
        if bad {
            stage.fault(Fault::BadLine);
        }
        let mut rest = line.as_str();
        if stage.goes_wrong(200) {
            stage.fault(Fault::TornLine);
            let (head, tail) = line.split_at(line.len() / 2);
            append(&path, head);
            hint(&stage);
            sleep(stage.chance.millis(1, 6_000)).await;
            rest = tail;
        }
        append(&path, &format!("{rest}\n"));
        stage.saw(Seen::Outside { to: to.to_owned(), text });
        hint(&stage);
    }
}

fn append(path: &Path, text: &str) {
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
        if stage.goes_wrong(400) {
            let disk = stage.chance.below(3);
            let until = stage.elapsed() + stage.chance.millis(100, 40_000);
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

/// Nothing is full any more.
pub(super) fn clears_up(stage: &Stage) {
    stage.scene().full_until = [Duration::ZERO; 3];
}
