//! Commands in the background: each belongs to an agent, ends at the latest with it, and its end is told to it once.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::time::Instant;

use crate::agent::{CallEnd, Caller};
use crate::event::Record;
use crate::protocol::{AgentName, Effect, MessageType, Metadata};
use crate::tools::{BashArgs, Call, Job, JobEnd, TeamCall};

use super::Session;

/// Commands in the background at once, in the whole team.
const JOBS_MAX: usize = 8;
/// Ended ones whose output can still be looked at.
const ENDED_MAX: usize = 8;

/// The commands of this run.
pub(super) struct Jobs {
    /// In the order of their beginning.
    known: Vec<Known>,
    /// How many there were, earlier runs' included.
    begun: u32,
    over: UnboundedSender<JobOver>,
}

/// One command.
pub(super) struct Known {
    id: String,
    agent: AgentName,
    /// On one line, shortened.
    command: String,
    since: Instant,
    job: Job,
    end: Option<JobEnd>,
    /// Who waits for its end.
    callers: Vec<Caller>,
}

/// A command came to its end.
pub(super) struct JobOver {
    id: String,
    end: JobEnd,
}

/// The commands of an earlier run that had not ended when it did.
#[derive(Default)]
pub(super) struct LostJobs {
    begun: u32,
    /// Id, owner, command.
    open: Vec<(String, AgentName, String)>,
}

impl LostJobs {
    pub(super) fn started(&mut self, id: String, agent: AgentName, command: String) {
        self.begun += 1;
        self.open.push((id, agent, command));
    }

    pub(super) fn ended(&mut self, id: &str) {
        self.open.retain(|(open, ..)| open != id);
    }
}

impl Jobs {
    pub(super) fn new() -> (Self, UnboundedReceiver<JobOver>) {
        let (over, ends) = mpsc::unbounded_channel();
        (Self { known: Vec::new(), begun: 0, over }, ends)
    }

    pub(super) fn running(&self) -> impl Iterator<Item = &Known> {
        self.known.iter().filter(|known| known.end.is_none())
    }

    pub(super) fn any_runs(&self) -> bool {
        self.running().next().is_some()
    }

    pub(super) fn runs_for(&self, agent: &AgentName) -> bool {
        self.running().any(|known| known.agent == *agent)
    }

    /// Ends an agent's commands.
    pub(super) fn stop_of(&self, agent: &AgentName, why: &'static str) {
        self.running().filter(|known| known.agent == *agent).for_each(|known| known.job.stop(why));
    }

    pub(super) fn stop_all(&self, why: &'static str) {
        self.running().for_each(|known| known.job.stop(why));
    }

    /// Those that run, a line each.
    pub(super) fn text(&self) -> String {
        let lines: Vec<String> = self.running().map(Known::line).collect();
        if lines.is_empty() { "nothing runs in the background".to_owned() } else { lines.join("\n") }
    }

    /// An agent sees its own, the lead all.
    fn find(&self, by: &AgentName, id: &str) -> Result<usize, String> {
        let visible = |known: &Known| known.agent == *by || by.is_lead();
        let found = self.known.iter().position(|known| known.id.eq_ignore_ascii_case(id.trim()) && visible(known));
        found.ok_or_else(|| {
            let ids: Vec<&str> = self.known.iter().filter(|known| visible(known)).map(|known| &*known.id).collect();
            let id: String = id.chars().take(80).collect();
            let there_are =
                if ids.is_empty() { "there are none".to_owned() } else { format!("known: {}", ids.join(", ")) };
            format!("{id:?} is no background command of yours; {there_are}")
        })
    }

    /// Of those that have ended only the last few can be looked at.
    fn forget_old(&mut self) {
        let mut surplus = self.known.iter().filter(|known| known.end.is_some()).count().saturating_sub(ENDED_MAX);
        self.known.retain(|known| {
            let goes = surplus > 0 && known.end.is_some();
            surplus -= usize::from(goes);
            !goes
        });
    }
}

impl Known {
    /// `job-1 of auth runs for 12 s: cargo test`.
    pub(super) fn line(&self) -> String {
        let Self { id, agent, command, .. } = self;
        format!("{id} of {agent} runs for {} s: {command}", self.since.elapsed().as_secs())
    }

    /// What it has said, and where it stands: all since the last look for its owner, whose looks are not used up by the lead's.
    fn look(&self, by: &AgentName) -> String {
        let said = if *by == self.agent { self.job.look(self.end.is_some()) } else { self.job.last_lines() };
        let said = if said.is_empty() { "(no new output)" } else { said.trim_end_matches('\n') };
        match &self.end {
            None => format!("{said}\n{} runs for {} s", self.id, self.since.elapsed().as_secs()),
            Some(end) => format!("{said}\n{} has ended. {}", self.id, end.words),
        }
    }

    /// Its end, for who has not waited for it.
    fn obituary(&self, end: &JobEnd) -> String {
        let mut text = format!("{} ({}): {}", self.id, self.command, end.words);
        let last = self.job.last_lines();
        if !last.is_empty() {
            text.push_str(&format!("\nIts last lines (all of it: {}):\n{last}", self.job.path().display()));
        }
        text
    }
}

impl Session {
    /// Begins a command once it is recorded that it begins, and gives its id at once.
    pub(super) fn start_job(&mut self, call: BashArgs, caller: Caller) {
        if self.leaving.is_some() {
            // Without an answer: asked again when the session is resumed.
            return;
        }
        if let Err(why) = self.may_start_job(&caller.agent) {
            return self.settle_call(caller, CallEnd::error(why));
        }
        let scope = self.teammate(&caller.agent).and_then(|teammate| teammate.work.scope.clone());
        let policy = match scope.map_or(Ok(None), |scope| self.workshop.policy_within(&scope, &call.command)) {
            Ok(policy) => policy,
            Err(why) => return self.settle_call(caller, CallEnd::error(why)),
        };
        let limit = match call.timeout {
            None | Some(0) => self.settings.job_timeout,
            Some(seconds) => self.settings.job_timeout.min(Duration::from_secs(seconds)),
        };
        let command = Call::Team(TeamCall::StartJob(call.clone())).summary();
        self.jobs.begun += 1;
        let id = format!("job-{}", self.jobs.begun);
        let (job, run) = self.workshop.job(call, policy, limit, &id);
        let agent = caller.agent.clone();
        self.record(Record::JobStarted { job: id.clone(), agent: agent.clone(), command: command.clone() });
        let text = format!(
            "{id} runs in the background, for {} s at most. You are told when it ends; end your turn if there is nothing \
             else to do. All it prints goes to {}",
            limit.as_secs(),
            job.path().display()
        );
        self.settle_call(caller, CallEnd::done(text));
        let (over, over_id) = (self.jobs.over.clone(), id.clone());
        self.unit.answer(move || {
            tokio::spawn(async move {
                // A fault of the program's own is an end, too.
                let end = AssertUnwindSafe(run).catch_unwind().await.unwrap_or_else(|_| JobEnd {
                    ok: false,
                    words: "it failed by a fault of the program's own".to_owned(),
                });
                // A session that is gone needs no answer.
                drop(over.send(JobOver { id: over_id, end }));
            });
        });
        let since = Instant::now();
        self.jobs.known.push(Known { id, agent, command, since, job, end: None, callers: Vec::new() });
    }

    /// A gate may have closed since the call passed it, and its caller may have ended.
    fn may_start_job(&self, by: &AgentName) -> Result<(), String> {
        if let Some(teammate) = self.teammate(by) {
            teammate.work.gate.check(Effect::Execute).map_err(|blocked| blocked.to_string())?;
            if teammate.status.has_ended() {
                return Err("you have ended; nothing more is begun".to_owned());
            }
        }
        if self.jobs.running().count() < JOBS_MAX {
            return Ok(());
        }
        let own: Vec<&str> = self.jobs.running().filter(|known| known.agent == *by).map(|known| &*known.id).collect();
        let advice =
            if own.is_empty() { String::new() } else { format!(", or end one with bash_stop: {}", own.join(", ")) };
        Err(format!("{JOBS_MAX} commands run in the background, the most at once; wait until one has ended{advice}"))
    }

    pub(super) fn job_output(&mut self, by: &AgentName, id: &str) -> CallEnd {
        match self.jobs.find(by, id) {
            Ok(at) => CallEnd::done(self.jobs.known[at].look(by)),
            Err(why) => CallEnd::error(why),
        }
    }

    /// Ends a command, its own or any if it is the lead who asks; answered when it has ended.
    pub(super) fn stop_job(&mut self, id: &str, caller: Caller) {
        let known = match self.jobs.find(&caller.agent, id) {
            Ok(at) => &mut self.jobs.known[at],
            Err(why) => return self.settle_call(caller, CallEnd::error(why)),
        };
        if known.end.is_some() {
            let text = known.look(&caller.agent);
            return self.settle_call(caller, CallEnd::done(text));
        }
        known.job.stop(if known.agent == caller.agent { "by its owner" } else { "by the lead" });
        known.callers.push(caller);
    }

    /// Who asked for the end gets it as the result of that; an owner who didn't gets it by mail, the lead in an ended one's place.
    pub(super) fn job_over(&mut self, JobOver { id, end }: JobOver) {
        let Some(known) = self.jobs.known.iter_mut().find(|known| known.id == id) else { return };
        known.end = Some(end.clone());
        let callers = std::mem::take(&mut known.callers);
        let looks: Vec<String> = callers.iter().map(|caller| known.look(&caller.agent)).collect();
        let owner = known.agent.clone();
        let obituary = known.obituary(&end);
        self.record(Record::JobEnded { job: id.clone() });
        let is_told = callers.iter().any(|caller| caller.agent == owner);
        for (caller, look) in callers.into_iter().zip(looks) {
            self.settle_call(caller, CallEnd::done(look));
        }
        if !is_told {
            self.tell_job_end(&id, &owner, obituary);
        }
        self.jobs.forget_old();
    }

    fn tell_job_end(&mut self, id: &str, owner: &AgentName, text: String) {
        let is_there = owner.is_lead() || self.living().any(|teammate| teammate.name() == owner);
        let mut metadata = Metadata { wake: (!is_there).then_some(false), ..Metadata::default() };
        metadata.other.insert("job".to_owned(), id.into());
        let (to, text) = if is_there {
            (owner.clone(), text)
        } else {
            (AgentName::lead(), format!("of {owner}, who has ended: {text}"))
        };
        let message = self.compose(&AgentName::system(), &to, MessageType::JobFinished, text, metadata);
        self.send(&to, vec![message]);
    }

    /// The commands of an earlier run ended with it, at the latest.
    pub(super) fn tell_lost_jobs(&mut self, lost: LostJobs) {
        self.jobs.begun = lost.begun;
        for (id, owner, command) in lost.open {
            self.record(Record::JobEnded { job: id.clone() });
            let text = format!(
                "{id} ({command}): the program was ended while it ran, and it with it; it may have run in part. What it \
                 printed until then: {}",
                self.settings.out_dir.join(format!("{id}.txt")).display()
            );
            self.tell_job_end(&id, &owner, text);
        }
    }
}
