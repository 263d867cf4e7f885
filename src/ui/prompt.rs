//! The prompt: a thread that is always inside the line editor, so that what is half-typed survives whatever arrives.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustyline::completion::Completer;
use rustyline::config::Configurer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{
    Cmd, ConditionalEventHandler, Context, Editor, Event, EventContext, EventHandler, KeyCode, KeyEvent, Modifiers,
    RepeatCount,
};
use tokio::sync::mpsc::UnboundedSender;

use crate::event::{Event as SessionEvent, Item, Level};

use super::printer::Out;
use super::{Shared, Typed, UiOptions};

const PROMPT: &str = "s15 >> ";
/// Two presses within this time are one wish to leave.
const TWICE_WITHIN: Duration = Duration::from_secs(2);
/// Typed lines that are remembered.
const HISTORY_LINES_MAX: usize = 2_000;

/// The editor and where its lines go.
pub(super) struct Prompt {
    editor: Editor<Helper, DefaultHistory>,
    history: Option<PathBuf>,
    typed: UnboundedSender<Typed>,
    seen_at_enter: Arc<AtomicU64>,
}

impl Prompt {
    /// Takes hold of the terminal; gives also what prints above the prompt.
    pub(super) fn new(
        options: &UiOptions,
        shared: Arc<Shared>,
        typed: UnboundedSender<Typed>,
        items: UnboundedSender<Item>,
    ) -> rustyline::Result<(Self, Out)> {
        let mut editor: Editor<Helper, DefaultHistory> = Editor::new()?;
        editor.set_helper(Some(Helper { commands: options.commands.clone() }));
        editor.set_max_history_size(HISTORY_LINES_MAX)?;
        editor.set_auto_add_history(false);
        if let Some(history) = &options.history {
            // The first session has none; one that can't be read is only not remembered.
            drop(editor.load_history(history));
        }
        let seen_at_enter = Arc::new(AtomicU64::new(0));
        let enter = Enter { shared: Arc::clone(&shared), seen: Arc::clone(&seen_at_enter) };
        bind(&mut editor, KeyEvent(KeyCode::Enter, Modifiers::NONE), enter);
        editor.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::ALT), Cmd::Newline);
        editor.bind_sequence(KeyEvent::ctrl('j'), Cmd::Newline);
        let last = Mutex::new(None);
        bind(&mut editor, KeyEvent::ctrl('c'), CtrlC { shared, typed: typed.clone(), items, last });
        bind(&mut editor, KeyEvent::ctrl('d'), CtrlD { typed: typed.clone() });
        let printer = editor.create_external_printer()?;
        let prompt = Self { editor, history: options.history.clone(), typed, seen_at_enter };
        Ok((prompt, Out::Prompt(Box::new(printer))))
    }

    /// Reads lines until the terminal is gone or nobody listens.
    pub(super) fn run(mut self) {
        loop {
            let heard = match self.editor.readline(PROMPT) {
                Ok(line) if line.trim().is_empty() => continue,
                Ok(line) => {
                    self.remember(&line);
                    let text = line.replace("\\\n", "\n");
                    self.typed.send(Typed::Line { text, seen: self.seen_at_enter.load(Ordering::SeqCst) })
                }
                Err(ReadlineError::Interrupted) => continue,
                Err(_) => {
                    drop(self.typed.send(Typed::Eof));
                    return;
                }
            };
            if heard.is_err() {
                return;
            }
        }
    }

    fn remember(&mut self, line: &str) {
        // What can't be remembered is still said.
        drop(self.editor.add_history_entry(line));
        if let Some(history) = &self.history {
            drop(self.editor.append_history(history));
        }
    }
}

fn bind(editor: &mut Editor<Helper, DefaultHistory>, key: KeyEvent, handler: impl ConditionalEventHandler + 'static) {
    editor.bind_sequence(key, EventHandler::Conditional(Box::new(handler)));
}

/// Notes what was on screen when Enter was pressed: only that can be answered by the line.
struct Enter {
    shared: Arc<Shared>,
    seen: Arc<AtomicU64>,
}

impl ConditionalEventHandler for Enter {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, _: &EventContext<'_>) -> Option<Cmd> {
        self.seen.store(self.shared.seen.load(Ordering::SeqCst), Ordering::SeqCst);
        None
    }
}

/// Breaks off the lead and keeps the typed text; clears the text when the lead is idle; leaves when pressed twice.
struct CtrlC {
    shared: Arc<Shared>,
    typed: UnboundedSender<Typed>,
    items: UnboundedSender<Item>,
    last: Mutex<Option<Instant>>,
}

impl ConditionalEventHandler for CtrlC {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, context: &EventContext<'_>) -> Option<Cmd> {
        if self.shared.lead_works.load(Ordering::SeqCst) {
            drop(self.typed.send(Typed::Interrupt));
            return Some(Cmd::Noop);
        }
        if !context.line().is_empty() {
            return None;
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_some_and(|at| at.elapsed() < TWICE_WITHIN) {
            drop(self.typed.send(Typed::Leave));
        } else {
            *last = Some(Instant::now());
            let text = "(press Ctrl-C again to leave)".to_owned();
            let event = SessionEvent::Notice { level: Level::Info, text };
            // The prompt's own word: it has no place among the session's events.
            drop(self.items.send(Item { seq: 0, time: String::new(), event }));
        }
        Some(Cmd::Noop)
    }
}

/// Leaves at an empty line, and stays inside the editor meanwhile, so that the last words are still printed in order.
struct CtrlD {
    typed: UnboundedSender<Typed>,
}

impl ConditionalEventHandler for CtrlD {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, context: &EventContext<'_>) -> Option<Cmd> {
        if !context.line().is_empty() {
            return None;
        }
        drop(self.typed.send(Typed::Eof));
        Some(Cmd::Noop)
    }
}

/// Tab for commands, and a backslash at the end of a line that goes on.
struct Helper {
    commands: Vec<String>,
}

impl Completer for Helper {
    type Candidate = String;
    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        let begun = &line[..at];
        if !begun.starts_with('/') || begun.contains(' ') {
            return Ok((0, Vec::new()));
        }
        Ok((0, self.commands.iter().filter(|command| command.starts_with(begun)).cloned().collect()))
    }
}

impl Validator for Helper {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let goes_on = context.input().ends_with('\\');
        Ok(if goes_on { ValidationResult::Incomplete } else { ValidationResult::Valid(None) })
    }
}

impl Hinter for Helper {
    type Hint = String;
}

impl Highlighter for Helper {}

impl rustyline::Helper for Helper {}
