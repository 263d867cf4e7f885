//! A request's messages as the conditions of a rule look at them: typed lines, the runtime's blocks, calls with their results.
//!
//! Knows nothing of rules or HTTP. It expects any JSON: what is malformed is the business of `strict`.

use serde_json::Value;

/// The messages of one request.
#[derive(Debug)]
pub(super) struct Conversation {
    entries: Vec<Entry>,
    scene: usize,
}

/// One message.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) who: Who,
    pub(super) text: String,
    pub(super) calls: Vec<Called>,
}

/// Whose words a message holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    System,
    /// A line that the user typed.
    Line,
    /// A user message that the runtime wrote: it begins with a word in brackets, such as `[Team events]`.
    Block,
    Assistant,
    Tool,
}

/// A tool call and its result.
#[derive(Debug)]
pub(super) struct Called {
    id: String,
    pub(super) tool: String,
    /// Compact JSON.
    pub(super) arguments: String,
    pub(super) result: Option<String>,
}

/// A tool, or only those of its calls whose arguments' compact JSON contains a text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CallPattern {
    pub(super) tool: String,
    pub(super) arguments: String,
}

impl CallPattern {
    /// Reads `tool` or `tool text-in-its-arguments`.
    pub(super) fn new(text: &str) -> Self {
        let (tool, arguments) = text.split_once(' ').unwrap_or((text, ""));
        Self { tool: tool.to_owned(), arguments: arguments.to_owned() }
    }

    pub(super) fn takes(&self, call: &Called) -> bool {
        (self.tool == "*" || self.tool == call.tool) && call.arguments.contains(&self.arguments)
    }
}

impl Called {
    /// Did it do what was asked?
    pub(super) fn went_well(&self) -> bool {
        self.result.as_deref().is_some_and(|result| {
            !["error:", "Blocked:", "not run"].iter().any(|beginning| result.starts_with(beginning))
        })
    }

    fn argument(&self, name: &str) -> Option<String> {
        let arguments: Value = serde_json::from_str(&self.arguments).ok()?;
        Some(arguments.get(name)?.as_str()?.to_owned())
    }
}

impl Conversation {
    /// Reads the messages of a request's body.
    pub(super) fn new(body: &Value) -> Self {
        let mut entries: Vec<Entry> = Vec::new();
        for message in body.get("messages").and_then(Value::as_array).into_iter().flatten() {
            let text = content_text(message);
            let who = match message.get("role").and_then(Value::as_str).unwrap_or_default() {
                "user" if is_block(&text) => Who::Block,
                "user" => Who::Line,
                "assistant" => Who::Assistant,
                "tool" => Who::Tool,
                _ => Who::System,
            };
            let mut calls = calls_of(message);
            if who == Who::Tool {
                let id = message.get("tool_call_id").and_then(Value::as_str).unwrap_or_default();
                let asked = entries.iter_mut().rev().find(|entry| entry.who == Who::Assistant);
                if let Some(call) = asked.and_then(|entry| entry.calls.iter_mut().find(|call| call.id == id)) {
                    call.result = Some(text.clone());
                    calls.push(Called {
                        id: id.to_owned(),
                        tool: call.tool.clone(),
                        arguments: call.arguments.clone(),
                        result: Some(text.clone()),
                    });
                }
            }
            entries.push(Entry { who, text, calls });
        }
        let scene = scene_start(&entries);
        Self { entries, scene }
    }

    /// The messages since the present piece of work began: since a teammate's newest `[Task]`, since the lead's newest
    /// `propose_team`; all messages before there was one.
    pub(super) fn scene(&self) -> &[Entry] {
        &self.entries[self.scene..]
    }

    /// The last message.
    pub(super) fn last(&self) -> Option<&Entry> {
        self.entries.last()
    }

    /// The call that the last message is the result of.
    pub(super) fn last_result(&self) -> Option<&Called> {
        self.last().filter(|entry| entry.who == Who::Tool)?.calls.first()
    }

    /// The newest line that the user typed.
    pub(super) fn line(&self) -> Option<&str> {
        self.line_at().map(|at| self.entries[at].text.as_str())
    }

    /// The typed lines after which the model hasn't said anything yet.
    pub(super) fn open_lines(&self) -> Vec<&str> {
        let said = |entry: &Entry| entry.who == Who::Assistant && !entry.text.trim().is_empty();
        let from = self.entries.iter().rposition(said).map_or(0, |at| at + 1);
        let lines = self.entries[from..].iter();
        lines.filter(|entry| entry.who == Who::Line).map(|entry| entry.text.as_str()).collect()
    }

    fn line_at(&self) -> Option<usize> {
        self.entries.iter().rposition(|entry| entry.who == Who::Line)
    }

    /// User messages with whether the model has answered since, and the calls it has made since.
    pub(super) fn user_messages(&self) -> impl Iterator<Item = UserMessage<'_>> {
        self.entries
            .iter()
            .enumerate()
            .filter(|(_, entry)| matches!(entry.who, Who::Line | Who::Block))
            .map(|(at, entry)| UserMessage { text: &entry.text, after: &self.entries[at + 1..] })
    }

    /// The calls since the present piece of work began, in order.
    pub(super) fn calls(&self) -> impl DoubleEndedIterator<Item = &Called> {
        self.scene().iter().filter(|entry| entry.who == Who::Assistant).flat_map(|entry| &entry.calls)
    }

    /// The teammates that were spawned since the present piece of work began, in order and once each.
    pub(super) fn spawned(&self) -> Vec<String> {
        self.names_given_to("spawn_teammate", "name")
    }

    /// Has each spawned teammate given its result or its error?
    pub(super) fn all_reported(&self) -> bool {
        self.spawned().iter().all(|name| self.has_event(&["result", "error"], name))
    }

    /// Has each teammate that was asked to end answered?
    pub(super) fn all_ended(&self) -> bool {
        let asked = self.names_given_to("request_shutdown", "teammate");
        asked.iter().all(|name| self.has_event(&["shutdown_response"], name))
    }

    fn names_given_to(&self, tool: &str, argument: &str) -> Vec<String> {
        let mut names = Vec::new();
        for call in self.calls().filter(|call| call.tool == tool && call.went_well()) {
            if let Some(name) = call.argument(argument).filter(|name| !names.contains(name)) {
                names.push(name);
            }
        }
        names
    }

    /// Does a block since the present work began hold `[kind …] name: …`?
    fn has_event(&self, kinds: &[&str], name: &str) -> bool {
        let lines = self.scene().iter().filter(|entry| entry.who == Who::Block).flat_map(|entry| entry.text.lines());
        lines.filter_map(|line| line.strip_prefix('[')?.split_once("] ")).any(|(head, rest)| {
            let kind = head.split(' ').next().unwrap_or_default();
            kinds.contains(&kind) && rest.strip_prefix(name).is_some_and(|after| after.starts_with(':'))
        })
    }

    /// Is there a Chinese character in the typed lines, or, for want of these, in the runtime's blocks?
    pub(super) fn is_chinese(&self) -> bool {
        let is_han = |c: char| ('\u{4e00}'..='\u{9fff}').contains(&c);
        let who = if self.line_at().is_some() { Who::Line } else { Who::Block };
        let words = self.entries.iter().filter(|entry| entry.who == who);
        words.flat_map(|entry| entry.text.chars()).any(is_han)
    }
}

/// A user message and what came after it.
pub(super) struct UserMessage<'a> {
    pub(super) text: &'a str,
    after: &'a [Entry],
}

impl UserMessage<'_> {
    /// Has the model said or done anything since?
    pub(super) fn is_answered(&self) -> bool {
        self.after.iter().any(|entry| entry.who == Who::Assistant)
    }

    /// Has the model since made such a call?
    pub(super) fn is_answered_by(&self, pattern: &CallPattern) -> bool {
        let replies = self.after.iter().filter(|entry| entry.who == Who::Assistant);
        replies.flat_map(|entry| &entry.calls).any(|call| pattern.takes(call))
    }
}

fn scene_start(entries: &[Entry]) -> usize {
    let begins = |entry: &Entry| match entry.who {
        Who::Block => entry.text.lines().any(|line| line.starts_with("[Task]")),
        Who::Assistant => entry.calls.iter().any(|call| call.tool == "propose_team" && call.went_well()),
        Who::System | Who::Line | Who::Tool => false,
    };
    entries.iter().rposition(begins).unwrap_or(0)
}

/// `[Team events]`, `[Task] …`: a capital letter after the bracket. What a person types in brackets rarely looks so.
fn is_block(text: &str) -> bool {
    text.strip_prefix('[').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()) && rest.contains(']'))
}

/// A message's text, also where the content is a list of parts.
pub(super) fn content_text(message: &Value) -> String {
    match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => String::new(),
    }
}

fn calls_of(message: &Value) -> Vec<Called> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let calls = message.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
    calls
        .map(|call| {
            let function = call.get("function");
            let arguments = text(function.and_then(|function| function.get("arguments")));
            let compact = serde_json::from_str::<Value>(&arguments).map(|value| value.to_string());
            Called {
                id: text(call.get("id")),
                tool: text(function.and_then(|function| function.get("name"))),
                arguments: compact.unwrap_or(arguments),
                result: None,
            }
        })
        .collect()
}
