//! From what a server sent to what may stand in a history: well-formed for the strictest server, whatever came. Pure.

use std::collections::HashSet;

use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::event::Usage;

use super::accumulate::{Accumulator, PartialCall};

/// The name that stands in the history for one that no server would accept.
const UNNAMED_TOOL: &str = "unnamed_tool";
/// What stands in the history for a reply without a word.
const EMPTY_REPLY: &str = "(no reply)";

/// A model's reply.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The assistant message as it goes into the history.
    pub message: Value,
    /// Its text; may be empty.
    pub text: String,
    /// Its calls, in order, one for each in `message`.
    pub calls: Vec<CallSlot>,
    /// As the server gave it.
    pub usage: Option<Usage>,
}

/// One call of a reply.
#[derive(Clone, Debug)]
pub struct CallSlot {
    /// Unique in its message.
    pub id: String,
    /// As it stands in the history.
    pub name: String,
    /// The arguments, or what is wrong with them, for the model.
    pub arguments: Result<Map<String, Value>, String>,
}

impl Reply {
    pub(super) fn build(parts: Accumulator) -> Self {
        let cut = parts.finish.as_deref() == Some("length");
        let mut ids = HashSet::new();
        let mut calls = Vec::new();
        let mut raw_calls = Vec::new();
        let last = parts.calls.len().saturating_sub(1);
        for (index, call) in parts.calls.into_iter().enumerate() {
            let (slot, raw) = build_call(call, cut && index == last, &mut ids);
            calls.push(slot);
            raw_calls.push(raw);
        }
        let mut message = Map::new();
        message.insert("role".to_owned(), "assistant".into());
        let content = match (parts.text.is_empty(), raw_calls.is_empty()) {
            (false, _) => Value::String(parts.text.clone()),
            (true, false) => Value::Null,
            (true, true) => EMPTY_REPLY.into(),
        };
        message.insert("content".to_owned(), content);
        if let (Some(field), false) = (parts.reasoning_field, raw_calls.is_empty()) {
            // Servers whose models think between calls refuse a history without the thought.
            message.insert(field.to_owned(), parts.reasoning.into());
        }
        if !raw_calls.is_empty() {
            message.insert("tool_calls".to_owned(), Value::Array(raw_calls));
        }
        Self { message: Value::Object(message), text: parts.text, calls, usage: parts.usage }
    }
}

fn build_call(call: PartialCall, cut: bool, ids: &mut HashSet<String>) -> (CallSlot, Value) {
    let id = if call.id.trim().is_empty() || !ids.insert(call.id.clone()) {
        let made = format!("call_{}", Uuid::new_v4().simple());
        ids.insert(made.clone());
        made
    } else {
        call.id
    };
    let legal = !call.name.is_empty()
        && call.name.len() <= 64
        && call.name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    let name = if legal { call.name } else { UNNAMED_TOOL.to_owned() };
    let arguments = parse_arguments(&call.arguments, cut);
    let replayed = match &arguments {
        Ok(arguments) => Value::Object(arguments.clone()).to_string(),
        Err(_) => "{}".to_owned(),
    };
    let mut raw = json!({"id": id, "type": "function", "function": {"name": name, "arguments": replayed}});
    if let Value::Object(raw) = &mut raw {
        raw.extend(call.extra);
    }
    (CallSlot { id, name, arguments }, raw)
}

fn parse_arguments(text: &str, cut: bool) -> Result<Map<String, Value>, String> {
    if text.trim().is_empty() {
        return if cut { Err(cut_text()) } else { Ok(Map::new()) };
    }
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(arguments)) => Ok(arguments),
        // Encoded twice: an object inside a string.
        Ok(Value::String(inner)) => match serde_json::from_str::<Value>(&inner) {
            Ok(Value::Object(arguments)) => Ok(arguments),
            Ok(_) | Err(_) => Err(not_an_object()),
        },
        Ok(_) => Err(not_an_object()),
        Err(_) if cut => Err(cut_text()),
        Err(error) => {
            let excerpt: String = text.chars().take(120).collect();
            Err(format!("the arguments were not valid JSON ({error}): {excerpt}. Call again with valid JSON"))
        }
    }
}

fn not_an_object() -> String {
    "the arguments were not valid: a JSON object is needed. Call again".to_owned()
}

fn cut_text() -> String {
    "the reply was cut off at its length limit in the middle of this call, which was not run. Call again with less in one call"
        .to_owned()
}
