//! What `-p` writes: the answer on standard output, what a person may want to follow on standard error.
//!
//! Knows nothing of files or threads: it turns events into text for two writers.

use serde_json::{Value, json};

use crate::event::{Event, Item, Level, TurnEnd, Usage};

use super::OutputFormat;
use super::render::{Renderer, Style};

/// What to write after an event.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    /// For standard output.
    pub(crate) out: String,
    /// For standard error.
    pub(crate) err: String,
}

/// The state of a headless run's output.
#[derive(Debug)]
pub(crate) struct Headless {
    format: OutputFormat,
    renderer: Renderer,
    /// The lead's last words, held until it's known whether they are the answer.
    text: String,
    session: Option<String>,
    exit_code: Option<u8>,
    usage: Usage,
    finished: bool,
}

impl Headless {
    pub(crate) fn new(format: OutputFormat) -> Self {
        Self {
            format,
            renderer: Renderer::default(),
            text: String::new(),
            session: None,
            exit_code: None,
            usage: Usage::default(),
            finished: false,
        }
    }

    /// What the next event writes.
    pub(crate) fn next(&mut self, item: &Item, style: &Style) -> Written {
        let passed = self.note(&item.event);
        let mut written = match self.format {
            OutputFormat::Text => Written { out: String::new(), err: self.rendered(passed, item, style) },
            OutputFormat::Json => Written { out: String::new(), err: self.trouble(item, style) },
            // Seq 0 is the interface's own and no event of the session.
            OutputFormat::StreamJson if item.seq == 0 => Written { out: String::new(), err: self.trouble(item, style) },
            OutputFormat::StreamJson => Written { out: stream_line(item), err: self.trouble(item, style) },
        };
        if matches!(item.event, Event::SessionEnded { .. }) {
            written.out.push_str(&self.finish());
        }
        written
    }

    /// The answer, once: at the session's end, or when the output is closed without one.
    pub(crate) fn finish(&mut self) -> String {
        if std::mem::replace(&mut self.finished, true) {
            return String::new();
        }
        match self.format {
            OutputFormat::Text if self.text.is_empty() => String::new(),
            OutputFormat::Text => format!("{}\n", self.text.trim_end_matches('\n')),
            OutputFormat::Json => format!("{}\n", self.result()),
            OutputFormat::StreamJson => String::new(),
        }
    }

    fn result(&self) -> Value {
        json!({
            "type": "result",
            "session": self.session,
            "exit_code": self.exit_code,
            "text": self.text,
            "usage": self.usage,
        })
    }

    /// Takes in what the answer is made of. Gives the lead's words that turn out not to be it.
    fn note(&mut self, event: &Event) -> Option<String> {
        match event {
            Event::SessionStarted { session, .. } => self.session = Some(session.to_string()),
            Event::SessionEnded { exit_code, .. } => self.exit_code = Some(*exit_code),
            Event::Replied { agent, message, usage, .. } => {
                let usage = usage.unwrap_or_default();
                self.usage.input_tokens += usage.input_tokens;
                self.usage.output_tokens += usage.output_tokens;
                self.usage.cached_tokens += usage.cached_tokens;
                let text = message.get("content").and_then(Value::as_str).unwrap_or_default();
                if agent.is_lead() && !text.trim().is_empty() {
                    let passed = std::mem::replace(&mut self.text, text.to_owned());
                    return (!passed.is_empty()).then_some(passed);
                }
            }
            Event::TurnEnded { agent, end: TurnEnd::Done { text } } if agent.is_lead() && !text.trim().is_empty() => {
                text.clone_into(&mut self.text);
            }
            Event::UserLine { .. } | Event::Text { .. } | Event::TextVoid { .. } => {}
            Event::ToolStarted { .. } | Event::ToolEnded { .. } | Event::Proposed { .. } => {}
            Event::ProposalChanged { .. } | Event::Confirmed { .. } => {}
            Event::ProposalVoided { .. } | Event::Teammate { .. } | Event::MailSent { .. } => {}
            Event::MailFromOutside { .. } | Event::MailSetAside { .. } | Event::Delivered { .. } => {}
            Event::RequestOpened { .. } | Event::RequestEnded { .. } | Event::GateChanged { .. } => {}
            Event::Wake { .. } | Event::TurnStarted { .. } | Event::TurnEnded { .. } => {}
            Event::Question { .. } | Event::Answered { .. } | Event::Retry { .. } => {}
            Event::AllShutDown | Event::Notice { .. } | Event::SessionResumed { .. } | Event::Record(_) => {}
        }
        None
    }

    /// All that a terminal would show; but the lead's words only once others follow, since the last go to the output.
    fn rendered(&mut self, passed: Option<String>, item: &Item, style: &Style) -> String {
        let mut lines: Vec<String> = Vec::new();
        if let Some(passed) = passed {
            lines.extend(super::ink::inert(&passed).split('\n').map(str::to_owned));
        }
        if !matches!(item.event, Event::Text { .. } | Event::TextVoid { .. }) {
            lines.extend(self.renderer.lines(item, style));
        }
        joined(&lines)
    }

    /// Warnings and errors alone.
    fn trouble(&mut self, item: &Item, style: &Style) -> String {
        let is_trouble = matches!(
            item.event,
            Event::Notice { level: Level::Warning | Level::Error, .. }
                | Event::TurnEnded { end: TurnEnd::Failed { .. }, .. }
        );
        let lines = if is_trouble { self.renderer.lines(item, style) } else { Vec::new() };
        joined(&lines)
    }
}

fn joined(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// The event as it stands in the journal, on one line.
fn stream_line(item: &Item) -> String {
    match serde_json::to_string(item) {
        Ok(line) => line + "\n",
        Err(error) => format!("{}\n", json!({"event": "notice", "level": "error", "text": error.to_string()})),
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::protocol::AgentName;

    fn run(format: OutputFormat) -> (String, String) {
        let lead = AgentName::lead;
        let started = Event::SessionStarted {
            version: 1,
            session: Uuid::nil(),
            workspace: "/w".into(),
            model: "m".into(),
            server: "s".into(),
        };
        let usage = Some(Usage { input_tokens: 10, output_tokens: 2, cached_tokens: 1 });
        let replied = |call, text: &str| Event::Replied {
            agent: lead(),
            call,
            message: json!({"role": "assistant", "content": text}),
            usage,
        };
        let events = [
            started,
            Event::Text { agent: lead(), line: "先看看".into() },
            replied(1, "先看看"),
            Event::Notice { level: Level::Warning, text: "careful".into() },
            Event::Text { agent: lead(), line: "好了".into() },
            replied(2, "好了\n第二行"),
            Event::TurnEnded { agent: lead(), end: TurnEnd::Done { text: "好了\n第二行".into() } },
            Event::SessionEnded { exit_code: 0, reason: String::new() },
        ];
        let mut headless = Headless::new(format);
        let (mut out, mut err) = (String::new(), String::new());
        for (seq, event) in (1..).zip(events) {
            let item = Item { seq, time: "t".into(), event };
            let written = headless.next(&item, &Style { color: false, width: 80 });
            out += &written.out;
            err += &written.err;
        }
        out += &headless.finish();
        (out, err)
    }

    #[test]
    fn text_is_the_last_words_alone() {
        let (out, err) = run(OutputFormat::Text);
        assert_eq!(out, "好了\n第二行\n");
        assert!(err.contains("先看看\n") && err.contains("warning: careful\n"), "{err}");
        assert!(!err.contains("好了"), "{err}");
    }

    #[test]
    fn json_is_one_object_at_the_end() {
        let (out, err) = run(OutputFormat::Json);
        let value: Value = serde_json::from_str(&out).unwrap();
        let expected = json!({
            "type": "result",
            "session": Uuid::nil().to_string(),
            "exit_code": 0,
            "text": "好了\n第二行",
            "usage": {"input_tokens": 20, "output_tokens": 4, "cached_tokens": 2},
        });
        assert_eq!(value, expected);
        assert_eq!(err, "warning: careful\n");
    }

    #[test]
    fn stream_json_is_every_event_as_it_stands() {
        let (out, err) = run(OutputFormat::StreamJson);
        let items: Vec<Item> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(items.iter().map(|item| item.seq).eq(1..=8));
        assert!(out.starts_with(r#"{"seq":1,"time":"t","event":"session_started","version":1,"#), "{out}");
        assert_eq!(err, "warning: careful\n");
    }
}
