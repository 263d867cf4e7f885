//! I4: a request changes at most once, by its addressee or the user, and is answered by mail at most once.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::event::Event;
use crate::protocol::{AgentName, Message, MessageType, Request, RequestStatus};

use super::super::log::{Entry, items};

pub(super) fn a_request_changes_once(log: &[Entry]) -> Vec<String> {
    let mut requests: BTreeMap<Uuid, Known> = BTreeMap::new();
    let mut faults = Vec::new();
    for item in items(log) {
        let fault = match &item.event {
            Event::RequestOpened { request } => {
                let known = Known { request: request.clone(), answered: false };
                requests.insert(request.id, known).map(|_| format!("request {} was opened twice", request.id))
            }
            Event::RequestEnded { request, by } => match requests.get_mut(&request.id) {
                Some(known) => known.ended(request, by.as_ref()),
                None => Some(format!("request {} ended and was not opened", request.id)),
            },
            Event::MailSent { message } => {
                message.metadata.request_id.and_then(|id| requests.get_mut(&id)).and_then(|known| known.mailed(message))
            }
            _ => None,
        };
        faults.extend(fault);
    }
    faults
}

struct Known {
    request: Request,
    answered: bool,
}

impl Known {
    fn ended(&mut self, now: &Request, by: Option<&AgentName>) -> Option<String> {
        let before = std::mem::replace(&mut self.request, now.clone());
        let id = now.id;
        if before.status != RequestStatus::Pending {
            return Some(format!("request {id} changed twice: {}, then {}", before.status.word(), now.status.word()));
        }
        if now.status == RequestStatus::Pending || now.kind != before.kind || now.to != before.to {
            return Some(format!("request {id} became another one"));
        }
        let may = by.is_none_or(|by| *by == before.to || *by == AgentName::user());
        (!may || by.is_none() != (now.status == RequestStatus::Expired))
            .then(|| format!("request {id} to {} was {} by {by:?}", before.to, now.status.word()))
    }

    fn mailed(&mut self, message: &Message) -> Option<String> {
        let is_answer = matches!(message.kind, MessageType::PlanApprovalResponse | MessageType::ShutdownResponse);
        if !is_answer {
            return None;
        }
        let id = self.request.id;
        let said = message.metadata.approve == Some(true);
        if std::mem::replace(&mut self.answered, true) {
            return Some(format!("request {id} was answered twice"));
        }
        (said != (self.request.status == RequestStatus::Approved))
            .then(|| format!("request {id} is {}, and the answer says {said}", self.request.status.word()))
    }
}
