//! The terminal's own state: remembered before anything changes it, given back on every path out.
#![allow(unsafe_code, reason = "system calls without a safe wrapper; each says why it is sound")]

use std::io::Write;
use std::os::fd::AsRawFd;
use std::sync::OnceLock;

use super::Front;

/// The width where none can be known.
const WIDTH_DEFAULT: usize = 80;

static BEFORE: OnceLock<libc::termios> = OnceLock::new();

/// Remembers the terminal's state. Before the prompt exists, once.
pub(super) fn remember() {
    let mut state = std::mem::MaybeUninit::<libc::termios>::uninit();
    // SAFETY: tcgetattr fills the whole structure when it returns 0.
    let known = unsafe { libc::tcgetattr(std::io::stdin().as_raw_fd(), state.as_mut_ptr()) == 0 };
    if known {
        // SAFETY: filled, as just checked.
        BEFORE.get_or_init(|| unsafe { state.assume_init() });
    }
}

/// Gives the terminal back as it was; nothing if it was never changed. Safe to call from anywhere, more than once.
pub fn restore() {
    let Some(before) = BEFORE.get() else { return };
    // SAFETY: a valid structure and a descriptor that stays open.
    unsafe { libc::tcsetattr(std::io::stdin().as_raw_fd(), libc::TCSADRAIN, before) };
    // A terminal that is gone needs nothing.
    let mut out = std::io::stdout();
    let _ = out.write_all(b"\x1b[?2004l\r\n").and_then(|()| out.flush());
}

/// Columns of the screen.
pub(super) fn width(front: Front) -> usize {
    match front {
        Front::Terminal => {
            crossterm::terminal::size().map_or(WIDTH_DEFAULT, |(columns, _)| usize::from(columns).max(20))
        }
        Front::Pipe | Front::Print(_) => WIDTH_DEFAULT,
    }
}
