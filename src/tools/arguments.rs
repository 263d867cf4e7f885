//! The arguments of every call, as types: the schema that a model sees and the parser of what it sends are one.

use schemars::JsonSchema;
use serde::Deserialize;

/// `bash`
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct BashArgs {
    /// What `bash -c` runs, in the workspace.
    pub command: String,
    #[serde(default)]
    #[schemars(description = "seconds, at most 600")]
    /// Seconds.
    pub timeout: Option<u64>,
}

/// `read_file`
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct ReadFileArgs {
    /// In the workspace.
    pub path: String,
    #[serde(default)]
    #[schemars(description = "first line, from 1")]
    /// First line, from 1.
    pub offset: Option<u64>,
    #[serde(default)]
    /// Lines.
    pub limit: Option<u64>,
}

/// `write_file`
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct WriteFileArgs {
    /// In the workspace.
    pub path: String,
    /// All of it.
    pub content: String,
}

/// `edit_file`
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct EditFileArgs {
    /// In the workspace.
    pub path: String,
    /// Must stand there once.
    pub old_text: String,
    /// Taken as it is.
    pub new_text: String,
    #[serde(default)]
    /// Replace every occurrence.
    pub replace_all: Option<bool>,
}

/// `glob`
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct GlobArgs {
    /// Such as `src/**/*.rs`.
    pub pattern: String,
    #[serde(default)]
    /// A folder to begin in.
    pub path: Option<String>,
}

/// `grep`
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct GrepArgs {
    /// A regular expression.
    pub pattern: String,
    #[serde(default)]
    /// A file, or a folder to begin in.
    pub path: Option<String>,
    #[serde(default)]
    #[schemars(description = "only files like this, e.g. *.rs")]
    /// Only files whose name fits.
    pub glob: Option<String>,
}

/// A proposed member as the model wrote it.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct MemberArgs {
    /// Checked later.
    pub name: String,
    #[serde(default)]
    /// A few words.
    pub role: String,
    /// Its first task.
    pub prompt: String,
    #[serde(default)]
    /// See `protocol::Member`.
    pub require_plan: Option<bool>,
    #[serde(default)]
    /// Its model.
    pub model: Option<String>,
}

macro_rules! team_calls {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty),* $(,)? })*) => {
        /// The calls that the owner of the team carries out, as the model wrote them.
        #[derive(Clone, Debug)]
        pub enum TeamCall {
            $($(#[$doc])* $name { $(#[allow(missing_docs)] $field: $type),* },)*
        }
        /// Each call's arguments by themselves.
        pub(super) mod team {
            use super::{Deserialize, JsonSchema, MemberArgs, TeamCall};
            $(
                #[derive(Deserialize, JsonSchema)]
                pub(in crate::tools) struct $name { $($(#[$field_meta])* $field: $type),* }
                impl From<$name> for TeamCall {
                    fn from(arguments: $name) -> Self {
                        let $name { $($field),* } = arguments;
                        Self::$name { $($field),* }
                    }
                }
            )*
        }
    };
}

team_calls! {
    /// Mail to one agent.
    SendMessage { to: String, content: String }
    /// Who is there.
    ListTeammates {}
    /// A team for the user to confirm.
    ProposeTeam { members: Vec<MemberArgs>, #[serde(default)] reason: String }
    /// Starts a confirmed member.
    SpawnTeammate {
        name: String,
        #[serde(default)] role: Option<String>,
        #[serde(default)] prompt: Option<String>,
        #[serde(default)] require_plan: Option<bool>,
        #[serde(default)] model: Option<String>,
    }
    /// A new piece of work.
    AssignTask { to: String, task: String, #[serde(default)] require_plan: Option<bool> }
    /// Mail to every teammate.
    Broadcast { content: String }
    /// Closes a gate.
    RequestPlan { teammate: String, task: String }
    /// Answers a plan.
    ReviewPlan { request_id: String, approve: bool, #[serde(default)] feedback: Option<String> }
    /// Asks a teammate to end.
    RequestShutdown { teammate: String, #[serde(default)] reason: Option<String> }
    /// One request.
    RequestStatus { request_id: String }
    /// All requests.
    ListRequests {
        #[serde(default)]
        #[schemars(description = "pending, approved, rejected or expired")]
        status: Option<String>,
    }
    /// Progress.
    ReportStatus { text: String }
    /// A plan for the lead to review.
    SubmitPlan { plan: String }
    /// The answer to a shutdown request.
    ShutdownResponse { request_id: String, approve: bool, #[serde(default)] reason: Option<String> }
}

impl TeamCall {
    /// Whom or what it is about, for the user.
    pub(super) fn summary(&self) -> String {
        match self {
            Self::SendMessage { to, .. } | Self::AssignTask { to, .. } => to.clone(),
            Self::SpawnTeammate { name, .. } => name.clone(),
            Self::RequestPlan { teammate, .. } | Self::RequestShutdown { teammate, .. } => teammate.clone(),
            Self::ReviewPlan { request_id, approve, .. } | Self::ShutdownResponse { request_id, approve, .. } => {
                format!("{} {request_id}", if *approve { "approve" } else { "reject" })
            }
            Self::RequestStatus { request_id } => request_id.clone(),
            Self::ProposeTeam { members, .. } => {
                members.iter().map(|member| member.name.as_str()).collect::<Vec<_>>().join(", ")
            }
            Self::ReportStatus { text } => text.clone(),
            Self::ListTeammates {} | Self::Broadcast { .. } | Self::ListRequests { .. } | Self::SubmitPlan { .. } => {
                String::new()
            }
        }
    }
}
