//! Mail as its reader is shown it: a block an event, in an envelope that no content can imitate.

use std::fmt::Write;

use super::folded::{Folded, folded};
use super::message::{Mail, Message, MessageType, OutsideMail};
use super::portion::Rest;
use super::request::RequestType;
use super::span::in_words;

/// Texts up to this many characters are shown whole; longer ones by their beginning and a path.
pub const SHOWN_CHARS_MAX: usize = 8_000;

/// Outside mail that has waited for so many seconds is shown with its age.
const AGE_SHOWN_FROM: u64 = 120;

/// The key in a task's metadata that says that its gate is closed.
pub const PLAN_REQUIRED: &str = "plan_required";

/// Where the whole of a long text lies, if it could be put somewhere.
pub type WholeAt<'a> = dyn Fn(&Mail) -> Option<String> + 'a;

/// Mail that is put before its reader at once, and what only files and clocks know of it.
pub struct Showing<'a> {
    /// Oldest first.
    pub mail: &'a [Mail],
    /// For texts that are too long to be shown whole.
    pub whole_at: &'a WholeAt<'a>,
    /// What waits behind it.
    pub rest: Rest,
}

/// The lead's `[Team events]` message: a block an event, what waits, then the `[Team state]` block.
#[must_use]
pub fn for_lead(showing: &Showing<'_>, state: &str) -> String {
    let mut text = "[Team events]\n".to_owned();
    for Folded { mail, times } in folded(showing.mail) {
        text.push_str(&block_for_lead(mail, showing.whole_at));
        text.push_str(&repeated(times));
        text.push('\n');
    }
    if let Some(line) = showing.rest.line() {
        text.push_str(&line);
        text.push('\n');
    }
    text.push_str(state);
    text
}

fn block_for_lead(mail: &Mail, whole_at: &WholeAt<'_>) -> String {
    let label = match mail {
        Mail::Inside(message) => format!("[{}] {}", lead_label(message), message.from),
        Mail::Outside(outside) => {
            format!("[{}] {} (outside mail{})", outside.kind.word(), safe_from(outside), age(outside))
        }
    };
    format!("{label}: {}", body(mail, whole_at))
}

/// How old it is, if its reader should know.
fn age(mail: &OutsideMail) -> String {
    match mail.waited {
        Some(seconds @ AGE_SHOWN_FROM..) => format!(", {} old", in_words(seconds)),
        Some(0..AGE_SHOWN_FROM) | None => String::new(),
    }
}

/// How often it came, if more than once.
fn repeated(times: usize) -> String {
    if times > 1 { format!(" ×{times}") } else { String::new() }
}

/// About how many characters a message takes when it is shown.
#[must_use]
pub fn chars(mail: &Mail) -> usize {
    block_for_lead(mail, &|_| None).chars().count() + 1
}

/// A teammate's mail: a block a message, then what waits.
#[must_use]
pub fn for_teammate(showing: &Showing<'_>) -> String {
    let block = |Folded { mail, times }| {
        let (label, notice) = match mail {
            Mail::Inside(message) => (teammate_label(message), notice_of(message)),
            Mail::Outside(outside) => (format!("[Outside message from {}{}]", safe_from(outside), age(outside)), None),
        };
        let notice = notice.map(|notice| format!("\n{notice}")).unwrap_or_default();
        format!("{label} {}{}{notice}", body(mail, showing.whole_at), repeated(times))
    };
    let blocks = folded(showing.mail).into_iter().map(block);
    blocks.chain(showing.rest.line()).collect::<Vec<_>>().join("\n\n")
}

fn lead_label(message: &Message) -> String {
    let mut label = message.kind.word().to_owned();
    if let Some(id) = message.metadata.request_id {
        let _ = write!(label, " request_id={id}");
    }
    if let Some(approve) = message.metadata.approve {
        let _ = write!(label, " approve={approve}");
    }
    if let Some(id) = message.metadata.reply_to {
        let _ = write!(label, " reply_to={id}");
    }
    label
}

fn teammate_label(message: &Message) -> String {
    let from = &message.from;
    let reply = message.metadata.reply_to.map(|id| format!(", in reply to {id}")).unwrap_or_default();
    match message.kind {
        MessageType::TaskAssignment => "[Task]".to_owned(),
        MessageType::PlanRequest => "[Plan required]".to_owned(),
        MessageType::PlanApprovalResponse if message.metadata.approve == Some(true) => "[Plan approved]".to_owned(),
        MessageType::PlanApprovalResponse => "[Plan rejected]".to_owned(),
        MessageType::ShutdownRequest => {
            let id = message.metadata.request_id.map(|id| format!(" request_id={id}")).unwrap_or_default();
            format!("[Shutdown request{id}]")
        }
        MessageType::Broadcast => format!("[Broadcast from {from}]"),
        MessageType::Message => format!("[Message from {from}{reply}]"),
        MessageType::StatusUpdate
        | MessageType::Result
        | MessageType::IdleNotification
        | MessageType::Error
        | MessageType::PlanApprovalRequest
        | MessageType::ShutdownResponse
        | MessageType::Undelivered
        | MessageType::RequestExpired
        | MessageType::JobFinished
        | MessageType::TeamQuiet => format!("[{} from {from}{reply}]", message.kind.word()),
    }
}

/// What goes with a message that asks something of its reader.
fn notice_of(message: &Message) -> Option<String> {
    match message.kind {
        MessageType::PlanRequest => Some(RequestType::Plan.notice().to_owned()),
        MessageType::TaskAssignment if message.metadata.other.contains_key(PLAN_REQUIRED) => {
            Some(format!("[Plan required] {}", RequestType::Plan.notice()))
        }
        MessageType::ShutdownRequest => Some(RequestType::Shutdown.notice().to_owned()),
        MessageType::Message
        | MessageType::Broadcast
        | MessageType::TaskAssignment
        | MessageType::StatusUpdate
        | MessageType::Result
        | MessageType::IdleNotification
        | MessageType::Error
        | MessageType::PlanApprovalRequest
        | MessageType::PlanApprovalResponse
        | MessageType::ShutdownResponse
        | MessageType::Undelivered
        | MessageType::RequestExpired
        | MessageType::JobFinished
        | MessageType::TeamQuiet => None,
    }
}

/// The text, bounded, with later lines set in so that none begins like an envelope.
fn body(mail: &Mail, whole_at: &WholeAt<'_>) -> String {
    let content = mail.content();
    let shown = match content.char_indices().nth(SHOWN_CHARS_MAX) {
        None => inert(content),
        Some((cut, _)) => {
            let left = content[cut..].chars().count();
            let place = whole_at(mail).map(|path| format!("; the whole is in {path}")).unwrap_or_default();
            format!("{}\n  … ({left} more characters{place})", inert(&content[..cut]))
        }
    };
    if shown.trim().is_empty() { "(empty)".to_owned() } else { shown }
}

/// Envelopes stand at the beginning of a line: every further line is set in by two spaces, and a bracket that opens one is
/// escaped wherever a line begins.
fn inert(content: &str) -> String {
    let mut lines = content.trim_end().lines();
    let mut text = guarded(lines.next().unwrap_or_default());
    for line in lines {
        text.push_str("\n  ");
        text.push_str(&guarded(line));
    }
    text
}

/// Beginnings that are the runtime's own.
const ENVELOPES: [&str; 16] = [
    "[team events",
    "[team state",
    "[task",
    "[message",
    "[plan",
    "[broadcast",
    "[shutdown",
    "[outside",
    "[result",
    "[error",
    "[idle_",
    "[undelivered",
    "[request_expired",
    "[job_finished",
    "[team_quiet",
    "[status_update",
];

fn guarded(line: &str) -> String {
    let begins = line.trim_start().to_ascii_lowercase();
    if ENVELOPES.iter().any(|envelope| begins.starts_with(envelope)) {
        line.replacen('[', "\\[", 1)
    } else {
        line.to_owned()
    }
}

/// The name that outside mail gives itself, harmless and short.
fn safe_from(outside: &OutsideMail) -> String {
    let from = outside.from.as_deref().unwrap_or("somebody");
    let safe: String = from.chars().filter(|c| !c.is_control() && !"[]()".contains(*c)).take(64).collect();
    if safe.trim().is_empty() { "somebody".to_owned() } else { safe }
}
