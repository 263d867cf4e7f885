//! One rule of a scenario: for whom, on which conditions, and the reply.
//!
//! Knows nothing of HTTP; what a condition looks at is a [`Conversation`].

use serde::Deserialize;
use serde_json::{Map, Value};

use super::conversation::{CallPattern, Conversation};
use super::pattern::{Captures, Pattern, fill, fill_value, map_texts, places};
use super::reply::{Reply, ReplyCall};
use super::when::{When, Words};

const REPLY_KEYS: [&str; 9] = ["text", "calls", "status", "body", "headers", "delay_ms", "piece_ms", "chunk", "cut"];
/// Captured without any condition: the text of the result that the last message is, and the newest typed line.
const ALWAYS_CAPTURED: [&str; 3] = ["result", "line", "name"];
const PURPOSE_DEFAULT: &str = "turn";

/// A rule, read and checked.
#[derive(Debug)]
pub(super) struct Rule {
    agents: Vec<String>,
    when: When,
    events: Vec<Pattern>,
    no_events: Vec<Pattern>,
    result_has: Vec<Pattern>,
    reply: Reply,
}

/// What a rule is asked about.
pub(super) struct Question<'a> {
    pub(super) agent: &'a str,
    pub(super) purpose: Option<&'a str>,
    /// Number of this agent's request, from 1.
    pub(super) n: u64,
    pub(super) conversation: &'a Conversation,
}

impl Rule {
    /// Reads a rule. `file` gives the text of an embedded file for `${file:NAME}`.
    pub(super) fn new(value: &Value, file: &dyn Fn(&str) -> Option<String>) -> Result<Self, String> {
        let mut when = value.as_object().cloned().ok_or("it is no table")?;
        if when.shift_remove("name").is_some_and(|name| !name.is_string()) {
            return Err("`name` is no text".to_owned());
        }
        let agents: Words = field(when.shift_remove("agent"), "agent")?;
        let reply_fields: Map<String, Value> =
            REPLY_KEYS.iter().filter_map(|key| Some(((*key).to_owned(), when.shift_remove(*key)?))).collect();
        let reply_value = with_files(&Value::Object(reply_fields), file)?;
        let reply = Reply::read(&reply_value)?;
        let when: When = serde_json::from_value(Value::Object(when)).map_err(|e| e.to_string())?;
        let rule = Self {
            agents: agents.list().to_vec(),
            events: when.event.patterns()?,
            no_events: when.no_event.patterns()?,
            result_has: when.result_has.patterns()?,
            when,
            reply,
        };
        rule.check(value)?;
        Ok(rule)
    }

    fn check(&self, value: &Value) -> Result<(), String> {
        if self.agents.is_empty() {
            return Err("`agent` is missing (a name, a list of names, or \"*\")".to_owned());
        }
        if self.when.until_call.is_some() && self.events.is_empty() {
            return Err("`until_call` needs an `event`".to_owned());
        }
        let captured: Vec<&str> =
            self.events.iter().chain(&self.result_has).flat_map(Pattern::names).chain(ALWAYS_CAPTURED).collect();
        map_texts(value, &mut |text| match places(text).into_iter().find(|name| !captured.contains(name)) {
            Some(name) => Err(format!("${{{name}}} is captured by no condition")),
            None => Ok(String::new()),
        })
        .map(drop)
    }

    /// May it be used again after `used` times?
    pub(super) fn has_uses_left(&self, used: u64) -> bool {
        let limit = if self.when.once { Some(1) } else { self.when.times };
        limit.is_none_or(|limit| used < limit)
    }

    /// What its conditions captured; `None` when one doesn't hold.
    pub(super) fn takes(&self, question: &Question<'_>) -> Option<Captures> {
        let conversation = question.conversation;
        let purpose = self.when.purpose.as_deref().unwrap_or(PURPOSE_DEFAULT);
        let for_this = self.agents.iter().any(|agent| agent == "*" || agent == question.agent)
            && purpose == question.purpose.unwrap_or(PURPOSE_DEFAULT)
            && self.when.n.is_none_or(|n| n == question.n);
        if !for_this
            || !self.when.line_holds(conversation)
            || !self.when.work_holds(conversation)
            || !self.when.calls_hold(conversation)
        {
            return None;
        }
        let mut captures = Captures::new();
        if let Some(result) = conversation.last_result().and_then(|call| call.result.as_ref()) {
            captures.insert("result".to_owned(), result.clone());
        }
        if let Some(line) = conversation.line() {
            captures.insert("line".to_owned(), line.to_owned());
        }
        captures.extend(self.result_captures(conversation)?);
        captures.extend(self.event_captures(conversation)?);
        Some(captures)
    }

    fn result_captures(&self, conversation: &Conversation) -> Option<Captures> {
        if self.result_has.is_empty() {
            return Some(Captures::new());
        }
        let result = conversation.last_result()?.result.as_deref()?;
        self.result_has.iter().find_map(|pattern| pattern.find(result))
    }

    fn event_captures(&self, conversation: &Conversation) -> Option<Captures> {
        let is_open = |pattern: &Pattern| {
            conversation.user_messages().any(|message| !message.is_answered() && pattern.find(message.text).is_some())
        };
        if self.no_events.iter().any(is_open) {
            return None;
        }
        if self.events.is_empty() {
            return Some(Captures::new());
        }
        let until = self.when.until_call.as_deref();
        conversation.user_messages().find_map(|message| {
            let mut places = self.events.iter().flat_map(|pattern| pattern.find_all(message.text));
            places.find(|captures| match until {
                Some(call) => !message.is_answered_by(&CallPattern::new(&fill(call, captures))),
                None => !message.is_answered(),
            })
        })
    }

    /// The reply, with captures and languages put in.
    pub(super) fn reply(&self, captures: &Captures, conversation: &Conversation) -> Reply {
        let fill_in = |value: &Value| fill_value(&in_language(value, conversation.is_chinese()), captures);
        let mut reply = self.reply.clone();
        reply.text = fill_in(&self.reply.text);
        reply.body = self.reply.body.as_ref().map(|body| fill(body, captures));
        reply.calls = Vec::new();
        for call in &self.reply.calls {
            let names = match call.for_each_spawned {
                true => conversation.spawned().into_iter().map(Some).collect(),
                false => vec![None],
            };
            for name in names {
                let mut captures = captures.clone();
                captures.extend(name.map(|name| ("name".to_owned(), name)));
                let arguments = in_language(&call.arguments, conversation.is_chinese());
                reply.calls.push(ReplyCall { arguments: fill_value(&arguments, &captures), ..call.clone() });
            }
        }
        reply
    }
}

fn field<T: for<'de> Deserialize<'de> + Default>(value: Option<Value>, name: &str) -> Result<T, String> {
    value.map_or_else(
        || Ok(T::default()),
        |value| serde_json::from_value(value).map_err(|_| format!("`{name}` is neither a text nor a list of texts")),
    )
}

/// A table of just `zh` and `en` stands for one of the two.
pub(super) fn in_language(value: &Value, chinese: bool) -> Value {
    match value {
        Value::Object(fields) if fields.len() == 2 && fields.contains_key("zh") && fields.contains_key("en") => {
            fields[if chinese { "zh" } else { "en" }].clone()
        }
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(key, item)| (key.clone(), in_language(item, chinese))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(|item| in_language(item, chinese)).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

fn with_files(value: &Value, file: &dyn Fn(&str) -> Option<String>) -> Result<Value, String> {
    map_texts(value, &mut |text| match text.strip_prefix("${file:").and_then(|rest| rest.strip_suffix('}')) {
        Some(name) => file(name).ok_or_else(|| format!("there is no file {name:?} to put in")),
        None => Ok(text.to_owned()),
    })
}
