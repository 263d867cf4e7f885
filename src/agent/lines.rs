//! Cuts a streaming reply into whole lines, for a screen on which somebody is typing. Knows nothing of that screen.

use tokio::time::Instant;

use crate::event::Event;
use crate::journal::Events;
use crate::protocol::AgentName;

use super::UNFINISHED_LINE_AFTER;

/// The reply of one call as it streams.
pub(super) struct Lines {
    agent: AgentName,
    events: Events,
    /// Text since the last line end that was shown.
    unfinished: String,
    last_text: Instant,
    shown: bool,
}

impl Lines {
    pub(super) fn new(agent: AgentName, events: Events) -> Self {
        Self { agent, events, unfinished: String::new(), last_text: Instant::now(), shown: false }
    }

    /// Adds text and shows the lines that it completes.
    pub(super) fn push(&mut self, text: &str) {
        self.unfinished.push_str(text);
        self.last_text = Instant::now();
        while let Some(end) = self.unfinished.find('\n') {
            let rest = self.unfinished.split_off(end + 1);
            let mut line = std::mem::replace(&mut self.unfinished, rest);
            line.truncate(line.trim_end_matches(['\n', '\r']).len());
            self.show(line);
        }
    }

    /// Shows an unfinished line that has waited long enough.
    pub(super) fn flush_waiting(&mut self) {
        if self.last_text.elapsed() >= UNFINISHED_LINE_AFTER {
            self.finish();
        }
    }

    /// Shows what is left.
    pub(super) fn finish(&mut self) {
        if !self.unfinished.is_empty() {
            let line = std::mem::take(&mut self.unfinished);
            self.show(line);
        }
    }

    /// The reply is asked for again: what was shown of it is void.
    pub(super) fn void(&mut self) {
        self.unfinished.clear();
        if std::mem::take(&mut self.shown) {
            self.events.emit(Event::TextVoid { agent: self.agent.clone() });
        }
    }

    fn show(&mut self, line: String) {
        self.shown = true;
        self.events.emit(Event::Text { agent: self.agent.clone(), line });
    }
}
