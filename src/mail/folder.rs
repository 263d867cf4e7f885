//! The folder of all mailboxes: made, locked, appended to, and the place where bad lines are kept.
//!
//! Knows nothing of what a line means, nor of who reads it.

use std::cell::RefCell;
use std::fmt;
use std::fs::{DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Seek, Write};
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::killpoint;
use crate::private;
use crate::protocol::AgentName;
use crate::seam::{self, Disk};

use super::claim::Claim;
use super::lease::{self, Writers};

/// Below the folder: files that were taken and are not done with.
pub(super) const CLAIMED: &str = ".claimed";
/// Below the folder: lines that are no message, with the reason.
pub(super) const QUARANTINE: &str = ".quarantine";
/// Where mail goes that another session issued, a file a session; made when there is such mail.
pub(super) const ARCHIVE: &str = ".archive";
/// Below the folder, so that nobody who watches it is woken: one lock file a mailbox, never deleted.
const LOCKS: &str = ".locks";

/// Among the locks: who reads these mailboxes.
const RUN_LOCK: &str = "run.lock";

/// How long a mailbox' lock is waited for.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(2);
/// The longest pause between two tries for a lock.
const LOCK_PAUSE_MAX: Duration = Duration::from_millis(5);

/// A mail file could not be used. The text names the file, the cause and what can be done.
#[derive(Debug)]
pub struct MailError(String);

impl MailError {
    pub(super) fn new(path: &Path, what: &dyn fmt::Display) -> Self {
        Self(format!("{}: {what}", path.display()))
    }

    pub(super) fn io(path: &Path, error: &io::Error) -> Self {
        let advice = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "; free some space",
            io::ErrorKind::FileTooLarge => "; raise the limit on file sizes (`ulimit -f`)",
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                "; make it writable, or work in another folder (`--cd DIR`)"
            }
            _ if error.raw_os_error() == Some(libc::ELOOP) => "; it is a symbolic link: remove it",
            _ => "",
        };
        Self(format!("{}: {error}{advice}", path.display()))
    }
}

impl fmt::Display for MailError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for MailError {}

/// What makes a file itself, whatever it is called.
pub(super) type Identity = (u64, u64);

pub(super) fn identity(metadata: &Metadata) -> Identity {
    (metadata.dev(), metadata.ino())
}

/// Opens a regular file for reading: no link is followed, no pipe waited for.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(irregular()) }
}

pub(super) fn irregular() -> io::Error {
    io::Error::other("is no regular file; remove it")
}

/// Does a file end in an unfinished line?
pub(super) fn ends_torn(file: &File, length: u64) -> io::Result<bool> {
    if length == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.read_exact_at(&mut last, length - 1)?;
    Ok(last != *b"\n")
}

/// The folder of all mailboxes.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    /// [`LOCK_WAIT_MAX`], but in tests.
    pub(super) lock_wait_max: Duration,
    /// Held for the whole run: mailboxes have one consumer, also where two runs keep their state in different folders.
    run_lock: RefCell<Option<Lock>>,
}

/// A mailbox' lock, held until dropped.
#[derive(Debug)]
pub(super) struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Said outright: a child that is just being started may hold a copy of the descriptor.
        drop(self.0.unlock());
    }
}

impl Folder {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, lock_wait_max: LOCK_WAIT_MAX, run_lock: RefCell::new(None) }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn mailbox(&self, name: &AgentName) -> PathBuf {
        self.path.join(file_name(name))
    }

    /// Where lines go as long as the mailbox ends in an unfinished one. Its reader takes it as it takes the mailbox.
    pub(super) fn beside(&self, name: &AgentName) -> PathBuf {
        self.claimed().join(format!("{name}.beside.jsonl"))
    }

    pub(super) fn claimed(&self) -> PathBuf {
        self.path.join(CLAIMED)
    }

    /// Does it stand there, as a folder and no link to one?
    pub(super) fn exists(&self) -> bool {
        self.path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir())
    }

    /// The files below [`CLAIMED`] that are a reader's, oldest first.
    pub(super) fn claims_of(&self, name: &AgentName) -> impl Iterator<Item = Claim> {
        let entries = std::fs::read_dir(self.claimed()).into_iter().flatten();
        let mut paths: Vec<PathBuf> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
        // Their names hold a time-ordered id.
        paths.sort();
        let name = name.clone();
        let own = move |(reader, claim)| (reader == name).then_some(claim);
        paths.into_iter().filter_map(|path| Claim::leftover(&path)).filter_map(own)
    }

    /// Makes what is missing. A link in place of a folder is refused: mail stays in the workspace.
    pub(super) fn make(&self) -> Result<(), MailError> {
        let below = [CLAIMED, QUARANTINE, LOCKS].map(|name| self.path.join(name));
        for folder in std::iter::once(&self.path).chain(&below) {
            match DirBuilder::new().mode(0o700).create(folder) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    if !folder.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
                        return Err(MailError::new(folder, &"is in the way of a folder of mailboxes; remove it"));
                    }
                }
                Err(error) => return Err(MailError::io(folder, &error)),
            }
        }
        let ignore = self.path.join(".gitignore");
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&ignore);
        match made.and_then(|mut file| file.write_all(b"*\n")) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(MailError::io(&ignore, &error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Makes this run the mailboxes' one consumer, if they are there; anew after somebody removed the lock's file.
    pub(super) fn hold(&self) -> Result<(), MailError> {
        let path = self.path.join(LOCKS).join(RUN_LOCK);
        let standing = path.symlink_metadata().ok().map(|metadata| identity(&metadata));
        let held = self.run_lock.borrow().as_ref().and_then(|lock| lock.0.metadata().ok().map(|held| identity(&held)));
        if held.is_some() && held == standing || !self.path.join(LOCKS).is_dir() {
            return Ok(());
        }
        let file = append_to(&path).map_err(|error| MailError::io(&path, &error))?;
        match file.try_lock() {
            Ok(()) => {
                self.run_lock.replace(Some(Lock(file)));
                Ok(())
            }
            Err(TryLockError::WouldBlock) => {
                let what = "another s15 reads these mailboxes; end it first, or work in another folder with -C DIR";
                Err(MailError::new(&path, &what))
            }
            Err(TryLockError::Error(error)) => Err(MailError::io(&path, &error)),
        }
    }

    /// As if the run were killed.
    #[cfg(test)]
    pub(super) fn lose_hold(&self) {
        self.run_lock.replace(None);
    }

    /// Appends whole lines in one write, under the lock. Where the mailbox ends in somebody's unfinished line they go into a file
    /// beside it, since they would be glued to that line; so do those that follow until the reader has taken that file.
    ///
    /// On an error nothing of them is left that a reader would take. `claims` are the reader's, if it reads in this process: a file
    /// from which our piece can't be taken back is moved to them.
    pub(super) fn append(
        &self,
        name: &AgentName,
        lines: &[u8],
        claims: Option<&mut Vec<Claim>>,
    ) -> Result<(), MailError> {
        let beside = self.beside(name);
        let _lock = self.lock(name)?;
        let mut path = if beside.symlink_metadata().is_ok() { beside.clone() } else { self.mailbox(name) };
        let fail = |path: &Path, error: &io::Error| MailError::io(path, error);
        let mut file = append_to(&path).map_err(|error| fail(&path, &error))?;
        let torn = file.metadata().and_then(|metadata| ends_torn(&file, metadata.len()));
        if torn.map_err(|error| fail(&path, &error))? && path != beside {
            path = beside;
            file = append_to(&path).map_err(|error| fail(&path, &error))?;
        }
        killpoint::pass("append_before");
        let written = write_once(&mut file, lines);
        killpoint::pass("append_after");
        let Err((error, stump)) = written else { return Ok(()) };
        let failed = MailError::io(&path, &error);
        let cut = stump.is_empty() || cut_back(&file, &stump);
        drop(file);
        if let (false, Some(claims)) = (cut, claims) {
            // Somebody else writes to this file, so nothing of it may be cut: it is read on past our piece.
            self.move_aside(&path, name, claims)?.pass_over(stump);
        }
        Err(failed)
    }

    /// Moves a file of a mailbox away, under the lock. A claim that knows the file already goes on with it; else there is a new one.
    pub(super) fn move_aside<'a>(
        &self,
        path: &Path,
        name: &AgentName,
        claims: &'a mut Vec<Claim>,
    ) -> Result<&'a mut Claim, MailError> {
        let fail = |error: &io::Error| MailError::io(path, error);
        let aside = self.claimed().join(claim_name(name));
        std::fs::rename(path, &aside).map_err(|error| fail(&error))?;
        killpoint::pass("claimed");
        let claim = Claim::new(aside, 0).map_err(|error| fail(&error))?;
        let known = claims.iter().position(|known| known.identity() == claim.identity() && known.stands());
        let index = if let Some(index) = known {
            // Two names of one file: the older one stays.
            drop(std::fs::remove_file(claim.path()));
            claims[index].stands_in_place(false);
            index
        } else {
            claims.push(claim);
            claims.len() - 1
        };
        Ok(&mut claims[index])
    }

    /// Keeps lines in a file of [`QUARANTINE`] or [`ARCHIVE`].
    pub(super) fn keep(&self, folder: &str, file: &str, lines: &[u8]) -> Result<(), MailError> {
        let folder = self.path.join(folder);
        private::create_own_folder(&folder).map_err(|error| MailError::io(&folder, &error))?;
        let path = folder.join(file);
        append_to(&path)
            .and_then(|file| seam::write_all(Disk::Mail, file, lines))
            .map_err(|error| MailError::io(&path, &error))
    }

    /// Takes a mailbox' lock.
    pub(super) fn lock(&self, name: &AgentName) -> Result<Lock, MailError> {
        let path = self.path.join(LOCKS).join(format!("{}.lock", file_name(name)));
        let file = append_to(&path).map_err(|error| MailError::io(&path, &error))?;
        let until = Instant::now() + self.lock_wait_max;
        let mut pause = Duration::from_micros(50);
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Lock(file)),
                Err(TryLockError::WouldBlock) if Instant::now() < until => std::thread::sleep(pause),
                Err(TryLockError::WouldBlock) => {
                    let what = format!(
                        "another process has held this lock for {:?}; end it and try again",
                        self.lock_wait_max
                    );
                    return Err(MailError::new(&path, &what));
                }
                Err(TryLockError::Error(error)) => return Err(MailError::io(&path, &error)),
            }
            pause = (pause * 2).min(LOCK_PAUSE_MAX);
        }
    }
}

/// The file name of a mailbox.
pub(super) fn file_name(name: &AgentName) -> String {
    format!("{name}.jsonl")
}

/// A new file name below [`CLAIMED`].
pub(super) fn claim_name(name: &AgentName) -> String {
    format!("{name}.{}.jsonl", seam::new_id())
}

fn append_to(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).read(true).create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file = options.open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(irregular()) }
}

/// Appends in one write. If it comes short: why, and which bytes of the file were written.
fn write_once(file: &mut File, lines: &[u8]) -> Result<(), (io::Error, Range<u64>)> {
    if killpoint::due("append_torn") {
        drop(file.write(&lines[..lines.len() / 2]));
        killpoint::die("append_torn");
    }
    let written = loop {
        match seam::write(Disk::Mail, &mut *file, lines) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => break other,
        }
    };
    match written {
        Ok(count) if count == lines.len() => Ok(()),
        Ok(count) => {
            let end = file.stream_position().map_err(|error| (error, 0..0))?;
            // A line end seals the piece, or tells by its own failure what kept the rest from being written.
            let cause =
                seam::write(Disk::Mail, &mut *file, b"\n").err().unwrap_or_else(|| io::ErrorKind::StorageFull.into());
            let sealed = file.stream_position().is_ok_and(|now| now == end + 1);
            Err((cause, end - count as u64..end + u64::from(sealed)))
        }
        Err(error) => Err((error, 0..0)),
    }
}

/// Takes back what we wrote last, if nobody else has the file open and nobody wrote behind it. Whoever opens it meanwhile waits.
fn cut_back(file: &File, stump: &Range<u64>) -> bool {
    match lease::others(file) {
        Writers::Absent(_lease) => {
            file.metadata().is_ok_and(|metadata| metadata.len() == stump.end) && file.set_len(stump.start).is_ok()
        }
        Writers::Present | Writers::Unknown => false,
    }
}
