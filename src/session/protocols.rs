//! Requests and the plan protocol: opened, answered once by the right one, applied in memory before they are mailed.

use uuid::Uuid;

use crate::agent::CallEnd;
use crate::event::{Event, Level};
use crate::protocol::request::{Answer, ResolveError};
use crate::protocol::{AgentName, MessageType, Metadata, Request, RequestStatus, RequestType, Scope};
use crate::seam::{self, Defect};

use super::{Session, now};

impl Session {
    /// A teammate submits a plan; its turn ends, its work waits.
    pub(super) fn submit_plan(&mut self, name: &AgentName, plan: &str, asked: Scope) -> CallEnd {
        if plan.trim().is_empty() {
            return CallEnd::error("the plan is empty; say what you will change, where, and how you will check it");
        }
        let plan = self.plan_text(name, plan, &asked);
        let lead = AgentName::lead();
        let mut message =
            self.compose(name, &lead, MessageType::PlanApprovalRequest, plan.clone(), Metadata::default());
        let id = message.id;
        message.metadata.request_id = Some(id);
        match self.change_work(name, |work| work.submit(id, asked).map(|()| work.version)) {
            Some(Ok(version)) => {
                self.open_request(Request {
                    id,
                    kind: RequestType::Plan,
                    from: name.clone(),
                    to: lead.clone(),
                    status: RequestStatus::Pending,
                    payload: plan,
                    feedback: None,
                    work: version,
                    created: message.timestamp.clone(),
                    resolved: None,
                });
                self.plan_waits(id);
                self.send(&lead, vec![message]);
                CallEnd::yielded(format!("submitted as request {id}. Your turn ends; the answer wakes you"))
            }
            Some(Err(why)) => CallEnd::error(why),
            None => CallEnd::error("only a teammate submits plans"),
        }
    }

    /// A plan as it is reviewed: with what its approval opens, and who else has part of that.
    fn plan_text(&self, name: &AgentName, plan: &str, asked: &Scope) -> String {
        let own = self.teammate(name).and_then(|teammate| teammate.work.scope.as_ref());
        let besides = own.map(|scope| format!(", besides {scope}")).unwrap_or_default();
        let mut text = format!("{plan}\nopens: {asked}{besides}");
        for other in self.living().filter(|other| other.name() != name && other.work.open) {
            let Some(shared) = other.work.scope.as_ref().map(|scope| scope.overlap(asked)) else { continue };
            // Everything overlaps with everything: that says nothing.
            if !shared.is_empty() && !asked.is_everything() {
                text.push_str(&format!("\n{} has an approved plan for {} too", other.name(), shared.join(", ")));
            }
        }
        text
    }

    /// The lead, or the user, answers a plan. `paths`: the only places of it that are opened.
    pub(super) fn review_plan(
        &mut self,
        by: &AgentName,
        id: &str,
        approve: bool,
        feedback: Option<String>,
        paths: Option<&[String]>,
    ) -> CallEnd {
        let Some(id) = self.request_id(id) else {
            return CallEnd::error(format!("there is no request {id:?}; list_requests shows those that exist"));
        };
        let feedback = feedback.filter(|feedback| !feedback.trim().is_empty());
        let narrowed = match paths.filter(|paths| !paths.is_empty()).map(|paths| self.narrowed(id, paths)).transpose() {
            Ok(narrowed) => narrowed,
            Err(why) => return CallEnd::error(why),
        };
        let answer =
            Answer { id, kind: RequestType::Plan, by: by.clone(), approve, feedback: feedback.clone(), at: now() };
        let request = match self.resolve(answer) {
            Ok(request) => request,
            Err(error) => return CallEnd::error(error),
        };
        let name = request.from;
        let opens = narrowed.as_ref().filter(|_| approve).map(|scope| format!(" (only {scope})")).unwrap_or_default();
        match self.change_work(&name, |work| work.reviewed(id, approve, narrowed)) {
            Some(Ok(())) => {}
            Some(Err(why)) => return CallEnd::error(why),
            None => return CallEnd::error(format!("{name} is no teammate")),
        }
        let metadata = Metadata {
            request_id: Some(id),
            approve: Some(approve),
            feedback: feedback.clone(),
            ..Metadata::default()
        };
        let word = if approve { "approved" } else { "rejected" };
        let text = format!("{}{opens}", feedback.unwrap_or_else(|| word.to_owned()));
        let message = self.compose(by, &name, MessageType::PlanApprovalResponse, text, metadata);
        self.send(&name, vec![message]);
        CallEnd::done(format!("{word}: request {id}; {name} goes on with that"))
    }

    /// Fewer places of a plan that waits.
    fn narrowed(&self, id: Uuid, paths: &[String]) -> Result<Scope, String> {
        let waits = |teammate: &&super::Teammate| teammate.work.plan == Some(id);
        let asked = self.living().find(waits).and_then(|teammate| teammate.work.asked.as_ref());
        let asked = asked.ok_or_else(|| format!("request {id} is no plan that waits; list_requests shows those"))?;
        let narrowed = asked.narrowed(paths)?;
        if narrowed.is_within(asked) {
            return Ok(narrowed);
        }
        Err(format!("{narrowed} is more than the plan asks for, which is {asked}; name places within that"))
    }

    /// The lead asks for a plan: the gate closes now, in the middle of work too.
    pub(super) fn request_plan(&mut self, name: &AgentName, task: &str) -> CallEnd {
        self.expire_plans(name);
        self.change_work(name, |work| if work.open { work.require_plan() } else { work.begin(true) });
        let mut message = self.compose(&AgentName::lead(), name, MessageType::PlanRequest, task, Metadata::default());
        message.metadata.request_id = Some(message.id);
        self.send(name, vec![message]);
        CallEnd::done(format!("{name}'s gate is closed until a plan is approved; its plan comes as a team event"))
    }

    /// Ends the plan requests of a teammate's present work.
    pub(super) fn expire_plans(&mut self, name: &AgentName) {
        let expired =
            self.requests.expire(&now(), |request| request.kind == RequestType::Plan && request.from == *name);
        for request in expired {
            self.request_ended(request, None);
        }
    }

    pub(super) fn open_request(&mut self, request: Request) {
        self.emit(Event::RequestOpened { request: request.clone() });
        self.write_request(&request);
        self.requests.open(request);
    }

    /// Applies an answer; gives the request as it ended.
    pub(super) fn resolve(&mut self, answer: Answer) -> Result<Request, ResolveError> {
        let by = answer.by.clone();
        let id = answer.id;
        let answer =
            if seam::broken(Defect::AnybodyAnswers) { Answer { by: AgentName::user(), ..answer } } else { answer };
        let request = match self.requests.resolve(answer) {
            Ok(request) => request.clone(),
            Err(error) => {
                let settled = self.requests.get(id).filter(|_| seam::broken(Defect::AnswerTwice));
                settled.cloned().ok_or(error)?
            }
        };
        self.request_ended(request.clone(), Some(by));
        Ok(request)
    }

    pub(super) fn request_ended(&mut self, request: Request, by: Option<AgentName>) {
        self.plan_deadlines.retain(|(id, _)| *id != request.id);
        self.write_request(&request);
        self.emit(Event::RequestEnded { request, by });
    }

    fn write_request(&mut self, request: &Request) {
        if let Some(trouble) = self.views.write_request(request) {
            self.notice(Level::Warning, trouble);
        }
    }

    /// The request that a text names: its whole id, or a part that is unique.
    pub(super) fn request_id(&self, text: &str) -> Option<Uuid> {
        let text = text.trim();
        Uuid::parse_str(text).ok().or_else(|| self.requests.find(text).map(|request| request.id))
    }
}
