//! When it is quiet, what comes then, and how a session ends.

use std::time::Duration;

use tokio::time::Instant;

use crate::agent::{Halt, Intake};
use crate::event::{Event, Level};
use crate::protocol::{AgentName, MessageType, Metadata};

use super::{Session, Source};

/// How long running calls may take to end when the session does.
const LEAVE_MAX: Duration = Duration::from_secs(5);

/// The session is on its way out.
#[derive(Clone, Copy)]
pub(super) struct Leaving {
    pub(super) deadline: Instant,
    reason: &'static str,
    code: u8,
}

/// What the exit code is made of.
#[derive(Default)]
pub(super) struct Outcome {
    /// The lead's last turn failed.
    pub(super) lead_failed: bool,
    /// Something needed a person and there was none.
    pub(super) needed_person: bool,
    /// No more lines will come.
    pub(super) input_ended: bool,
    /// The lead was told that all is quiet and something is open.
    pub(super) quiet_told: bool,
}

impl Session {
    /// Before the first input: the lead is there, and mail that waits is seen.
    pub(super) fn begin(&mut self) {
        self.start_lead();
        self.look_everywhere();
    }

    /// After every input: is something to be done since it is quiet? Gives the exit code when all is over.
    pub(super) fn settle(&mut self) -> Option<u8> {
        if let Some(Leaving { deadline, code, reason }) = self.leaving {
            let over = !self.anybody_busy() && !self.jobs.any_runs() || deadline <= Instant::now();
            return over.then(|| self.end(code, reason));
        }
        if self.settings.source == Source::Terminal {
            return None;
        }
        if self.question.is_some() {
            self.await_line();
            return None;
        }
        if !self.asleep && !self.is_quiet() {
            return None;
        }
        if !self.outcome.input_ended {
            self.await_line();
            return None;
        }
        let told = self.asleep || self.tell_quiet();
        told.then(|| {
            let code = self.exit_code();
            self.end(code, "done")
        })
    }

    fn await_line(&mut self) {
        if !self.line_awaited && !self.outcome.input_ended {
            self.line_awaited = true;
            (self.next_line)();
        }
    }

    fn anybody_busy(&self) -> bool {
        self.lead.busy || self.team.iter().any(|teammate| teammate.desk.busy)
    }

    /// Nobody works, and nothing that would make somebody work is on its way.
    fn is_quiet(&self) -> bool {
        let waits = |name: &AgentName, desk: &super::Desk| {
            desk.deserves_turn() || desk.more_in_files || self.post.waiting(name) > 0
        };
        // A pause ends by the user's word alone.
        let at_work = |teammate: &super::Teammate| teammate.desk.busy && teammate.held.is_none();
        !self.lead.busy
            && !self.living().any(at_work)
            && !self.jobs.any_runs()
            && self.lines.is_empty()
            && !waits(&self.lead.name, &self.lead)
            && !self.living().any(|teammate| !teammate.paused && waits(teammate.name(), &teammate.desk))
    }

    /// Tells the lead, once a quiet period, that something is still open; true if there is nothing to tell.
    fn tell_quiet(&mut self) -> bool {
        let open: Vec<String> = self
            .requests
            .pending()
            .filter(|request| request.to.is_lead())
            .map(super::state_text::request_line)
            .collect();
        if open.is_empty() || self.outcome.quiet_told {
            return true;
        }
        self.outcome.quiet_told = true;
        let lead = AgentName::lead();
        let text = format!("everybody is idle, and this waits for you:\n{}", open.join("\n"));
        let message = self.compose(&AgentName::system(), &lead, MessageType::TeamQuiet, text, Metadata::default());
        self.send(&lead, vec![message]);
        false
    }

    fn exit_code(&self) -> u8 {
        let open_proposal = self.confirmation.is_open();
        let failed = self.outcome.lead_failed
            || self.requests.pending().next().is_some()
            || self
                .team
                .iter()
                .any(|teammate| teammate.last_work_failed || teammate.status == crate::event::Status::Failed);
        let paused = self.living().any(|teammate| teammate.paused && teammate.work.open);
        match (self.outcome.needed_person || open_proposal || paused, failed) {
            (true, _) => 4,
            (false, true) => 1,
            (false, false) => 0,
        }
    }

    /// Ends the session: running calls end, nothing new begins. A second time ends at once.
    pub(super) fn leave(&mut self, reason: &'static str, code: u8) {
        let again = self.leaving.is_some();
        let deadline = if again { Instant::now() } else { Instant::now() + LEAVE_MAX };
        // A question that stands is asked anew when the session is resumed: nobody has answered it.
        self.question = None;
        self.leaving = Some(Leaving { deadline, reason, code });
        if again {
            return;
        }
        if self.anybody_busy() {
            self.notice(Level::Info, "ending what is running (once more to leave at once)");
        }
        self.end_pauses_of(None);
        let held: Vec<AgentName> = self.living().map(|teammate| teammate.name().clone()).collect();
        held.iter().for_each(|name| self.answer_held(name, Intake::Suspend));
        self.lead.reins.halt(Halt::Suspend);
        for teammate in self.living() {
            teammate.desk.reins.halt(Halt::Suspend);
        }
        self.jobs.stop_all("the session was left while it ran; it may have run in part");
    }

    fn end(&mut self, exit_code: u8, reason: &str) -> u8 {
        self.emit(Event::SessionEnded { exit_code, reason: reason.to_owned() });
        exit_code
    }
}
