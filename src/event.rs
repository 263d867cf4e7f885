//! The closed set of all that can be shown, journaled, or printed as `stream-json`. The core emits it; nothing here knows a terminal.

mod record;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use record::{MemberState, Record};

use crate::protocol::{AgentName, Gate, Message, Proposal, Request};

/// The version of the events' form, in the first line of a journal and of `stream-json`.
pub const EVENT_VERSION: u32 = 1;

/// One event with its place in the session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Item {
    /// Session-wide, from 1, rising. A number that isn't shown belongs to the journal's bookkeeping.
    pub seq: u64,
    /// RFC 3339, UTC, milliseconds.
    pub time: String,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A session began.
    SessionStarted {
        /// [`EVENT_VERSION`].
        version: u32,
        /// UUIDv7.
        session: Uuid,
        /// Absolute path.
        workspace: String,
        /// The lead's model.
        model: String,
        /// The server's base URL.
        server: String,
    },
    /// A session goes on that had been left, or had been cut off.
    SessionResumed {
        /// How its agents and requests stand, for the user.
        state: String,
        /// Does it wait for a line before any model call?
        waits: bool,
    },
    /// The user typed a line for the lead. `queued`: the lead was working, so it joins before its next model call.
    UserLine {
        /// Exactly as typed.
        text: String,
        /// Does it wait for the lead's next model call?
        queued: bool,
    },
    /// Text of a reply as it streams, by whole lines (without the line end). Shown for the lead, not journaled.
    Text {
        /// Who speaks.
        agent: AgentName,
        /// One line, or an unfinished one that waited for a second.
        line: String,
    },
    /// What was streamed since the last `Replied` is void: the reply is asked for again.
    TextVoid {
        /// Whose.
        agent: AgentName,
    },
    /// A reply of a model, whole.
    Replied {
        /// Who.
        agent: AgentName,
        /// Number of that agent's logical call, from 1.
        call: u64,
        /// The assistant message as it stands in the history.
        message: serde_json::Value,
        /// Tokens as the server gave them.
        usage: Option<Usage>,
    },
    /// A tool call begins.
    ToolStarted {
        /// Who.
        agent: AgentName,
        /// The call's id.
        call_id: String,
        /// The tool's name.
        tool: String,
        /// One line: the command, the path.
        summary: String,
    },
    /// A tool call ended.
    ToolEnded {
        /// Who.
        agent: AgentName,
        /// The call's id.
        call_id: String,
        /// The tool's name.
        tool: String,
        /// Did it do what was asked?
        ok: bool,
        /// How long it took, in milliseconds.
        millis: u64,
        /// The result as the model gets it.
        result: String,
    },
    /// A team was proposed; its table is shown.
    Proposed {
        /// The team.
        proposal: Proposal,
    },
    /// The user changed the proposal; its table is shown anew.
    ProposalChanged {
        /// The team as it stands now.
        proposal: Proposal,
    },
    /// The user confirmed the team.
    Confirmed {
        /// Those that may be spawned, once each.
        members: Vec<AgentName>,
    },
    /// A proposal ended without being confirmed.
    ProposalVoided {
        /// Why, in a few words.
        reason: String,
    },
    /// A teammate's status changed.
    Teammate {
        /// Who.
        name: AgentName,
        /// What it is now.
        status: Status,
        /// Why, in a few words; empty when there's nothing to say.
        reason: String,
    },
    /// Mail that the runtime issued.
    MailSent {
        /// The message, whole.
        message: Message,
    },
    /// Mail from outside was read.
    MailFromOutside {
        /// Whose mailbox.
        to: AgentName,
        /// Who it says it is from.
        from: String,
        /// What it says it is.
        kind: String,
        /// Its text.
        content: String,
    },
    /// Lines of a mailbox that are no message were set aside.
    MailSetAside {
        /// The mailbox' file name.
        mailbox: String,
        /// How many lines.
        lines: usize,
        /// What is wrong with the first.
        reason: String,
    },
    /// Mail was acknowledged: the call that carried it was accepted.
    Delivered {
        /// Its reader.
        agent: AgentName,
        /// How many messages.
        count: usize,
    },
    /// A request was opened.
    RequestOpened {
        /// The request.
        request: Request,
    },
    /// A request ended.
    RequestEnded {
        /// The request as it ended.
        request: Request,
        /// Who answered; `None` when it expired.
        by: Option<AgentName>,
    },
    /// A teammate's gate changed.
    GateChanged {
        /// Who.
        agent: AgentName,
        /// What it was.
        from: Gate,
        /// What it is.
        to: Gate,
    },
    /// An idle lead gets a turn for what arrived.
    Wake {
        /// How many team events.
        events: usize,
    },
    /// A turn of an agent began.
    TurnStarted {
        /// Who.
        agent: AgentName,
    },
    /// A turn of an agent ended.
    TurnEnded {
        /// Who.
        agent: AgentName,
        /// How.
        end: TurnEnd,
    },
    /// The runtime asks the user something; only a line typed after it was shown answers it.
    Question {
        /// The question, ending in `[y/N]`.
        text: String,
    },
    /// The question was answered.
    Answered {
        /// Yes or no.
        yes: bool,
    },
    /// A model call is tried again.
    Retry {
        /// Who.
        agent: AgentName,
        /// What went wrong.
        cause: String,
        /// Milliseconds until the next try.
        wait_millis: u64,
        /// The number of the next try's retry, from 1.
        attempt: u32,
        /// The last retry's number.
        attempts_max: u32,
    },
    /// All teammates have ended.
    AllShutDown,
    /// Something the runtime has to say.
    Notice {
        /// How it is marked.
        level: Level,
        /// The text; may have several lines.
        text: String,
    },
    /// The session ends.
    SessionEnded {
        /// The process' exit code.
        exit_code: u8,
        /// Why, in a few words.
        reason: String,
    },
    /// Bookkeeping for the journal alone: never shown, and no part of `stream-json`.
    Record(Record),
}

/// Tokens of one call, as the server gave them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Read by the model.
    pub input_tokens: u64,
    /// Written by it.
    pub output_tokens: u64,
    /// Of those read, how many the server had cached.
    pub cached_tokens: u64,
}

/// A teammate's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Confirmed, its task is being started.
    Spawning,
    /// In a turn.
    Working,
    /// Waits for mail.
    Idle,
    /// Held by the user.
    Paused,
    /// Asked to end.
    Stopping,
    /// Ended as asked.
    Shutdown,
    /// Ended by a fault.
    Failed,
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum TurnEnd {
    /// The model had nothing more to do; its last words.
    Done {
        /// The last reply's text.
        text: String,
    },
    /// A tool ended the turn (`propose_team`, `submit_plan`).
    Yielded,
    /// The turn can't go on.
    Failed {
        /// What went wrong and what to do.
        cause: String,
    },
    /// The user or the runtime broke it off.
    Cancelled,
    /// The agent ends.
    Ended,
    /// The session was left in the middle of it: it goes on when the session does.
    Suspended,
}

/// How a notice is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// An answer to a command.
    Info,
    /// Something the user should know.
    Warning,
    /// Something failed.
    Error,
}

impl Status {
    /// Its word in views and texts.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Spawning => "spawning",
            Self::Working => "working",
            Self::Idle => "idle",
            Self::Paused => "paused",
            Self::Stopping => "stopping",
            Self::Shutdown => "shutdown",
            Self::Failed => "failed",
        }
    }

    /// Has the teammate ended?
    #[must_use]
    pub fn has_ended(self) -> bool {
        match self {
            Self::Shutdown | Self::Failed => true,
            Self::Spawning | Self::Working | Self::Idle | Self::Paused | Self::Stopping => false,
        }
    }
}
