//! How a teammate ends: asked by the lead, stopped by the user, or failed. Ask, then deadline, then abort; every path ends here.

use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use crate::agent::{CallEnd, Halt, Intake};
use crate::event::{Event, Status};
use crate::protocol::request::Answer;
use crate::protocol::roster::Work;
use crate::protocol::{AgentName, Mail, MailKey, Message, MessageType, Metadata, Request, RequestStatus, RequestType};
use crate::seam::{self, Defect};

use super::{Session, now};

/// How long the present tool call of a teammate that is asked to end may go on.
const SHUTDOWN_CALL_MAX: Duration = Duration::from_secs(20);
/// How long a teammate that is asked to end may leave that unanswered.
const SHUTDOWN_ANSWER_MAX: Duration = Duration::from_secs(60);
/// How long a task whose turn was ended may take to give up before it is aborted.
const GIVE_UP_MAX: Duration = Duration::from_secs(5);

/// A shutdown that was asked for and is not over.
pub(super) struct Ending {
    request: Uuid,
    /// The model has been shown the request: without an answer in that reply, silence is consent.
    put_in: bool,
    call_deadline: Option<Instant>,
    answer_deadline: Instant,
}

impl Ending {
    pub(super) fn request(&self) -> Uuid {
        self.request
    }

    /// A shutdown that an earlier run asked for; its times begin anew. `put_in`: the model has seen the request.
    pub(super) fn recalled(request: Uuid, put_in: bool) -> Self {
        let asked = Instant::now();
        Self {
            request,
            put_in,
            call_deadline: (!put_in).then(|| asked + SHUTDOWN_CALL_MAX),
            answer_deadline: asked + SHUTDOWN_ANSWER_MAX,
        }
    }
}

impl Session {
    /// The lead asks a teammate to end.
    pub(super) fn request_shutdown(&mut self, name: &AgentName, reason: Option<String>) -> CallEnd {
        let Some(teammate) = self.teammate(name) else { return CallEnd::error(self.unknown_member(name.as_str())) };
        if teammate.status.has_ended() {
            return CallEnd::error(format!("{name} has ended already ({})", teammate.status.word()));
        }
        if let Some(ending) = &teammate.ending {
            return CallEnd::error(format!("{name} is already asked to shut down: request {}", ending.request));
        }
        // Who waits in a pause has nothing under way.
        let busy = teammate.desk.busy && teammate.held.is_none();
        let (version, must) = (teammate.work.version, teammate.refused_shutdown);
        let lead = AgentName::lead();
        let reason = reason.filter(|reason| !reason.trim().is_empty()).unwrap_or_else(|| "the work is done".to_owned());
        let mut message = self.compose(&lead, name, MessageType::ShutdownRequest, reason.clone(), Metadata::default());
        let id = message.id;
        message.metadata.request_id = Some(id);
        self.open_request(Request {
            id,
            kind: RequestType::Shutdown,
            from: lead,
            to: name.clone(),
            status: RequestStatus::Pending,
            payload: reason,
            feedback: None,
            work: version,
            created: message.timestamp.clone(),
            resolved: None,
        });
        let asked = Instant::now();
        let forgotten = seam::broken(Defect::NoAnswerDeadline);
        let ending = Ending {
            request: id,
            put_in: must,
            call_deadline: Some(asked + SHUTDOWN_CALL_MAX),
            answer_deadline: asked + if forgotten { 1000 * SHUTDOWN_ANSWER_MAX } else { SHUTDOWN_ANSWER_MAX },
        };
        if let Some(teammate) = self.teammate_mut(name) {
            teammate.ending = Some(ending);
        }
        if busy {
            self.set_status(name, Status::Stopping, "");
            if let Some(desk) = self.desk(name) {
                desk.reins.halt(Halt::NoFurtherCall("you are asked to shut down"));
            }
            self.send(name, vec![message]);
            CallEnd::done(format!(
                "{name} is working and was asked to shut down: request {id}; its answer comes as a team event"
            ))
        } else {
            self.approve_shutdown(name);
            CallEnd::done(format!("{name} was idle and is shut down: request {id}"))
        }
    }

    /// Before a model call of a teammate: is it over instead? Silence after the request was shown is consent, and one that
    /// has not begun its turn has nothing to refuse for.
    pub(super) fn ends_at_intake(&mut self, name: &AgentName) -> bool {
        let Some(teammate) = self.teammate(name) else { return false };
        if teammate.status.has_ended() {
            return true;
        }
        let ends = teammate.ending.as_ref().is_some_and(|ending| ending.put_in || teammate.desk.turn_intakes == 0);
        if ends {
            self.approve_shutdown(name);
        }
        ends
    }

    /// If the request goes into the history with this mail, the model may answer freely.
    pub(super) fn request_put_in(&mut self, name: &AgentName, mail: &[Mail]) {
        let Some(teammate) = self.teammate_mut(name) else { return };
        let put_in = |ending: &Ending| mail.iter().any(|mail| mail.key() == MailKey::Inside(ending.request));
        if let Some(ending) = teammate.ending.as_mut().filter(|ending| put_in(ending)) {
            ending.put_in = true;
            ending.call_deadline = None;
            teammate.desk.reins.release();
        }
    }

    /// A teammate answers the lead's request.
    pub(super) fn answer_shutdown(
        &mut self,
        name: &AgentName,
        id: &str,
        approve: bool,
        reason: Option<String>,
    ) -> CallEnd {
        let Some(id) = self.request_id(id) else { return CallEnd::error(format!("there is no request {id:?}")) };
        let answer =
            Answer { id, kind: RequestType::Shutdown, by: name.clone(), approve, feedback: reason.clone(), at: now() };
        if let Err(error) = self.resolve(answer) {
            return CallEnd::error(error);
        }
        if approve {
            return CallEnd::yielded("approved; you are shut down now");
        }
        if let Some(teammate) = self.teammate_mut(name) {
            teammate.ending = None;
            teammate.refused_shutdown = true;
            teammate.desk.reins.release();
        }
        self.set_status(name, Status::Working, "refused to shut down");
        let reason = reason.unwrap_or_else(|| "no reason given".to_owned());
        let response = self.shutdown_response(name, id, false, reason);
        self.send(&AgentName::lead(), vec![response]);
        CallEnd::done("refused; go on with your work. A second request can't be refused")
    }

    /// The teammate ends as it was asked to; the runtime answers for it if it has not done so itself.
    pub(super) fn approve_shutdown(&mut self, name: &AgentName) {
        let Some(ending) = self.teammate_mut(name).and_then(|teammate| teammate.ending.take()) else { return };
        let answer = Answer {
            id: ending.request,
            kind: RequestType::Shutdown,
            by: name.clone(),
            approve: true,
            feedback: None,
            at: now(),
        };
        // Settled already when the teammate answered itself: that answer stands.
        drop(self.resolve(answer));
        self.conclude(name, Status::Shutdown, "");
        let response = self.shutdown_response(name, ending.request, true, "shut down".to_owned());
        self.send(&AgentName::lead(), vec![response]);
        self.say_when_all_ended();
    }

    fn shutdown_response(&mut self, name: &AgentName, id: Uuid, approve: bool, text: String) -> Message {
        let metadata = Metadata { request_id: Some(id), approve: Some(approve), ..Metadata::default() };
        self.compose(name, &AgentName::lead(), MessageType::ShutdownResponse, text, metadata)
    }

    /// `/stop`: can't be refused.
    pub(super) fn stop_by_user(&mut self, name: &AgentName) {
        self.conclude(name, Status::Shutdown, "stopped by the user");
        if let Some(teammate) = self.teammate_mut(name) {
            teammate.stopped_by_user = true;
        }
        let lead = AgentName::lead();
        let text = format!("the user stopped {name}; only a newly confirmed proposal brings it back");
        let message = self.compose(&AgentName::system(), &lead, MessageType::StatusUpdate, text, Metadata::default());
        self.send(&lead, vec![message]);
        self.say_when_all_ended();
    }

    /// The end of a teammate's life, whatever the cause: its turn, its work, its requests and its unread mail.
    pub(super) fn conclude(&mut self, name: &AgentName, status: Status, reason: &str) {
        self.change_work(name, Work::end);
        self.expire_requests_of(name);
        self.end_pauses_of(Some(name));
        self.answer_held(name, Intake::End);
        self.jobs.stop_of(name, "its owner has ended");
        let unread = self.take_back(name);
        let mut inbox = Vec::new();
        if let Some(teammate) = self.teammate_mut(name) {
            (teammate.ending, teammate.cancelled) = (None, None);
            inbox = std::mem::take(&mut teammate.desk.inbox);
            teammate.desk.shown.clear();
            if teammate.desk.busy {
                teammate.desk.reins.halt(Halt::EndTurn("the teammate has ended"));
                teammate.abort_at = Some(Instant::now() + GIVE_UP_MAX);
            }
            teammate.desk.no_more_turns();
        }
        self.set_status(name, status, reason);
        self.return_to_senders(name, &unread, &inbox);
    }

    pub(super) fn say_when_all_ended(&mut self) {
        if !self.team.is_empty() && self.living().next().is_none() {
            self.emit(Event::AllShutDown);
        }
    }

    /// The nearest moment at which something must be enforced.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let endings = self.team.iter().filter_map(|teammate| teammate.ending.as_ref());
        let of_endings = endings.flat_map(|ending| ending.call_deadline.into_iter().chain([ending.answer_deadline]));
        let aborts = self.team.iter().filter_map(|teammate| teammate.abort_at);
        let leaving = self.leaving.as_ref().map(|leaving| leaving.deadline);
        of_endings
            .chain(aborts)
            .chain(leaving)
            .chain(self.plan_deadline())
            .chain(self.pause_deadline())
            .chain(self.cancel_deadline())
            .min()
    }

    /// Enforces what is due.
    pub(super) fn enforce_deadlines(&mut self) {
        let now = Instant::now();
        let mut unanswered = Vec::new();
        for teammate in &mut self.team {
            if teammate.abort_at.is_some_and(|at| at <= now) {
                teammate.abort_at = None;
                if teammate.desk.busy {
                    teammate.desk.abort();
                }
            }
            let Some(ending) = &mut teammate.ending else { continue };
            if ending.call_deadline.is_some_and(|at| at <= now) {
                ending.call_deadline = None;
                teammate.desk.reins.halt(Halt::EndCall("you are asked to shut down, and this call took too long"));
            }
            if ending.answer_deadline <= now {
                unanswered.push(teammate.member.name.clone());
            }
        }
        for name in unanswered {
            self.approve_shutdown(&name);
        }
        self.expire_overdue_plans();
        self.end_pauses();
        self.end_stubborn();
    }
}
