//! What only the journal needs: with these and the other events a session is built again as it stood.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::protocol::roster::{IdleReason, Work};
use crate::protocol::{AgentName, Confirmation, MailKey, Member};

use super::Status;

/// Bookkeeping: journaled, never shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record {
    /// An agent's life begins: its first, or one after it had ended.
    AgentStarted {
        /// Who.
        agent: AgentName,
        /// Its model's name at the server.
        model: String,
        /// The system prompt; counts in a first life, a later one keeps its history's.
        system: String,
        /// A teammate as it was confirmed; `None` for the lead.
        member: Option<Member>,
    },
    /// Before a model call: what was put into an agent's history.
    TookIn {
        /// Who.
        agent: AgentName,
        /// User-role messages, in order.
        entries: Vec<String>,
        /// The mail that stands in them.
        mail: Vec<MailKey>,
        /// How many of the user's waiting lines stand in them.
        lines: usize,
    },
    /// A model call ended without a whole reply.
    ReplyCut {
        /// Who.
        agent: AgentName,
        /// The number of the agent's logical call.
        call: u64,
        /// What had been said of it.
        partial: String,
    },
    /// A call of a reply was not run.
    CallSkipped {
        /// Who.
        agent: AgentName,
        /// The call's id.
        call_id: String,
        /// The result as the model gets it.
        result: String,
    },
    /// A team call was carried out. Stands in one unit with all that it did, so that either all of it happened or nothing.
    CallSettled {
        /// Who.
        agent: AgentName,
        /// The call's id.
        call_id: String,
        /// Did it do what was asked?
        ok: bool,
        /// The result as the model gets it.
        result: String,
        /// Does the turn end with it?
        ends_turn: bool,
    },
    /// A call is about to replace a file as a whole.
    WriteIntended {
        /// Who.
        agent: AgentName,
        /// The call's id.
        call_id: String,
        /// What the file holds then: a hash that this program alone understands.
        after: String,
    },
    /// Mail that its reader will never be given.
    MailTakenBack {
        /// The ids of the messages.
        ids: Vec<Uuid>,
    },
    /// A command begins in the background.
    JobStarted {
        /// Its id.
        job: String,
        /// Whose it is.
        agent: AgentName,
        /// The command, on one line and shortened.
        command: String,
    },
    /// A command in the background ended. Stands in one unit with what its owner is told of it.
    JobEnded {
        /// Its id.
        job: String,
    },
    /// How a teammate stands.
    Member {
        /// After the change.
        state: MemberState,
    },
    /// How the user's word on teams stands.
    Confirmation {
        /// After the change.
        state: Confirmation,
    },
}

/// All that the runtime knows of a teammate, but for its conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemberState {
    /// Who.
    pub name: AgentName,
    /// What it does.
    pub status: Status,
    /// Why it is idle, when it is.
    pub idle: IdleReason,
    /// Its work and its gate.
    pub work: Work,
    /// The shutdown request that it has not answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Uuid>,
    /// It has refused a shutdown; the next can't be refused.
    #[serde(default)]
    pub refused_shutdown: bool,
    /// The user stopped it.
    #[serde(default)]
    pub stopped_by_user: bool,
    /// Its last work ended with `error`.
    #[serde(default)]
    pub last_work_failed: bool,
    /// The user holds it between steps.
    #[serde(default)]
    pub paused: bool,
}

impl Record {
    /// Whose journal it belongs into, beside what the session itself records in the lead's.
    #[must_use]
    pub fn agent(&self) -> Option<&AgentName> {
        match self {
            Self::ReplyCut { agent, .. } | Self::CallSkipped { agent, .. } | Self::WriteIntended { agent, .. } => {
                Some(agent)
            }
            Self::AgentStarted { .. }
            | Self::TookIn { .. }
            | Self::CallSettled { .. }
            | Self::MailTakenBack { .. }
            | Self::JobStarted { .. }
            | Self::JobEnded { .. }
            | Self::Member { .. }
            | Self::Confirmation { .. } => None,
        }
    }
}
