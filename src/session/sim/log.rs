//! What was seen of a simulated session, from the outside and in order. The checks read this and nothing else of the run.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use crate::event::{Event, Item};

/// One thing that was seen.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// Virtual time since the first life began.
    pub(super) at: Duration,
    /// Which life of the session, from 1.
    pub(super) life: u32,
    pub(super) what: Seen,
}

/// What was seen.
#[derive(Clone, Debug)]
pub(super) enum Seen {
    /// The session began or was resumed. `lost`: the journal doesn't have all of the life before. `yes`: the user's
    /// settings confirm every proposal.
    Begun { lost: bool, yes: bool },
    /// An event or a piece of bookkeeping.
    Item(Item),
    /// A model was asked.
    Ask(Ask),
    /// The user did something; a line with the event that they had seen.
    Typed { text: String, seen: u64 },
    /// Somebody outside finished a line in a mailbox. Its text, or `None` if it is no message.
    Outside { to: String, text: Option<String> },
    /// A fault was let loose.
    Fault(super::faults::Fault),
    /// Nothing has happened for long.
    Quiet,
    /// The session made very many steps, and no time passed.
    Spins,
    /// The plug was pulled.
    Killed,
    /// The session ended by itself.
    Over { code: u8 },
    /// For some time nobody wanted anything: how often the session woke, and how much was seen.
    Rested { time: Duration, steps: u64, entries: usize },
    /// In the end: how many lines of a mailbox were set aside.
    Kept { mailbox: String, lines: usize },
    /// In the end: what a file of the workspace holds.
    File { path: String, content: String },
    /// In the end: a file that has the key in it.
    KeyIn { path: String },
}

/// One request to a model.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub(super) agent: String,
    pub(super) call: u64,
    pub(super) resend: u32,
    /// How many messages its last request had.
    pub(super) before: usize,
    /// How many of them this one begins with, unchanged.
    pub(super) kept: usize,
    /// What comes after those.
    pub(super) new: Vec<Value>,
    /// Calls without a result.
    pub(super) open: usize,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>9.3} {} ", self.at.as_secs_f64(), self.life)?;
        match &self.what {
            Seen::Item(item) => write!(f, "{:>5} {}", item.seq, short(&event(&item.event))),
            Seen::Ask(ask) => {
                let new: Vec<String> = ask.new.iter().map(|message| short(&message.to_string())).collect();
                let (agent, call, resend, kept) = (&ask.agent, ask.call, ask.resend, ask.kept);
                write!(f, "      ASK {agent} #{call}.{resend} {kept}/{} + {}", ask.before, new.join("\n            "))
            }
            Seen::Begun { lost, yes } => write!(f, "      BEGUN, with a loss: {lost}, --yes: {yes}"),
            Seen::Typed { text, seen } => write!(f, "      TYPED {text:?} having seen {seen}"),
            Seen::Outside { to, text } => write!(f, "      OUTSIDE line for {to}: {text:?}"),
            Seen::Fault(fault) => write!(f, "      FAULT {fault:?}"),
            Seen::Quiet => f.write_str("      QUIET"),
            Seen::Spins => f.write_str("      SPINS"),
            Seen::Killed => f.write_str("      KILLED"),
            Seen::Over { code } => write!(f, "      OVER with {code}"),
            Seen::Rested { time, steps, entries } => {
                write!(f, "      RESTED {time:?}: {steps} steps, {entries} entries")
            }
            Seen::Kept { mailbox, lines } => write!(f, "      KEPT {lines} lines of {mailbox}"),
            Seen::File { path, content } => write!(f, "      FILE {path} {content:?}"),
            Seen::KeyIn { path } => write!(f, "      THE KEY is in {path}"),
        }
    }
}

/// The events of a log.
pub(super) fn items(log: &[Entry]) -> impl Iterator<Item = &Item> {
    log.iter().filter_map(|entry| if let Seen::Item(item) = &entry.what { Some(item) } else { None })
}

fn event(event: &Event) -> String {
    let mut text = format!("{event:?}");
    if let Ok(Value::Object(fields)) = serde_json::to_value(event) {
        let field = |(key, value): (&String, &Value)| format!("{key}={value}");
        text = fields.iter().map(field).collect::<Vec<_>>().join(" ");
    }
    text
}

fn short(text: &str) -> String {
    match text.char_indices().nth(400) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
