//! What a test puts in the system's place, for the thread on which it runs everything.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::Notify;
use uuid::Uuid;

use super::{Defect, Disk};

/// How the session goes on after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// At once.
    GoOn,
    /// After everybody else who can.
    Yield,
    /// Never: the plug is pulled.
    Stop,
}

/// The system as a test wants it.
pub(crate) trait StandIn {
    /// The wall clock.
    fn now(&self) -> Timestamp;
    /// A new UUIDv7.
    fn id(&self) -> Uuid;
    /// Random bits.
    fn bits(&self) -> u32;
    /// How long work beside the tasks takes.
    fn delay(&self) -> Duration;
    /// How many of the wanted bytes a disk takes.
    fn room(&self, disk: Disk, wanted: usize) -> usize;
    /// A watch is wanted that hints here; can there be one?
    fn watch(&self, hint: Arc<Notify>) -> bool;
    /// A step of the session is done.
    fn pace(&self) -> Pace;
    /// Was the plug pulled?
    fn killed(&self) -> bool;
    /// Is the program broken in this way?
    fn broken(&self, defect: Defect) -> bool;
}

thread_local! {
    static STAND_IN: RefCell<Option<Rc<dyn StandIn>>> = const { RefCell::new(None) };
}

/// Takes the stand-in away again.
pub(crate) struct Taken(());

/// Puts a stand-in in the system's place on this thread, until what is given is dropped.
#[must_use]
pub(crate) fn put_in(stand_in: Rc<dyn StandIn>) -> Taken {
    STAND_IN.set(Some(stand_in));
    Taken(())
}

/// What stands in the system's place on this thread, if anything does.
pub(crate) fn stand_in() -> Option<Rc<dyn StandIn>> {
    STAND_IN.with_borrow(Clone::clone)
}

impl Drop for Taken {
    fn drop(&mut self) {
        STAND_IN.set(None);
    }
}
