//! The files behind the mailboxes: append, claim, read on, let go. Nothing here loses a byte that somebody else may still write.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;
use uuid::Uuid;

use crate::protocol::AgentName;

use super::read::{CHUNK_BYTES, Take, held_elsewhere, read_on};

pub(super) const CLAIMED: &str = ".claimed";
const QUARANTINE: &str = ".quarantine";
const LOCKS: &str = ".locks";

/// How long a mailbox' lock is waited for.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(2);
/// How long an unfinished line may rest before it counts as dead.
const TORN_GRACE: Duration = Duration::from_secs(10);
/// Where it can't be known whether a file is still open somewhere: how long it stays.
const OPEN_GRACE: Duration = Duration::from_secs(60);

/// A mail file could not be used; the text names it and the cause.
#[derive(Debug)]
pub struct MailError(String);

impl MailError {
    pub(super) fn new(path: &Path, error: &dyn fmt::Display) -> Self {
        Self(format!("{}: {error}", path.display()))
    }
}

impl fmt::Display for MailError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for MailError {}

/// The folder of all mailboxes.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    /// Held for the whole run: mailboxes have one consumer, also where two runs keep their state in different folders.
    run_lock: RefCell<Option<File>>,
}

pub(super) fn file_name(name: &AgentName) -> String {
    format!("{name}.jsonl")
}

/// Bytes in a regular file; 0 for anything else.
pub(super) fn length(path: &Path) -> u64 {
    path.symlink_metadata().ok().filter(std::fs::Metadata::is_file).map_or(0, |metadata| metadata.len())
}

impl Folder {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, run_lock: RefCell::new(None) }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn mailbox(&self, name: &AgentName) -> PathBuf {
        self.path.join(file_name(name))
    }

    /// Makes what is missing. Links in place of the folders are refused: mail stays in the workspace.
    pub(super) fn make(&self) -> Result<(), MailError> {
        for folder in [self.path.clone(), self.path.join(CLAIMED), self.path.join(QUARANTINE), self.path.join(LOCKS)] {
            match folder.symlink_metadata() {
                Ok(found) if found.is_dir() => {}
                Ok(_) => return Err(MailError::new(&folder, &"is no folder; remove it")),
                Err(_) => {
                    DirBuilder::new().mode(0o700).create(&folder).map_err(|error| MailError::new(&folder, &error))?;
                }
            }
        }
        self.hold()?;
        let ignore = self.path.join(".gitignore");
        if !ignore.exists() {
            std::fs::write(&ignore, "*\n").map_err(|error| MailError::new(&ignore, &error))?;
        }
        Ok(())
    }

    /// Makes this run the mailboxes' one consumer, if they are there; anew after somebody removed the lock's file.
    pub(super) fn hold(&self) -> Result<(), MailError> {
        let path = self.path.join(LOCKS).join("run.lock");
        let held = self.run_lock.borrow().is_some() && path.exists();
        if held || !self.path.join(LOCKS).is_dir() {
            return Ok(());
        }
        let file = open_lock(&path)?;
        match file.try_lock() {
            Ok(()) => {
                self.run_lock.replace(Some(file));
                Ok(())
            }
            Err(TryLockError::WouldBlock) => Err(MailError::new(
                &path,
                &"another s15 reads these mailboxes; end it first, or work in another folder with -C DIR",
            )),
            Err(TryLockError::Error(error)) => Err(MailError::new(&path, &error)),
        }
    }

    /// Files that an earlier run had claimed and not finished, by reader.
    pub(super) fn leftovers(&self) -> Vec<(AgentName, Claim)> {
        let Ok(entries) = std::fs::read_dir(self.path.join(CLAIMED)) else { return Vec::new() };
        let mut found: Vec<_> = entries
            .filter_map(Result::ok)
            .filter_map(|entry| {
                let path = entry.path();
                let stem = path.file_stem()?.to_str()?;
                let name = AgentName::parse(stem.split_once('.')?.0).ok()?;
                entry.file_type().ok()?.is_file().then(|| (name, Claim::new(path.clone(), 0, HashSet::new())))
            })
            .collect();
        found.sort_by(|a, b| a.1.path.cmp(&b.1.path));
        found
    }

    /// Appends whole lines in one write. False if the file ends in somebody's unfinished line: nothing was written then, since it
    /// would be glued to that line.
    pub(super) fn append(&self, name: &AgentName, lines: &[u8]) -> Result<bool, MailError> {
        let path = self.mailbox(name);
        let fail = |error: &dyn fmt::Display| MailError::new(&path, error);
        let _lock = self.lock(name)?;
        let mut file = OpenOptions::new()
            .append(true)
            .read(true)
            .create(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(&path)
            .map_err(|error| fail(&error))?;
        let before = file.metadata().map_err(|error| fail(&error))?;
        if !before.is_file() {
            return Err(fail(&"is no regular file; remove it"));
        }
        if ends_torn(&file, before.len()).map_err(|error| fail(&error))? {
            return Ok(false);
        }
        let written = file.write(lines);
        match written {
            Ok(count) if count == lines.len() => Ok(true),
            Ok(_) | Err(_) => {
                // Take back a piece that was written, unless somebody has written behind it.
                let count = written.as_ref().ok().copied().unwrap_or(0) as u64;
                if count > 0 && file.metadata().is_ok_and(|now| now.len() == before.len() + count) {
                    file.set_len(before.len()).map_err(|error| fail(&error))?;
                }
                Err(fail(&written.err().unwrap_or_else(|| io::Error::from(io::ErrorKind::StorageFull))))
            }
        }
    }

    /// Moves a mailbox aside for reading. One that ends in an unfinished line stays where its writer will find it, and is read in
    /// place, until the line is finished or known to be dead.
    pub(super) fn claim(&self, name: &AgentName, live: &mut Live, claims: &mut Vec<Claim>) -> Result<(), MailError> {
        let path = self.mailbox(name);
        let Ok(metadata) = path.symlink_metadata() else { return Ok(()) };
        if !metadata.is_file() {
            return Err(MailError::new(&path, &"is no regular file; remove it, or its reader gets no outside mail"));
        }
        if metadata.len() == 0 {
            return Ok(());
        }
        self.make()?;
        let _lock = self.lock(name)?;
        let Ok(file) = open(&path) else { return Ok(()) };
        let metadata = file.metadata().map_err(|error| MailError::new(&path, &error))?;
        live.meet(&metadata);
        let torn = ends_torn(&file, metadata.len()).map_err(|error| MailError::new(&path, &error))?;
        if torn && !live.is_dead() {
            return Ok(());
        }
        let claimed = self.path.join(CLAIMED).join(format!("{name}.{}.jsonl", Uuid::now_v7()));
        std::fs::rename(&path, &claimed).map_err(|error| MailError::new(&path, &error))?;
        let former = std::mem::take(live);
        claims.push(Claim::new(claimed, former.offset, former.unacknowledged));
        Ok(())
    }

    /// Keeps a line that is no message, with the reason. One that can't be kept is lost to nobody but itself.
    pub(super) fn quarantine(&self, name: &AgentName, line: &[u8], reason: &str) {
        let at = format!("{:.3}", jiff::Timestamp::now());
        let kept = json!({"reason": reason, "line": String::from_utf8_lossy(line), "at": at});
        drop(self.keep(&file_name(name), kept.to_string().as_bytes()));
    }

    /// Keeps a message of an earlier session.
    pub(super) fn archive(&self, session: Uuid, line: &[u8]) {
        drop(self.keep(&format!("old-{session}.jsonl"), line));
    }

    fn keep(&self, file: &str, line: &[u8]) -> io::Result<()> {
        let path = self.path.join(QUARANTINE).join(file);
        let mut file =
            OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW).open(path)?;
        file.write_all(&[line, b"\n"].concat())
    }

    fn lock(&self, name: &AgentName) -> Result<File, MailError> {
        let path = self.path.join(LOCKS).join(name.as_str());
        let file = open_lock(&path)?;
        let until = Instant::now() + LOCK_WAIT_MAX;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if Instant::now() < until => {
                    std::thread::sleep(Duration::from_micros(200));
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(MailError::new(&path, &"another process has held this lock for too long"));
                }
                Err(TryLockError::Error(error)) => return Err(MailError::new(&path, &error)),
            }
        }
    }
}

fn open_lock(path: &Path) -> Result<File, MailError> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    options.open(path).map_err(|error| MailError::new(path, &error))
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)
}

fn ends_torn(file: &File, length: u64) -> io::Result<bool> {
    if length == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.read_exact_at(&mut last, length - 1)?;
    Ok(last[0] != b'\n')
}

/// A mailbox file that is read where it stands.
#[derive(Debug, Default)]
pub(super) struct Live {
    inode: u64,
    offset: u64,
    unacknowledged: HashSet<(String, u64)>,
    /// Its length when it was last seen to end in an unfinished line, and since when.
    torn: Option<(u64, Instant)>,
}

impl Live {
    /// Notes which file stands there now, and since when it has not grown.
    fn meet(&mut self, metadata: &std::fs::Metadata) {
        if self.inode != metadata.ino() || metadata.len() < self.offset {
            *self = Self { inode: metadata.ino(), ..Self::default() };
        }
        if self.torn.is_none_or(|(length, _)| length != metadata.len()) {
            self.torn = Some((metadata.len(), Instant::now()));
        }
    }

    /// Has an unfinished line rested for too long?
    fn is_dead(&self) -> bool {
        self.torn.is_some_and(|(_, since)| since.elapsed() >= TORN_GRACE)
    }

    pub(super) fn has_more(&self, path: &Path) -> bool {
        match path.symlink_metadata() {
            Ok(metadata) if metadata.is_file() && metadata.ino() == self.inode => {
                let resting = self.torn.is_some_and(|(length, _)| length == metadata.len());
                metadata.len() > self.offset && (!resting || self.is_dead())
            }
            Ok(metadata) => metadata.is_file() && metadata.len() > 0,
            Err(_) => false,
        }
    }

    pub(super) fn read_in_place(&mut self, path: &Path, room: &mut usize, take: &mut Take<'_>) {
        let Ok(file) = open(path) else { return };
        if file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.ino() == self.inode) {
            let place = format!("live-{}", self.inode);
            read_on(&file, &place, &mut self.offset, room, &mut self.unacknowledged, take);
        }
    }

    pub(super) fn acknowledge(&mut self, place: &str, offset: u64) {
        self.unacknowledged.remove(&(place.to_owned(), offset));
    }
}

/// A file that was moved aside: read to its end, kept until everything in it is acknowledged and nobody can write to it any more.
#[derive(Debug)]
pub(super) struct Claim {
    path: PathBuf,
    offset: u64,
    unacknowledged: HashSet<(String, u64)>,
    since: Instant,
}

impl Claim {
    fn new(path: PathBuf, offset: u64, unacknowledged: HashSet<(String, u64)>) -> Self {
        Self { path, offset, unacknowledged, since: Instant::now() }
    }

    pub(super) fn read(&mut self, room: &mut usize, take: &mut Take<'_>) {
        let Ok(file) = open(&self.path) else { return };
        let place = self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        read_on(&file, &place, &mut self.offset, room, &mut self.unacknowledged, take);
    }

    pub(super) fn has_more(&self) -> bool {
        length(&self.path) > self.offset
    }

    pub(super) fn acknowledge(&mut self, place: &str, offset: u64) {
        self.unacknowledged.remove(&(place.to_owned(), offset));
    }

    /// Lets go of the file if nothing of it is needed any more; true when it is gone.
    pub(super) fn finished(&mut self, folder: &Folder, name: &AgentName) -> bool {
        if !self.unacknowledged.is_empty() {
            return false;
        }
        let Ok(file) = open(&self.path) else { return true };
        let Ok(metadata) = file.metadata() else { return false };
        match held_elsewhere(&file) {
            Some(true) => return false,
            Some(false) => {}
            None if self.since.elapsed() < OPEN_GRACE => return false,
            None => {}
        }
        if metadata.len() > self.offset {
            // Whole lines are read at the next drain; an unfinished one that nobody can finish is set aside.
            let mut rest = Vec::new();
            let from_offset = (&file)
                .seek(SeekFrom::Start(self.offset))
                .and_then(|_| (&file).take(CHUNK_BYTES as u64).read_to_end(&mut rest));
            if from_offset.is_err() || rest.contains(&b'\n') {
                return false;
            }
            folder.quarantine(name, &rest, "unfinished line: its writer is gone");
        }
        std::fs::remove_file(&self.path).is_ok()
    }
}
