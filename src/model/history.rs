//! A conversation that can't become malformed: every tool call is followed at once by exactly one result, and nothing is empty.
//!
//! Knows nothing of what the messages say, of tools or of servers, but for the form that every server accepts.

#[cfg(test)]
mod tests;

use std::collections::HashSet;

use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::{CallSlot, Reply};

/// The result of a call that nobody finished.
const INTERRUPTED: &str =
    "error: interrupted before it finished; what it had done until then is unknown. Look before you run it again.";

/// What stands for a reply with neither text nor calls.
const NO_REPLY: &str = "(no reply)";

/// What stands for a result without text.
const NO_OUTPUT: &str = "(no output)";

/// What ends the text of a reply that was cancelled.
const CANCELLED: &str = "[cancelled here]";

/// Fields that a server may have sent itself and refuse all the same.
const REASONING_KEYS: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_details"];

/// The messages of one agent, the system prompt first. Earlier messages never change, so servers can cache the prefix.
#[derive(Clone, Debug)]
pub struct History {
    messages: Vec<Value>,
    /// Calls of the last reply that have no result yet, in order.
    open: Vec<String>,
    /// Every call id there ever was.
    ids: HashSet<String>,
}

impl History {
    /// A conversation that begins with this system prompt.
    #[must_use]
    pub fn new(system: &str) -> Self {
        Self { messages: vec![json!({"role": "system", "content": system})], open: Vec::new(), ids: HashSet::new() }
    }

    /// Adds something said to the model. Open calls are first answered as interrupted; an empty text adds nothing.
    pub fn push_user(&mut self, text: &str) {
        self.close_calls();
        if !text.trim().is_empty() {
            self.messages.push(json!({"role": "user", "content": text}));
        }
    }

    /// Adds a reply; its calls are open from here on. A reply with neither text nor calls is kept as `(no reply)`.
    pub fn push_reply(&mut self, reply: &Reply) {
        self.push_assistant(&reply.message);
    }

    /// Adds an assistant message as [`Reply::message`] gave it, also one read back from a journal.
    pub fn push_assistant(&mut self, message: &Value) {
        self.close_calls();
        let ids: Vec<String> = call_ids(message).map(str::to_owned).collect();
        let says = message["content"].as_str().is_some_and(|text| !text.trim().is_empty());
        if ids.is_empty() && !says {
            self.messages.push(json!({"role": "assistant", "content": NO_REPLY}));
            return;
        }
        self.ids.extend(ids.iter().cloned());
        self.open = ids;
        self.messages.push(message.clone());
    }

    /// Adds the result of an open call, in any order; a result that no open call waits for is dropped.
    pub fn push_result(&mut self, call_id: &str, text: &str) {
        let Some(at) = self.open.iter().position(|id| id == call_id) else {
            return;
        };
        self.open.remove(at);
        let text = if text.trim().is_empty() { NO_OUTPUT } else { text };
        self.messages.push(json!({"role": "tool", "tool_call_id": call_id, "content": text}));
    }

    /// Adds what had been said of a reply that was cancelled; nothing when nothing had.
    pub fn push_cut_reply(&mut self, partial: &str) {
        self.close_calls();
        let said = partial.trim_end();
        if !said.is_empty() {
            self.messages.push(json!({"role": "assistant", "content": format!("{said}\n{CANCELLED}")}));
        }
    }

    /// The ids of calls that have no result yet, in order.
    #[must_use]
    pub fn open_calls(&self) -> Vec<String> {
        self.open.clone()
    }

    /// The calls of the last reply that have no result yet, in order, as they stand in the conversation.
    #[must_use]
    pub fn open_slots(&self) -> Vec<CallSlot> {
        let reply = self.messages.iter().rev().find(|message| message["role"] == "assistant");
        let calls = reply.and_then(|reply| reply["tool_calls"].as_array()).into_iter().flatten();
        calls.filter_map(slot).filter(|slot| self.open.contains(&slot.id)).collect()
    }

    /// Was this id ever given to a call?
    #[must_use]
    pub fn has_call(&self, id: &str) -> bool {
        self.ids.contains(id)
    }

    /// All messages, the system prompt first.
    #[must_use]
    pub fn messages(&self) -> &[Value] {
        &self.messages
    }

    /// The system prompt.
    #[must_use]
    pub fn system(&self) -> &str {
        self.messages[0]["content"].as_str().unwrap_or_default()
    }

    /// Replaces the system prompt; what servers have cached of the conversation is lost by it.
    pub fn set_system(&mut self, system: &str) {
        self.messages[0] = json!({"role": "system", "content": system});
    }

    /// The request for the next reply; open calls must have been answered (see [`Body`] for its form).
    #[must_use]
    pub fn body<'a>(&'a self, model: &'a str, tools: &'a Value, omit: Omit) -> Body<'a> {
        Body { model, history: self, tools, omit }
    }

    fn close_calls(&mut self) {
        for id in std::mem::take(&mut self.open) {
            self.messages.push(json!({"role": "tool", "tool_call_id": id, "content": INTERRUPTED}));
        }
    }
}

/// Optional parts that a server has refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Omit {
    /// Leave out `stream_options`.
    pub stream_options: bool,
    /// Leave out the thinking that goes back with tool calls.
    pub reasoning: bool,
}

/// A request: `model`, `messages`, `tools` (unless empty), `stream`, `stream_options`, always in that order.
///
/// It borrows, so that a long conversation isn't copied for each call. Calls that are still open are answered as
/// interrupted, in the request alone.
#[derive(Clone, Copy, Debug)]
pub struct Body<'a> {
    model: &'a str,
    history: &'a History,
    tools: &'a Value,
    omit: Omit,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("model", self.model)?;
        map.serialize_entry("messages", &Messages { history: self.history, omit: self.omit })?;
        if self.tools.as_array().is_some_and(|tools| !tools.is_empty()) {
            map.serialize_entry("tools", self.tools)?;
        }
        map.serialize_entry("stream", &true)?;
        if !self.omit.stream_options {
            map.serialize_entry("stream_options", &json!({"include_usage": true}))?;
        }
        map.end()
    }
}

struct Messages<'a> {
    history: &'a History,
    omit: Omit,
}

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        let skipped = usize::from(self.history.system().trim().is_empty());
        for message in &self.history.messages[skipped..] {
            if self.omit.reasoning {
                list.serialize_element(&Plain(message))?;
            } else {
                list.serialize_element(message)?;
            }
        }
        for id in &self.history.open {
            list.serialize_element(&json!({"role": "tool", "tool_call_id": id, "content": INTERRUPTED}))?;
        }
        list.end()
    }
}

/// A message without the thinking.
struct Plain<'a>(&'a Value);

impl Serialize for Plain<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = self.0.as_object().into_iter().flatten();
        serializer.collect_map(fields.filter(|(key, _)| !REASONING_KEYS.contains(&key.as_str())))
    }
}

/// A call of a message, read back.
fn slot(call: &Value) -> Option<CallSlot> {
    let function = &call["function"];
    let (id, name) = (call["id"].as_str()?, function["name"].as_str()?);
    let arguments = serde_json::from_str(function["arguments"].as_str().unwrap_or("{}"));
    let arguments = arguments.map_err(|error| format!("error: the arguments of this call are no JSON object: {error}"));
    Some(CallSlot { id: id.to_owned(), name: name.to_owned(), arguments })
}

/// The ids of a message's tool calls.
pub(super) fn call_ids(message: &Value) -> impl Iterator<Item = &str> {
    message["tool_calls"].as_array().into_iter().flatten().filter_map(|call| call["id"].as_str())
}
