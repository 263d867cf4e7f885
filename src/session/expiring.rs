//! Requests that end without an answer: their time is up, or one of their two sides has ended. Whoever is left is told.

use tokio::time::Instant;
use uuid::Uuid;

use crate::protocol::span::in_words;
use crate::protocol::{AgentName, MessageType, Metadata, Request, RequestType};

use super::{Session, now};

impl Session {
    /// From now on a plan waits for its review.
    pub(super) fn plan_waits(&mut self, id: Uuid) {
        self.plan_deadlines.push((id, Instant::now() + self.settings.request_timeout));
    }

    /// The session was left while plans waited: their time begins anew.
    pub(super) fn plans_wait_again(&mut self) {
        let waiting = self.requests.pending().filter(|request| request.kind == RequestType::Plan);
        for id in waiting.map(|request| request.id).collect::<Vec<_>>() {
            self.plan_waits(id);
        }
    }

    /// When the time of the next plan is up.
    pub(super) fn plan_deadline(&self) -> Option<Instant> {
        self.plan_deadlines.iter().map(|(_, deadline)| *deadline).min()
    }

    /// Ends the plans whose time is up. Their authors go on without them, their gates closed.
    pub(super) fn expire_overdue_plans(&mut self) {
        let now_is = Instant::now();
        let overdue = self.plan_deadlines.extract_if(.., |(_, deadline)| *deadline <= now_is).map(|(id, _)| id);
        for id in overdue.collect::<Vec<_>>() {
            for request in self.requests.expire(&now(), |request| request.id == id) {
                self.request_ended(request.clone(), None);
                self.time_is_up(&request);
            }
        }
    }

    fn time_is_up(&mut self, request: &Request) {
        let Request { id, from, to, .. } = request;
        self.change_work(from, |work| work.plan_expired(*id));
        let waited = in_words(self.settings.request_timeout.as_secs());
        let text = format!(
            "{to} did not answer your plan within {waited}; your gate stays closed. If the plan still holds, submit it again"
        );
        // It is the author who can do something about it; the other side hears of it when it next has a turn.
        self.tell_expired(request, from, text, true);
        self.tell_expired(request, to, format!("{from}'s plan had no answer within {waited} and is void"), false);
    }

    /// Ends the requests between an agent that has ended and others.
    pub(super) fn expire_requests_of(&mut self, name: &AgentName) {
        let concerns = |request: &Request| request.from == *name || request.to == *name;
        for request in self.requests.expire(&now(), concerns) {
            self.request_ended(request.clone(), None);
            let other = if request.from == *name { &request.to } else { &request.from };
            let text = format!("{name} has ended, and this {} request with it", request.kind.word());
            // That it has ended is told besides, and wakes who has to know.
            self.tell_expired(&request, other, text, false);
        }
    }

    fn tell_expired(&mut self, request: &Request, to: &AgentName, text: String, wakes: bool) {
        if self.recipient(to.as_str()).is_none() {
            return;
        }
        let metadata =
            Metadata { request_id: Some(request.id), wake: (!wakes).then_some(false), ..Metadata::default() };
        let message = self.compose(&AgentName::system(), to, MessageType::RequestExpired, text, metadata);
        self.send(to, vec![message]);
    }
}
