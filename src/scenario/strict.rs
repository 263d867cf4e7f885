//! What is wrong with a request: the rules of the strictest servers, so that whatever passes here passes everywhere.
//!
//! Knows nothing of scenarios or connections; it looks at one request, and at the one before it of the same agent.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

use super::conversation::content_text;

const TOOL_NAME_CHARS_MAX: usize = 64;
const REQUIRED_HEADERS: [&str; 3] = ["x-s15-agent", "x-s15-session", "x-s15-call"];
const ROLES: [&str; 5] = ["system", "developer", "user", "assistant", "tool"];

/// The faults of a request's headers. Names are lower-case.
pub(super) fn header_faults(headers: &BTreeMap<String, String>) -> Vec<String> {
    let mut faults: Vec<String> = REQUIRED_HEADERS
        .iter()
        .filter(|name| headers.get(**name).is_none_or(|value| value.trim().is_empty()))
        .map(|name| format!("the header {name} is missing"))
        .collect();
    if headers.get("x-s15-call").is_some_and(|call| call.parse::<u64>().map_or(true, |call| call == 0)) {
        faults.push("the header x-s15-call is no number from 1".to_owned());
    }
    faults
}

/// The faults of a request's body.
pub(super) fn body_faults(body: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    if body.get("stream") != Some(&Value::Bool(true)) {
        faults.push("`stream` is not true".to_owned());
    }
    if body.get("model").and_then(Value::as_str).is_none_or(str::is_empty) {
        faults.push("`model` is missing".to_owned());
    }
    if let Some(tools) = body.get("tools") {
        faults.extend(tools_faults(tools));
    }
    match body.get("messages").and_then(Value::as_array).filter(|messages| !messages.is_empty()) {
        Some(messages) => faults.extend(message_faults(messages)),
        None => faults.push("`messages` is missing or empty".to_owned()),
    }
    faults
}

fn tools_faults(tools: &Value) -> Vec<String> {
    let Some(tools) = tools.as_array().filter(|tools| !tools.is_empty()) else {
        return vec!["`tools` is there but no filled list".to_owned()];
    };
    let mut faults = Vec::new();
    for (at, tool) in tools.iter().enumerate() {
        let name = tool.pointer("/function/name").and_then(Value::as_str).unwrap_or_default();
        if !is_tool_name(name) {
            faults.push(format!("tool {at}: the name {name:?} is not allowed"));
        }
        if !tool.pointer("/function/parameters").is_some_and(Value::is_object) {
            faults.push(format!("tool {at} ({name}): the parameters are no object"));
        }
    }
    faults
}

/// The faults of a history.
pub(super) fn message_faults(messages: &[Value]) -> Vec<String> {
    let mut check = History::default();
    for (at, message) in messages.iter().enumerate() {
        check.see(at, message);
    }
    check.close_calls("the end");
    check.faults
}

#[derive(Default)]
struct History {
    faults: Vec<String>,
    open: Vec<String>,
    answered: HashSet<String>,
}

impl History {
    fn see(&mut self, at: usize, message: &Value) {
        let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
        if !ROLES.contains(&role) {
            self.faults.push(format!("message {at}: the role {role:?} is unknown"));
        }
        if at == 0 && !matches!(role, "system" | "developer") {
            self.faults.push(format!("message 0 is of role {role:?}, not system"));
        }
        if role == "tool" {
            self.see_result(at, message);
            return;
        }
        self.close_calls(&format!("message {at} ({role})"));
        match role {
            "assistant" => self.see_reply(at, message),
            _ if content_text(message).trim().is_empty() => {
                self.faults.push(format!("message {at}: an empty {role} message"));
            }
            _ => {}
        }
    }

    fn see_result(&mut self, at: usize, message: &Value) {
        let id = message.get("tool_call_id").and_then(Value::as_str).unwrap_or_default();
        if !message.get("content").is_some_and(|content| content.is_string() || content.is_array()) {
            self.faults.push(format!("message {at}: the result of {id:?} has no content"));
        }
        if let Some(place) = self.open.iter().position(|open| open == id) {
            self.open.remove(place);
            self.answered.insert(id.to_owned());
        } else if self.answered.contains(id) {
            self.faults.push(format!("message {at}: a second or late result for {id:?}"));
        } else {
            self.faults.push(format!("message {at}: an orphan result for {id:?}, which no call right before it has"));
        }
    }

    fn see_reply(&mut self, at: usize, message: &Value) {
        let calls = match message.get("tool_calls") {
            None => &[],
            Some(calls) => match calls.as_array() {
                Some(calls) if !calls.is_empty() => calls.as_slice(),
                _ => {
                    self.faults.push(format!("message {at}: `tool_calls` is there but no filled list"));
                    &[]
                }
            },
        };
        if calls.is_empty() && content_text(message).trim().is_empty() {
            self.faults.push(format!("message {at}: an assistant message with neither text nor calls"));
        }
        for call in calls {
            self.see_call(at, call);
        }
    }

    fn see_call(&mut self, at: usize, call: &Value) {
        let id = call.get("id").and_then(Value::as_str).unwrap_or_default();
        if id.is_empty() {
            self.faults.push(format!("message {at}: a call without an id"));
        } else if self.open.iter().any(|open| open == id) {
            self.faults.push(format!("message {at}: the call id {id:?} twice in one message"));
        } else {
            self.answered.remove(id); // an id may come again in a later message
            self.open.push(id.to_owned());
        }
        if call.get("type").and_then(Value::as_str) != Some("function") {
            self.faults.push(format!("message {at}: the call {id:?} is not of type function"));
        }
        let name = call.pointer("/function/name").and_then(Value::as_str).unwrap_or_default();
        if !is_tool_name(name) {
            self.faults.push(format!("message {at}: the tool name {name:?} is not allowed"));
        }
        let arguments = call.pointer("/function/arguments").and_then(Value::as_str);
        let parsed = arguments.and_then(|text| serde_json::from_str::<Value>(text).ok());
        if !parsed.is_some_and(|value| value.is_object()) {
            self.faults.push(format!("message {at}: the arguments of {name:?} are no JSON object in a string"));
        }
    }

    fn close_calls(&mut self, before: &str) {
        for id in self.open.drain(..) {
            self.faults.push(format!("the call {id:?} has no result before {before}"));
        }
    }
}

fn is_tool_name(name: &str) -> bool {
    (1..=TOOL_NAME_CHARS_MAX).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// The parts of a request that a server can cache, byte for byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Prefix {
    /// What stands between the brackets of `messages`.
    messages: Vec<u8>,
    tools: Vec<u8>,
}

impl Prefix {
    /// Cuts them out of a body.
    pub(super) fn of(raw: &[u8]) -> Self {
        let messages = raw_member(raw, "messages").unwrap_or_default();
        let inner = messages.get(1..messages.len().saturating_sub(1)).unwrap_or_default();
        Self { messages: inner.to_vec(), tools: raw_member(raw, "tools").unwrap_or_default().to_vec() }
    }

    /// Its length.
    pub(super) fn bytes(&self) -> usize {
        self.messages.len() + self.tools.len()
    }

    /// What of `earlier`, the same agent's request before this one, is not kept.
    pub(super) fn faults_after(&self, earlier: &Self) -> Vec<String> {
        let mut faults = Vec::new();
        let kept = self.messages.starts_with(&earlier.messages)
            && matches!(self.messages.get(earlier.messages.len()), None | Some(b',') | Some(b' ' | b'\n'));
        if !kept {
            let same = self.messages.iter().zip(&earlier.messages).take_while(|(a, b)| a == b).count();
            let cut = |bytes: &[u8]| {
                String::from_utf8_lossy(&bytes[same.min(bytes.len())..(same + 60).min(bytes.len())]).into_owned()
            };
            faults.push(format!(
                "the prefix changed: from byte {same} of the messages, {:?} stood there and now {:?}",
                cut(&earlier.messages),
                cut(&self.messages)
            ));
        }
        if self.tools != earlier.tools {
            faults.push("the prefix changed: `tools` is not what it was".to_owned());
        }
        faults
    }
}

/// The exact bytes of a top-level member of a JSON object.
fn raw_member<'a>(raw: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut at = raw.iter().position(|byte| *byte == b'{')? + 1;
    loop {
        at = skip(raw, at, b" \t\r\n,");
        let key_end = value_end(raw, at)?;
        let key = raw.get(at..key_end)?;
        let start = skip(raw, key_end, b" \t\r\n:");
        let end = value_end(raw, start)?;
        if key.len() == name.len() + 2 && &key[1..key.len() - 1] == name.as_bytes() {
            return raw.get(start..end);
        }
        at = end;
    }
}

fn skip(raw: &[u8], from: usize, what: &[u8]) -> usize {
    let rest = raw.get(from..).unwrap_or_default();
    from + rest.iter().take_while(|byte| what.contains(byte)).count()
}

/// Where the value that begins at `from` ends; `None` when none begins there.
fn value_end(raw: &[u8], from: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = from;
    loop {
        match *raw.get(at)? {
            b'"' => at = string_end(raw, at)?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' if depth == 0 => return (at > from).then_some(at),
            b'}' | b']' => {
                depth -= 1;
                at += 1;
            }
            b',' | b':' if depth == 0 => return (at > from).then_some(at),
            _ => {
                at += 1;
                continue;
            }
        }
        if depth == 0 {
            return Some(at);
        }
    }
}

fn string_end(raw: &[u8], quote: usize) -> Option<usize> {
    let mut at = quote + 1;
    loop {
        match *raw.get(at)? {
            b'\\' => at += 2,
            b'"' => return Some(at + 1),
            _ => at += 1,
        }
    }
}
