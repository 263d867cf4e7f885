//! One rule of a scenario: for whom, on which conditions, and the reply.
//!
//! Knows nothing of HTTP; what a condition looks at is a [`Conversation`].

use serde::Deserialize;
use serde_json::{Map, Value};

use super::conversation::{CallPattern, Conversation};
use super::pattern::{Captures, Pattern, fill, fill_value, map_texts, places};
use super::reply::{Reply, ReplyCall};

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

/// The conditions. All that are given must hold; in a list of texts one is enough, except where said.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct When {
    /// The newest typed line contains it, without regard to case.
    user: Words,
    /// The newest typed line is it, without regard to case, outer blanks and closing punctuation.
    user_is: Words,
    /// Has the model not said anything since the newest typed line?
    line_open: Option<bool>,
    /// A pattern in a user message that the model hasn't answered.
    event: Words,
    /// What answers the event: not just any reply, but a call of this tool with all captures in its arguments.
    until_call: Option<String>,
    /// No unanswered user message has this pattern.
    no_event: Words,
    /// The last message is a result of this tool (`*`: of any).
    after_result: Words,
    /// The last message is a result with this pattern.
    result_has: Words,
    /// All of these stand in the present piece of work.
    has: Words,
    /// None of these stands in it.
    lacks: Words,
    /// All of these calls were made in it.
    has_call: Words,
    /// None of these calls was made in it.
    lacks_call: Words,
    /// The newest call in it is of this tool.
    last_call: Words,
    /// A call in it that is still to be done.
    todo: Option<Todo>,
    /// The result of a call in it contains a text.
    has_result: Option<ResultOf>,
    /// Has each spawned teammate reported?
    all_reported: Option<bool>,
    /// Has each teammate that was asked to end answered?
    all_ended: Option<bool>,
    /// Was any teammate spawned in it?
    any_spawned: Option<bool>,
    /// This agent's n-th request; only for what is linear.
    n: Option<u64>,
    /// How often the rule may be used.
    times: Option<u64>,
    /// The same as `times = 1`.
    once: bool,
    /// The request's purpose; `turn` when not given.
    purpose: Option<String>,
}

/// One text or a list of them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(untagged)]
enum Words {
    #[default]
    None,
    One(String),
    Many(Vec<String>),
}

/// Holds while no such call went well and fewer than `tries` were made.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Todo {
    call: String,
    #[serde(default = "one_try")]
    tries: usize,
    /// What the result must contain to count as well done.
    ok: Option<String>,
}

fn one_try() -> usize {
    1
}

/// Holds when a call's newest result contains `has` and nothing of `lacks`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ResultOf {
    call: String,
    has: String,
    #[serde(default)]
    lacks: Words,
}

impl Words {
    fn list(&self) -> &[String] {
        match self {
            Self::None => &[],
            Self::One(word) => std::slice::from_ref(word),
            Self::Many(words) => words,
        }
    }

    fn patterns(&self) -> Result<Vec<Pattern>, String> {
        self.list().iter().map(|word| Pattern::new(word)).collect()
    }

    /// Does one of them hold, or is none given?
    fn any(&self, holds: impl Fn(&str) -> bool) -> bool {
        self.list().is_empty() || self.list().iter().any(|word| holds(word))
    }

    fn all(&self, holds: impl Fn(&str) -> bool) -> bool {
        self.list().iter().all(|word| holds(word))
    }
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
        let until = self.when.until_call.as_deref().map(CallPattern::new);
        conversation.user_messages().find_map(|message| {
            let mut places = self.events.iter().flat_map(|pattern| pattern.find_all(message.text));
            places.find(|captures| match &until {
                Some(tool) => !message.is_answered_by(tool, captures.values()),
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

impl When {
    fn line_holds(&self, conversation: &Conversation) -> bool {
        let line = conversation.line().unwrap_or_default();
        let (lower, plain) = (line.to_lowercase(), plain_words(line));
        self.user.any(|word| lower.contains(&word.to_lowercase()))
            && self.user_is.any(|word| plain == plain_words(word))
            && self.line_open.is_none_or(|open| open == conversation.line_is_open())
    }

    fn work_holds(&self, conversation: &Conversation) -> bool {
        let stands = |word: &str| conversation.scene().iter().any(|entry| entry.text.contains(word));
        self.has.all(stands)
            && self.lacks.all(|word| !stands(word))
            && self.all_reported.is_none_or(|all| all == conversation.all_reported())
            && self.all_ended.is_none_or(|all| all == conversation.all_ended())
            && self.any_spawned.is_none_or(|any| any != conversation.spawned().is_empty())
    }

    fn calls_hold(&self, conversation: &Conversation) -> bool {
        let made = |word: &str| {
            let pattern = CallPattern::new(word);
            conversation.calls().any(|call| pattern.takes(call))
        };
        let is_last =
            |word: &str| conversation.calls().next_back().is_some_and(|call| CallPattern::new(word).takes(call));
        let is_result = |word: &str| conversation.last_result().is_some_and(|call| CallPattern::new(word).takes(call));
        self.after_result.any(is_result)
            && self.has_call.all(made)
            && self.lacks_call.all(|word| !made(word))
            && self.last_call.any(is_last)
            && self.todo.as_ref().is_none_or(|todo| todo.is_open(conversation))
            && self.has_result.as_ref().is_none_or(|result| result.holds(conversation))
    }
}

impl Todo {
    fn is_open(&self, conversation: &Conversation) -> bool {
        let pattern = CallPattern::new(&self.call);
        let mut tries = 0;
        for call in conversation.calls().filter(|call| pattern.takes(call)) {
            let result = call.result.as_deref().unwrap_or_default();
            if call.went_well() && self.ok.as_ref().is_none_or(|ok| result.contains(ok)) {
                return false;
            }
            tries += 1;
        }
        tries < self.tries
    }
}

impl ResultOf {
    fn holds(&self, conversation: &Conversation) -> bool {
        let pattern = CallPattern::new(&self.call);
        let newest = conversation.calls().rev().find(|call| pattern.takes(call));
        newest
            .and_then(|call| call.result.as_deref())
            .is_some_and(|result| result.contains(&self.has) && self.lacks.all(|word| !result.contains(word)))
    }
}

fn plain_words(text: &str) -> String {
    let closing = |c: char| c.is_whitespace() || "。！？!?.~～,，".contains(c);
    text.trim().trim_end_matches(closing).to_lowercase()
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
