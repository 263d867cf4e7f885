//! Lines from where nothing is edited: a pipe, a file, or a terminal that can't move its cursor.
//!
//! Knows nothing of events; from a pipe a line is read only when it's asked for.

use std::io::{self, BufRead, Read, Write};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread;

use tokio::sync::mpsc::UnboundedSender;

use crate::event::{Event, Item, Level};

use super::Typed;
use super::prompt::PROMPT;
use super::shared::Shared;

/// Longest line, in bytes; a longer one is read in pieces.
const LINE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// When the next line is read.
pub(crate) enum Asked {
    /// When it's asked for.
    OnDemand(Receiver<()>),
    /// At once; `true`: a prompt is shown, since the line is typed on a terminal.
    Always(bool),
}

/// Reads lines from standard input on a thread of its own.
pub(crate) struct Lines {
    pub(crate) shared: Arc<Shared>,
    pub(crate) typed: UnboundedSender<Typed>,
    pub(crate) items: UnboundedSender<Item>,
    pub(crate) asked: Asked,
}

impl Lines {
    /// Starts the thread; it ends with the input or when nobody asks any more.
    ///
    /// # Errors
    /// When no thread can be had.
    pub(crate) fn start(self) -> io::Result<()> {
        thread::Builder::new().name("lines".to_owned()).spawn(move || self.run()).map(drop)
    }

    fn run(&self) {
        while self.is_asked() {
            if !self.hand_over_next(&mut io::stdin().lock()) {
                let _ = self.typed.send(Typed::Eof);
                return;
            }
        }
    }

    fn is_asked(&self) -> bool {
        match &self.asked {
            Asked::OnDemand(asked) => asked.recv().is_ok(),
            Asked::Always(prompt) => {
                if *prompt {
                    let mut stdout = io::stdout();
                    let _ = stdout.write_all(PROMPT.as_bytes()).and_then(|()| stdout.flush());
                }
                true
            }
        }
    }

    /// Hands over the next line that isn't blank. False at the end of input.
    fn hand_over_next(&self, input: &mut impl BufRead) -> bool {
        loop {
            let mut line = Vec::new();
            match input.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line) {
                Ok(0) => return false,
                Ok(_) => {}
                Err(error) => {
                    self.warn(format!("standard input can't be read any more: {error}"));
                    return false;
                }
            }
            let text = self.text(line);
            if !text.trim().is_empty() {
                return self.typed.send(Typed::Line { text, seen: self.shared.seen() }).is_ok();
            }
        }
    }

    fn text(&self, mut line: Vec<u8>) -> String {
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        String::from_utf8(line).unwrap_or_else(|error| {
            self.warn("a line of standard input is not UTF-8; what can't be read stands as �".to_owned());
            String::from_utf8_lossy(error.as_bytes()).into_owned()
        })
    }

    fn warn(&self, text: String) {
        let event = Event::Notice { level: Level::Warning, text };
        let _ = self.items.send(Item { seq: 0, time: String::new(), event });
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    use super::*;

    fn lines() -> (Lines, UnboundedReceiver<Typed>, UnboundedReceiver<Item>) {
        let (typed, typed_rx) = unbounded_channel();
        let (items, items_rx) = unbounded_channel();
        let shared = Arc::new(Shared::default());
        (Lines { shared, typed, items, asked: Asked::Always(false) }, typed_rx, items_rx)
    }

    fn line(text: &str) -> Typed {
        Typed::Line { text: text.to_owned(), seen: 0 }
    }

    #[test]
    fn blank_lines_are_passed_over_and_line_ends_taken_off() {
        let (lines, mut typed, _items) = lines();
        let mut input = "\n  \r\n你好\r\nlast".as_bytes();
        assert!(lines.hand_over_next(&mut input));
        assert_eq!(typed.try_recv().unwrap(), line("你好"));
        assert!(lines.hand_over_next(&mut input));
        assert_eq!(typed.try_recv().unwrap(), line("last"));
        assert!(!lines.hand_over_next(&mut input));
        assert!(typed.try_recv().is_err());
    }

    #[test]
    fn i8_a_line_that_is_not_utf8_harms_only_itself() {
        let (lines, mut typed, mut items) = lines();
        let mut input = &b"a\xffb\nnext\n"[..];
        assert!(lines.hand_over_next(&mut input));
        assert_eq!(typed.try_recv().unwrap(), line("a\u{fffd}b"));
        assert!(matches!(items.try_recv().unwrap().event, Event::Notice { level: Level::Warning, .. }));
        assert!(lines.hand_over_next(&mut input));
        assert_eq!(typed.try_recv().unwrap(), line("next"));
    }

    #[test]
    fn a_line_of_a_megabyte_comes_whole() {
        let (lines, mut typed, _items) = lines();
        let long = "长".repeat(400_000);
        assert!(lines.hand_over_next(&mut format!("{long}\n").as_bytes()));
        assert_eq!(typed.try_recv().unwrap(), line(&long));
    }
}
