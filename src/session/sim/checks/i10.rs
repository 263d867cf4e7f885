//! I10: a write that fails leaves what was there; one that succeeds leaves what was to be there.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::event::{Event, Record};

use super::super::log::{Entry, Seen};

/// What a file may hold; `None`: it isn't there.
type May = BTreeSet<Option<String>>;

pub(super) fn files_hold_what_was_last_written(log: &[Entry]) -> Vec<String> {
    let mut files = Files::default();
    for entry in log {
        match &entry.what {
            Seen::Item(item) => files.see(&item.event),
            Seen::File { path, content } => files.found(path, content),
            _ => {}
        }
    }
    files.faults
}

/// A call that changes a file.
struct Change {
    path: String,
    arguments: Value,
    edits: bool,
}

#[derive(Default)]
struct Files {
    calls: BTreeMap<String, Change>,
    /// Changes that have begun: what was there before, and what is there afterwards.
    begun: BTreeMap<String, (May, May)>,
    hold: BTreeMap<String, May>,
    faults: Vec<String>,
}

impl Files {
    fn see(&mut self, event: &Event) {
        match event {
            Event::Replied { message, .. } => {
                for call in message["tool_calls"].as_array().into_iter().flatten() {
                    self.called(call);
                }
            }
            Event::Record(Record::WriteIntended { call_id, .. }) => self.begun(call_id),
            Event::ToolEnded { call_id, ok, result, .. } => self.ended(call_id, *ok, result),
            _ => {}
        }
    }

    fn called(&mut self, call: &Value) {
        let tool = call["function"]["name"].as_str().unwrap_or_default();
        let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
        let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
        if let ("write_file" | "edit_file", Some(path), Some(id)) =
            (tool, arguments["path"].as_str(), call["id"].as_str())
        {
            let change = Change { path: path.to_owned(), edits: tool == "edit_file", arguments: arguments.clone() };
            self.calls.insert(id.to_owned(), change);
        }
    }

    fn may(&mut self, path: &str) -> &mut May {
        self.hold.entry(path.to_owned()).or_insert_with(|| May::from([None]))
    }

    fn begun(&mut self, call_id: &str) {
        let Some(change) = self.calls.get(call_id) else { return };
        let path = change.path.clone();
        let text = |key: &str| change.arguments[key].as_str().unwrap_or_default().to_owned();
        let (edits, content, old, new) = (change.edits, text("content"), text("old_text"), text("new_text"));
        let may = self.may(&path);
        let before = may.clone();
        let after = before.iter().map(|held| match (edits, held) {
            (true, Some(held)) => Some(held.replace(&old, &new)),
            (true, None) => None,
            (false, _) => Some(content.clone()),
        });
        let after: May = after.collect();
        may.extend(after.iter().cloned());
        self.begun.entry(call_id.to_owned()).or_insert((before, after));
    }

    fn ended(&mut self, call_id: &str, ok: bool, result: &str) {
        let (Some(change), Some((before, after))) = (self.calls.get(call_id), self.begun.remove(call_id)) else {
            return;
        };
        let path = change.path.clone();
        let unknown = result.contains("is not known") || result.contains("may have run");
        let may = self.may(&path);
        if ok {
            *may = after;
        } else if !unknown {
            *may = before;
        }
    }

    fn found(&mut self, path: &str, content: &str) {
        let content = Some(content.to_owned());
        if !self.may(path).contains(&content) {
            let may = self.may(path).clone();
            self.faults.push(format!("{path} holds {content:?}, and should {may:?}"));
        }
    }
}
