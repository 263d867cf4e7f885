//! The conditions of a rule: what a request's conversation must look like.
//!
//! Knows nothing of replies or HTTP; patterns with holes are the rule's own business.

use serde::Deserialize;

use crate::protocol::confirm::{Verdict, verdict};

use super::conversation::{CallPattern, Conversation};
use super::pattern::Pattern;

/// The conditions. All that are given must hold; in a list of texts one is enough, except where said.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct When {
    /// A typed line that is open (the newest when none is) contains it, without regard to case.
    pub(super) user: Words,
    /// It is it, without regard to case, outer blanks and closing punctuation.
    pub(super) user_is: Words,
    /// It is a plain yes or a plain no, read as the runtime reads it.
    pub(super) answer: Option<Answer>,
    /// Is there a typed line after which the model hasn't said anything?
    pub(super) line_open: Option<bool>,
    /// At least so many typed lines are open.
    pub(super) open_lines_min: Option<usize>,
    /// A pattern in a user message that the model hasn't answered.
    pub(super) event: Words,
    /// What answers the event: not just any reply, but such a call; may hold `${capture}`s of the event.
    pub(super) until_call: Option<String>,
    /// No unanswered user message has this pattern.
    pub(super) no_event: Words,
    /// The last message is a result of this tool (`*`: of any).
    pub(super) after_result: Words,
    /// The last message is a result with this pattern.
    pub(super) result_has: Words,
    /// All of these stand in the present piece of work.
    pub(super) has: Words,
    /// None of these stands in it.
    pub(super) lacks: Words,
    /// All of these calls were made in it.
    pub(super) has_call: Words,
    /// None of these calls was made in it.
    pub(super) lacks_call: Words,
    /// The newest call in it is of this tool.
    pub(super) last_call: Words,
    /// A call in it that is still to be done.
    pub(super) todo: Option<Todo>,
    /// The result of a call in it contains a text.
    pub(super) has_result: Option<ResultOf>,
    /// Has each spawned teammate reported?
    pub(super) all_reported: Option<bool>,
    /// Has each teammate that was asked to end answered?
    pub(super) all_ended: Option<bool>,
    /// Was any teammate spawned in it?
    pub(super) any_spawned: Option<bool>,
    /// This agent's n-th request; only for what is linear.
    pub(super) n: Option<u64>,
    /// How often the rule may be used.
    pub(super) times: Option<u64>,
    /// The same as `times = 1`.
    pub(super) once: bool,
    /// The request's purpose; `turn` when not given.
    pub(super) purpose: Option<String>,
}

/// A plain answer of the user.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    Yes,
    No,
}

/// One text or a list of them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(untagged)]
pub(super) enum Words {
    #[default]
    None,
    One(String),
    Many(Vec<String>),
}

/// Holds while no such call went well and fewer than `tries` were made.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Todo {
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
pub(super) struct ResultOf {
    call: String,
    has: String,
    #[serde(default)]
    lacks: Words,
}

impl Words {
    pub(super) fn list(&self) -> &[String] {
        match self {
            Self::None => &[],
            Self::One(word) => std::slice::from_ref(word),
            Self::Many(words) => words,
        }
    }

    pub(super) fn patterns(&self) -> Result<Vec<Pattern>, String> {
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

impl When {
    /// The conditions on typed lines: on any that is open, otherwise on the newest.
    pub(super) fn line_holds(&self, conversation: &Conversation) -> bool {
        let open = conversation.open_lines();
        let is_open = !open.is_empty();
        let count = open.len();
        let lines = if is_open { open } else { conversation.line().into_iter().collect() };
        let asks = !self.user.list().is_empty() || !self.user_is.list().is_empty() || self.answer.is_some();
        self.line_open.is_none_or(|wanted| wanted == is_open)
            && self.open_lines_min.is_none_or(|min| count >= min)
            && (!asks || lines.iter().any(|line| self.line_fits(line)))
    }

    fn line_fits(&self, line: &str) -> bool {
        let (lower, plain) = (line.to_lowercase(), plain_words(line));
        self.user.any(|word| lower.contains(&word.to_lowercase()))
            && self.user_is.any(|word| plain == plain_words(word))
            && self.answer.is_none_or(|answer| match answer {
                Answer::Yes => verdict(line) == Verdict::Yes,
                Answer::No => verdict(line) == Verdict::No,
            })
    }

    pub(super) fn work_holds(&self, conversation: &Conversation) -> bool {
        let stands = |word: &str| conversation.scene().iter().any(|entry| entry.text.contains(word));
        self.has.all(stands)
            && self.lacks.all(|word| !stands(word))
            && self.all_reported.is_none_or(|all| all == conversation.all_reported())
            && self.all_ended.is_none_or(|all| all == conversation.all_ended())
            && self.any_spawned.is_none_or(|any| any != conversation.spawned().is_empty())
    }

    pub(super) fn calls_hold(&self, conversation: &Conversation) -> bool {
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
