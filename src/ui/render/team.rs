//! What happens in the team, as lines.
//!
//! Knows nothing of the team's rules; it only says what they led to.

use crate::event::{Event, Status};
use crate::protocol::request::short;
use crate::protocol::{AgentName, Gate, Request, RequestStatus, RequestType};

use super::super::ink::{Ink, Line};
use super::{Style, because, mail, one, some, table, tag};

/// The lines of an event of the team.
pub(super) fn lines(event: &Event, style: &Style) -> Vec<String> {
    match event {
        Event::Proposed { proposal } => table::lines(proposal, "", style),
        Event::ProposalChanged { proposal } => table::lines(proposal, ", as changed", style),
        Event::Confirmed { members } => {
            let names: Vec<&str> = members.iter().map(AgentName::as_str).collect();
            one(tag("[team]").text(" confirmed: ").text(&names.join(", ")), style)
        }
        Event::ProposalVoided { reason } => {
            let text = format!(" the proposal is void{}", because(reason));
            one(tag("[team]").text(&text), style)
        }
        Event::Teammate { name, status, reason } => some(teammate(name, *status, reason), style),
        Event::MailSent { message } => mail::sent(message, style),
        Event::MailFromOutside { to, from, kind, content } => mail::from_outside(to, from, kind, content, style),
        Event::MailSetAside { mailbox, lines, reason } => mail::set_aside(mailbox, *lines, reason, style),
        Event::RequestEnded { request, by } => some(request_ended(request, by.as_ref()), style),
        Event::GateChanged { agent, from, to } => one(gate_changed(agent, *from, *to), style),
        Event::AllShutDown => one(tag("[all teammates shut down]"), style),
        _of_another_part => Vec::new(),
    }
}

fn teammate(name: &AgentName, status: Status, reason: &str) -> Option<Line> {
    let line = |word: &str| tag("[teammate]").text(" ").name(name).text(" ").text(word);
    let noted = |line: Line| {
        if reason.is_empty() { line } else { line.text(&format!(" ({reason})")) }
    };
    match status {
        Status::Spawning => Some(line("spawned")),
        Status::Paused => Some(noted(line("paused"))),
        Status::Shutdown => Some(noted(line("shutdown"))),
        Status::Failed => Some(line("").with(Ink::Bad, "failed").text(&because(reason))),
        // Working and idle change often; the mail that goes with them is shown.
        Status::Working | Status::Idle | Status::Stopping => None,
    }
}

/// Answers are shown by their mail and by the gate; only an end without an answer needs a line of its own.
fn request_ended(request: &Request, by: Option<&AgentName>) -> Option<Line> {
    let id = short(request.id);
    match (request.status, request.kind) {
        (RequestStatus::Expired, RequestType::Plan) => {
            Some(tag("[plan]").text(" ").name(&request.from).text(&format!(": request {id} expired")))
        }
        (RequestStatus::Expired, RequestType::Shutdown) => {
            Some(tag("[bus]").text(" shutdown request ").text(&id).text(" to ").name(&request.to).text(" expired"))
        }
        (status @ (RequestStatus::Approved | RequestStatus::Rejected), RequestType::Plan)
            if by.is_some_and(|by| *by == AgentName::user()) =>
        {
            let words = format!(": request {id} {} by you", status.word());
            Some(tag("[plan]").text(" ").name(&request.from).text(&words))
        }
        (RequestStatus::Pending | RequestStatus::Approved | RequestStatus::Rejected, _) => None,
    }
}

fn gate_changed(agent: &AgentName, from: Gate, to: Gate) -> Line {
    let ink = if to.is_open() { Ink::Good } else { Ink::Warn };
    tag("[gate]").text(" ").name(agent).text(&format!(": {from} → ")).with(ink, to.word())
}
