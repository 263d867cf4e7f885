//! Events as lines for a person: pure, so that it can be tested without a terminal.
//!
//! Knows nothing of prompts, threads or files; whatever a model, a mail or a tool wrote is made inert here.

mod mail;
mod table;
mod talk;
mod team;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use crate::event::{Event, Item};
use crate::protocol::AgentName;

use super::ink::{Ink, Line, cut, inert, width};

/// Fewest columns of a failed call's message that stay beside its summary.
const FAILURE_COLUMNS_MIN: usize = 24;
/// Tool calls whose summaries are kept; older ones are forgotten when there are more.
const OPEN_CALLS_MAX: usize = 4096;
const MILLIS_PER_SECOND: u64 = 1000;
const MILLIS_PER_MINUTE: u64 = 60_000;

/// How lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// With SGR colours? Without, no escape code is written at all.
    pub color: bool,
    /// Columns of the terminal. The lead's words, plans and answers to commands are not cut to it.
    pub width: usize,
}

/// The lines of one event that stands for itself.
#[must_use]
pub fn lines(item: &Item, style: &Style) -> Vec<String> {
    Renderer::default().lines(item, style)
}

/// Renders events in their order; remembers what a tool call was about until it ends.
#[derive(Debug, Default)]
pub struct Renderer {
    summaries: HashMap<(AgentName, String), String>,
}

impl Renderer {
    /// The lines of the next event; none for what is not shown.
    #[must_use]
    pub fn lines(&mut self, item: &Item, style: &Style) -> Vec<String> {
        let event = &item.event;
        // Every event is named here, so that a new one can't be forgotten in the parts.
        match event {
            Event::ToolStarted { .. } | Event::ToolEnded { .. } => self.tool(event, style),
            Event::Proposed { .. }
            | Event::ProposalChanged { .. }
            | Event::Confirmed { .. }
            | Event::ProposalVoided { .. }
            | Event::Teammate { .. }
            | Event::MailSent { .. }
            | Event::MailFromOutside { .. }
            | Event::MailSetAside { .. }
            | Event::RequestEnded { .. }
            | Event::GateChanged { .. }
            | Event::AllShutDown => team::lines(event, style),
            Event::SessionStarted { .. }
            | Event::SessionResumed { .. }
            | Event::UserLine { .. }
            | Event::Text { .. }
            | Event::TextVoid { .. }
            | Event::Wake { .. }
            | Event::TurnEnded { .. }
            | Event::Question { .. }
            | Event::Retry { .. }
            | Event::Notice { .. }
            | Event::SessionEnded { .. } => talk::lines(event, style),
            Event::Replied { .. }
            | Event::Delivered { .. }
            | Event::RequestOpened { .. }
            | Event::TurnStarted { .. }
            | Event::Answered { .. }
            | Event::Record(_) => Vec::new(),
        }
    }

    /// One line when a call ends.
    fn tool(&mut self, event: &Event, style: &Style) -> Vec<String> {
        match event {
            Event::ToolStarted { agent, call_id, tool, summary } => {
                self.tool_started(agent, call_id, tool, summary);
                Vec::new()
            }
            Event::ToolEnded { agent, call_id, tool, ok, millis, result } => {
                let summary = self.summaries.remove(&(agent.clone(), call_id.clone()));
                let summary = summary.unwrap_or_else(|| tool.clone());
                one(tool_ended(agent, &summary, *ok, *millis, result, style.width), style)
            }
            _of_another_part => Vec::new(),
        }
    }

    fn tool_started(&mut self, agent: &AgentName, call_id: &str, tool: &str, summary: &str) {
        if self.summaries.len() >= OPEN_CALLS_MAX {
            self.summaries.clear();
        }
        let summary = if summary.is_empty() { tool.to_owned() } else { format!("{tool} {summary}") };
        self.summaries.insert((agent.clone(), call_id.to_owned()), summary);
    }
}

/// A line that is cut to the width.
fn one(line: Line, style: &Style) -> Vec<String> {
    some(Some(line), style)
}

/// A line that is cut to the width, if there is one.
fn some(line: Option<Line>, style: &Style) -> Vec<String> {
    let line = line.map(|line| line.cut(style.width).paint(style.color));
    line.into_iter().collect()
}

fn tag(text: &str) -> Line {
    Line::default().with(Ink::Tag, text)
}

fn dim(text: &str) -> Line {
    Line::default().with(Ink::Dim, text)
}

fn because(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(": {reason}") }
}

fn tool_ended(agent: &AgentName, summary: &str, ok: bool, millis: u64, result: &str, columns: usize) -> Line {
    let start = Line::default().text("  ").name(agent).with(Ink::Dim, " · ");
    let summary = first_line(summary);
    let end = if ok {
        Line::default().with(Ink::Good, " ✓").with(Ink::Dim, &format!(" {}", span(millis)))
    } else {
        Line::default().with(Ink::Bad, " ✗").text(&format!(" {}", first_line(result)))
    };
    let end_columns = if ok { end.width() } else { end.width().min(FAILURE_COLUMNS_MIN.max(columns / 2)) };
    let room = columns.saturating_sub(start.width() + end_columns);
    let mut line = start.text(&cut(&summary, room));
    line.append(end);
    line
}

/// The first line that isn't blank.
fn first_line(text: &str) -> String {
    let text = inert(text);
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_owned()
}

/// A span of time in the unit that suits it.
fn span(millis: u64) -> String {
    if millis < MILLIS_PER_SECOND {
        format!("{millis} ms")
    } else if millis < MILLIS_PER_MINUTE {
        let tenths = millis / (MILLIS_PER_SECOND / 10);
        if tenths.is_multiple_of(10) {
            format!("{} s", tenths / 10)
        } else {
            format!("{}.{} s", tenths / 10, tenths % 10)
        }
    } else {
        let seconds = millis / MILLIS_PER_SECOND;
        format!("{} min {} s", seconds / 60, seconds % 60)
    }
}

/// Columns of a name's column, bounded so that one long name doesn't push all else off the screen.
fn names_width<'a>(names: impl Iterator<Item = &'a str>, columns_max: usize) -> usize {
    names.map(width).max().unwrap_or(0).min(columns_max)
}
