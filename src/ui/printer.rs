//! The only writer to the terminal and the standard streams: a thread that prints items in their order.

use std::io::Write;
use std::sync::atomic::Ordering;

use rustyline::ExternalPrinter;
use serde_json::json;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::event::{Event, Item, Level, TurnEnd, Usage};

use super::{Front, OutputFormat, Renderer, Shared, Style};

/// Items that are printed in one go, at most.
const BATCH_MAX: usize = 512;

/// Where lines go.
pub(super) enum Out {
    /// Above the line that is being typed.
    Prompt(Box<dyn ExternalPrinter + Send>),
    /// To the standard streams.
    Streams(Front),
}

/// Prints until the session's last item, or until nobody sends any more.
pub(super) fn run(mut out: Out, style: Style, mut queue: UnboundedReceiver<Item>, shared: &Shared) {
    let mut renderer = Renderer::new(style);
    let mut summary = Summary::default();
    let mut batch = Vec::new();
    while queue.blocking_recv_many(&mut batch, BATCH_MAX) > 0 {
        let mut lines = String::new();
        let mut seen = 0;
        let mut over = false;
        for item in batch.drain(..) {
            seen = item.seq.max(seen);
            if let Out::Streams(Front::Print(OutputFormat::StreamJson)) = out {
                stream(&item);
            }
            summary.add(&item);
            if shown(&out, &item.event) {
                for line in renderer.lines(&item) {
                    lines.push_str(&line);
                    lines.push('\n');
                }
            }
            note_turns(&item.event, shared);
            over |= matches!(item.event, Event::SessionEnded { .. });
        }
        write(&mut out, lines);
        // Only now has the user seen them.
        shared.seen.fetch_max(seen, Ordering::SeqCst);
        if over {
            if let Out::Streams(Front::Print(format)) = out {
                summary.print(format);
            }
            return;
        }
    }
}

/// Is an event shown as lines? Beside machine-readable output only what went wrong is.
fn shown(out: &Out, event: &Event) -> bool {
    match out {
        Out::Prompt(_) | Out::Streams(Front::Terminal | Front::Pipe) => true,
        // The last words come on standard output; at a terminal they would be read twice.
        Out::Streams(Front::Print(OutputFormat::Text)) => !matches!(event, Event::Text { .. }),
        Out::Streams(Front::Print(OutputFormat::Json | OutputFormat::StreamJson)) => {
            matches!(event, Event::Notice { level: Level::Warning | Level::Error, .. })
        }
    }
}

fn note_turns(event: &Event, shared: &Shared) {
    match event {
        Event::TurnStarted { agent } if agent.is_lead() => shared.lead_works.store(true, Ordering::SeqCst),
        Event::TurnEnded { agent, .. } if agent.is_lead() => shared.lead_works.store(false, Ordering::SeqCst),
        _ => {}
    }
}

/// A stream that nobody reads any more is no fault of the session.
fn write(out: &mut Out, lines: String) {
    if lines.is_empty() {
        return;
    }
    match out {
        Out::Prompt(printer) => drop(printer.print(lines)),
        Out::Streams(Front::Print(_)) => drop(std::io::stderr().write_all(lines.as_bytes())),
        Out::Streams(Front::Terminal | Front::Pipe) => say(lines.as_bytes()),
    }
}

fn say(bytes: &[u8]) {
    let mut stdout = std::io::stdout().lock();
    drop(stdout.write_all(bytes).and_then(|()| stdout.flush()));
}

fn stream(item: &Item) {
    if let Ok(mut line) = serde_json::to_vec(item) {
        line.push(b'\n');
        say(&line);
    }
}

/// What `-p` prints at the end.
#[derive(Default)]
struct Summary {
    session: String,
    text: String,
    usage: Usage,
    exit_code: u8,
}

impl Summary {
    fn add(&mut self, item: &Item) {
        match &item.event {
            Event::SessionStarted { session, .. } => self.session = session.to_string(),
            Event::TurnEnded { agent, end: TurnEnd::Done { text } } if agent.is_lead() => self.text.clone_from(text),
            Event::Replied { usage: Some(usage), .. } => {
                self.usage.input_tokens += usage.input_tokens;
                self.usage.output_tokens += usage.output_tokens;
                self.usage.cached_tokens += usage.cached_tokens;
            }
            Event::SessionEnded { exit_code, .. } => self.exit_code = *exit_code,
            _ => {}
        }
    }

    fn print(&self, format: OutputFormat) {
        match format {
            OutputFormat::Text if self.text.is_empty() => {}
            OutputFormat::Text => say(format!("{}\n", self.text.trim_end()).as_bytes()),
            OutputFormat::Json => {
                let result = json!({"type": "result", "session": self.session, "exit_code": self.exit_code,
                    "text": self.text, "usage": self.usage});
                say(format!("{result}\n").as_bytes());
            }
            OutputFormat::StreamJson => {}
        }
    }
}
