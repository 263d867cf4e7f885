//! What is said between the user, the lead and the runtime, as lines.
//!
//! Knows nothing of the team.

use crate::event::{Event, Level, TurnEnd};
use crate::protocol::AgentName;

use super::super::ink::{Ink, Line, inert};
use super::{Style, dim, first_line, one, some, span, tag};

/// The lines of an event of the talk.
pub(super) fn lines(event: &Event, style: &Style) -> Vec<String> {
    match event {
        Event::SessionStarted { workspace, model, server, .. } => banner(model, server, workspace, style),
        Event::SessionResumed { state, waits } => resumed(state, *waits, style),
        Event::UserLine { queued, .. } => {
            some(queued.then(|| dim("(queued: joins the lead's next model call)")), style)
        }
        Event::Text { agent, line } => spoken(agent, line),
        Event::TextVoid { agent } => {
            let words = "(the reply above was cut off; it is asked for again)";
            some(agent.is_lead().then(|| dim(words)), style)
        }
        Event::Wake { events } => one(dim(&format!("[wake: {events} team events → new turn]")), style),
        Event::TurnEnded { agent, end } => turn_ended(agent, end, style),
        Event::Question { text } => block(Ink::Warn, "", text, style),
        Event::Retry { agent, cause, wait_millis, attempt, attempts_max } => {
            one(retry(agent, cause, *wait_millis, *attempt, *attempts_max), style)
        }
        Event::Notice { level, text } => notice(*level, text, style),
        Event::SessionEnded { reason, .. } => {
            let words = || dim(&format!("(session ended: {reason})"));
            some((!reason.is_empty()).then(words), style)
        }
        _of_another_part => Vec::new(),
    }
}

fn banner(model: &str, server: &str, workspace: &str, style: &Style) -> Vec<String> {
    let first = tag("s15").text("  ").text(model).with(Ink::Dim, " @ ").text(server);
    let rest = [format!("workspace  {workspace}"), "/help shows what can be typed".to_owned()];
    let mut lines = one(first, style);
    lines.extend(rest.iter().flat_map(|text| one(dim(text), style)));
    lines
}

fn resumed(state: &str, waits: bool, style: &Style) -> Vec<String> {
    let mut lines = block(Ink::Plain, "", state, style);
    if waits {
        lines.push(dim("nothing goes on before you say something").paint(style.color));
    }
    lines
}

/// The lead's words are shown whole; a teammate's are its own until it reports.
fn spoken(agent: &AgentName, text: &str) -> Vec<String> {
    if agent.is_lead() { inert(text).split('\n').map(str::to_owned).collect() } else { Vec::new() }
}

fn turn_ended(agent: &AgentName, end: &TurnEnd, style: &Style) -> Vec<String> {
    match end {
        TurnEnd::Failed { cause } if agent.is_lead() => block(Ink::Bad, "error: ", cause, style),
        TurnEnd::Cancelled if agent.is_lead() => one(dim("(turn cancelled)"), style),
        // A teammate's end is told by its mail or its status.
        TurnEnd::Done { .. }
        | TurnEnd::Yielded
        | TurnEnd::Failed { .. }
        | TurnEnd::Cancelled
        | TurnEnd::Ended
        | TurnEnd::Suspended => Vec::new(),
    }
}

fn retry(agent: &AgentName, cause: &str, wait_millis: u64, attempt: u32, attempts_max: u32) -> Line {
    let wait = span(wait_millis);
    let rest = format!(": {}, retrying in {wait} ({attempt}/{attempts_max})", first_line(cause));
    Line::default().with(Ink::Warn, "[retry]").text(" ").name(agent).text(&rest)
}

fn notice(level: Level, text: &str, style: &Style) -> Vec<String> {
    match level {
        Level::Info => block(Ink::Plain, "", text, style),
        Level::Warning => block(Ink::Warn, "warning: ", text, style),
        Level::Error => block(Ink::Bad, "error: ", text, style),
    }
}

/// Lines that are not cut, behind a lead-in on the first.
fn block(ink: Ink, lead_in: &str, text: &str, style: &Style) -> Vec<String> {
    let text = format!("{lead_in}{}", inert(text.trim_end_matches(['\n', '\r'])));
    let whole = |line: &str| Line::default().with(ink, line).paint(style.color);
    text.split('\n').map(whole).collect()
}
