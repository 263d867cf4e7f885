//! Makes of whatever came a reply whose message any strict server accepts back.
//!
//! Knows nothing of which tools exist: it only sees to it that the tool layer gets a name and arguments, or is told what was wrong.

#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

use super::accumulate::{Draft, DraftCall, Finish};
use super::history::History;
use super::{CallSlot, Reply};

/// Stands in the history for a name that no server would accept.
const INVALID_TOOL: &str = "invalid_tool";

/// Longest function name that servers accept, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// How much of broken arguments the model is shown around the fault, in characters each side.
const EXCERPT_CHARS: usize = 30;

/// Builds the reply. `history` is the conversation it answers: ids that are made up here are new to it.
pub(super) fn from_draft(draft: Draft, history: &History) -> Reply {
    let Draft { text, reasoning, details, calls: drafts, finish, usage } = draft;
    let mut ids: Vec<String> = Vec::new();
    let mut calls = Vec::new();
    let mut replayed = Vec::new();
    let last = drafts.len().saturating_sub(1);
    for (at, call) in drafts.into_iter().enumerate() {
        let id = distinct_id(&call.id, &ids, history);
        ids.push(id.clone());
        let half = finish == Finish::Length && at == last;
        let (sent_back, arguments) = read_arguments(&call.arguments, half);
        let (name, legal) = read_name(&call.name);
        replayed.push(replay(&id, &legal, sent_back, call));
        calls.push(CallSlot { id, name, arguments });
    }
    let content = if text.trim().is_empty() { Value::Null } else { Value::String(text.clone()) };
    let mut message = Map::new();
    message.insert("role".to_owned(), json!("assistant"));
    message.insert("content".to_owned(), content);
    if !replayed.is_empty() {
        // Thinking goes back with calls alone: there servers ask for it, elsewhere some refuse it.
        if let Some((key, thought)) = reasoning {
            message.insert(key.to_owned(), Value::String(thought));
        }
        if !details.is_empty() {
            message.insert("reasoning_details".to_owned(), Value::Array(joined(details)));
        }
        message.insert("tool_calls".to_owned(), Value::Array(replayed));
    }
    Reply { message: Value::Object(message), text, calls, usage, cut_off: finish == Finish::Length }
}

/// One call as it goes back, with what the server put into it besides.
fn replay(id: &str, name: &str, arguments: String, call: DraftCall) -> Value {
    let mut function = Map::new();
    function.insert("name".to_owned(), json!(name));
    function.insert("arguments".to_owned(), Value::String(arguments));
    function.extend(call.function_extra);
    let mut whole = Map::new();
    whole.insert("id".to_owned(), json!(id));
    whole.insert("type".to_owned(), json!("function"));
    whole.insert("function".to_owned(), Value::Object(function));
    whole.extend(call.extra);
    Value::Object(whole)
}

/// The id as it came; one of our own where it's empty or already taken in this message.
fn distinct_id(id: &str, taken: &[String], history: &History) -> String {
    if !id.is_empty() && !taken.iter().any(|other| other == id) {
        return id.to_owned();
    }
    // Nine letters and digits: the one form that the strictest servers accept, too.
    let first = history.messages().len() * 100 + taken.len();
    (first..)
        .map(|number| format!("s{number:08}"))
        .find(|made| !history.has_call(made) && !taken.contains(made))
        .unwrap_or_default()
}

/// The name for the tool layer, and the one for the history.
fn read_name(written: &str) -> (String, String) {
    // Some models leak their own mark-up or a namespace into the name.
    let bare = written.split("<|").next().unwrap_or_default().trim();
    let bare = bare.strip_prefix("functions.").unwrap_or(bare);
    let is_legal = !bare.is_empty()
        && bare.len() <= NAME_BYTES_MAX
        && bare.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if is_legal {
        return (bare.to_owned(), bare.to_owned());
    }
    let shown: String = bare.chars().map(|c| if c.is_control() { ' ' } else { c }).take(NAME_BYTES_MAX).collect();
    let shown = if shown.trim().is_empty() { INVALID_TOOL.to_owned() } else { shown };
    (shown, INVALID_TOOL.to_owned())
}

/// The arguments as they go back (always a JSON object in a string), and as the tool gets them.
/// `half`: the reply ended at its length limit within this call.
fn read_arguments(written: &str, half: bool) -> (String, Result<Map<String, Value>, String>) {
    let text = written.trim();
    let none = "{}".to_owned();
    if half && (text.is_empty() || serde_json::from_str::<Value>(text).is_err()) {
        let told = "error: this call was cut off: the reply reached its length limit before the arguments were complete. \
                    Nothing was run. Do it again in smaller pieces.";
        return (none, Err(told.to_owned()));
    }
    if text.is_empty() || text == "null" {
        return (none, Ok(Map::new()));
    }
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(map)) => (text.to_owned(), Ok(map)),
        Ok(Value::String(inner)) => match serde_json::from_str::<Map<String, Value>>(&inner) {
            Ok(map) => (inner, Ok(map)),
            Err(_) => (none, Err(not_an_object("a string"))),
        },
        Ok(Value::Array(_)) => (none, Err(not_an_object("an array"))),
        Ok(Value::Number(_)) => (none, Err(not_an_object("a number"))),
        Ok(Value::Bool(_)) => (none, Err(not_an_object("true or false"))),
        Ok(Value::Null) => (none, Ok(Map::new())),
        Err(error) => (none, Err(not_json(text, &error))),
    }
}

fn not_an_object(what: &str) -> String {
    format!(
        "error: the arguments of this call must be one JSON object, and were {what}. Nothing was run. \
         Send the call again with an object."
    )
}

fn not_json(text: &str, error: &serde_json::Error) -> String {
    format!(
        "error: the arguments of this call were not valid JSON: {error}, near `{}`. Nothing was run. \
         Send the call again with one JSON object; quotes, backslashes and line ends within a text must be escaped.",
        excerpt(text, error.line(), error.column())
    )
}

/// The text around a place that `serde_json` names (lines from 1, columns in bytes from 1).
fn excerpt(text: &str, line: usize, column: usize) -> String {
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let mut at = (before + column).min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let left: String = text[..at].chars().rev().take(EXCERPT_CHARS).collect();
    let left: String = left.chars().rev().collect();
    let right: String = text[at..].chars().take(EXCERPT_CHARS).collect();
    format!("{left}{right}").replace('\n', "\\n")
}

/// Details of thinking that came in pieces, put together where two neighbours are of one piece.
fn joined(details: Vec<Value>) -> Vec<Value> {
    let mut whole: Vec<Value> = Vec::new();
    for detail in details {
        match whole.last_mut() {
            Some(last)
                if !last["index"].is_null() && last["index"] == detail["index"] && last["type"] == detail["type"] =>
            {
                for (key, value) in detail.as_object().into_iter().flatten() {
                    match (&mut last[key.as_str()], value) {
                        (_, Value::Null) => {}
                        (Value::String(text), Value::String(more))
                            if ["text", "summary", "data"].contains(&key.as_str()) =>
                        {
                            text.push_str(more);
                        }
                        (place, value) => *place = value.clone(),
                    }
                }
            }
            Some(_) | None => whole.push(detail),
        }
    }
    whole
}
