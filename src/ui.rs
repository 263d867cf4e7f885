//! The user's side: a prompt that is never disturbed, and everything that happens printed above it.
//!
//! A subscriber of events and a source of typed lines. Sees `event` and `protocol`, and nothing else of the program.

mod pipe;
mod printer;
mod prompt;
mod render;
mod table;
mod terminal;
mod text;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::event::Item;

pub use render::{Renderer, Style};
pub use terminal::restore as restore_terminal;

/// How long the end of the session may take to be printed.
const CLOSE_MAX: Duration = Duration::from_secs(1);

/// What comes from the user's side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Typed {
    /// A line.
    Line {
        /// Exactly as typed; may hold line ends.
        text: String,
        /// The seq of the last event that was on screen when Enter was pressed.
        seen: u64,
    },
    /// Ctrl-C while the lead works.
    Interrupt,
    /// Ctrl-C twice at an empty, idle prompt.
    Leave,
    /// Ctrl-D, or the end of a pipe.
    Eof,
}

/// Where lines come from and events go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Front {
    /// A prompt on a terminal.
    Terminal,
    /// Lines from a pipe, everything to standard output.
    Pipe,
    /// No lines; data to standard output, everything else to standard error.
    Print(OutputFormat),
}

/// What [`Front::Print`] writes to standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    /// The lead's last words.
    Text,
    /// One object at the end.
    Json,
    /// Every item as it comes, one a line.
    StreamJson,
}

/// How things look, and what the prompt knows.
#[derive(Clone, Debug, Default)]
pub struct UiOptions {
    /// May colour be used?
    pub color: bool,
    /// Where typed lines are remembered.
    pub history: Option<PathBuf>,
    /// The names of the commands, for Tab.
    pub commands: Vec<String>,
}

/// What prompt and printer know of each other.
#[derive(Debug, Default)]
struct Shared {
    /// The seq of the last item that was printed.
    seen: AtomicU64,
    /// Is the lead in a turn?
    lead_works: AtomicBool,
}

/// The user's side while it runs.
pub struct Ui {
    items: UnboundedSender<Item>,
    printer: JoinHandle<()>,
    next_line: std::sync::mpsc::Sender<()>,
    front: Front,
}

impl Ui {
    /// Starts the threads. A terminal that can't be used as one is treated as a pipe.
    pub fn start(front: Front, options: &UiOptions, typed: UnboundedSender<Typed>) -> Self {
        let shared = Arc::new(Shared::default());
        let (items, queue) = unbounded_channel();
        let (next_line, asked) = std::sync::mpsc::channel();
        let style = Style { color: options.color, width: terminal::width(front) };
        let front = match front {
            Front::Terminal => {
                terminal::remember();
                match prompt::Prompt::new(options, Arc::clone(&shared), typed.clone(), items.clone()) {
                    Ok((prompt, out)) => {
                        let printer = spawn_printer(out, style, queue, shared);
                        spawn("prompt", move || prompt.run());
                        return Self { items, printer, next_line, front };
                    }
                    Err(_) => Front::Pipe,
                }
            }
            Front::Pipe | Front::Print(_) => front,
        };
        if front == Front::Pipe {
            spawn("lines", move || pipe::read_lines(&asked, &typed));
        }
        let out = printer::Out::Streams(front);
        let printer = spawn_printer(out, style, queue, shared);
        Self { items, printer, next_line, front }
    }

    /// Where items go to be shown, in the order of their numbers.
    #[must_use]
    pub fn items(&self) -> UnboundedSender<Item> {
        self.items.clone()
    }

    /// Asks for the next line where it is read on demand; at a terminal lines come by themselves.
    #[must_use]
    pub fn next_line(&self) -> Box<dyn Fn() + Send> {
        let next_line = self.next_line.clone();
        // A reader that is gone has said so with `Eof`.
        Box::new(move || {
            let _ = next_line.send(());
        })
    }

    /// Waits until the session's last event is printed, and gives the terminal back as it was.
    pub fn close(self) {
        let until = Instant::now() + CLOSE_MAX;
        while !self.printer.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(2));
        }
        if self.front == Front::Terminal {
            terminal::restore();
        }
    }
}

fn spawn_printer(
    out: printer::Out,
    style: Style,
    queue: UnboundedReceiver<Item>,
    shared: Arc<Shared>,
) -> JoinHandle<()> {
    spawn("printer", move || printer::run(out, style, queue, &shared))
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .expect("a process that can't start a thread can't go on")
}
