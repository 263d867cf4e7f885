//! A reply of the scripted model and the bytes that carry it: server-sent events, one JSON object, or a fault.
//!
//! Knows nothing of rules or conditions, and nothing of sockets.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

/// Characters in a piece of streamed text or arguments, unless the rule says otherwise.
const PIECE_CHARS: usize = 24;
const BYTES_A_TOKEN: usize = 4;

/// What a rule answers.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Reply {
    /// A text, or `{zh, en}`; after the captures were put in, always a text.
    pub(super) text: Value,
    pub(super) calls: Vec<ReplyCall>,
    /// HTTP status; anything but 200 is a fault with `body`.
    pub(super) status: Option<u16>,
    /// Sent instead of a reply.
    pub(super) body: Option<String>,
    /// More response headers.
    pub(super) headers: BTreeMap<String, String>,
    /// Milliseconds before the first byte.
    pub(super) delay_ms: u64,
    /// Milliseconds between two pieces.
    pub(super) piece_ms: u64,
    /// Characters in a piece.
    pub(super) chunk: Option<usize>,
    /// Break the connection off in the middle of the stream.
    pub(super) cut: bool,
}

/// A tool call of a reply.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "RawCall")]
pub(super) struct ReplyCall {
    pub(super) tool: String,
    pub(super) arguments: Value,
    pub(super) for_each_spawned: bool,
    /// The call's id instead of one that is made up.
    pub(super) id: Option<String>,
    /// Sent as it stands instead of `arguments`, for faults.
    pub(super) raw_arguments: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCall {
    tool: String,
    #[serde(default)]
    arguments: Value,
    #[serde(default)]
    for_each_spawned: bool,
    id: Option<String>,
    raw_arguments: Option<String>,
}

impl From<RawCall> for ReplyCall {
    fn from(raw: RawCall) -> Self {
        let arguments = if raw.arguments.is_null() { json!({}) } else { raw.arguments };
        Self {
            tool: raw.tool,
            arguments,
            for_each_spawned: raw.for_each_spawned,
            id: raw.id,
            raw_arguments: raw.raw_arguments,
        }
    }
}

/// What the bytes of a reply need to know of its request.
pub(super) struct Frame<'a> {
    /// Makes the ids of the reply and its calls.
    pub(super) id: &'a str,
    pub(super) model: &'a str,
    pub(super) request_bytes: usize,
    /// How many of those stood in the request before it.
    pub(super) cached_bytes: usize,
}

impl Reply {
    /// A plain text.
    pub(super) fn of_text(text: &str) -> Self {
        Self { text: Value::String(text.to_owned()), ..Self::default() }
    }

    /// Reads the part of a rule that is its reply.
    pub(super) fn read(value: &Value) -> Result<Self, String> {
        let reply: Self = serde_json::from_value(value.clone()).map_err(|e| e.to_string())?;
        if reply.text.is_null() && reply.calls.is_empty() && !reply.is_fault() {
            return Err("it has no reply (`text`, `calls`, or `status` and `body`)".to_owned());
        }
        if reply.chunk == Some(0) {
            return Err("`chunk` must be at least 1".to_owned());
        }
        if let Some(call) = reply.calls.iter().find(|call| !call.arguments.is_object()) {
            return Err(format!("the arguments of {} are no table", call.tool));
        }
        Ok(reply)
    }

    /// Is a plain HTTP answer sent instead of a reply?
    pub(super) fn is_fault(&self) -> bool {
        self.body.is_some() || self.status.is_some()
    }

    fn text(&self) -> &str {
        self.text.as_str().unwrap_or_default()
    }

    fn arguments(call: &ReplyCall) -> String {
        call.raw_arguments.clone().unwrap_or_else(|| call.arguments.to_string())
    }

    fn call_id(call: &ReplyCall, index: usize, id: &str) -> String {
        call.id.clone().unwrap_or_else(|| format!("call_{id}_{index}"))
    }

    fn finish_reason(&self) -> &'static str {
        if self.calls.is_empty() { "stop" } else { "tool_calls" }
    }

    fn usage(&self, frame: &Frame<'_>) -> Value {
        let written: usize =
            self.text().len() + self.calls.iter().map(|call| Self::arguments(call).len()).sum::<usize>();
        let (read, written) = (frame.request_bytes / BYTES_A_TOKEN, written.div_ceil(BYTES_A_TOKEN));
        json!({
            "prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written,
            "prompt_tokens_details": {"cached_tokens": frame.cached_bytes / BYTES_A_TOKEN},
        })
    }

    /// The events of a stream, each with its blank line.
    pub(super) fn events(&self, frame: &Frame<'_>) -> Vec<String> {
        let chars = self.chunk.unwrap_or(PIECE_CHARS);
        let mut events = vec![delta(frame, json!({"role": "assistant", "content": ""}))];
        events.extend(pieces(self.text(), chars).into_iter().map(|piece| delta(frame, json!({"content": piece}))));
        for (index, call) in self.calls.iter().enumerate() {
            let head = json!({"index": index, "id": Self::call_id(call, index, frame.id), "type": "function",
                "function": {"name": call.tool, "arguments": ""}});
            events.push(delta(frame, json!({"tool_calls": [head]})));
            for piece in pieces(&Self::arguments(call), chars.max(call.arguments.to_string().len() / 16)) {
                let part = json!({"index": index, "function": {"arguments": piece}});
                events.push(delta(frame, json!({"tool_calls": [part]})));
            }
        }
        events.push(event(&chunk(frame, &json!([{"index": 0, "delta": {}, "finish_reason": self.finish_reason()}]))));
        let mut last = chunk(frame, &json!([]));
        last["usage"] = self.usage(frame);
        events.push(event(&last));
        events.push("data: [DONE]\n\n".to_owned());
        events
    }

    /// The assistant message that the reply amounts to; `id` makes the ids of its calls.
    pub(crate) fn message(&self, id: &str) -> Value {
        let mut message = json!({"role": "assistant", "content": self.text()});
        if !self.calls.is_empty() {
            let calls = self.calls.iter().enumerate().map(|(index, call)| {
                json!({"id": Self::call_id(call, index, id), "type": "function",
                    "function": {"name": call.tool, "arguments": Self::arguments(call)}})
            });
            message["tool_calls"] = calls.collect();
        }
        message
    }

    /// The whole reply as one JSON object.
    pub(super) fn whole(&self, frame: &Frame<'_>) -> Value {
        let message = self.message(frame.id);
        json!({
            "id": format!("chatcmpl-{}", frame.id), "object": "chat.completion", "created": 1, "model": frame.model,
            "choices": [{"index": 0, "message": message, "finish_reason": self.finish_reason()}],
            "usage": self.usage(frame),
        })
    }
}

fn chunk(frame: &Frame<'_>, choices: &Value) -> Value {
    json!({
        "id": format!("chatcmpl-{}", frame.id), "object": "chat.completion.chunk", "created": 1,
        "model": frame.model, "choices": choices,
    })
}

#[expect(clippy::needless_pass_by_value, reason = "each caller builds it in place")]
fn delta(frame: &Frame<'_>, delta: Value) -> String {
    event(&chunk(frame, &json!([{"index": 0, "delta": delta, "finish_reason": null}])))
}

fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}

fn pieces(text: &str, chars: usize) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(chars).map(|piece| piece.iter().collect()).collect()
}
