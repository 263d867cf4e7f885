//! I1, of waiting: who idles has a turn at once for mail that wakes, and what others wrote is there in the end, whatever happened.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::event::{Event, Record, Status};

use super::super::log::{Entry, Seen};
use super::super::words::words;

/// What may pass between mail and the turn that it begins.
const AT_ONCE: Duration = Duration::from_millis(100);

/// The runtime's own mail needs no look at files.
pub(super) fn idle_readers_are_woken_at_once(log: &[Entry]) -> Vec<String> {
    let mut readers: BTreeMap<String, Reader> = BTreeMap::new();
    // Resumed, and nobody has said anything; or on its way out.
    let mut still = false;
    let mut faults = Vec::new();
    for entry in log {
        match &entry.what {
            Seen::Begun { .. } => {
                still = true;
                readers.values_mut().for_each(|reader| reader.busy = false);
            }
            Seen::Typed { text, .. } if text == "/quit" => still = true,
            Seen::Item(item) => {
                let woken = matches!(item.event, Event::TurnStarted { .. } | Event::SessionStarted { .. });
                if woken && std::mem::take(&mut still) {
                    readers.values_mut().for_each(|reader| reader.since = reader.since.map(|_| entry.at));
                }
                happened(&item.event, entry.at, &mut readers);
            }
            _ => {}
        }
        for (name, reader) in &mut readers {
            let waits = !still && !reader.busy && !reader.paused && (name == "lead" || reader.lives);
            if waits && reader.since.take_if(|since| *since + AT_ONCE < entry.at).is_some() {
                faults.push(format!("{name} idles at {:.3}, and mail waits for it", entry.at.as_secs_f64()));
            }
        }
    }
    faults
}

#[derive(Default)]
struct Reader {
    lives: bool,
    busy: bool,
    /// The user holds it.
    paused: bool,
    /// Since when it could have a turn for mail that wakes.
    since: Option<Duration>,
}

fn happened(event: &Event, at: Duration, readers: &mut BTreeMap<String, Reader>) {
    match event {
        Event::MailSent { message } if message.wakes() => {
            let reader = readers.entry(message.to.to_string()).or_default();
            reader.since = reader.since.or(Some(at));
        }
        Event::TurnStarted { agent } => readers.entry(agent.to_string()).or_default().busy = true,
        Event::TurnEnded { agent, .. } => {
            let reader = readers.entry(agent.to_string()).or_default();
            reader.busy = false;
            reader.since = reader.since.map(|_| at);
        }
        Event::Teammate { name, status, .. } => {
            let reader = readers.entry(name.to_string()).or_default();
            reader.lives = !status.has_ended();
            let was_paused = std::mem::replace(&mut reader.paused, *status == Status::Paused);
            if was_paused && !reader.paused {
                reader.since = reader.since.map(|_| at);
            }
            if status.has_ended() {
                (reader.busy, reader.since) = (false, None);
            }
        }
        Event::Record(Record::TookIn { agent, .. }) => readers.entry(agent.to_string()).or_default().since = None,
        Event::Record(Record::AgentStarted { agent, .. }) if agent.is_lead() => {
            let reader = readers.entry("lead".to_owned()).or_default();
            (reader.busy, reader.since) = (false, reader.since.map(|_| at));
        }
        _ => {}
    }
}

/// What others wrote into the lead's mailbox stands in its history in the end, also if the journal was lost in part.
pub(super) fn no_line_of_others_is_lost(log: &[Entry]) -> Vec<String> {
    let mut written: BTreeSet<&str> = BTreeSet::new();
    let mut shown: Vec<BTreeSet<&str>> = Vec::new();
    for entry in log {
        match &entry.what {
            Seen::Outside { to, text: Some(text) } if to == "lead" => written.extend(words(text)),
            Seen::Ask(ask) if ask.agent == "lead" => {
                shown.truncate(ask.kept);
                let texts = ask.new.iter().map(|message| message["content"].as_str().unwrap_or_default());
                shown.extend(texts.map(|text| words(text).into_iter().collect()));
            }
            _ => {}
        }
    }
    if !log.iter().any(|entry| matches!(entry.what, Seen::Quiet)) {
        return Vec::new();
    }
    let lost = written.into_iter().filter(|word| !shown.iter().any(|shown| shown.contains(word)));
    lost.map(|word| format!("{word} was written to lead, and is nowhere")).collect()
}
