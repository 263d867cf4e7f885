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
    /// The session began or was resumed. `lost`: the journal doesn't have all of the life before.
    Begun { lost: bool },
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
    /// The plug was pulled.
    Killed,
    /// The session ended by itself.
    Over { code: u8 },
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
            Seen::Begun { lost } => write!(f, "      BEGUN, with a loss: {lost}"),
            Seen::Typed { text, seen } => write!(f, "      TYPED {text:?} having seen {seen}"),
            Seen::Outside { to, text } => write!(f, "      OUTSIDE line for {to}: {text:?}"),
            Seen::Fault(fault) => write!(f, "      FAULT {fault:?}"),
            Seen::Quiet => f.write_str("      QUIET"),
            Seen::Killed => f.write_str("      KILLED"),
            Seen::Over { code } => write!(f, "      OVER with {code}"),
        }
    }
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
