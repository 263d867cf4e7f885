//! A conversation that can't become malformed: every call has exactly one result right after it, no message is empty.

use serde::Serialize;
use serde_json::{Value, json};

use super::Reply;

/// What stands as the result of a call whose end is not known.
const INTERRUPTED: &str = "interrupted; may have run in part: check before repeating";

/// The messages of one agent's conversation, the system prompt first. Only ever appended to, so that servers can cache the prefix.
#[derive(Clone, Debug)]
pub struct History {
    messages: Vec<Value>,
    /// Calls of the last reply that have no result yet.
    open: Vec<String>,
}

/// A request's body; its fields stand in this order.
#[derive(Serialize)]
pub(super) struct Body<'a> {
    model: &'a str,
    messages: &'a [Value],
    #[serde(skip_serializing_if = "is_empty")]
    tools: &'a Value,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

fn is_empty(tools: &&Value) -> bool {
    tools.as_array().is_none_or(Vec::is_empty)
}

impl History {
    /// A conversation with nothing but its system prompt.
    #[must_use]
    pub fn new(system: &str) -> Self {
        Self { messages: vec![json!({"role": "system", "content": system})], open: Vec::new() }
    }

    /// Adds a user-role message; nothing for an empty text. Calls that are still open are answered as interrupted first.
    pub fn push_user(&mut self, text: &str) {
        self.close_open_calls();
        if !text.trim().is_empty() {
            self.messages.push(json!({"role": "user", "content": text}));
        }
    }

    /// Adds a reply; its calls are open until each has its result.
    pub fn push_reply(&mut self, reply: &Reply) {
        self.close_open_calls();
        self.messages.push(reply.message.clone());
        self.open = reply.calls.iter().map(|call| call.id.clone()).collect();
    }

    /// Adds the result of an open call. One for a call that isn't open is dropped: it has its result already.
    pub fn push_result(&mut self, call_id: &str, text: &str) {
        let Some(at) = self.open.iter().position(|id| id == call_id) else { return };
        self.open.remove(at);
        let text = if text.is_empty() { "(no output)" } else { text };
        self.messages.push(json!({"role": "tool", "tool_call_id": call_id, "content": text}));
    }

    /// Adds what had come of a reply that was broken off, marked as such; nothing if nothing had.
    pub fn push_cut_reply(&mut self, partial: &str) {
        if !partial.trim().is_empty() {
            self.close_open_calls();
            self.messages.push(json!({"role": "assistant", "content": format!("{partial}\n(interrupted)")}));
        }
    }

    /// The messages, in order.
    #[must_use]
    pub fn messages(&self) -> &[Value] {
        &self.messages
    }

    /// The body of a request with this conversation.
    pub(super) fn body<'a>(&'a self, model: &'a str, tools: &'a Value, with_stream_options: bool) -> Body<'a> {
        debug_assert!(self.open.is_empty(), "a request never has an open call");
        Body {
            model,
            messages: &self.messages,
            tools,
            stream: true,
            stream_options: with_stream_options.then_some(StreamOptions { include_usage: true }),
        }
    }

    fn close_open_calls(&mut self) {
        for id in std::mem::take(&mut self.open) {
            self.messages.push(json!({"role": "tool", "tool_call_id": id, "content": INTERRUPTED}));
        }
    }
}
