//! What the threads of the interface tell each other.
//!
//! Knows nothing of what is shown.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A print that the editor has room for arrives well within this time.
const PRINT_ARRIVES_WITHIN: Duration = Duration::from_millis(20);

/// One of these is shared by the printer and whoever reads lines.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    seen: AtomicU64,
    lead_works: AtomicBool,
    pub(crate) doorway: Doorway,
}

impl Shared {
    /// The seq of the last event on the screen.
    pub(crate) fn seen(&self) -> u64 {
        self.seen.load(Ordering::SeqCst)
    }

    /// An event is on the screen.
    pub(crate) fn saw(&self, seq: u64) {
        self.seen.fetch_max(seq, Ordering::SeqCst);
    }

    /// Is the lead in a turn, as far as the events printed so far tell?
    pub(crate) fn lead_works(&self) -> bool {
        self.lead_works.load(Ordering::SeqCst)
    }

    /// A turn of the lead began or ended.
    pub(crate) fn set_lead_works(&self, works: bool) {
        self.lead_works.store(works, Ordering::SeqCst);
    }
}

/// Whether the line editor takes prints. Between two lines it takes none: what were written to the terminal then
/// would stand behind the prompt or overtake what the editor has still to show.
#[derive(Debug, Default)]
pub(crate) struct Doorway {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    door: Door,
    /// Is the printer on its way through?
    printing: bool,
}

/// See [`Doorway`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Door {
    /// The editor is between two lines, or hasn't begun.
    #[default]
    Shut,
    /// The editor was called and has yet to draw its prompt.
    Called,
    /// The editor shows a prompt.
    Open,
    /// The editor has ended.
    Gone,
}

impl Doorway {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state; what is gone stays gone.
    pub(crate) fn set(&self, door: Door) {
        let mut state = self.state();
        if state.door != Door::Gone && state.door != door {
            state.door = door;
            self.changed.notify_all();
        }
    }

    /// The prompt was drawn. An editor that is about to hand its line over draws it too: that opens nothing.
    pub(crate) fn drawn(&self) {
        let mut state = self.state();
        if state.door == Door::Called {
            state.door = Door::Open;
            self.changed.notify_all();
        }
    }

    /// The editor is about to end its line. Lets a print that is on its way arrive, so that it doesn't find the editor
    /// between two lines; one that stands before the editor's full queue is safe there, hence the limit.
    pub(crate) fn shut(&self) {
        self.set(Door::Shut);
        let printing = |state: &mut State| state.printing;
        drop(self.changed.wait_timeout_while(self.state(), PRINT_ARRIVES_WITHIN, printing));
    }

    /// Waits until the editor takes prints, or has ended; then prints. Gives what `print` says, `None` without editor.
    pub(crate) fn pass<T>(&self, print: impl FnOnce() -> T) -> Option<T> {
        let shut = |state: &mut State| matches!(state.door, Door::Shut | Door::Called);
        let waited = self.changed.wait_while(self.state(), shut);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        if state.door == Door::Gone {
            return None;
        }
        state.printing = true;
        drop(state);
        let printed = print();
        self.state().printing = false;
        self.changed.notify_all();
        Some(printed)
    }

    /// Waits until the editor has ended, but no longer than `limit`.
    pub(crate) fn wait_gone(&self, limit: Duration) {
        let here = |state: &mut State| state.door != Door::Gone;
        drop(self.changed.wait_timeout_while(self.state(), limit, here));
    }
}
