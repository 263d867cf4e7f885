//! The calls of the team, as data: parsed here, carried out by the owner of the team.

use schemars::JsonSchema;
use serde::Deserialize;

use super::calls::BashArgs;
use super::spec::{self, Spec};

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
        /// Fewer places than the plan asks for.
        paths: Option<Vec<String>>,
    },
    /// Asks a teammate to end.
    RequestShutdown {
        /// The teammate.
        teammate: String,
        /// Why.
        reason: Option<String>,
    },
    /// Stops a teammate, one way or another.
    StopTeammate {
        /// The teammate.
        teammate: String,
        /// `ask`, `cancel` or `abort`.
        how: String,
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
        /// Files and folders that it writes.
        paths: Option<Vec<String>>,
        /// Beginnings of the commands that it runs.
        commands: Option<Vec<String>>,
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
            | Self::SubmitPlan { plan: text, .. } => vec![text],
            Self::ReviewPlan { feedback: text, .. }
            | Self::RequestShutdown { reason: text, .. }
            | Self::StopTeammate { reason: text, .. }
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

    /// Does it merely say or ask something?
    #[must_use]
    pub fn is_talk(&self) -> bool {
        match self {
            Self::SendMessage { .. }
            | Self::Broadcast { .. }
            | Self::WithdrawMessage { .. }
            | Self::ListTeammates {}
            | Self::RequestStatus { .. }
            | Self::ListRequests { .. }
            | Self::ReportStatus { .. } => true,
            Self::StartJob(_)
            | Self::BashOutput { .. }
            | Self::BashStop { .. }
            | Self::ProposeTeam { .. }
            | Self::SpawnTeammate { .. }
            | Self::AssignTask { .. }
            | Self::RequestPlan { .. }
            | Self::ReviewPlan { .. }
            | Self::RequestShutdown { .. }
            | Self::StopTeammate { .. }
            | Self::SubmitPlan { .. }
            | Self::ShutdownResponse { .. } => false,
        }
    }

    pub(super) fn spec(&self) -> &'static Spec {
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
            Self::StopTeammate { .. } => &spec::STOP_TEAMMATE,
            Self::RequestStatus { .. } => &spec::REQUEST_STATUS,
            Self::ListRequests { .. } => &spec::LIST_REQUESTS,
            Self::ReportStatus { .. } => &spec::REPORT_STATUS,
            Self::SubmitPlan { .. } => &spec::SUBMIT_PLAN,
            Self::ShutdownResponse { .. } => &spec::SHUTDOWN_RESPONSE,
        }
    }

    pub(super) fn summary(&self) -> String {
        let answer = |approve: bool, id: &str| format!("{} {id}", if approve { "approve" } else { "reject" });
        match self {
            Self::SendMessage { to, .. } | Self::AssignTask { to, .. } => to.clone(),
            Self::SpawnTeammate { name, .. } => name.clone(),
            Self::RequestPlan { teammate, .. } | Self::RequestShutdown { teammate, .. } => teammate.clone(),
            Self::StopTeammate { teammate, how, .. } => format!("{how} {teammate}"),
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
