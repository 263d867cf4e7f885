//! What an agent asks a model server, and what comes back: one call, tried until it is answered or has clearly failed.
//!
//! Knows nothing of tools, mail, turns or terminals: a reply is a value, progress goes to whoever asked.

mod accumulate;
mod backoff;
mod client;
mod failure;
mod history;
mod reply;
mod secret;
mod surrogates;
mod think;
mod words;

#[cfg(test)]
mod mock;
#[cfg(test)]
pub(crate) mod simulated;
#[cfg(test)]
mod tests;

use std::time::Duration;

use serde_json::{Map, Value};

use crate::event::Usage;
use crate::protocol::AgentName;

pub use client::{Client, ClientSettings};
pub use history::{Body, History, Omit};
pub use secret::Secret;

/// What a call is for; sent as the header `x-s15-purpose`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A step of an agent's work.
    Turn,
    /// A summary of a long history.
    Compact,
    /// A look at what the server can do.
    Probe,
}

impl Purpose {
    /// Its word in the header.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Compact => "compact",
            Self::Probe => "probe",
        }
    }
}

/// One logical call.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// Who asks.
    pub agent: &'a AgentName,
    /// The number of that agent's logical call, from 1; a retry keeps it.
    pub call: u64,
    /// What it is for.
    pub purpose: Purpose,
    /// The model's name as the server knows it.
    pub model: &'a str,
    /// The conversation so far.
    pub history: &'a History,
    /// The array of tool definitions; left out of the request when it's empty.
    pub tools: &'a Value,
}

/// What happens while a call is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress<'a> {
    /// The server took the request: the first good piece of an answer is here. Once per call; it can still fail afterwards.
    Accepted,
    /// The next piece of the reply's text.
    Text(&'a str),
    /// The next piece of the model's thinking, which is not part of the reply.
    Reasoning(&'a str),
    /// Everything shown since the call began is void: it is tried again, or it has failed.
    Void,
    /// The call is tried again after a wait.
    Retry {
        /// What went wrong, in a few words.
        cause: &'a str,
        /// How long until then.
        wait: Duration,
        /// The number of that retry, from 1.
        attempt: u32,
        /// The last retry's number.
        attempts_max: u32,
    },
}

/// Why a call gave no reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskError {
    /// It was cancelled.
    Cancelled {
        /// The text that had been streamed until then.
        partial: String,
    },
    /// It failed for good.
    Failed {
        /// What went wrong, with the full URL and the server's own words, and on a second line what to do. Never holds the key.
        text: String,
        /// The HTTP status, if there was one.
        status: Option<u16>,
    },
}

/// A whole reply.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The assistant message as it goes into the history: acceptable to any strict server, whatever came.
    pub message: Value,
    /// Its text, without thinking; empty when there's none.
    pub text: String,
    /// Its tool calls, in order, one for each in `message`.
    pub calls: Vec<CallSlot>,
    /// Tokens, if the server gave them.
    pub usage: Option<Usage>,
    /// Did the server end the reply at its length limit?
    pub cut_off: bool,
}

/// One tool call of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallSlot {
    /// As it stands in the message: not empty, and no double within it.
    pub id: String,
    /// The tool's name as the model wrote it, or `invalid_tool` when it wrote none.
    pub name: String,
    /// The arguments, or what was wrong with them: a text for the model that begins with `error:`.
    pub arguments: Result<Map<String, Value>, String>,
}
