//! Every call with its arguments, as types: the schema that a model sees and the parser of what it sends are one.
//!
//! Strings stand as the model wrote them. Knows nothing of how a call is carried out.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::spec::{self, Spec};
use super::text;
use crate::protocol::Effect;

/// Longest summary of a call, in characters.
pub(super) const SUMMARY_CHARS_MAX: usize = 200;

/// A call whose arguments fit.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    /// Done here, by a [`super::Workshop`].
    Local(LocalCall),
    /// Done by the owner of the team.
    Team(TeamCall),
}

/// The calls that touch files and programs.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(tag = "tool", rename_all = "snake_case")]
pub enum LocalCall {
    /// Runs a command.
    Bash(BashArgs),
    /// Reads a file.
    ReadFile(ReadFileArgs),
    /// Writes a whole file.
    WriteFile(WriteFileArgs),
    /// Replaces text in a file.
    EditFile(EditFileArgs),
    /// Lists files by pattern.
    Glob(GlobArgs),
    /// Searches in files.
    Grep(GrepArgs),
}

/// `bash`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct BashArgs {
    /// What `bash -c` runs, in the workspace.
    pub command: String,
    /// Time limit in seconds.
    pub timeout: Option<u64>,
    /// Goes on beside what its caller does next.
    pub run_in_background: Option<bool>,
}

/// `read_file`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct ReadFileArgs {
    /// In the workspace, or a long output of an earlier call.
    pub path: String,
    /// First line, from 1.
    pub offset: Option<u64>,
    /// How many lines.
    pub limit: Option<u64>,
}

/// `write_file`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct WriteFileArgs {
    /// In the workspace.
    pub path: String,
    /// All of it, written exactly so.
    pub content: String,
}

/// `edit_file`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct EditFileArgs {
    /// In the workspace.
    pub path: String,
    /// Stands there once, or is replaced everywhere.
    pub old_text: String,
    /// Taken as it is, but for the file's own line ends.
    pub new_text: String,
    /// Replace every occurrence.
    pub replace_all: Option<bool>,
}

/// `glob`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct GlobArgs {
    /// Such as `src/**/*.rs`.
    pub pattern: String,
    /// A folder to begin in.
    pub path: Option<String>,
}

/// `grep`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct GrepArgs {
    /// A regular expression.
    pub pattern: String,
    /// A file, or a folder to begin in.
    pub path: Option<String>,
    /// Only files whose path fits.
    pub glob: Option<String>,
}

/// The calls that the owner of the team carries out.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(tag = "tool", rename_all = "snake_case")]
pub enum TeamCall {
    /// Mail to one agent.
    SendMessage {
        /// Its name.
        to: String,
        /// The text.
        content: String,
        /// Unless `false`, it wakes an idle reader.
        wake: Option<bool>,
        /// The message that it answers: an id, a part of one, or `last`.
        reply_to: Option<String>,
    },
    /// Takes back an own message.
    WithdrawMessage {
        /// Its id, or a part of it.
        id: String,
    },
    /// `bash` in the background.
    #[serde(skip)]
    StartJob(BashArgs),
    /// What a background command has said since the last look.
    BashOutput {
        /// Its id.
        id: String,
    },
    /// Ends a background command.
    BashStop {
        /// Its id.
        id: String,
    },
    /// Who is there.
    ListTeammates {},
    /// A team for the user to confirm.
    ProposeTeam {
        /// Its members.
        members: Vec<MemberArgs>,
        /// Why this team; empty if the model gave none.
        #[serde(default)]
        reason: String,
    },
    /// Starts a confirmed member, or gives a member that idles or ended a new prompt.
    SpawnTeammate {
        /// Its name.
        name: String,
        /// The confirmed one counts.
        role: Option<String>,
        /// The confirmed one counts; for a member that ran before, its new task.
        prompt: Option<String>,
        /// Can only add a gate.
        require_plan: Option<bool>,
        /// The confirmed one counts.
        model: Option<String>,
    },
    /// A new piece of work.
    AssignTask {
        /// The teammate.
        to: String,
        /// What is to be done.
        task: String,
        /// Close its gate first?
        require_plan: Option<bool>,
    },
    /// Mail to every teammate.
    Broadcast {
        /// The text.
        content: String,
        /// Unless `false`, it wakes those who are idle.
        wake: Option<bool>,
    },
    /// Closes a gate until a plan is approved.
    RequestPlan {
        /// The teammate.
        teammate: String,
        /// What it is to plan.
        task: String,
    },
    /// Answers a plan.
    ReviewPlan {
        /// The plan's request.
        request_id: String,
        /// Yes or no.
        approve: bool,
        /// What is missing.
        feedback: Option<String>,
    },
    /// Asks a teammate to end.
    RequestShutdown {
        /// The teammate.
        teammate: String,
        /// Why.
        reason: Option<String>,
    },
    /// One request.
    RequestStatus {
        /// Which.
        request_id: String,
    },
    /// All requests, or those of one status.
    ListRequests {
        /// `pending`, `approved`, `rejected` or `expired`.
        status: Option<String>,
    },
    /// Progress, for the lead.
    ReportStatus {
        /// The text.
        text: String,
    },
    /// A plan for the lead to review.
    SubmitPlan {
        /// The text.
        plan: String,
    },
    /// The answer to a shutdown request.
    ShutdownResponse {
        /// The request.
        request_id: String,
        /// Yes or no.
        approve: bool,
        /// Why not.
        reason: Option<String>,
    },
}

/// A proposed member as the model wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct MemberArgs {
    /// Checked by the owner of the team.
    pub name: String,
    /// A few words; empty if the model gave none.
    #[serde(default)]
    pub role: String,
    /// Its first task.
    pub prompt: String,
    /// Must it have a plan approved first?
    pub require_plan: Option<bool>,
    /// Its model; `None` for the default.
    pub model: Option<String>,
}

impl Call {
    /// What it does to the world.
    #[must_use]
    pub fn effect(&self) -> Effect {
        self.spec().effect
    }

    /// The tool's name.
    #[must_use]
    pub fn tool(&self) -> &'static str {
        self.spec().name
    }

    /// One line for the user, without control characters and at most 200 characters: the command, the path, the addressee.
    #[must_use]
    pub fn summary(&self) -> String {
        let words = match self {
            Self::Local(call) => call.summary(),
            Self::Team(call) => call.summary(),
        };
        text::one_line(&words, SUMMARY_CHARS_MAX)
    }

    /// The call that a tool's fitted arguments make.
    pub(super) fn from_arguments(spec: &Spec, mut arguments: Map<String, Value>) -> Result<Self, String> {
        arguments.insert(spec::TAG.to_owned(), Value::from(spec.name));
        let arguments = Value::Object(arguments);
        if !spec::is_local(spec) {
            return serde_json::from_value(arguments).map(Self::Team).map_err(|error| error.to_string());
        }
        Ok(match serde_json::from_value(arguments).map_err(|error| error.to_string())? {
            LocalCall::Bash(call) if call.run_in_background == Some(true) => Self::Team(TeamCall::StartJob(call)),
            call => Self::Local(call),
        })
    }

    fn spec(&self) -> &'static Spec {
        match self {
            Self::Local(call) => call.spec(),
            Self::Team(call) => call.spec(),
        }
    }
}

impl LocalCall {
    pub(super) fn spec(&self) -> &'static Spec {
        match self {
            Self::Bash(_) => &spec::BASH,
            Self::ReadFile(_) => &spec::READ_FILE,
            Self::WriteFile(_) => &spec::WRITE_FILE,
            Self::EditFile(_) => &spec::EDIT_FILE,
            Self::Glob(_) => &spec::GLOB,
            Self::Grep(_) => &spec::GREP,
        }
    }

    fn summary(&self) -> String {
        let within = |pattern: &str, path: Option<&str>| match path {
            Some(path) => format!("{pattern} in {path}"),
            None => pattern.to_owned(),
        };
        match self {
            Self::Bash(call) => call.command.clone(),
            Self::ReadFile(call) => match call.offset {
                Some(offset) => format!("{} from line {offset}", call.path),
                None => call.path.clone(),
            },
            Self::WriteFile(call) => call.path.clone(),
            Self::EditFile(call) => call.path.clone(),
            Self::Glob(call) => within(&call.pattern, call.path.as_deref()),
            Self::Grep(call) => within(&call.pattern, call.path.as_deref().or(call.glob.as_deref())),
        }
    }
}

impl TeamCall {
    /// What the call has others read.
    #[must_use]
    pub fn texts(&self) -> Vec<&str> {
        match self {
            Self::SendMessage { content: text, .. }
            | Self::Broadcast { content: text, .. }
            | Self::AssignTask { task: text, .. }
            | Self::RequestPlan { task: text, .. }
            | Self::ReportStatus { text }
            | Self::SubmitPlan { plan: text } => vec![text],
            Self::ReviewPlan { feedback: text, .. }
            | Self::RequestShutdown { reason: text, .. }
            | Self::ShutdownResponse { reason: text, .. }
            | Self::SpawnTeammate { prompt: text, .. } => text.iter().map(String::as_str).collect(),
            Self::ProposeTeam { members, reason } => {
                let prompts = members.iter().map(|member| member.prompt.as_str());
                prompts.chain([reason.as_str()]).collect()
            }
            Self::WithdrawMessage { .. }
            | Self::StartJob(_)
            | Self::BashOutput { .. }
            | Self::BashStop { .. }
            | Self::ListTeammates {}
            | Self::RequestStatus { .. }
            | Self::ListRequests { .. } => Vec::new(),
        }
    }

    fn spec(&self) -> &'static Spec {
        match self {
            Self::SendMessage { .. } => &spec::SEND_MESSAGE,
            Self::WithdrawMessage { .. } => &spec::WITHDRAW_MESSAGE,
            Self::StartJob(_) => &spec::BASH,
            Self::BashOutput { .. } => &spec::BASH_OUTPUT,
            Self::BashStop { .. } => &spec::BASH_STOP,
            Self::ListTeammates {} => &spec::LIST_TEAMMATES,
            Self::ProposeTeam { .. } => &spec::PROPOSE,
            Self::SpawnTeammate { .. } => &spec::SPAWN_TEAMMATE,
            Self::AssignTask { .. } => &spec::ASSIGN_TASK,
            Self::Broadcast { .. } => &spec::BROADCAST,
            Self::RequestPlan { .. } => &spec::REQUEST_PLAN,
            Self::ReviewPlan { .. } => &spec::REVIEW_PLAN,
            Self::RequestShutdown { .. } => &spec::REQUEST_SHUTDOWN,
            Self::RequestStatus { .. } => &spec::REQUEST_STATUS,
            Self::ListRequests { .. } => &spec::LIST_REQUESTS,
            Self::ReportStatus { .. } => &spec::REPORT_STATUS,
            Self::SubmitPlan { .. } => &spec::SUBMIT_PLAN,
            Self::ShutdownResponse { .. } => &spec::SHUTDOWN_RESPONSE,
        }
    }

    fn summary(&self) -> String {
        let answer = |approve: bool, id: &str| format!("{} {id}", if approve { "approve" } else { "reject" });
        match self {
            Self::SendMessage { to, .. } | Self::AssignTask { to, .. } => to.clone(),
            Self::SpawnTeammate { name, .. } => name.clone(),
            Self::RequestPlan { teammate, .. } | Self::RequestShutdown { teammate, .. } => teammate.clone(),
            Self::ReviewPlan { request_id, approve, .. } | Self::ShutdownResponse { request_id, approve, .. } => {
                answer(*approve, request_id)
            }
            Self::RequestStatus { request_id: id }
            | Self::WithdrawMessage { id }
            | Self::BashOutput { id }
            | Self::BashStop { id } => id.clone(),
            Self::StartJob(call) => format!("{} &", call.command),
            Self::ProposeTeam { members, .. } => {
                members.iter().map(|member| member.name.as_str()).collect::<Vec<_>>().join(", ")
            }
            Self::ReportStatus { text } => text.clone(),
            Self::ListRequests { status } => status.clone().unwrap_or_default(),
            Self::ListTeammates {} | Self::Broadcast { .. } | Self::SubmitPlan { .. } => String::new(),
        }
    }
}
