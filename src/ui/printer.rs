//! The printer: one thread that alone writes to the terminal, to standard output and to standard error.
//!
//! Knows nothing of what the events mean, except when the lead works and which of them a person can answer.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread;

use rustyline::ExternalPrinter;
use tokio::runtime;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::event::{Event, Item};

use super::headless::{Headless, Written};
use super::render::{Renderer, Style};
use super::shared::Shared;

/// Columns where the terminal doesn't say.
const WIDTH_DEFAULT: usize = 80;
/// Fewest columns that lines are cut to.
const WIDTH_MIN: usize = 20;
/// Events that are printed at once at most.
const BATCH_ITEMS_MAX: usize = 512;
/// Up and down again: changes nothing on the screen, but the editor takes it only after all that came before.
const NOTHING: &str = "\x1b[A\n";

/// What the printer is asked for besides events; answered after all events sent before.
pub(crate) enum Wish {
    /// A line may be read.
    Line,
    /// Print what is there and end.
    End(Sender<()>),
}

/// Where text goes.
pub(crate) enum Outlet {
    /// Above the prompt.
    Editor(Box<dyn ExternalPrinter + Send>),
    /// Standard output as it is.
    Plain,
    /// The two streams of a headless run.
    Headless(Headless),
}

/// See the module.
pub(crate) struct Printer {
    pub(crate) items: UnboundedReceiver<Item>,
    pub(crate) wishes: UnboundedReceiver<Wish>,
    pub(crate) outlet: Outlet,
    pub(crate) shared: Arc<Shared>,
    /// Told when a line may be read; `None` when lines are read anyway.
    pub(crate) reader: Option<Sender<()>>,
    pub(crate) color: bool,
    /// Columns; `None`: as the terminal says at each print.
    pub(crate) width: Option<usize>,
    pub(crate) renderer: Renderer,
}

impl Printer {
    /// Starts the thread; it ends on [`Wish::End`] or when nobody can send any more.
    ///
    /// # Errors
    /// When no thread can be had.
    pub(crate) fn start(self) -> io::Result<()> {
        let waiter = runtime::Builder::new_current_thread().build()?;
        let body = move || waiter.block_on(self.run());
        thread::Builder::new().name("printer".to_owned()).spawn(body).map(drop)
    }

    async fn run(mut self) {
        loop {
            tokio::select! {
                biased;
                item = self.items.recv() => match item {
                    Some(item) => self.print_queued(Some(item)),
                    None => break,
                },
                wish = self.wishes.recv() => {
                    // What was sent before the wish is in the queue by now.
                    while self.print_queued(None) {}
                    match wish {
                        Some(Wish::Line) => self.allow_line(),
                        Some(Wish::End(done)) => {
                            self.finish();
                            let _ = done.send(());
                            break;
                        }
                        None => break,
                    }
                    true
                }
            };
        }
    }

    fn allow_line(&self) {
        if let Some(reader) = &self.reader {
            let _ = reader.send(());
        }
    }

    /// Prints `first` and what else is queued, as one. False when there was nothing.
    fn print_queued(&mut self, first: Option<Item>) -> bool {
        let mut items: Vec<Item> = first.into_iter().collect();
        while items.len() < BATCH_ITEMS_MAX
            && let Ok(item) = self.items.try_recv()
        {
            items.push(item);
        }
        let style = Style { color: self.color, width: self.columns() };
        let mut written = Written::default();
        for item in &items {
            self.watch_lead(&item.event);
            let more = self.text(item, &style);
            written.out.push_str(&more.out);
            written.err.push_str(&more.err);
        }
        let answerable = items.iter().any(|item| can_be_answered(&item.event));
        let seq = items.iter().map(|item| item.seq).max().unwrap_or(0);
        self.write(&written, answerable, seq);
        !items.is_empty()
    }

    fn watch_lead(&self, event: &Event) {
        if let Event::TurnStarted { agent } | Event::TurnEnded { agent, .. } = event
            && agent.is_lead()
        {
            self.shared.set_lead_works(matches!(event, Event::TurnStarted { .. }));
        }
    }

    fn text(&mut self, item: &Item, style: &Style) -> Written {
        if let Outlet::Headless(headless) = &mut self.outlet {
            return headless.next(item, style);
        }
        let lines = self.renderer.lines(item, style);
        let out = lines.iter().map(|line| format!("{line}\n")).collect();
        Written { out, err: String::new() }
    }

    /// Writes, and notes that `seq` was seen: when `answerable` only after it's on the screen.
    fn write(&mut self, written: &Written, answerable: bool, seq: u64) {
        match &mut self.outlet {
            Outlet::Editor(_) if written.out.is_empty() => self.shared.saw(seq),
            Outlet::Editor(editor) => {
                // The editor's queue holds one: the second goes in when the first came out.
                let both = [written.out.as_str(), NOTHING];
                let texts = if answerable { &both[..] } else { &both[..1] };
                let passed = self.shared.doorway.pass(|| {
                    let printed = print_above(editor.as_mut(), texts);
                    self.shared.saw(seq);
                    printed
                });
                if passed != Some(true) {
                    pour(&mut io::stdout().lock(), &written.out);
                    self.shared.saw(seq);
                }
            }
            Outlet::Plain | Outlet::Headless(_) => {
                pour(&mut io::stdout().lock(), &written.out);
                pour(&mut io::stderr().lock(), &written.err);
                self.shared.saw(seq);
            }
        }
    }

    fn finish(&mut self) {
        match &mut self.outlet {
            Outlet::Editor(editor) => {
                // When the second goes in, what was before the first is on the screen, not only taken.
                let texts = [NOTHING, NOTHING];
                self.shared.doorway.pass(|| print_above(editor.as_mut(), &texts));
            }
            Outlet::Plain => {}
            Outlet::Headless(headless) => {
                let out = headless.finish();
                pour(&mut io::stdout().lock(), &out);
            }
        }
    }

    fn columns(&self) -> usize {
        let asked = || crossterm::terminal::size().map_or(WIDTH_DEFAULT, |(columns, _)| columns.into());
        let known = match &self.outlet {
            Outlet::Editor(_) => self.width.unwrap_or_else(asked),
            Outlet::Plain | Outlet::Headless(_) => self.width.unwrap_or(WIDTH_DEFAULT),
        };
        known.max(WIDTH_MIN)
    }
}

/// Prints one after the other above the prompt. False when the editor doesn't take it.
fn print_above(editor: &mut dyn ExternalPrinter, texts: &[&str]) -> bool {
    texts.iter().all(|text| editor.print((*text).to_owned()).is_ok())
}

/// A closed pipe or a vanished terminal is no fault of ours: who doesn't read doesn't get.
fn pour(stream: &mut impl Write, text: &str) {
    if !text.is_empty() {
        let _ = stream.write_all(text.as_bytes()).and_then(|()| stream.flush());
    }
}

/// Is this something that a typed line can be an answer to?
fn can_be_answered(event: &Event) -> bool {
    matches!(event, Event::Proposed { .. } | Event::ProposalChanged { .. } | Event::Question { .. })
}
