//! The prompt: one thread that is always inside the line editor, so that a half-typed line survives all that is printed.
//!
//! Knows nothing of events; it only says what was typed and what had been seen by then.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use rustyline::config::BellStyle;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{ColorMode, CompletionType, Config, Editor, ExternalPrinter};

use crate::event::Level;

use super::keys::{Assistant, Keys, is_control};
use super::shared::Door;
use super::{Typed, tty};

/// What stands before the line.
pub(crate) const PROMPT: &str = "s15 >> ";
const HISTORY_LINES_MAX: usize = 2000;

/// The line editor before its thread runs.
pub(crate) struct Prompt {
    editor: Editor<Assistant, FileHistory>,
    keys: Arc<Keys>,
    history: Option<PathBuf>,
    early: String,
}

impl Prompt {
    /// Takes the terminal. Gives the prompt and what prints above it.
    ///
    /// # Errors
    /// When the terminal can't be edited on: no terminal, or `TERM=dumb`. It's as before then.
    pub(crate) fn new(
        keys: Arc<Keys>,
        commands: Vec<String>,
        history: Option<PathBuf>,
        color: bool,
    ) -> io::Result<(Self, Box<dyn ExternalPrinter + Send>)> {
        let config = Config::builder()
            .max_history_size(HISTORY_LINES_MAX)
            .and_then(|config| config.history_ignore_dups(true))
            .map_err(io::Error::other)?
            .completion_type(CompletionType::List)
            .bell_style(BellStyle::None)
            // The assistant colours or doesn't; it has to be asked either way, since it sees the prompt drawn.
            .color_mode(ColorMode::Forced)
            .build();
        let mut editor = Editor::with_config(config).map_err(io::Error::other)?;
        let printer = editor.create_external_printer().map_err(io::Error::other)?;
        keys.bind(&mut editor);
        editor.set_helper(Some(Assistant { keys: Arc::clone(&keys), commands, color }));
        let early = tty::make_raw()?;
        Ok((Self { editor, keys, history, early }, Box::new(printer)))
    }

    /// Starts the thread. It ends when the terminal is gone or its input was taken away.
    ///
    /// # Errors
    /// When no thread can be had.
    pub(crate) fn start(self) -> io::Result<()> {
        thread::Builder::new().name("prompt".to_owned()).spawn(move || self.run()).map(drop)
    }

    fn run(mut self) {
        // Set also when the editor panics: nobody may wait for it then.
        struct Gone(Arc<Keys>);
        impl Drop for Gone {
            fn drop(&mut self) {
                self.0.shared.doorway.set(Door::Gone);
                let _ = self.0.typed.send(Typed::Eof);
            }
        }
        let _gone = Gone(Arc::clone(&self.keys));
        if let Some(path) = self.history.clone() {
            self.load_history(&path);
        }
        let mut begun = self.take_early();
        while self.read_line(&std::mem::take(&mut begun)) {}
    }

    /// Hands over the whole lines that were typed before the start; gives the unfinished one.
    fn take_early(&mut self) -> String {
        let early = std::mem::take(&mut self.early).replace("\r\n", "\n").replace('\r', "\n");
        let mut lines: Vec<&str> = early.split('\n').collect();
        let begun = lines.pop().unwrap_or_default().replace(is_control, "");
        for line in lines {
            self.hand_over(line, 0);
        }
        begun
    }

    /// Reads one line. False when there can be no further.
    fn read_line(&mut self, begun: &str) -> bool {
        self.keys.shared.doorway.set(Door::Called);
        let line = self.editor.readline_with_initial(PROMPT, (begun, ""));
        self.keys.shared.doorway.set(Door::Shut);
        tty::prompt_stands(false);
        match line {
            Ok(line) => {
                let seen = self.keys.seen_at_enter.load(Ordering::SeqCst);
                let line = self.keys.joined(&line);
                self.hand_over(&line, seen);
                true
            }
            // Only a signal from outside comes so: the key is bound.
            Err(ReadlineError::Interrupted) => self.keys.typed.send(Typed::Interrupt).is_ok(),
            // The editor stays, so that a second Ctrl-D is heard too.
            Err(ReadlineError::Eof) if self.keys.end_typed.swap(false, Ordering::SeqCst) => {
                self.keys.typed.send(Typed::Eof).is_ok()
            }
            Err(ReadlineError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
                let text = "what was typed is not UTF-8 and was dropped; set the terminal to UTF-8";
                self.keys.say(Level::Warning, text);
                true
            }
            Err(_) => false,
        }
    }

    fn hand_over(&mut self, line: &str, seen: u64) {
        let text = tidy(line);
        if text.trim().is_empty() {
            return;
        }
        let added = self.editor.add_history_entry(text.as_str());
        // When nobody listens any more the session is ending.
        let _ = self.keys.typed.send(Typed::Line { text, seen });
        if let (Ok(true), Some(path)) = (added, self.history.clone())
            && let Err(error) = self.editor.append_history(&path)
        {
            self.give_up_history(&path, &error);
        }
    }

    fn load_history(&mut self, path: &Path) {
        let opened = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
        let private = opened.and_then(|_| fs::set_permissions(path, fs::Permissions::from_mode(0o600)));
        let loaded = private.map_err(ReadlineError::Io).and_then(|()| match fs::metadata(path) {
            Ok(file) if file.len() == 0 => Ok(()),
            _ => self.editor.load_history(path),
        });
        if let Err(error) = loaded {
            self.give_up_history(path, &error);
        }
    }

    fn give_up_history(&mut self, path: &Path, error: &ReadlineError) {
        self.history = None;
        let text = format!("the history of lines is not kept: {}: {error}", path.display());
        self.keys.say(Level::Warning, &text);
    }
}

/// The line as it is meant: line ends are `\n`, and there is no other control character but the tab.
fn tidy(line: &str) -> String {
    let line = line.replace("\r\n", "\n").replace('\r', "\n");
    if line.contains(is_control) { line.replace(is_control, "") } else { line }
}

#[cfg(test)]
mod tests {
    use super::tidy;

    #[test]
    fn a_line_has_no_control_characters_but_tab_and_line_end() {
        assert_eq!(tidy("第一行\r\n\t第二行\r\r\n第四行"), "第一行\n\t第二行\n\n第四行");
        assert_eq!(tidy("a\x1b[31mb\x07\u{9b}c\0"), "a[31mbc");
        assert_eq!(tidy("  as typed  "), "  as typed  ");
    }
}
