//! The terminal's own state: kept once, made raw, given back on every way out.
//!
//! Knows nothing of prompts or events.
//!
//! The terminal stays raw between two calls of the line editor. Were it cooked there, even for a moment, an Enter
//! typed then would reach the editor as a line feed, which is another key, and a Ctrl-C would be a signal.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{self, Signal};
use nix::sys::termios::{self, ControlFlags, InputFlags, LocalFlags, SetArg, SpecialCharacterIndices, Termios};
use nix::unistd::Pid;

/// Most bytes typed before the start that are taken over.
const EARLY_BYTES_MAX: usize = 64 * 1024;
const BRACKETED_PASTE_OFF: &str = "\x1b[?2004l";

/// The terminal as it was found. Its own descriptor, since standard input is taken away from the editor at the end.
struct Found {
    terminal: OwnedFd,
    settings: Termios,
}

static FOUND: Mutex<Option<Found>> = Mutex::new(None);
/// Is the terminal raw by our doing?
static RAW: AtomicBool = AtomicBool::new(false);
/// Does a prompt stand on the screen's last line?
static PROMPT_STANDS: AtomicBool = AtomicBool::new(false);

/// Gives the terminal back as it was found: its settings, no bracketed paste, a fresh line. Does nothing when it was
/// never touched or was given back already. Takes no lock that it could wait for, so a panic hook may call it.
pub fn restore_terminal() {
    if !RAW.swap(false, Ordering::SeqCst) {
        return;
    }
    let fresh_line = if PROMPT_STANDS.swap(false, Ordering::SeqCst) { "\r\n" } else { "" };
    let mut stdout = io::stdout();
    // A terminal that's gone can't be given back; there is nobody to tell.
    let _ = write!(stdout, "{BRACKETED_PASTE_OFF}{fresh_line}").and_then(|()| stdout.flush());
    if let Ok(found) = FOUND.try_lock()
        && let Some(found) = found.as_ref()
    {
        let _ = termios::tcsetattr(&found.terminal, SetArg::TCSANOW, &found.settings);
    }
}

/// Keeps the terminal's settings and makes it raw. Gives what was typed before.
///
/// # Errors
/// When standard input is no terminal.
pub(crate) fn make_raw() -> io::Result<String> {
    let terminal = io::stdin().as_fd().try_clone_to_owned()?;
    let settings = termios::tcgetattr(&terminal)?;
    let early = File::from(terminal.try_clone()?);
    if let Ok(mut found) = FOUND.lock() {
        *found = Some(Found { terminal, settings });
    }
    RAW.store(true, Ordering::SeqCst);
    set_raw(0)?;
    let mut typed = Vec::new();
    // With a minimum of 0 a read gives what is there and never waits.
    let taken = early.take(EARLY_BYTES_MAX as u64).read_to_end(&mut typed);
    set_raw(1)?;
    taken?;
    Ok(String::from_utf8_lossy(&typed).into_owned())
}

/// The same settings as the line editor's own, so that its coming and going changes nothing.
fn set_raw(bytes_min: u8) -> io::Result<()> {
    let found = FOUND.lock().map_err(|_| io::Error::other("the terminal's settings are lost"))?;
    let Some(found) = found.as_ref() else {
        return Ok(());
    };
    let mut raw = found.settings.clone();
    raw.input_flags &=
        !(InputFlags::BRKINT | InputFlags::ICRNL | InputFlags::INPCK | InputFlags::ISTRIP | InputFlags::IXON);
    raw.control_flags |= ControlFlags::CS8;
    raw.local_flags &= !(LocalFlags::ECHO | LocalFlags::ICANON | LocalFlags::IEXTEN | LocalFlags::ISIG);
    raw.control_chars[SpecialCharacterIndices::VMIN as usize] = bytes_min;
    raw.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
    Ok(termios::tcsetattr(&found.terminal, SetArg::TCSADRAIN, &raw)?)
}

/// Says whether a prompt stands, for [`restore_terminal`].
pub(crate) fn prompt_stands(stands: bool) {
    PROMPT_STANDS.store(stands, Ordering::SeqCst);
}

/// Ctrl-Z: gives the terminal back, stops the process group, and takes the terminal again when it goes on.
pub(crate) fn suspend() {
    restore_terminal();
    // Without job control there is nothing to stop; the editor goes on.
    let _ = signal::kill(Pid::from_raw(0), Signal::SIGTSTP);
    RAW.store(true, Ordering::SeqCst);
    let _ = set_raw(1);
    let mut stdout = io::stdout();
    let _ = stdout.write_all(b"\x1b[?2004h").and_then(|()| stdout.flush());
}

/// Takes standard input away from an editor that waits on it, so that its `readline` comes back with an end of input.
/// The signal makes it look; its own meaning, a change of size, harms nobody.
pub(crate) fn end_input() {
    if let Ok(nothing) = File::open("/dev/null") {
        let _ = nix::unistd::dup2_stdin(nothing);
        let _ = signal::kill(Pid::this(), Signal::SIGWINCH);
    }
}
