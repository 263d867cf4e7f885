//! The team tools: a parsed call in, its result out. The only place that knows which call does what.

use crate::agent::{CallEnd, Caller};
use crate::protocol::message::check_length;
use crate::protocol::{AgentName, MessageType, Metadata, Request, Scope};
use crate::tools::TeamCall;

use super::Session;
use super::state_text::request_line;

impl Session {
    /// Carries out a team call. All are answered at once but a spawn that needs the user's word, and the end of a command.
    pub(super) fn call(&mut self, call: TeamCall, caller: Caller) {
        let by = &caller.agent.clone();
        if let Some(why) = call.texts().into_iter().find_map(|text| check_length(text).err()) {
            return self.settle_call(caller, CallEnd::error(why));
        }
        if !call.is_talk() {
            self.chatter.acted(by);
        }
        let end = match call {
            TeamCall::SpawnTeammate { name, role: _, prompt, require_plan, model: _ } => {
                return self.spawn_call(&name, prompt, require_plan, caller);
            }
            TeamCall::ProposeTeam { members, reason } => self.propose(members, reason),
            TeamCall::SendMessage { to, content, wake, reply_to } => {
                let end = self.send_message(by, &to, content, wake, reply_to.as_deref());
                let to = self.recipient(&to);
                return self.settle_talk(caller, to.as_ref(), end);
            }
            TeamCall::Broadcast { content, wake } => self.broadcast(by, &content, wake),
            TeamCall::WithdrawMessage { id } => self.withdraw_message(by, &id),
            TeamCall::StartJob(call) => return self.start_job(call, caller),
            TeamCall::BashOutput { id } => self.job_output(by, &id),
            TeamCall::BashStop { id } => return self.stop_job(&id, caller),
            TeamCall::ListTeammates {} => CallEnd::done(self.list_teammates(by)),
            TeamCall::AssignTask { to, task, require_plan } => self.assign_task(&to, &task, require_plan == Some(true)),
            TeamCall::RequestPlan { teammate, task } => {
                self.with_living(&teammate, |session, name| session.request_plan(name, &task))
            }
            TeamCall::ReviewPlan { request_id, approve, feedback, paths } => {
                self.review_plan(by, &request_id, approve, feedback, paths.as_deref())
            }
            TeamCall::StopTeammate { teammate, how, reason } => {
                self.with_living(&teammate, |session, name| session.stop_teammate(name, &how, reason))
            }
            TeamCall::RequestShutdown { teammate, reason } => {
                self.with_living(&teammate, |session, name| session.request_shutdown(name, reason))
            }
            TeamCall::RequestStatus { request_id } => self.request_status(&request_id),
            TeamCall::ListRequests { status } => CallEnd::done(self.list_requests(status.as_deref())),
            TeamCall::ReportStatus { text } => self.report_status(by, text),
            TeamCall::SubmitPlan { plan, paths, commands } => {
                let scope = Scope::parse(&paths.unwrap_or_default(), &commands.unwrap_or_default());
                scope.map_or_else(CallEnd::error, |scope| self.submit_plan(by, &plan, scope))
            }
            TeamCall::ShutdownResponse { request_id, approve, reason } => {
                self.answer_shutdown(by, &request_id, approve, reason)
            }
        };
        self.settle_call(caller, end);
    }

    fn assign_task(&mut self, to: &str, task: &str, require_plan: bool) -> CallEnd {
        self.with_living(to, |session, name| session.assign(name, task, require_plan))
    }

    /// A new task for a living teammate, unless it is at work.
    pub(super) fn assign(&mut self, name: &AgentName, task: &str, require_plan: bool) -> CallEnd {
        if task.trim().is_empty() {
            return CallEnd::error("the task is empty");
        }
        if self.desk(name).is_some_and(|desk| desk.busy) {
            return CallEnd::error(format!(
                "{name} is working; wait for its result, or change the present work with send_message"
            ));
        }
        self.begin_work(name, task, require_plan, Metadata::default());
        CallEnd::done(format!("{name} works on it"))
    }

    fn report_status(&mut self, by: &AgentName, text: String) -> CallEnd {
        if text.trim().is_empty() {
            return CallEnd::error("the report is empty");
        }
        let lead = AgentName::lead();
        let message = self.compose(by, &lead, MessageType::StatusUpdate, text, Metadata::default());
        self.send(&lead, vec![message]);
        CallEnd::done("reported")
    }

    fn request_status(&self, id: &str) -> CallEnd {
        match self.request_id(id).and_then(|id| self.requests.get(id)) {
            Some(request) => CallEnd::done(request_details(request)),
            None => CallEnd::error(format!("there is no request {id:?}; list_requests shows those that exist")),
        }
    }

    /// All requests, or those of one status, a line each.
    pub(super) fn list_requests(&self, status: Option<&str>) -> String {
        let status = status.map(str::trim).filter(|status| !status.is_empty() && *status != "all");
        let lines: Vec<String> = self
            .requests
            .iter()
            .filter(|request| status.is_none_or(|status| request.status.word() == status))
            .map(request_line)
            .collect();
        if lines.is_empty() { "no requests".to_owned() } else { lines.join("\n") }
    }

    fn list_teammates(&self, by: &AgentName) -> String {
        if self.team.is_empty() {
            return "no teammates".to_owned();
        }
        let line = |teammate: &super::Teammate| {
            let you = if teammate.name() == by { " (you)" } else { "" };
            format!("{}{you}, {}", teammate.state_line(), teammate.member.role)
        };
        self.team.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// Does something with a living teammate, or says who there is.
    fn with_living(&mut self, name: &str, act: impl FnOnce(&mut Self, &AgentName) -> CallEnd) -> CallEnd {
        let living = self
            .living()
            .map(|teammate| teammate.name().clone())
            .find(|living| living.as_str().eq_ignore_ascii_case(name.trim()));
        match living {
            Some(living) => act(self, &living),
            None => CallEnd::error(self.unknown_member(name)),
        }
    }

    /// A living agent by its name.
    pub(super) fn recipient(&self, text: &str) -> Option<AgentName> {
        let name = AgentName::parse(text.trim()).ok()?;
        if name.is_lead() {
            return Some(AgentName::lead());
        }
        self.living().map(|teammate| teammate.name().clone()).find(|living| *living == name)
    }

    pub(super) fn unknown_recipient(&self, by: &AgentName, text: &str) -> String {
        let mut valid: Vec<AgentName> = self.living().map(|teammate| teammate.name().clone()).collect();
        valid.insert(0, AgentName::lead());
        valid.retain(|name| name != by);
        let hint = self.ended_hint(by, text);
        let text: String = text.chars().take(80).collect();
        format!("{text:?} can't be written to{hint}; the valid names are: {}", names(&valid))
    }

    /// Why a name is no living teammate, and which ones are.
    pub(super) fn unknown_member(&self, text: &str) -> String {
        let living: Vec<AgentName> = self.living().map(|teammate| teammate.name().clone()).collect();
        let hint = self.ended_hint(&AgentName::lead(), text);
        let text: String = text.chars().take(80).collect();
        if living.is_empty() {
            return format!("{text:?} is no living teammate{hint}; there is none now");
        }
        format!("{text:?} is no living teammate{hint}; the living ones are: {}", names(&living))
    }

    /// What a name means that is no living teammate's any more, for who asks.
    fn ended_hint(&self, by: &AgentName, text: &str) -> String {
        let called = |teammate: &&super::Teammate| teammate.name().as_str().eq_ignore_ascii_case(text.trim());
        let Some(teammate) = self.team.iter().find(called).filter(|teammate| teammate.status.has_ended()) else {
            return String::new();
        };
        let back = match (by.is_lead(), teammate.stopped_by_user) {
            (true, false) => "spawn_teammate can bring it back",
            (true, true) => "the user stopped it; propose_team can bring it back",
            (false, _) => "only the lead can bring it back",
        };
        format!(" (it has ended: {}; {back})", teammate.status.word())
    }
}

fn names(names: &[AgentName]) -> String {
    names.iter().map(AgentName::as_str).collect::<Vec<_>>().join(", ")
}

fn request_details(request: &Request) -> String {
    let feedback = request.feedback.as_ref().map(|feedback| format!("\nfeedback: {feedback}")).unwrap_or_default();
    format!("{}\n{}{feedback}", request_line(request), request.payload)
}
