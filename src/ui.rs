//! The interface: the prompt, the renderer and the printer; a subscriber of events that says what was typed.
//!
//! Knows nothing of sessions, agents or models: events come in, typed lines go out.

mod headless;
mod ink;
mod keys;
mod pipe;
mod printer;
mod prompt;
#[cfg(test)]
mod pty_tests;
pub mod render;
mod shared;
#[cfg(test)]
mod tests;
mod tty;

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::event::Item;

use headless::Headless;
use keys::Keys;
use pipe::{Asked, Lines};
use printer::{Outlet, Printer, Wish};
use prompt::Prompt;
use render::Renderer;
use shared::Shared;

pub use ink::inert;
pub use tty::restore_terminal;

/// How long [`Ui::close`] waits for the printer: the editor may hold a print back while a search is open.
const PRINT_REST_MAX: Duration = Duration::from_millis(600);
/// How long it waits for the editor to end.
const EDITOR_END_MAX: Duration = Duration::from_millis(200);

/// What a person did at the prompt, or a pipe brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Typed {
    /// A line that isn't blank; may hold line ends.
    Line {
        /// As typed or pasted, line ends `\n`, other control characters but tabs left out.
        text: String,
        /// Seq of the last event that was on the screen when Enter was pressed; exact for what can be answered.
        seen: u64,
    },
    /// Ctrl-C while the lead works.
    Interrupt,
    /// Ctrl-C twice at an empty prompt while the lead is idle.
    Leave,
    /// Ctrl-D at an empty prompt, or the end of the input. Ctrl-D can come again.
    Eof,
}

/// What a headless run writes on standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    /// The lead's last words.
    Text,
    /// One object at the end: `{"type":"result","session","exit_code","text","usage"}`.
    Json,
    /// Every event as one line.
    StreamJson,
}

/// Who is at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Front {
    /// A person at a terminal.
    Terminal,
    /// Lines from a pipe; the next is read when it's asked for.
    Pipe,
    /// Nobody types.
    Print(OutputFormat),
}

/// When to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Color {
    /// On a terminal that isn't dumb.
    #[default]
    Auto,
    /// Whatever the output is.
    Always,
    /// No escape code at all, except those of the line editor.
    Never,
}

/// How the interface looks and what it knows from the start.
#[derive(Clone, Debug, Default)]
pub struct UiOptions {
    /// When to colour; `NO_COLOR` is for the caller to look at.
    pub color: Color,
    /// Columns; `None`: the terminal's.
    pub width: Option<usize>,
    /// The file of typed lines; `None`: not kept.
    pub history: Option<PathBuf>,
    /// Commands with their `/`, for completion.
    pub commands: Vec<String>,
}

/// The running interface.
pub struct Ui {
    items: UnboundedSender<Item>,
    wishes: UnboundedSender<Wish>,
    shared: Arc<Shared>,
    has_editor: bool,
}

impl Ui {
    /// Starts its threads: the printer, and what reads lines unless nobody types. What is typed goes to `typed`.
    ///
    /// # Errors
    /// When no thread can be had.
    #[allow(clippy::needless_pass_by_value, reason = "its threads own the senders they speak through")]
    pub fn start(front: Front, options: UiOptions, typed: UnboundedSender<Typed>) -> io::Result<Self> {
        let (items, items_rx) = unbounded_channel();
        let (wishes, wishes_rx) = unbounded_channel();
        let shared = Arc::new(Shared::default());
        let color = is_colored(front, options.color);
        let mut printer = Printer {
            items: items_rx,
            wishes: wishes_rx,
            outlet: Outlet::Plain,
            shared: Arc::clone(&shared),
            reader: None,
            color,
            width: options.width,
            renderer: Renderer::default(),
        };
        let lines = |asked| Lines { shared: Arc::clone(&shared), typed: typed.clone(), items: items.clone(), asked };
        let mut has_editor = false;
        match front {
            Front::Print(format) => printer.outlet = Outlet::Headless(Headless::new(format)),
            Front::Pipe => {
                let (reader, asked) = channel();
                printer.reader = Some(reader);
                lines(Asked::OnDemand(asked)).start()?;
            }
            Front::Terminal => {
                let keys = Arc::new(Keys::new(Arc::clone(&shared), typed.clone(), items.clone()));
                match Prompt::new(keys, options.commands, options.history, color) {
                    Ok((prompt, above)) => {
                        printer.outlet = Outlet::Editor(above);
                        has_editor = true;
                        prompt.start().inspect_err(|_| restore_terminal())?;
                    }
                    Err(_no_editing_here) => {
                        lines(Asked::Always(io::stdout().is_terminal())).start()?;
                    }
                }
            }
        }
        printer.start().inspect_err(|_| restore_terminal())?;
        Ok(Self { items, wishes, shared, has_editor })
    }

    /// Where events go. Sending never blocks.
    #[must_use]
    pub fn items(&self) -> UnboundedSender<Item> {
        self.items.clone()
    }

    /// From a pipe: the next line may be read, after all events sent before are printed. Otherwise nothing.
    pub fn ready_for_line(&self) {
        // Without a printer the program is ending.
        let _ = self.wishes.send(Wish::Line);
    }

    /// Prints all that was sent before and gives the terminal back. Comes back within a second, whatever the editor does.
    pub fn close(self) {
        let (done, printed) = channel();
        if self.wishes.send(Wish::End(done)).is_ok() {
            if self.has_editor {
                let _ = printed.recv_timeout(PRINT_REST_MAX);
            } else {
                let _ = printed.recv();
            }
        }
        if self.has_editor {
            tty::end_input();
            self.shared.doorway.wait_gone(EDITOR_END_MAX);
            restore_terminal();
        }
    }
}

fn is_colored(front: Front, color: Color) -> bool {
    let is_terminal = match front {
        Front::Terminal | Front::Pipe => io::stdout().is_terminal(),
        Front::Print(_) => io::stderr().is_terminal(),
    };
    match color {
        Color::Auto => is_terminal && std::env::var_os("TERM").is_some_and(|term| term != "dumb"),
        Color::Always => true,
        Color::Never => false,
    }
}
