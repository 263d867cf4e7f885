//! I5: every tool call in a history has exactly one result right after it; no orphan, no empty message, no broken arguments. And
//! what was sent once never changes.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::event::{Event, Record};

use super::super::log::{Entry, Seen};

pub(super) fn histories_are_well_formed(log: &[Entry]) -> Vec<String> {
    let mut histories: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    let mut faults = Vec::new();
    for entry in log {
        let Seen::Ask(ask) = &entry.what else { continue };
        let name = ask.agent.as_str();
        if ask.open > 0 {
            faults.push(format!("{name} asks with {} calls that have no result", ask.open));
        }
        let history = histories.entry(name).or_default();
        history.truncate(ask.kept);
        history.extend(&ask.new);
        if let Some(fault) = fault_in(history) {
            faults.push(format!("{name}'s call {}: {fault}", ask.call));
        }
    }
    faults
}

/// Each result in a history is the one that its call had.
pub(super) fn results_are_those_of_their_calls(log: &[Entry]) -> Vec<String> {
    let mut results: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    let mut faults = Vec::new();
    for entry in log {
        match &entry.what {
            Seen::Item(item) => {
                let (Event::ToolEnded { agent, call_id, result, .. }
                | Event::Record(Record::CallSkipped { agent, call_id, result })) = &item.event
                else {
                    continue;
                };
                results.insert((agent.as_str(), call_id), result);
            }
            Seen::Ask(ask) => {
                for message in ask.new.iter().filter(|message| message["role"] == "tool") {
                    let id = message["tool_call_id"].as_str().unwrap_or_default();
                    let known = results.get(&(ask.agent.as_str(), id));
                    if known.is_some_and(|known| message["content"] != **known) {
                        faults.push(format!(
                            "{}'s call {id} gave {known:?}, and its history says {}",
                            ask.agent, message["content"]
                        ));
                    }
                }
            }
            _ => {}
        }
    }
    faults
}

/// What was sent once is sent again, byte for byte, with every later request, also after the program was ended in between.
pub(super) fn histories_only_grow(log: &[Entry]) -> Vec<String> {
    let asks = log.iter().filter_map(|entry| if let Seen::Ask(ask) = &entry.what { Some(ask) } else { None });
    let changed = asks.filter(|ask| ask.kept < ask.before);
    changed.map(|ask| format!("{}'s history changed at {} of {}", ask.agent, ask.kept, ask.before)).collect()
}

fn fault_in(history: &[&Value]) -> Option<String> {
    let mut open: Vec<&str> = Vec::new();
    for (place, message) in history.iter().enumerate() {
        let text = message["content"].as_str().unwrap_or_default();
        let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
        let role = message["role"].as_str().unwrap_or_default();
        if (role == "system") != (place == 0) {
            return Some(format!("a {role} message at {place}"));
        }
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            let Some(at) = open.iter().position(|open| *open == id) else {
                return Some(format!("a result without a call at {place}"));
            };
            open.remove(at);
        } else if !open.is_empty() {
            return Some(format!("a call without a result before {place}"));
        }
        if text.trim().is_empty() && calls.is_empty() {
            return Some(format!("an empty message at {place}"));
        }
        for call in calls {
            let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
            if !serde_json::from_str::<Value>(arguments).is_ok_and(|arguments| arguments.is_object()) {
                return Some(format!("arguments that are no object at {place}"));
            }
            open.push(call["id"].as_str().unwrap_or_default());
        }
    }
    (!open.is_empty()).then(|| "a call without a result at the end".to_owned())
}
