//! Talking with a model: one logical call in, a well-formed reply out, whatever dialect the server speaks.
//!
//! Knows nothing of teams, tools or terminals. Only [`client`](self) knows the HTTP library.

mod accumulate;
mod client;
mod failure;
mod history;
mod reply;
mod think;
mod wire;

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use crate::protocol::AgentName;

pub use client::{Client, ClientSettings};
pub use history::History;
pub use reply::{CallSlot, Reply};

/// One logical call; retries of it keep its number.
pub struct Ask<'a> {
    /// Who asks.
    pub agent: &'a AgentName,
    /// That agent's call number, from 1.
    pub call: u64,
    /// What for.
    pub purpose: Purpose,
    /// The model's name at the server.
    pub model: &'a str,
    /// The conversation so far.
    pub history: &'a History,
    /// The `tools` array; empty for none.
    pub tools: &'a Value,
}

/// What a call is for, as the `x-s15-purpose` header says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A step of a turn.
    Turn,
}

impl Purpose {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Turn => "turn",
        }
    }
}

/// What happens while a call runs.
#[derive(Debug)]
pub enum Progress<'a> {
    /// The first byte of a good answer is here. Once a call.
    Accepted,
    /// More of the reply's text.
    Text(&'a str),
    /// More of what the model thinks aloud.
    Reasoning(&'a str),
    /// What was streamed is void: the call is tried again.
    Void,
    /// The call is tried again after a wait.
    Retry {
        /// What went wrong, in a few words.
        cause: &'a str,
        /// Until the next try.
        wait: Duration,
        /// That try's number among the retries, from 1.
        attempt: u32,
        /// The last retry's number.
        attempts_max: u32,
    },
}

/// How a call can end without a reply.
#[derive(Debug, PartialEq, Eq)]
pub enum AskError {
    /// It was broken off; `partial` is the text that had come.
    Cancelled {
        /// May be empty.
        partial: String,
    },
    /// It can't be had.
    Failed {
        /// One clear message: the URL, the server's own words, what to do.
        text: String,
        /// The HTTP status, if there was one.
        status: Option<u16>,
    },
}

/// A key. Neither `Debug` nor `Display` shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a key; surrounding white space is dropped.
    ///
    /// # Errors
    /// A key that can't stand in a header.
    pub fn new(key: &str) -> Result<Self, String> {
        let key = key.trim();
        if key.is_empty() || key.chars().any(|c| c.is_control() || !c.is_ascii()) {
            return Err(
                "the API key is empty or has characters that no key has (a line break?); set OPENAI_API_KEY anew"
                    .to_owned(),
            );
        }
        Ok(Self(key.to_owned()))
    }

    /// The key itself, for a header or for masking.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// `text` with every occurrence of the key replaced.
    #[must_use]
    pub fn masked(&self, text: &str) -> String {
        text.replace(&self.0, "[key]")
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}
