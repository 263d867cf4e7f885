//! Adds up the chunks of a streamed reply, tolerant of every dialect that is known to exist. Pure.

use serde_json::{Map, Value};

use crate::event::Usage;

use super::think::Think;

/// A piece of text that a chunk brought.
pub(super) enum Piece {
    Text(String),
    Reasoning(String),
}

/// A reply as far as it has come.
#[derive(Default)]
pub(super) struct Accumulator {
    pub(super) text: String,
    pub(super) reasoning: String,
    /// The field in which the server sent its reasoning; it may need it back.
    pub(super) reasoning_field: Option<&'static str>,
    pub(super) calls: Vec<PartialCall>,
    pub(super) finish: Option<String>,
    pub(super) usage: Option<Usage>,
    /// The server's own error object, if it sent one in mid-stream.
    pub(super) error: Option<Value>,
    pub(super) chunks: usize,
    think: Think,
}

/// A tool call as far as it has come.
#[derive(Default)]
pub(super) struct PartialCall {
    index: Option<i64>,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
    /// Fields that only this server knows; it may need them back.
    pub(super) extra: Map<String, Value>,
}

const REASONING_FIELDS: [&str; 2] = ["reasoning_content", "reasoning"];

impl Accumulator {
    /// Adds a chunk of a stream, or a whole answer; gives the text that it brought.
    pub(super) fn add(&mut self, chunk: &Value) -> Vec<Piece> {
        self.chunks += 1;
        if let Some(error) = chunk.get("error").filter(|error| !error.is_null()) {
            self.error = Some(error.clone());
        }
        if let Some(usage) = chunk.get("usage").and_then(usage) {
            self.usage = Some(usage);
        }
        let mut pieces = Vec::new();
        let choice = chunk.get("choices").and_then(Value::as_array).and_then(|choices| choices.first());
        let Some(choice) = choice else { return pieces };
        if let Some(error) = choice.get("error").filter(|error| !error.is_null()) {
            self.error = Some(error.clone());
        }
        if let Some(delta) = choice.get("delta").or_else(|| choice.get("message")).filter(|delta| delta.is_object()) {
            self.add_delta(delta, &mut pieces);
        }
        if let Some(finish) = choice.get("finish_reason").and_then(Value::as_str).filter(|finish| !finish.is_empty()) {
            self.finish = Some(finish.to_owned());
        }
        pieces
    }

    fn add_delta(&mut self, delta: &Value, pieces: &mut Vec<Piece>) {
        for field in REASONING_FIELDS {
            if let Some(text) = delta.get(field).and_then(Value::as_str).filter(|text| !text.is_empty()) {
                self.reasoning_field = Some(field);
                self.reasoning.push_str(text);
                pieces.push(Piece::Reasoning(text.to_owned()));
                break;
            }
        }
        match delta.get("content") {
            Some(Value::String(text)) => self.add_text(text, pieces),
            Some(Value::Array(parts)) => {
                for part in parts {
                    let text = part.get("text").and_then(Value::as_str).or_else(|| part.as_str());
                    if let Some(text) = text {
                        self.add_text(text, pieces);
                    }
                }
            }
            _ => {}
        }
        if let Some(calls) = delta.get("tool_calls").and_then(Value::as_array) {
            for call in calls.iter().filter(|call| call.is_object()) {
                self.add_call(call);
            }
        }
    }

    fn add_text(&mut self, text: &str, pieces: &mut Vec<Piece>) {
        for piece in self.think.split(text) {
            match &piece {
                Piece::Text(text) => self.text.push_str(text),
                Piece::Reasoning(text) => self.reasoning.push_str(text),
            }
            pieces.push(piece);
        }
    }

    /// The stream is over: text that was held back since it might have opened a thought.
    pub(super) fn end_text(&mut self) -> Vec<Piece> {
        let rest = self.think.end();
        for piece in &rest {
            if let Piece::Text(text) = piece {
                self.text.push_str(text);
            }
        }
        rest
    }

    fn add_call(&mut self, delta: &Value) {
        let index = delta.get("index").and_then(Value::as_i64);
        let id = delta.get("id").and_then(Value::as_str).unwrap_or_default();
        let function = delta.get("function").unwrap_or(&Value::Null);
        let name = function.get("name").and_then(Value::as_str).unwrap_or_default();
        let at = self.call_for(index, id, name);
        let call = &mut self.calls[at];
        call.index = call.index.or(index);
        if call.id.is_empty() {
            id.clone_into(&mut call.id);
        }
        // Some servers repeat the whole name in every delta, others send it in pieces.
        if name != call.name {
            call.name.push_str(name);
        }
        match function.get("arguments") {
            Some(Value::String(text)) => call.arguments.push_str(text),
            Some(object @ Value::Object(_)) => call.arguments = object.to_string(),
            _ => {}
        }
        for (key, value) in delta.as_object().into_iter().flatten() {
            if !matches!(key.as_str(), "index" | "id" | "type" | "function") {
                call.extra.insert(key.clone(), value.clone());
            }
        }
    }

    /// Which call a delta belongs to: a new id is a new call, whatever its index; without an id the index decides; without
    /// either, a delta with a name begins a call and one without goes on with the last.
    fn call_for(&mut self, index: Option<i64>, id: &str, name: &str) -> usize {
        let found = if !id.is_empty() {
            let same_id = self.calls.iter().rposition(|call| call.id == id && (index.is_none() || call.index == index));
            let unnamed =
                || self.calls.iter().rposition(|call| call.id.is_empty() && index.is_some() && call.index == index);
            same_id.or_else(unnamed)
        } else if index.is_some() {
            self.calls.iter().rposition(|call| call.index == index)
        } else {
            let last = self.calls.len().checked_sub(1);
            last.filter(|&last| {
                name.is_empty() || (self.calls[last].name == name && is_cut(&self.calls[last].arguments))
            })
        };
        found.unwrap_or_else(|| {
            self.calls.push(PartialCall::default());
            self.calls.len() - 1
        })
    }
}

/// Has something of the arguments come, and not all?
fn is_cut(arguments: &str) -> bool {
    !arguments.trim().is_empty() && serde_json::from_str::<Value>(arguments).is_err()
}

fn usage(value: &Value) -> Option<Usage> {
    let count = |key: &str| value.get(key).and_then(Value::as_u64);
    let cached = value.pointer("/prompt_tokens_details/cached_tokens").and_then(Value::as_u64);
    Some(Usage {
        input_tokens: count("prompt_tokens")?,
        output_tokens: count("completion_tokens").unwrap_or(0),
        cached_tokens: cached.unwrap_or(0),
    })
}
