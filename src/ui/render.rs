//! Events as lines of text. Pure but for what it must remember: which calls are open.

use std::collections::HashMap;

use crate::event::{Event, Item, Level, Status};
use crate::protocol::request::short;
use crate::protocol::{AgentName, Message, MessageType};

use super::table;
use super::text::{first_line, fit, inert};

/// Lines of a submitted plan that are shown.
const PLAN_LINES_MAX: usize = 40;
/// Lines of a result that are shown.
const RESULT_LINES_MAX: usize = 3;
/// Calls faster than this say nothing of their time, in milliseconds.
const SILENT_MILLIS: u64 = 1_000;

/// How lines look.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Are colour codes allowed?
    pub color: bool,
    /// Columns.
    pub width: usize,
}

/// Turns items into lines, in their order.
pub struct Renderer {
    style: Style,
    /// Call id → what it does.
    open: HashMap<(AgentName, String), String>,
}

#[derive(Clone, Copy)]
enum Paint {
    Plain,
    Dim,
    Bold,
    Red,
    Yellow,
    Green,
    Agent(u8),
}

impl Renderer {
    /// With nothing open.
    #[must_use]
    pub fn new(style: Style) -> Self {
        Self { style, open: HashMap::new() }
    }

    /// The lines of one item; none for what is not shown.
    pub fn lines(&mut self, item: &Item) -> Vec<String> {
        match &item.event {
            Event::SessionStarted { workspace, model, server, .. } => vec![
                self.paint(Paint::Dim, &format!("s15: {} at {}", inert(model), inert(server))),
                self.paint(Paint::Dim, &format!("{} (/help lists the commands)", inert(workspace))),
            ],
            Event::UserLine { queued: true, .. } => {
                vec![self.paint(Paint::Dim, "(queued: joins the lead's next model call)")]
            }
            Event::Text { agent, line } if agent.is_lead() => vec![inert(line)],
            Event::TextVoid { agent } if agent.is_lead() => {
                vec![self.paint(Paint::Yellow, "(the reply above was cut off; it is asked for again)")]
            }
            Event::ToolStarted { agent, call_id, tool, summary } => {
                let what = format!("{tool} {}", first_line(summary).0);
                self.open.insert((agent.clone(), call_id.clone()), what);
                Vec::new()
            }
            Event::ToolEnded { agent, call_id, tool, ok, millis, result } => {
                self.tool_ended(agent, call_id, tool, *ok, *millis, result)
            }
            Event::Proposed { proposal } => self.table(table::lines(proposal, "proposal", self.style.width)),
            Event::ProposalChanged { proposal } => {
                self.table(table::lines(proposal, "changed proposal", self.style.width))
            }
            Event::Confirmed { members } => {
                let names: Vec<&str> = members.iter().map(AgentName::as_str).collect();
                vec![self.paint(Paint::Green, &format!("[team] confirmed: {}", names.join(", ")))]
            }
            Event::ProposalVoided { reason } => {
                vec![self.paint(Paint::Dim, &format!("[team] proposal void: {}", inert(reason)))]
            }
            Event::Teammate { name, status, reason } => self.teammate(name, *status, reason),
            Event::MailSent { message } => self.mail(message),
            Event::MailFromOutside { to, from, kind, content } => {
                let (first, more) = first_line(content);
                let (from, first) = (inert(from), inert(first));
                vec![fit(
                    &format!("[bus] {from} → {to} ({kind}, outside mail) {first}{}", and_more(more)),
                    self.style.width,
                )]
            }
            Event::MailSetAside { mailbox, lines, reason } => self.set_aside(mailbox, *lines, reason),
            Event::GateChanged { agent, from, to } => {
                vec![self.paint(Paint::Bold, &format!("[gate] {agent}: {from} → {to}"))]
            }
            Event::Wake { events } => {
                vec![self.paint(Paint::Dim, &format!("[wake: {events} team events → new turn]"))]
            }
            Event::Question { text } => vec![self.paint(Paint::Bold, &inert(text))],
            Event::Retry { agent, cause, wait_millis, attempt, attempts_max } => {
                self.retry(agent, cause, *wait_millis, (*attempt, *attempts_max))
            }
            Event::AllShutDown => vec![self.paint(Paint::Bold, "[all teammates shut down]")],
            Event::Notice { level, text } => self.notice(*level, text),
            Event::UserLine { queued: false, .. }
            | Event::Text { .. }
            | Event::TextVoid { .. }
            | Event::Replied { .. }
            | Event::Delivered { .. }
            | Event::RequestOpened { .. }
            | Event::RequestEnded { .. }
            | Event::TurnStarted { .. }
            | Event::TurnEnded { .. }
            | Event::Answered { .. }
            | Event::SessionEnded { .. } => Vec::new(),
        }
    }

    fn retry(&self, agent: &AgentName, cause: &str, wait_millis: u64, (attempt, last): (u32, u32)) -> Vec<String> {
        let seconds = wait_millis as f64 / 1000.0;
        let text = format!("[retry] {agent}: {}, retrying in {seconds:.1} s ({attempt}/{last})", inert(cause));
        vec![self.paint(Paint::Yellow, &text)]
    }

    fn set_aside(&self, mailbox: &str, lines: usize, reason: &str) -> Vec<String> {
        let noun = if lines == 1 { "line is" } else { "lines are" };
        let text = format!("[bus] {mailbox}: {lines} {noun} no message and put into quarantine ({})", inert(reason));
        vec![self.paint(Paint::Yellow, &text)]
    }

    fn tool_ended(
        &mut self,
        agent: &AgentName,
        call_id: &str,
        tool: &str,
        ok: bool,
        millis: u64,
        result: &str,
    ) -> Vec<String> {
        let what = self.open.remove(&(agent.clone(), call_id.to_owned())).unwrap_or_else(|| tool.to_owned());
        let time = if millis >= SILENT_MILLIS { format!(" {:.1} s", millis as f64 / 1000.0) } else { String::new() };
        let outcome = if ok { format!("✓{time}") } else { format!("✗{time} {}", inert(first_line(result).0)) };
        let room = self.style.width.saturating_sub(agent.as_str().len() + 8);
        let line = fit(&format!("{} {outcome}", fit(&inert(&what), room * 2 / 3)), room);
        let paint = if ok { Paint::Dim } else { Paint::Plain };
        vec![format!("  {} · {}", self.tag(agent), self.paint(paint, &line))]
    }

    fn teammate(&self, name: &AgentName, status: Status, reason: &str) -> Vec<String> {
        let tag = self.tag(name);
        let why = if reason.is_empty() { String::new() } else { format!(" ({})", inert(reason)) };
        match status {
            Status::Spawning => vec![format!("[teammate] {tag} spawned")],
            Status::Stopping => vec![format!("[teammate] {tag} is asked to shut down")],
            Status::Shutdown => vec![format!("[teammate] {tag} shutdown{why}")],
            Status::Failed => vec![format!("[teammate] {tag} failed{why}")],
            Status::Paused => vec![format!("[teammate] {tag} paused{why}")],
            Status::Working if !reason.is_empty() => vec![format!("[teammate] {tag} {}", inert(reason))],
            Status::Working | Status::Idle => Vec::new(),
        }
    }

    fn mail(&self, message: &Message) -> Vec<String> {
        let way = format!("{} → {}", self.tag(&message.from), self.tag(&message.to));
        let content = inert(&message.content);
        match message.kind {
            MessageType::TaskAssignment if message.metadata.other.contains_key("spawn") => Vec::new(),
            MessageType::PlanApprovalRequest => {
                let id = message.metadata.request_id.map(short).unwrap_or_default();
                let mut lines = vec![format!("[plan] {way} (plan_approval_request {id})")];
                lines.extend(self.excerpt(&content, PLAN_LINES_MAX));
                lines
            }
            MessageType::Result | MessageType::Error => {
                let mut lines = vec![format!("[bus] {way} ({})", message.kind.word())];
                lines.extend(self.excerpt(&content, RESULT_LINES_MAX));
                lines
            }
            MessageType::IdleNotification if content == "done" => {
                vec![format!("[bus] {way} ({})", message.kind.word())]
            }
            MessageType::Message
            | MessageType::Broadcast
            | MessageType::TaskAssignment
            | MessageType::StatusUpdate
            | MessageType::IdleNotification
            | MessageType::PlanRequest
            | MessageType::PlanApprovalResponse
            | MessageType::ShutdownRequest
            | MessageType::ShutdownResponse
            | MessageType::Undelivered
            | MessageType::RequestExpired
            | MessageType::JobFinished
            | MessageType::TeamQuiet => {
                let (first, more) = first_line(&content);
                let room = self.style.width.saturating_sub(
                    message.from.as_str().len() + message.to.as_str().len() + message.kind.word().len() + 15,
                );
                vec![format!(
                    "[bus] {way} ({}) {}",
                    message.kind.word(),
                    fit(&format!("{first}{}", and_more(more)), room.max(10))
                )]
            }
        }
    }

    /// The first lines of a text, set in, and how many more there are.
    fn excerpt(&self, text: &str, lines_max: usize) -> Vec<String> {
        let all: Vec<&str> = text.trim().lines().collect();
        let mut lines: Vec<String> = all
            .iter()
            .take(lines_max)
            .map(|line| format!("    {}", fit(line, self.style.width.saturating_sub(5))))
            .collect();
        if all.len() > lines_max {
            lines.push(format!("    … (+{} lines)", all.len() - lines_max));
        }
        lines
    }

    fn table(&self, mut lines: Vec<String>) -> Vec<String> {
        if let Some(head) = lines.first_mut() {
            *head = self.paint(Paint::Bold, head);
        }
        lines
    }

    fn notice(&self, level: Level, text: &str) -> Vec<String> {
        let (mark, paint) = match level {
            Level::Info => ("", Paint::Plain),
            Level::Warning => ("warning: ", Paint::Yellow),
            Level::Error => ("error: ", Paint::Red),
        };
        let text = inert(text);
        text.lines()
            .enumerate()
            .map(|(index, line)| self.paint(paint, &format!("{}{line}", if index == 0 { mark } else { "" })))
            .collect()
    }

    /// An agent's name, always in the same colour.
    fn tag(&self, name: &AgentName) -> String {
        let sum = name
            .as_str()
            .bytes()
            .fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte.to_ascii_lowercase())));
        let colors = [36, 35, 34, 33, 32, 96];
        let color = colors[sum as usize % colors.len()];
        self.paint(if name.is_lead() { Paint::Bold } else { Paint::Agent(color) }, name.as_str())
    }

    fn paint(&self, paint: Paint, text: &str) -> String {
        if !self.style.color || text.is_empty() {
            return text.to_owned();
        }
        let code = match paint {
            Paint::Plain => return text.to_owned(),
            Paint::Dim => 2,
            Paint::Bold => 1,
            Paint::Red => 31,
            Paint::Yellow => 33,
            Paint::Green => 32,
            Paint::Agent(color) => color,
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

fn and_more(lines: usize) -> String {
    if lines == 0 { String::new() } else { format!(" (+{lines} lines)") }
}
