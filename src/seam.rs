//! Where a test can put something else in the system's place: the wall clock, chance, room on the disk, threads, the watch; and
//! where it can break the program on purpose, to see that its checks notice.
//!
//! Without a test every function here is the plain thing, and nothing is broken. Imports nothing of the crate.

#[cfg(test)]
mod stand_in;

use std::io::{self, Write};

use jiff::Timestamp;
use tokio::task::JoinHandle;
use uuid::Uuid;

#[cfg(test)]
pub(crate) use stand_in::{Pace, StandIn, put_in, stand_in};

/// What is written to: each can be full by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disk {
    /// Mailboxes and what stands beside them.
    Mail,
    /// Journals.
    Journal,
    /// The workspace's files.
    Work,
}

/// A fault of the program that is not there. A test switches one on and sees whether the check for it fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Defect {
    /// Mail is given to its reader at every drain.
    DeliverTwice,
}

/// Is the program broken in this way?
#[inline]
pub(crate) fn broken(defect: Defect) -> bool {
    #[cfg(test)]
    return stand_in().is_some_and(|stand_in| stand_in.broken(defect));
    #[cfg(not(test))]
    {
        let _ = defect;
        false
    }
}

/// The wall clock. It may jump.
pub(crate) fn now() -> Timestamp {
    #[cfg(test)]
    if let Some(stand_in) = stand_in() {
        return stand_in.now();
    }
    Timestamp::now()
}

/// A UUIDv7 of the present moment.
pub(crate) fn new_id() -> Uuid {
    #[cfg(test)]
    if let Some(stand_in) = stand_in() {
        return stand_in.id();
    }
    Uuid::now_v7()
}

/// Random bits.
pub(crate) fn random_bits() -> u32 {
    #[cfg(test)]
    if let Some(stand_in) = stand_in() {
        return stand_in.bits();
    }
    Uuid::new_v4().as_fields().0
}

/// Runs work that blocks on a thread of its own.
pub(crate) fn beside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    #[cfg(test)]
    if let Some(stand_in) = stand_in() {
        let delay = stand_in.delay();
        return tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            work()
        });
    }
    tokio::task::spawn_blocking(work)
}

/// Writes once, as much as goes in.
///
/// # Errors
/// As [`Write::write`].
pub(crate) fn write(disk: Disk, mut file: impl Write, bytes: &[u8]) -> io::Result<usize> {
    file.write(&bytes[..room(disk, bytes.len())?])
}

/// Writes all of it.
///
/// # Errors
/// As [`Write::write_all`].
pub(crate) fn write_all(disk: Disk, mut file: impl Write, bytes: &[u8]) -> io::Result<()> {
    let room = room(disk, bytes.len())?;
    file.write_all(&bytes[..room])?;
    if room < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
}

/// How many of the wanted bytes a write may take, or that there is no room at all.
#[cfg_attr(not(test), expect(clippy::unnecessary_wraps, reason = "only a test's disk is full here"))]
fn room(disk: Disk, wanted: usize) -> io::Result<usize> {
    #[cfg(test)]
    if let Some(stand_in) = stand_in() {
        let room = stand_in.room(disk, wanted).min(wanted);
        return if room == 0 && wanted > 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(room) };
    }
    let _ = disk;
    Ok(wanted)
}

/// One step of the session is done and let out: here a test may let others go first, or pull the plug.
#[inline]
#[cfg_attr(not(test), expect(clippy::unused_async, reason = "only a test waits here"))]
pub(crate) async fn step() {
    #[cfg(test)]
    if let Some(stand_in) = stand_in() {
        match stand_in.pace() {
            Pace::GoOn => {}
            Pace::Yield => tokio::task::yield_now().await,
            Pace::Stop => std::future::pending().await,
        }
    }
}

/// Was the plug pulled? Then nobody tidies up.
#[inline]
pub(crate) fn is_killed() -> bool {
    #[cfg(test)]
    return stand_in().is_some_and(|stand_in| stand_in.killed());
    #[cfg(not(test))]
    false
}
