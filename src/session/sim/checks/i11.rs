//! I11: every wait but that for a person has a limit. A run becomes quiet, with nobody in the middle of a turn, and leaving takes
//! five seconds at most.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use uuid::Uuid;

use crate::event::Event;
use crate::protocol::RequestType;

use super::super::log::{Entry, Seen};

/// How long a teammate may take to answer a request to end.
const ANSWER_MAX: Duration = Duration::from_millis(60_100);
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
            Seen::Spins => faults.push("the session runs and runs, and no time passes".to_owned()),
            Seen::Over { .. } => {
                let took = entry.at.saturating_sub(left.take().unwrap_or(entry.at));
                if took > LEAVE_MAX {
                    faults.push(format!("leaving took {took:?}"));
                }
            }
            _ => {}
        }
    }
    if !log.iter().any(|entry| matches!(entry.what, Seen::Quiet)) {
        faults.push("it never became quiet".to_owned());
    }
    let ends = log.iter().rev().find(|entry| matches!(entry.what, Seen::Over { .. } | Seen::Begun { .. }));
    if ends.is_some_and(|entry| matches!(entry.what, Seen::Begun { .. })) {
        faults.push("it never ended".to_owned());
    }
    faults
}

/// A teammate that is asked to end answers within a minute, or is answered for.
pub(super) fn requests_to_end_are_answered(log: &[Entry]) -> Vec<String> {
    let mut asked: BTreeMap<Uuid, Duration> = BTreeMap::new();
    let mut faults = Vec::new();
    for entry in log {
        match &entry.what {
            // The time begins anew with each life.
            Seen::Begun { .. } => asked.values_mut().for_each(|at| *at = entry.at),
            Seen::Item(item) => match &item.event {
                Event::RequestOpened { request } if request.kind == RequestType::Shutdown => {
                    asked.insert(request.id, entry.at);
                }
                Event::RequestEnded { request, .. } => drop(asked.remove(&request.id)),
                _ => {}
            },
            _ => {}
        }
        let late: Vec<Uuid> = asked.iter().filter(|(_, at)| entry.at > **at + ANSWER_MAX).map(|(id, _)| *id).collect();
        for id in late {
            asked.remove(&id);
            faults.push(format!("request {id} to end waits for more than {ANSWER_MAX:?}"));
        }
    }
    faults
}

/// A call that is tried again is tried after a wait that was told, with its cause.
pub(super) fn retries_are_told(log: &[Entry]) -> Vec<String> {
    let mut told: BTreeMap<&str, u32> = BTreeMap::new();
    let mut faults = Vec::new();
    for entry in log {
        match &entry.what {
            Seen::Item(item) => {
                if let Event::Retry { agent, attempt, .. } = &item.event {
                    told.insert(agent.as_str(), *attempt);
                }
            }
            Seen::Ask(ask) if ask.resend == 0 => drop(told.remove(ask.agent.as_str())),
            Seen::Ask(ask) if told.get(ask.agent.as_str()) != Some(&ask.resend) => {
                faults.push(format!("{}'s call {} is tried again in silence", ask.agent, ask.call));
            }
            _ => {}
        }
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
