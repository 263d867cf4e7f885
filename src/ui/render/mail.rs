//! Mail as lines: one for what passes by, more for what the user has to judge.
//!
//! Knows nothing of mailboxes; contents are made inert and bounded.

use crate::protocol::request::short;
use crate::protocol::{AgentName, Message, MessageType};

use super::super::ink::{Ink, Line, inert};
use super::{Style, dim, one, tag};

/// Lines of a plan that are shown.
const PLAN_LINES_MAX: usize = 40;
/// Characters of one line of a plan that are shown; it's not cut to the width, since it has to be judged.
const PLAN_LINE_CHARS_MAX: usize = 2000;
/// Lines of a result or an error that are shown, the first included.
const RESULT_LINES_MAX: usize = 3;

/// Mail that the runtime issued.
pub(super) fn sent(message: &Message, style: &Style) -> Vec<String> {
    let word = message.kind.word();
    let about = match (message.metadata.request_id, message.metadata.approve) {
        (Some(id), Some(true)) => format!("{word} {}…: approved", short(id)),
        (Some(id), Some(false)) => format!("{word} {}…: rejected", short(id)),
        (Some(id), None) => format!("{word} {}…", short(id)),
        (None, _) => word.to_owned(),
    };
    let head = |tag_word: &str| {
        let line = tag(tag_word).text(" ").name(&message.from).text(" → ").name(&message.to);
        line.with(Ink::Dim, &format!(" ({about})"))
    };
    let text = inert(&message.content);
    match message.kind {
        MessageType::PlanApprovalRequest => {
            let mut lines = one(head("[plan]"), style);
            lines.extend(plan(&text, style));
            lines
        }
        // A first task stands in the proposal, and its spawn has just been shown.
        MessageType::TaskAssignment if message.metadata.other.contains_key("spawn") => Vec::new(),
        // Its text says only what the type says, unless it waits for something.
        MessageType::IdleNotification if text == "done" => one(head("[bus]"), style),
        MessageType::Result | MessageType::Error => beginning(head("[bus]"), &text, RESULT_LINES_MAX, style),
        MessageType::Message
        | MessageType::Broadcast
        | MessageType::TaskAssignment
        | MessageType::StatusUpdate
        | MessageType::IdleNotification
        | MessageType::PlanRequest
        | MessageType::PlanApprovalResponse
        | MessageType::ShutdownRequest
        | MessageType::ShutdownResponse
        | MessageType::Undelivered
        | MessageType::RequestExpired
        | MessageType::JobFinished
        | MessageType::TeamQuiet => beginning(head("[bus]"), &text, 1, style),
    }
}

/// Mail that somebody else put into a mailbox.
pub(super) fn from_outside(to: &AgentName, from: &str, kind: &str, content: &str, style: &Style) -> Vec<String> {
    let from = if from.is_empty() { "somebody" } else { from };
    let head = tag("[bus]").with(Ink::Warn, " outside").text(": ").text(from).text(" → ").name(to);
    beginning(head.with(Ink::Dim, &format!(" ({kind})")), &inert(content), 1, style)
}

/// Lines of a mailbox that are no message.
pub(super) fn set_aside(mailbox: &str, lines: usize, reason: &str, style: &Style) -> Vec<String> {
    let noun = if lines == 1 { "line" } else { "lines" };
    let text = format!(" {lines} {noun} of {mailbox} set aside: {reason}");
    one(tag("[bus]").with(Ink::Warn, &text), style)
}

/// A head with the text's first line, further lines up to `lines_max`, and how many are not shown.
fn beginning(head: Line, text: &str, lines_max: usize, style: &Style) -> Vec<String> {
    let mut rest = text.lines().filter(|line| !line.trim().is_empty());
    let Some(first) = rest.next() else {
        return one(head, style);
    };
    let rest: Vec<&str> = rest.collect();
    let shown = rest.len().min(lines_max - 1);
    let hidden = rest.len() - shown;
    let mark = if hidden > 0 && lines_max == 1 { " …" } else { "" };
    let mut lines = one(head.text(&format!(" {}{mark}", first.trim())), style);
    for line in &rest[..shown] {
        lines.extend(one(Line::default().text("  ").text(line.trim_end()), style));
    }
    if hidden > 0 && lines_max > 1 {
        lines.extend(one(dim(&format!("  … (+{hidden} lines)")), style));
    }
    lines
}

/// A plan, whole up to [`PLAN_LINES_MAX`] lines, so that the user can judge it.
fn plan(text: &str, style: &Style) -> Vec<String> {
    let all: Vec<&str> = text.trim_end().lines().collect();
    let mut lines = Vec::new();
    for line in all.iter().take(PLAN_LINES_MAX) {
        let missing = line.chars().count().saturating_sub(PLAN_LINE_CHARS_MAX);
        let shown: String = line.chars().take(PLAN_LINE_CHARS_MAX).collect();
        let mark = if missing > 0 { format!("… (+{missing} characters)") } else { String::new() };
        lines.push(Line::default().text("  ").text(&shown).with(Ink::Dim, &mark).paint(style.color));
    }
    if all.len() > PLAN_LINES_MAX {
        let hidden = all.len() - PLAN_LINES_MAX;
        lines.extend(one(dim(&format!("  … (+{hidden} lines)")), style));
    }
    lines
}
