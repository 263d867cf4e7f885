//! The roster, gates and open requests as the lead reads them: the `[Team state]` block and `list_teammates`.

use std::fmt::Write;

use crate::event::Status;
use crate::protocol::{Gate, Request};

use super::Session;
use super::members::Teammate;

impl Session {
    /// `[Team state]` and a line a member, then the open requests.
    pub(super) fn state_text(&self) -> String {
        let mut text = "[Team state]".to_owned();
        for teammate in &self.team {
            text.push('\n');
            text.push_str(&teammate.state_line());
        }
        for request in self.requests.pending() {
            text.push('\n');
            text.push_str(&request_line(request));
        }
        for job in self.jobs.running() {
            text.push('\n');
            text.push_str(&job.line());
        }
        if self.team.is_empty() {
            text.push_str("\nno teammates");
        }
        text
    }
}

impl Teammate {
    /// `auth: working, gate pending`.
    pub(super) fn state_line(&self) -> String {
        let mut line = format!("{}: {}", self.name(), self.status.word());
        if self.status == Status::Idle {
            // Writing to a String can't fail.
            let _ = write!(line, " ({})", self.idle.word());
        }
        if self.work.gate != Gate::NotRequired {
            let _ = write!(line, ", gate {}", self.work.gate);
        }
        line
    }
}

/// `open plan request <id>: auth → lead`.
pub(super) fn request_line(request: &Request) -> String {
    format!(
        "{} {} request {}: {} → {}",
        request.status.word(),
        request.kind.word(),
        request.id,
        request.from,
        request.to
    )
}
