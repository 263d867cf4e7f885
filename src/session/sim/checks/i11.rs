//! I11: every wait but that for a person has a limit. A run becomes quiet, with nobody in the middle of a turn, and leaving takes
//! five seconds at most.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::event::Event;

use super::super::log::{Entry, Seen};

/// How long leaving may take, with some room for a task to be told.
const LEAVE_MAX: Duration = Duration::from_millis(5_100);

pub(super) fn nothing_waits_without_a_limit(log: &[Entry]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut busy: BTreeSet<String> = BTreeSet::new();
    let mut left = None;
    for entry in log {
        match &entry.what {
            Seen::Begun { .. } => busy.clear(),
            Seen::Item(item) => turns(&item.event, &mut busy),
            Seen::Quiet => faults.extend(busy.iter().map(|name| format!("{name}'s turn hangs"))),
            Seen::Typed { text, .. } if text == "/quit" => left = left.or(Some(entry.at)),
            Seen::Over { .. } => {
                let took = entry.at.saturating_sub(left.take().unwrap_or(entry.at));
                if took > LEAVE_MAX {
                    faults.push(format!("leaving took {took:?}"));
                }
            }
            Seen::Ask(_) | Seen::Typed { .. } | Seen::Outside { .. } | Seen::Fault(_) | Seen::Killed => {}
        }
    }
    if !log.iter().any(|entry| matches!(entry.what, Seen::Quiet)) {
        faults.push("it never became quiet".to_owned());
    }
    if !log.last().is_some_and(|entry| matches!(entry.what, Seen::Over { .. })) {
        faults.push("it never ended".to_owned());
    }
    faults
}

fn turns(event: &Event, busy: &mut BTreeSet<String>) {
    match event {
        Event::TurnStarted { agent } => {
            busy.insert(agent.to_string());
        }
        Event::TurnEnded { agent, .. } => {
            busy.remove(agent.as_str());
        }
        Event::Teammate { name, status, .. } if status.has_ended() => {
            busy.remove(name.as_str());
        }
        Event::Notice { text, .. } if text.starts_with("the lead's turn failed (") => {
            busy.remove("lead");
        }
        _ => {}
    }
}
