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
    /// The last mail is given first.
    DeliverReversed,
    /// Mail is put in at the beginning of a turn alone.
    DeliverLate,
    /// Who becomes idle doesn't look whether mail has come meanwhile.
    NoLookWhenIdle,
    /// Mail that has arrived is never let go of.
    NoAcknowledge,
    /// Mail is let go of though the journal doesn't know that it has arrived.
    AcknowledgeUnrecorded,
    /// A resumed session has lost what nobody had read.
    ForgetUnread,
    /// A resumed session doesn't know what it has read of others.
    ForgetTaken,
    /// A resumed session doesn't know that a team call was carried out.
    ForgetSettled,
    /// A resumed session doesn't know what has arrived.
    ForgetDelivered,
    /// A resumed session has lost lines of the user's.
    ForgetLines,
    /// A yes confirms also what its writer had not seen.
    StaleYes,
    /// Who has ended is brought back without a line of the user's.
    ReturnUnasked,
    /// A gate that closes isn't told to the hands.
    GateStaysOpen,
    /// A plan that was asked for at the spawn is not required.
    PlanForgotten,
    /// A change of a file that waits for its turn doesn't hear that the gate closed.
    WriteGoesOn,
    /// A request that was answered is answered again.
    AnswerTwice,
    /// Anybody answers a request.
    AnybodyAnswers,
    /// The result of a refused call is left out.
    ResultForgotten,
    /// A resumed history lacks what was cut off.
    CutForgotten,
    /// A work ends without a word.
    NoLastWord,
    /// A work ends with two.
    LastWordTwice,
    /// Nobody says that they are idle.
    NoIdleNotice,
    /// The mailboxes are looked at all the time.
    LookOften,
    /// A notice that needs no answer gets one.
    TurnForNothing,
    /// A line that is no message is passed over in silence.
    BadLineDropped,
    /// A tool that there isn't is taken for one that did its work.
    BadCallDone,
    /// A file that was written by half takes the place of the old one.
    HalfWritten,
    /// A request to end waits for its answer for ever.
    NoAnswerDeadline,
    /// A task that panicked isn't heard of.
    PanicUnheard,
    /// A retry isn't told.
    RetryUntold,
    /// The key is not hidden.
    KeyShown,
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

/// For how many seconds a file has not been written to.
pub(crate) fn rested(file: &std::fs::Metadata) -> Option<u64> {
    #[cfg(test)]
    if stand_in().is_some() {
        // The files' clock is not the simulated one.
        return None;
    }
    file.modified().ok()?.elapsed().ok().map(|rested| rested.as_secs())
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
