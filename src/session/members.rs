//! Teammates: how they start, how their turns end, and what the lead hears of it.

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::agent::{Intake, Remains};
use crate::event::{Event, Level, MemberState, Record, Status, TurnEnd};
use crate::journal::{RosterEntry, read_session};
use crate::protocol::roster::{IdleReason, Work};
use crate::protocol::shown::PLAN_REQUIRED;
use crate::protocol::{AgentName, Effect, Gate, Member, Message, MessageType, Metadata};
use crate::seam::{self, Defect};
use crate::tools::Role;

use super::desk::{Desk, Start};
use super::ending::Ending;
use super::stopping::Cancelled;
use super::{Recalled, Session, prompts};

/// One teammate, living or ended.
pub(super) struct Teammate {
    pub(super) desk: Desk,
    pub(super) member: Member,
    pub(super) status: Status,
    /// Why it is idle, when it is.
    pub(super) idle: IdleReason,
    pub(super) work: Work,
    /// Set while it is asked to end.
    pub(super) ending: Option<Ending>,
    /// It has refused a shutdown; the next can't be refused.
    pub(super) refused_shutdown: bool,
    /// The user stopped it: only a newly confirmed proposal brings it back.
    pub(super) stopped_by_user: bool,
    /// Its last work ended with `error`.
    pub(super) last_work_failed: bool,
    /// The user holds it between steps.
    pub(super) paused: bool,
    /// The model call that it waits with.
    pub(super) held: Option<oneshot::Sender<Intake>>,
    /// Its turn was cancelled and has not ended yet.
    pub(super) cancelled: Option<Cancelled>,
    /// How it stood when that was last recorded.
    recorded: Option<MemberState>,
    /// Ended while busy: when its task is aborted if it hasn't given up by then.
    pub(super) abort_at: Option<Instant>,
}

impl Teammate {
    fn new(member: Member) -> Self {
        Self {
            desk: Desk::new(member.name.clone()),
            member,
            status: Status::Spawning,
            idle: IdleReason::Done,
            work: Work::default(),
            ending: None,
            refused_shutdown: false,
            stopped_by_user: false,
            last_work_failed: false,
            paused: false,
            held: None,
            cancelled: None,
            recorded: None,
            abort_at: None,
        }
    }

    /// How it stands.
    fn state(&self) -> MemberState {
        MemberState {
            name: self.member.name.clone(),
            status: self.status,
            idle: self.idle,
            work: self.work.clone(),
            ending: self.ending.as_ref().map(Ending::request),
            refused_shutdown: self.refused_shutdown,
            stopped_by_user: self.stopped_by_user,
            last_work_failed: self.last_work_failed,
            paused: self.paused,
        }
    }

    /// How it stands, if that is not how it was last recorded.
    pub(super) fn changed_state(&mut self) -> Option<MemberState> {
        let state = self.state();
        if self.recorded.as_ref() == Some(&state) {
            return None;
        }
        self.recorded = Some(state.clone());
        Some(state)
    }

    /// A teammate as it stood in an earlier run.
    pub(super) fn recalled(member: Member, state: MemberState) -> Self {
        let mut teammate = Self::new(member);
        teammate.status = state.status;
        teammate.idle = state.idle;
        teammate.work = state.work.clone();
        teammate.refused_shutdown = state.refused_shutdown;
        teammate.stopped_by_user = state.stopped_by_user;
        teammate.last_work_failed = state.last_work_failed;
        teammate.paused = state.paused;
        teammate.desk.reins.set_gate(teammate.work.gate, teammate.work.scope.clone());
        teammate.recorded = Some(state);
        teammate
    }

    pub(super) fn name(&self) -> &AgentName {
        &self.member.name
    }
}

impl Session {
    /// The teammates that have not ended.
    pub(super) fn living(&self) -> impl Iterator<Item = &Teammate> {
        self.team.iter().filter(|teammate| !teammate.status.has_ended())
    }

    /// Starts the lead's task.
    pub(super) fn start_lead(&mut self) {
        let start = self.start_of(Role::Lead, self.settings.model.clone(), prompts::lead(&self.settings));
        let agent = AgentName::lead();
        let (model, system) = (start.model.clone(), start.system.clone());
        self.record(Record::AgentStarted { agent, model, system, member: None });
        self.lead.start(start);
    }

    /// Starts a teammate, or brings one back with its own history, and gives it its first task.
    ///
    /// # Errors
    /// The mail folders can't be made; nothing was started.
    pub(super) fn start_teammate(&mut self, member: Member) -> Result<(), String> {
        self.open_mail()?;
        let name = member.name.clone();
        let model = member.model.clone().unwrap_or_else(|| self.settings.teammate_model.clone());
        let start = self.start_of(Role::Teammate, model, prompts::teammate(&self.settings, &member));
        let (prompt, require_plan) = (member.prompt.clone(), member.require_plan);
        self.record(Record::AgentStarted {
            agent: name.clone(),
            model: start.model.clone(),
            system: start.system.clone(),
            member: Some(member.clone()),
        });
        let is_lost = self.teammate(&name).is_some_and(|former| former.desk.remains.is_none());
        let from_journal = if is_lost { self.remains_in_journal(&name) } else { None };
        match self.teammate_mut(&name) {
            Some(former) => {
                let mut former_desk = std::mem::replace(&mut former.desk, Desk::new(name.clone()));
                if former_desk.busy {
                    former_desk.abort();
                }
                let life = former_desk.life;
                let remains = former_desk.remains.or(from_journal);
                *former = Teammate::new(member);
                former.desk.life = life;
                former.desk.remains = remains;
            }
            None => self.team.push(Teammate::new(member)),
        }
        if let Some(teammate) = self.teammate_mut(&name) {
            teammate.desk.start(start);
        }
        self.set_status(&name, Status::Spawning, "");
        let mut metadata = Metadata::default();
        metadata.other.insert("spawn".to_owned(), true.into());
        self.begin_work(&name, &prompt, require_plan, metadata);
        Ok(())
    }

    /// The conversation of a teammate whose task was aborted, as far as the journal has it.
    fn remains_in_journal(&mut self, name: &AgentName) -> Option<Remains> {
        let past = self.settings.journals.as_deref().map(|folder| read_session(folder, self.settings.id))?;
        match past {
            Ok(past) => Recalled::of(past).remains_of(name),
            Err(error) => {
                self.notice(
                    Level::Warning,
                    format!("{name} begins anew, its earlier conversation can't be read: {error}"),
                );
                None
            }
        }
    }

    /// A new piece of work for an idle teammate: its version, its gate, its mail.
    pub(super) fn begin_work(&mut self, name: &AgentName, task: &str, require_plan: bool, mut metadata: Metadata) {
        let require_plan = require_plan && !seam::broken(Defect::PlanForgotten);
        if require_plan {
            metadata.other.insert(PLAN_REQUIRED.to_owned(), true.into());
        }
        self.expire_plans(name);
        self.change_work(name, |work| work.begin(require_plan));
        let message = self.compose(&AgentName::lead(), name, MessageType::TaskAssignment, task, metadata);
        self.send(name, vec![message]);
    }

    /// Changes a teammate's work and lets the gate follow: reins, event, view.
    pub(super) fn change_work<T>(&mut self, name: &AgentName, change: impl FnOnce(&mut Work) -> T) -> Option<T> {
        let teammate = self.teammate_mut(name)?;
        let before = teammate.work.gate;
        let changed = change(&mut teammate.work);
        let after = teammate.work.gate;
        if before != after {
            if !seam::broken(Defect::GateStaysOpen) {
                teammate.desk.reins.set_gate(after, teammate.work.scope.clone());
            }
            if after.check(Effect::Execute).is_err() {
                self.jobs.stop_of(name, "the plan gate was closed: a plan must be approved first");
            }
            self.emit(Event::GateChanged { agent: name.clone(), from: before, to: after });
        }
        Some(changed)
    }

    pub(super) fn start_of(&self, role: Role, model: String, system: String) -> Start {
        Start {
            role,
            model,
            system,
            turn_calls_max: self.settings.turn_calls_max,
            client: self.client.clone(),
            workshop: self.workshop.clone(),
            events: self.events.clone(),
            session: self.to_session.clone(),
        }
    }

    pub(super) fn set_status(&mut self, name: &AgentName, status: Status, reason: &str) {
        let Some(teammate) = self.teammate_mut(name) else { return };
        teammate.status = status;
        self.emit(Event::Teammate { name: name.clone(), status, reason: reason.to_owned() });
        self.write_roster();
    }

    /// The view in `.team/config.json`.
    pub(super) fn write_roster(&mut self) {
        let entries: Vec<RosterEntry> = self
            .team
            .iter()
            .map(|teammate| RosterEntry {
                name: teammate.name().clone(),
                role: teammate.member.role.clone(),
                status: teammate.status,
                model: teammate.member.model.clone().unwrap_or_else(|| self.settings.teammate_model.clone()),
                require_plan: teammate.member.require_plan,
            })
            .collect();
        if let Some(trouble) = self.views.write_roster(self.settings.id, &entries) {
            self.notice(Level::Warning, trouble);
        }
    }

    /// A turn is over: say how, and see what comes next.
    pub(super) fn turn_ended(&mut self, name: &AgentName, end: TurnEnd) {
        self.emit(Event::TurnEnded { agent: name.clone(), end: end.clone() });
        let Some(desk) = self.desk_mut(name) else { return };
        desk.busy = false;
        if name.is_lead() {
            self.lead_turn_ended(end);
        } else {
            self.teammate_turn_ended(name, end);
        }
    }

    fn lead_turn_ended(&mut self, end: TurnEnd) {
        self.outcome.lead_failed = matches!(end, TurnEnd::Failed { .. });
        match end {
            TurnEnd::Failed { cause } => {
                let pending = match self.lead.shown.len() {
                    0 => String::new(),
                    count => format!("\n{count} team events stay pending and go with your next line, or with /retry"),
                };
                self.notice(Level::Error, format!("{cause}{pending}"));
            }
            TurnEnd::Cancelled => self.notice(Level::Info, "(interrupted)"),
            TurnEnd::Done { .. } | TurnEnd::Yielded | TurnEnd::Ended | TurnEnd::Suspended => {}
        }
        self.lead_goes_on();
    }

    /// The lead is idle: it gets a turn for what has come meanwhile.
    fn lead_goes_on(&mut self) {
        if self.leaving.is_some() {
            return;
        }
        if self.lines.is_empty() {
            self.look(&AgentName::lead());
        } else {
            self.begin_turn(&AgentName::lead());
        }
    }

    /// The lead's task fell over: another one takes up its conversation, and what waits for it.
    fn lead_panicked(&mut self, cause: &str) {
        self.notice(
            Level::Error,
            format!("the lead's turn failed ({cause}); its conversation goes on with your next line"),
        );
        self.outcome.lead_failed = true;
        // One that fell over before it had begun would do so again, and for ever.
        let had_begun = self.lead.turn_intakes > 0 || self.lead.goes_on;
        self.start_lead();
        if had_begun {
            self.lead_goes_on();
        }
    }

    fn teammate_turn_ended(&mut self, name: &AgentName, end: TurnEnd) {
        let Some(teammate) = self.teammate(name) else { return };
        if teammate.status.has_ended() || self.leaving.is_some() {
            return;
        }
        if teammate.ending.is_some() {
            self.approve_shutdown(name);
            return;
        }
        let waits = teammate.work.open && teammate.work.gate == Gate::Pending;
        let open = teammate.work.open;
        // Its words are no last ones then: the work goes on when the command has ended.
        let job_runs = self.jobs.runs_for(name);
        let (kind, text) = match end {
            TurnEnd::Failed { cause } => (Some(MessageType::Error), cause),
            TurnEnd::Cancelled => (Some(MessageType::Error), self.words_of_cancel(name)),
            TurnEnd::Done { .. } | TurnEnd::Yielded | TurnEnd::Ended | TurnEnd::Suspended if waits => {
                (None, String::new())
            }
            TurnEnd::Done { text } if job_runs && text.trim().is_empty() => (None, text),
            TurnEnd::Done { text } if job_runs => (Some(MessageType::Message), text),
            TurnEnd::Done { text } if text.trim().is_empty() => {
                (open.then_some(MessageType::Result), "(finished without a word)".to_owned())
            }
            TurnEnd::Done { text } if open => (Some(MessageType::Result), text),
            TurnEnd::Done { text } => (Some(MessageType::Message), text),
            TurnEnd::Yielded | TurnEnd::Ended | TurnEnd::Suspended => (None, String::new()),
        };
        let reason = match (waits, job_runs) {
            (true, _) => IdleReason::WaitingApproval,
            (false, true) => IdleReason::WaitingJob,
            (false, false) => IdleReason::Done,
        };
        self.go_idle(name, kind, text, reason);
    }

    /// Ends the work if `kind` is its last word, goes idle, says both in one write, and looks at the mailbox once more.
    fn go_idle(&mut self, name: &AgentName, kind: Option<MessageType>, text: String, reason: IdleReason) {
        let lead = AgentName::lead();
        let mut batch: Vec<Message> = Vec::new();
        if let Some(kind) = kind {
            if matches!(kind, MessageType::Result | MessageType::Error) {
                self.expire_plans(name);
                self.change_work(name, Work::end);
                if let Some(teammate) = self.teammate_mut(name) {
                    teammate.last_work_failed = kind == MessageType::Error;
                }
            }
            let text = self.last_words(name, text);
            let times = match (seam::broken(Defect::NoLastWord), seam::broken(Defect::LastWordTwice)) {
                (true, _) => 0,
                (false, true) => 2,
                (false, false) => 1,
            };
            batch.extend((0..times).map(|_| self.compose(name, &lead, kind, text.clone(), Metadata::default())));
        }
        if !seam::broken(Defect::NoIdleNotice) {
            batch.push(self.compose(name, &lead, MessageType::IdleNotification, reason.word(), Metadata::default()));
        }
        if let Some(teammate) = self.teammate_mut(name) {
            teammate.idle = reason;
        }
        self.set_status(name, Status::Idle, reason.word());
        self.send(&lead, batch);
        if self.is_held(name) {
            self.set_status(name, Status::Paused, "by the user");
        }
        if !seam::broken(Defect::NoLookWhenIdle) {
            self.look(name);
        }
    }

    /// An agent's task is over; what is left of it may return.
    pub(super) fn exited(&mut self, name: &AgentName, remains: Remains, panicked: Option<String>) {
        if let Some(desk) = self.desk_mut(name) {
            desk.remains = Some(remains);
            desk.busy = false;
            desk.no_more_turns();
        }
        let Some(cause) = panicked else { return };
        if name.is_lead() {
            self.lead_panicked(&cause);
        } else if self.teammate(name).is_some_and(|teammate| !teammate.status.has_ended()) {
            let error = self.compose(name, &AgentName::lead(), MessageType::Error, cause.clone(), Metadata::default());
            self.conclude(name, Status::Failed, &cause);
            self.send(&AgentName::lead(), vec![error]);
        }
    }
}
