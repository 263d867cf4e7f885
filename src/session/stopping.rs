//! The ladder by which a teammate is stopped (asked, its turn cancelled, ended at once), and the pause that holds it between steps.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::agent::{CallEnd, Halt, Intake};
use crate::event::{Level, Status};
use crate::protocol::{AgentName, MessageType, Metadata};

use super::Session;

/// How long a cancelled turn may take to end before its teammate is ended with it.
const CANCEL_MAX: Duration = Duration::from_secs(10);

/// How far to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// It may finish its call, and say no once.
    Ask,
    /// Its running call and its turn end now; it stays.
    Cancel,
    /// It ends now.
    Abort,
}

/// A turn that was cancelled and has not ended yet.
pub(super) struct Cancelled {
    /// The last word of its work.
    words: String,
    deadline: Instant,
}

impl How {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        match text.trim().to_ascii_lowercase().as_str() {
            "ask" => Ok(Self::Ask),
            "cancel" => Ok(Self::Cancel),
            "abort" => Ok(Self::Abort),
            other => Err(format!("{other:?} is none of: ask, cancel, abort")),
        }
    }
}

impl Session {
    /// The lead stops a teammate.
    pub(super) fn stop_teammate(&mut self, name: &AgentName, how: &str, reason: Option<String>) -> CallEnd {
        match How::parse(how) {
            Err(why) => CallEnd::error(why),
            Ok(How::Ask) => self.request_shutdown(name, reason),
            Ok(How::Cancel) => match self.cancel(name, "the lead", reason) {
                Ok(done) => CallEnd::done(done),
                Err(why) => CallEnd::error(why),
            },
            Ok(How::Abort) => {
                self.conclude(name, Status::Shutdown, "ended by the lead");
                self.say_when_all_ended();
                CallEnd::done(format!("{name} has ended; what it ran was ended with it. spawn_teammate brings it back"))
            }
        }
    }

    /// Ends a teammate's turn now, in the middle of a model call or a tool. Its work ends with `error`; it stays, idle.
    pub(super) fn cancel(&mut self, name: &AgentName, by: &str, reason: Option<String>) -> Result<String, String> {
        let reason =
            reason.filter(|reason| !reason.trim().is_empty()).map(|why| format!(": {why}")).unwrap_or_default();
        let Some(teammate) = self.teammate_mut(name).filter(|teammate| teammate.desk.busy) else {
            return Err(format!("{name} has no turn to cancel"));
        };
        let words = format!("cancelled by {by}{reason}");
        teammate.cancelled = Some(Cancelled { words, deadline: Instant::now() + CANCEL_MAX });
        teammate.desk.reins.halt(Halt::EndTurn("the turn was cancelled"));
        self.end_pauses_of(Some(name));
        self.answer_held(name, Intake::Cancel);
        Ok(format!("{name}'s call and turn end now, its work ends with error; it stays for another task"))
    }

    /// The last word of a work whose turn was broken off.
    pub(super) fn words_of_cancel(&mut self, name: &AgentName) -> String {
        let cancelled = self.teammate_mut(name).and_then(|teammate| teammate.cancelled.take());
        cancelled.map_or_else(|| "the work was broken off".to_owned(), |cancelled| cancelled.words)
    }

    /// When the next cancelled turn must have ended.
    pub(super) fn cancel_deadline(&self) -> Option<Instant> {
        let cancelled = self.team.iter().filter_map(|teammate| teammate.cancelled.as_ref());
        cancelled.map(|cancelled| cancelled.deadline).min()
    }

    /// A turn that doesn't end when it is cancelled is ended with its teammate.
    pub(super) fn end_stubborn(&mut self) {
        let now = Instant::now();
        let is_due = |teammate: &&super::Teammate| {
            teammate.cancelled.as_ref().is_some_and(|cancelled| cancelled.deadline <= now)
        };
        let due: Vec<AgentName> = self.team.iter().filter(is_due).map(|teammate| teammate.name().clone()).collect();
        for name in due {
            let words = format!("{}; it did not give up, and has ended", self.words_of_cancel(&name));
            if self.teammate(&name).is_none_or(|teammate| teammate.status.has_ended() || !teammate.desk.busy) {
                continue;
            }
            let lead = AgentName::lead();
            let error = self.compose(&name, &lead, MessageType::Error, words.clone(), Metadata::default());
            self.conclude(&name, Status::Failed, &words);
            self.send(&lead, vec![error]);
        }
    }

    /// `/pause`: a teammate finishes its present call and then waits; an idle one takes in no mail.
    pub(super) fn pause(&mut self, name: &AgentName) {
        let Some(teammate) = self.teammate_mut(name) else { return };
        teammate.paused = true;
        if teammate.desk.busy {
            self.notice(Level::Info, format!("{name} waits before its next model call (/unpause {name})"));
        } else {
            self.set_status(name, Status::Paused, "by the user");
        }
    }

    /// `/unpause`: it goes on where it stood.
    pub(super) fn unpause(&mut self, name: &AgentName) {
        let Some(teammate) = self.teammate_mut(name).filter(|teammate| teammate.paused) else {
            return self.notice(Level::Warning, format!("{name} is not paused"));
        };
        teammate.paused = false;
        let (idle, status) = (teammate.idle.word(), teammate.status);
        if let Some(answer) = teammate.held.take() {
            self.set_status(name, Status::Working, "");
            self.answer_intake(name, answer);
        } else if status == Status::Paused {
            self.set_status(name, Status::Idle, idle);
            self.look(name);
        }
    }

    /// Before a model call: a paused teammate waits with it, unless it is to end.
    pub(super) fn is_held(&self, name: &AgentName) -> bool {
        let waits =
            |teammate: &super::Teammate| teammate.paused && teammate.ending.is_none() && !teammate.status.has_ended();
        self.leaving.is_none() && self.teammate(name).is_some_and(waits)
    }

    pub(super) fn hold(&mut self, name: &AgentName, answer: oneshot::Sender<Intake>) {
        if let Some(teammate) = self.teammate_mut(name) {
            teammate.held = Some(answer);
        }
        self.set_status(name, Status::Paused, "by the user");
    }

    /// A model call that is held up by a pause is not made.
    pub(super) fn answer_held(&mut self, name: &AgentName, intake: Intake) {
        if let Some(answer) = self.teammate_mut(name).and_then(|teammate| teammate.held.take()) {
            self.unit.answer(move || drop(answer.send(intake)));
        }
    }
}
