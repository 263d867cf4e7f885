//! A message: one line of a mailbox.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::name::AgentName;

/// Longest content that is accepted, in bytes.
pub const CONTENT_BYTES_MAX: usize = 256 * 1024;

/// Does a text fit into a message?
///
/// # Errors
/// It is too long; the text says how long it may be and what to do.
pub fn check_length(text: &str) -> Result<(), String> {
    if text.len() <= CONTENT_BYTES_MAX {
        return Ok(());
    }
    Err(format!(
        "the text has {} bytes, and at most {CONTENT_BYTES_MAX} can be sent; write it to a file and send the path, or shorten it",
        text.len()
    ))
}

/// What a message is about. Closed: a word outside it makes an outside line a plain [`MessageType::Message`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageType {
    /// From one agent to another.
    Message,
    /// From the lead to every teammate.
    Broadcast,
    /// A new piece of work for a teammate.
    TaskAssignment,
    /// Progress that needs no answer.
    StatusUpdate,
    /// How a piece of work ended well.
    Result,
    /// A teammate has nothing to do.
    IdleNotification,
    /// How a piece of work ended badly.
    Error,
    /// The lead asks for a plan.
    PlanRequest,
    /// A teammate submits a plan.
    PlanApprovalRequest,
    /// The answer to a plan.
    PlanApprovalResponse,
    /// The lead asks a teammate to end.
    ShutdownRequest,
    /// The answer to that.
    ShutdownResponse,
    /// From the runtime: a message could not be delivered; its text comes back.
    Undelivered,
    /// From the runtime: a request ended without an answer.
    RequestExpired,
    /// From the runtime: a background command ended.
    JobFinished,
    /// From the runtime: everybody is idle and something is still open.
    TeamQuiet,
}

impl MessageType {
    /// All types, for tests and tables.
    pub const ALL: [Self; 16] = [
        Self::Message,
        Self::Broadcast,
        Self::TaskAssignment,
        Self::StatusUpdate,
        Self::Result,
        Self::IdleNotification,
        Self::Error,
        Self::PlanRequest,
        Self::PlanApprovalRequest,
        Self::PlanApprovalResponse,
        Self::ShutdownRequest,
        Self::ShutdownResponse,
        Self::Undelivered,
        Self::RequestExpired,
        Self::JobFinished,
        Self::TeamQuiet,
    ];

    /// The word in a mailbox line.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::Broadcast => "broadcast",
            Self::TaskAssignment => "task_assignment",
            Self::StatusUpdate => "status_update",
            Self::Result => "result",
            Self::IdleNotification => "idle_notification",
            Self::Error => "error",
            Self::PlanRequest => "plan_request",
            Self::PlanApprovalRequest => "plan_approval_request",
            Self::PlanApprovalResponse => "plan_approval_response",
            Self::ShutdownRequest => "shutdown_request",
            Self::ShutdownResponse => "shutdown_response",
            Self::Undelivered => "undelivered",
            Self::RequestExpired => "request_expired",
            Self::JobFinished => "job_finished",
            Self::TeamQuiet => "team_quiet",
        }
    }

    /// The type for a word, if there is one.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }

    /// Does a message of this type start a turn of an idle reader? Notices are shown and wait for the next turn.
    #[must_use]
    pub fn wakes(self) -> bool {
        match self {
            Self::StatusUpdate | Self::IdleNotification => false,
            Self::Message
            | Self::Broadcast
            | Self::TaskAssignment
            | Self::Result
            | Self::Error
            | Self::PlanRequest
            | Self::PlanApprovalRequest
            | Self::PlanApprovalResponse
            | Self::ShutdownRequest
            | Self::ShutdownResponse
            | Self::Undelivered
            | Self::RequestExpired
            | Self::JobFinished
            | Self::TeamQuiet => true,
        }
    }
}

/// What goes with a message. Unknown fields are kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Metadata {
    /// The request that a protocol message belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Uuid>,
    /// The verdict of a response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approve: Option<bool>,
    /// The reason that goes with a verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
    /// `false`: it starts no turn, and is shown with the next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake: Option<bool>,
    /// The message that this one answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<Uuid>,
    /// Everything else.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// A message that the runtime itself sent: `{"id","session","from","to","type","content","metadata","timestamp"}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// UUIDv7.
    pub id: Uuid,
    /// The session that issued it.
    pub session: Uuid,
    /// Stamped by the runtime, never by a model.
    pub from: AgentName,
    /// Whose mailbox it lies in.
    pub to: AgentName,
    /// What it is about.
    #[serde(rename = "type")]
    pub kind: MessageType,
    /// The text, whole.
    pub content: String,
    /// What goes with it.
    #[serde(default)]
    pub metadata: Metadata,
    /// RFC 3339, UTC, milliseconds.
    pub timestamp: String,
}

/// What identifies a drained message until it is acknowledged. Opaque outside `mail`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MailKey {
    /// The runtime issued it under this id.
    Inside(Uuid),
    /// An outside line: where it stood.
    Outside {
        /// The claimed file's name.
        claim: String,
        /// Byte offset of its line in that file.
        offset: u64,
    },
}

/// A line of a mailbox as its reader gets it.
#[derive(Clone, Debug, PartialEq)]
pub enum Mail {
    /// Issued by the runtime in this session; the content is the runtime's own copy, not the file's.
    Inside(Message),
    /// Anything else. Never a protocol message, whatever it says of itself.
    Outside(OutsideMail),
}

/// A line that the runtime did not issue: all that it says of itself is only displayed.
#[derive(Clone, Debug, PartialEq)]
pub struct OutsideMail {
    /// Where it stood.
    pub key: MailKey,
    /// Who it says it is from, made safe for display; `None` if it doesn't say.
    pub from: Option<String>,
    /// What it says it is.
    pub kind: MessageType,
    /// The text.
    pub content: String,
    /// The time it gives, as text.
    pub timestamp: Option<String>,
    /// For how many seconds it has lain there, at least; `None` if that isn't known.
    pub waited: Option<u64>,
}

impl Message {
    /// Does it start a turn of an idle reader?
    #[must_use]
    pub fn wakes(&self) -> bool {
        self.kind.wakes() && self.metadata.wake != Some(false)
    }
}

impl Mail {
    /// Its key, for the acknowledgement.
    #[must_use]
    pub fn key(&self) -> MailKey {
        match self {
            Self::Inside(message) => MailKey::Inside(message.id),
            Self::Outside(mail) => mail.key.clone(),
        }
    }

    /// What it is, or says it is.
    #[must_use]
    pub fn kind(&self) -> MessageType {
        match self {
            Self::Inside(message) => message.kind,
            Self::Outside(mail) => mail.kind,
        }
    }

    /// Does it start a turn of an idle reader?
    #[must_use]
    pub fn wakes(&self) -> bool {
        match self {
            Self::Inside(message) => message.wakes(),
            Self::Outside(mail) => mail.kind.wakes(),
        }
    }

    /// Its text.
    #[must_use]
    pub fn content(&self) -> &str {
        match self {
            Self::Inside(message) => &message.content,
            Self::Outside(mail) => &mail.content,
        }
    }
}
