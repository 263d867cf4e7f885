//! I7: idle costs nothing: no turn and no model call without a cause, and no timer but the safety look.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::event::{Event, Record, TurnEnd};
use crate::protocol::MessageType;

use super::super::log::{Entry, Seen};

/// How often the mailboxes are looked at where there is a watch.
const LOOK_EVERY: Duration = Duration::from_secs(8);

pub(super) fn no_model_call_has_no_cause(log: &[Entry]) -> Vec<String> {
    let mut calls: BTreeMap<&str, u64> = BTreeMap::new();
    let mut faults = Vec::new();
    for entry in log {
        let Seen::Ask(ask) = &entry.what else { continue };
        let last = calls.insert(&ask.agent, ask.call);
        let told = ask.new.iter().any(|message| message["role"] == "user" || message["role"] == "tool");
        if !told && last != Some(ask.call) {
            faults.push(format!("{}'s call {} has nothing new to answer", ask.agent, ask.call));
        }
    }
    faults
}

pub(super) fn no_turn_has_no_cause(log: &[Entry]) -> Vec<String> {
    // What each agent is to have a turn for.
    let mut causes: BTreeMap<String, bool> = BTreeMap::new();
    let mut open: BTreeMap<String, bool> = BTreeMap::new();
    let mut faults = Vec::new();
    for entry in log {
        match &entry.what {
            // A turn that was cut off goes on.
            Seen::Begun { .. } => {
                causes.extend(open.iter().filter(|(_, open)| **open).map(|(name, _)| (name.clone(), true)));
            }
            Seen::Item(item) => match &item.event {
                Event::UserLine { .. } => drop(causes.insert("lead".to_owned(), true)),
                Event::MailSent { message } if message.wakes() => {
                    causes.insert(message.to.to_string(), true);
                }
                Event::MailFromOutside { to, kind, .. }
                    if MessageType::from_word(kind).is_some_and(MessageType::wakes) =>
                {
                    causes.insert(to.to_string(), true);
                }
                Event::TurnStarted { agent } => {
                    if !causes.get(agent.as_str()).is_some_and(|cause| *cause) {
                        faults.push(format!("{agent} has a turn for nothing"));
                    }
                    open.insert(agent.to_string(), true);
                }
                Event::TurnEnded { agent, end } => {
                    open.insert(agent.to_string(), *end == TurnEnd::Suspended);
                }
                Event::Record(Record::TookIn { agent, .. }) => drop(causes.insert(agent.to_string(), false)),
                _ => {}
            },
            _ => {}
        }
    }
    faults
}

pub(super) fn a_quiet_hour_wakes_nobody(log: &[Entry]) -> Vec<String> {
    let hours = log.iter().filter_map(|entry| match entry.what {
        Seen::Rested { time, steps, entries } => Some((time, steps, entries)),
        _ => None,
    });
    let mut faults = Vec::new();
    for (time, steps, entries) in hours {
        if steps > time.div_duration_f64(LOOK_EVERY).ceil() as u64 + 1 {
            faults.push(format!("the session woke {steps} times in {time:?}"));
        }
        if entries > 0 {
            faults.push(format!("{entries} things happened in {time:?} of rest"));
        }
    }
    faults
}
