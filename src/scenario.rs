//! The scripted model server behind the demo and the tests: HTTP on 127.0.0.1, replies from a [`Scenario`].
//!
//! Knows nothing of sessions, mail or terminals. The program talks to it as to any model server, so that the client
//! path is always the real one; it checks every request that arrives by the rules of the strictest servers.
//!
//! A scenario is TOML (or JSON): rules in order, the first that takes a request answers it.
//!
//! ```toml
//! [fallback]                     # for what no rule takes; "*" for any agent, then for those not named
//! lead = "I am a script."
//!
//! [[rule]]
//! name = "approve"               # optional, for messages
//! agent = "lead"                 # a name, a list of names, or "*"
//! event = "[plan_approval_request request_id={request_id}] {who}:"
//! until_call = "review_plan ${request_id}"     # the event is open until such a call was made
//! calls = [{ tool = "review_plan", arguments = { request_id = "${request_id}", approve = true } }]
//! ```
//!
//! Conditions, all optional and all to hold: `user`, `user_is`, `answer`, `line_open`, `open_lines_min` (typed lines); `event`,
//! `until_call`, `no_event` (user messages not yet answered); `after_result`, `result_has` (the last message is a
//! result); `has`, `lacks`, `has_call`, `lacks_call`, `last_call`, `todo`, `has_result`, `all_reported`, `all_ended`,
//! `any_spawned` (the present piece of work: since the newest `[Task]` or `propose_team`); `n` (only for what is
//! linear), `times`, `once`, `purpose`. A call is written `tool` or `tool text-in-its-compact-arguments`.
//!
//! Replies: `text`, `calls` (`tool`, `arguments`, and `for_each_spawned`, `id`, `raw_arguments`), or a fault:
//! `status`, `body`, `headers`, `cut`; how it comes: `delay_ms`, `piece_ms`, `chunk`. Texts may hold `${capture}`, and
//! `${result}`, `${line}`; a table of `zh` and `en` stands for the language that the conversation is in; a text that
//! is just `${file:NAME}` for a file embedded with the scenario.

mod clerk;
mod conversation;
mod http;
mod pattern;
mod reply;
mod rule;
mod server;
mod strict;
mod when;

#[cfg(test)]
mod server_tests;
#[cfg(test)]
mod strict_tests;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

#[cfg(test)]
pub(crate) use clerk::Clerk;
pub use clerk::{Recorded, ServeOptions};
use conversation::Conversation;
use reply::Reply;
use rule::Rule;
pub use server::{Running, serve};

const FALLBACK_DEFAULT: &str = "No rule of the scenario takes this request.";

/// Rules and fallbacks, read and checked.
#[derive(Debug)]
pub struct Scenario {
    rules: Vec<Rule>,
    fallbacks: BTreeMap<String, Value>,
}

impl Scenario {
    /// Reads a scenario from TOML, or from JSON when the text begins with `{`.
    ///
    /// # Errors
    /// One line that says which rule is wrong, counted from 1 and with its name, and what about it.
    pub fn parse(text: &str) -> Result<Self, String> {
        Self::parse_with_files(text, &[])
    }

    /// The same, with files, each a name and a text, to stand in for `${file:NAME}`.
    ///
    /// # Errors
    /// As [`Scenario::parse`], and when a file is missing.
    pub fn parse_with_files(text: &str, files: &[(&str, &str)]) -> Result<Self, String> {
        let value: Map<String, Value> = if text.trim_start().starts_with('{') {
            serde_json::from_str(text).map_err(|e| format!("the scenario is no valid JSON: {e}"))?
        } else {
            toml::from_str(text).map_err(|e| format!("the scenario is no valid TOML: {e}"))?
        };
        if let Some(key) = value.keys().find(|key| !["rule", "fallback"].contains(&key.as_str())) {
            return Err(format!("the scenario has an unknown key {key:?} (known: rule, fallback)"));
        }
        let file = |name: &str| files.iter().find(|file| file.0 == name).map(|file| file.1.to_owned());
        let mut rules = Vec::new();
        for (index, rule) in value.get("rule").and_then(Value::as_array).into_iter().flatten().enumerate() {
            let name = rule.get("name").and_then(Value::as_str).map(|name| format!(" ({name})")).unwrap_or_default();
            rules.push(Rule::new(rule, &file).map_err(|fault| format!("rule {}{name}: {fault}", index + 1))?);
        }
        let fallbacks = match value.get("fallback") {
            Some(Value::Object(texts)) => texts.clone().into_iter().collect(),
            Some(_) => return Err("`fallback` is no table of agents and texts".to_owned()),
            None => BTreeMap::new(),
        };
        if rules.is_empty() && fallbacks.is_empty() {
            return Err("the scenario has neither a rule nor a fallback".to_owned());
        }
        Ok(Self { rules, fallbacks })
    }

    fn fallback(&self, agent: &str, conversation: &Conversation) -> Reply {
        let text = self.fallbacks.get(agent).or_else(|| self.fallbacks.get("*"));
        match text.map(|text| rule::in_language(text, conversation.is_chinese())) {
            Some(Value::String(text)) => Reply::of_text(&text),
            Some(_) | None => Reply::of_text(FALLBACK_DEFAULT),
        }
    }
}
