//! What the journal costs: an item as it is written, the same with the disk made to keep it at once, and a long session resumed.
#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark that can't go on just ends")]

use std::path::Path;

use divan::Bencher;
use s15::event::{Event, Item, Record};
use s15::journal::{Events, Journal, Mask, read_session};
use s15::protocol::AgentName;
use s15::session::Recalled;
use serde_json::json;
use uuid::Uuid;

/// Items of a long session.
const LONG: usize = 10_000;

fn main() {
    divan::main();
}

fn journaled(folder: &Path) -> Events {
    let events = Events::new(Mask::default());
    events.journal_to(Journal::new(folder.to_owned(), Uuid::nil()).unwrap(), 0);
    events
}

/// A turn as it stands in a journal: five items, among them a reply with a call and its result.
fn turn(events: &Events, number: usize) -> Vec<Item> {
    let lead = AgentName::lead;
    let id = format!("call_{number}");
    let call = json!({"id": id, "type": "function", "function": {"name": "bash", "arguments": "{\"command\":\"cargo test\"}"}});
    let message = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    let entries = vec![format!("line {number}: what a person says is about as long as this")];
    let of_turn = [
        Event::TurnStarted { agent: lead() },
        Event::Record(Record::TookIn { agent: lead(), entries, mail: Vec::new(), lines: 0 }),
        Event::Replied { agent: lead(), call: number as u64, message, usage: None },
        Event::ToolStarted { agent: lead(), call_id: id.clone(), tool: "bash".into(), summary: "cargo test".into() },
        Event::ToolEnded {
            agent: lead(),
            call_id: id,
            tool: "bash".into(),
            ok: true,
            millis: 12,
            result: "x".repeat(400),
        },
    ];
    of_turn.into_iter().map(|event| events.tell(event)).collect()
}

#[divan::bench]
fn one_item(bencher: Bencher<'_, '_>) {
    let folder = tempfile::tempdir().unwrap();
    let events = journaled(folder.path());
    bencher.bench_local(|| events.emit(Event::UserLine { text: "a line of the usual length".into(), queued: false }));
}

#[divan::bench]
fn one_item_and_sync(bencher: Bencher<'_, '_>) {
    let folder = tempfile::tempdir().unwrap();
    let events = journaled(folder.path());
    events.emit(Event::AllShutDown);
    let file = std::fs::File::open(folder.path().join("lead.jsonl")).unwrap();
    bencher.bench_local(|| {
        events.emit(Event::UserLine { text: "a line of the usual length".into(), queued: false });
        file.sync_data().unwrap();
    });
}

#[divan::bench]
fn one_unit_of_five(bencher: Bencher<'_, '_>) {
    let folder = tempfile::tempdir().unwrap();
    let events = journaled(folder.path());
    bencher.with_inputs(|| turn(&events, 1)).bench_local_values(|unit| events.record(&unit));
}

#[divan::bench(sample_count = 20)]
fn resume_of_10_000_items(bencher: Bencher<'_, '_>) {
    let folder = tempfile::tempdir().unwrap();
    let events = journaled(folder.path());
    let system = "system prompt ".repeat(150);
    events.emit(Event::Record(Record::AgentStarted {
        agent: AgentName::lead(),
        model: "m".into(),
        system,
        member: None,
    }));
    (0..LONG / 5).for_each(|number| events.record(&turn(&events, number)));
    events.close_journal();
    bencher.bench_local(|| Recalled::of(read_session(folder.path(), Uuid::nil()).unwrap()).last_seq());
}
