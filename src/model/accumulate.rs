//! Puts the pieces of a streamed answer together, in whatever dialect of chat completions the server speaks.
//!
//! Pure: knows nothing of HTTP, of retries, or of what makes a message acceptable to a server (`reply` does).

mod calls;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

use self::calls::Calls;
use super::think::{Part, Parting};
use crate::event::Usage;

/// Fields in which servers send the model's thinking; the one that was used is used again when it goes back.
const REASONING_KEYS: [&str; 2] = ["reasoning_content", "reasoning"];

/// Words for a reply that ended at its length limit.
const LENGTH_WORDS: [&str; 4] = ["length", "max_tokens", "max_output_tokens", "model_length"];

/// Words for a reply that a filter held back.
const FILTER_WORDS: [&str; 2] = ["content_filter", "safety"];

/// Words with which a server says that the reply failed.
const FAULT_WORDS: [&str; 3] = ["error", "insufficient_system_resource", "network_error"];

/// A piece to show at once.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Delta<'a> {
    Text(&'a str),
    Reasoning(&'a str),
}

/// What a chunk was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fed {
    /// A piece of an answer.
    Good,
    /// Something else, which means nothing.
    Foreign,
}

/// How the stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// With the mark that nothing follows.
    Marked,
    /// Without it.
    Unmarked,
}

/// Why the reply is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    /// The model was done, or called tools, or the word is unknown.
    Done,
    /// The length limit.
    Length,
    /// A filter held it back.
    Filtered,
}

/// All that came, not yet judged.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) text: String,
    /// The thinking and the field it came in; `None` as field when it stood within the text.
    pub(crate) reasoning: Option<(&'static str, String)>,
    /// `reasoning_details` as they came.
    pub(crate) details: Vec<Value>,
    pub(crate) calls: Vec<DraftCall>,
    pub(crate) finish: Finish,
    pub(crate) usage: Option<Usage>,
}

/// One call as it came.
#[derive(Debug, Default, Clone)]
pub(crate) struct DraftCall {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
    /// Unknown keys of the call, which the server may need back.
    pub(crate) extra: Map<String, Value>,
    /// Unknown keys of its `function`.
    pub(crate) function_extra: Map<String, Value>,
}

/// A reply in the making.
#[derive(Debug, Default)]
pub(crate) struct Accumulator {
    /// The answer that is followed when a server sends several.
    choice: Option<u64>,
    parting: Parting,
    text: String,
    reasoning: Option<(&'static str, String)>,
    details: Vec<Value>,
    calls: Calls,
    finish: Option<String>,
    /// The whole message came in one piece, so that no end needs to be told.
    whole: bool,
    usage: Option<Usage>,
}

impl Accumulator {
    /// Takes the next chunk and shows what can be shown.
    ///
    /// # Errors
    /// The error object, when the server sent one in place of an answer.
    pub(crate) fn feed(&mut self, chunk: &Value, show: &mut dyn FnMut(Delta<'_>)) -> Result<Fed, Value> {
        if let Some(error) = error_of(chunk) {
            return Err(error);
        }
        if let Some(usage) = usage_of(chunk) {
            self.usage = Some(usage);
        }
        let Some(choices) = chunk["choices"].as_array() else {
            return Ok(Fed::Foreign);
        };
        for choice in choices {
            let index = choice["index"].as_u64().unwrap_or(0);
            if *self.choice.get_or_insert(index) != index {
                continue;
            }
            self.take(choice, show);
            if let Some(word) = self.finish.as_deref().filter(|word| FAULT_WORDS.contains(word)) {
                return Err(Value::String(format!("the server ended the reply with `{word}`")));
            }
        }
        Ok(Fed::Good)
    }

    /// Has the server said why the reply is over?
    pub(crate) fn is_finished(&self) -> bool {
        self.finish.is_some() || self.whole
    }

    /// The reply; `None` when it was cut: the stream ended and nothing said that it was over.
    pub(crate) fn complete(mut self, ending: Ending, show: &mut dyn FnMut(Delta<'_>)) -> Option<Draft> {
        if !self.is_finished() && ending == Ending::Unmarked {
            return None;
        }
        if let Some(part) = self.parting.finish() {
            self.say(part, show);
        }
        let word = self.finish.as_deref().unwrap_or_default();
        let finish = if LENGTH_WORDS.contains(&word) {
            Finish::Length
        } else if FILTER_WORDS.contains(&word) {
            Finish::Filtered
        } else {
            Finish::Done
        };
        Some(Draft {
            text: self.text,
            reasoning: self.reasoning,
            details: self.details,
            calls: self.calls.into_drafts(),
            finish,
            usage: self.usage,
        })
    }

    fn take(&mut self, choice: &Value, show: &mut dyn FnMut(Delta<'_>)) {
        if let Some(usage) = usage_of(choice) {
            self.usage = Some(usage);
        }
        if choice["delta"].is_object() {
            self.take_piece(&choice["delta"], show);
        } else if choice["message"].is_object() && self.text.is_empty() && self.calls.is_empty() {
            self.whole = true;
            self.take_piece(&choice["message"], show);
        }
        if let Some(word) = choice["finish_reason"].as_str().filter(|word| !word.is_empty()) {
            self.finish = Some(word.to_lowercase());
        }
    }

    /// Takes a `delta`, or a `message`, which has the same fields.
    fn take_piece(&mut self, piece: &Value, show: &mut dyn FnMut(Delta<'_>)) {
        for key in REASONING_KEYS {
            // Servers that send both fields send the same text in both.
            let other = self.reasoning.as_ref().is_some_and(|(used, _)| *used != key);
            if let Some(text) = piece[key].as_str().filter(|text| !text.is_empty() && !other) {
                self.reason(key, text, show);
            }
        }
        if let Some(details) = piece["reasoning_details"].as_array() {
            self.details.extend(details.iter().cloned());
        }
        self.take_content(&piece["content"], show);
        if let Some(refusal) = piece["refusal"].as_str() {
            self.take_text(refusal, show);
        }
        match &piece["tool_calls"] {
            Value::Array(calls) => self.calls.feed(calls),
            call @ Value::Object(_) => self.calls.feed(std::slice::from_ref(call)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        if piece["function_call"].is_object() {
            let call = serde_json::json!({"index": 0, "function": piece["function_call"]});
            self.calls.feed(&[call]);
        }
    }

    /// Takes a `content`: text, nothing, or a list of parts.
    fn take_content(&mut self, content: &Value, show: &mut dyn FnMut(Delta<'_>)) {
        match content {
            Value::String(text) => self.take_text(text, show),
            Value::Array(parts) => {
                for part in parts {
                    self.take_part(part, show);
                }
            }
            part @ Value::Object(_) => self.take_part(part, show),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn take_part(&mut self, part: &Value, show: &mut dyn FnMut(Delta<'_>)) {
        if let Some(text) = part.as_str().or_else(|| part["text"].as_str()).or_else(|| part["refusal"].as_str()) {
            self.take_text(text, show);
        }
        match &part["thinking"] {
            Value::String(text) => show_thought(text, show),
            Value::Array(pieces) => {
                for piece in pieces {
                    show_thought(piece["text"].as_str().unwrap_or_default(), show);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {}
        }
    }

    fn take_text(&mut self, text: &str, show: &mut dyn FnMut(Delta<'_>)) {
        for part in self.parting.feed(text) {
            self.say(part, show);
        }
    }

    fn say(&mut self, part: Part, show: &mut dyn FnMut(Delta<'_>)) {
        match part {
            Part::Said(text) => {
                show(Delta::Text(&text));
                self.text.push_str(&text);
            }
            Part::Thought(text) => show_thought(&text, show),
        }
    }

    fn reason(&mut self, key: &'static str, text: &str, show: &mut dyn FnMut(Delta<'_>)) {
        show(Delta::Reasoning(text));
        self.reasoning.get_or_insert_with(|| (key, String::new())).1.push_str(text);
    }
}

/// Thinking that stood within the content: shown, and never sent back.
fn show_thought(text: &str, show: &mut dyn FnMut(Delta<'_>)) {
    if !text.is_empty() {
        show(Delta::Reasoning(text));
    }
}

/// The error that a chunk carries, in any of the shapes servers use.
fn error_of(chunk: &Value) -> Option<Value> {
    let told = |error: &Value| match error {
        Value::Null | Value::Bool(_) => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Number(_) | Value::Array(_) => true,
    };
    if told(&chunk["error"]) {
        return Some(chunk["error"].clone());
    }
    if let Some(choices) = chunk["choices"].as_array() {
        return choices.iter().map(|choice| &choice["error"]).find(|error| told(error)).cloned();
    }
    let bare = chunk["message"].is_string()
        && (chunk["object"] == "error" || told(&chunk["code"]) || told(&chunk["type"]) || told(&chunk["status"]));
    (bare || told(&chunk["detail"])).then(|| chunk.clone())
}

/// The tokens that a chunk or a choice tells of.
fn usage_of(value: &Value) -> Option<Usage> {
    let usage = value["usage"].as_object()?;
    let count = |key: &str| usage.get(key).and_then(Value::as_u64);
    let cached = usage
        .get("prompt_tokens_details")
        .and_then(|details| details["cached_tokens"].as_u64())
        .or_else(|| count("prompt_cache_hit_tokens"));
    let (input, output) = (count("prompt_tokens"), count("completion_tokens"));
    if input.is_none() && output.is_none() {
        return None;
    }
    Some(Usage {
        input_tokens: input.unwrap_or(0),
        output_tokens: output.unwrap_or(0),
        cached_tokens: cached.unwrap_or(0),
    })
}
