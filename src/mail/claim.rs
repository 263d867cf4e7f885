//! A mailbox file that was taken in hand: read on to its end, and let go of only when nobody can need it or write to it any more.
//!
//! It has a name below [`CLAIMED`](super::folder::CLAIMED) that carries how far it is done with, so that a later run goes on there.
//! Knows nothing of what a line means.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use crate::killpoint;
use crate::protocol::{AgentName, MailKey};
use crate::seam;

use super::folder::{Identity, QUARANTINE, identity, open};
use super::lease::{self, Writers};
use super::lines::{Lines, Piece};

/// How long what may still change is waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// An unfinished line that doesn't grow: until then its writer may finish it.
    pub(super) torn: Duration,
    /// A file that was moved aside: until then somebody who looked its old name up may only now be opening it.
    pub(super) rest: Duration,
    /// Where it can't be known whether somebody has a file open: how long it stays after it last grew.
    pub(super) open: Duration,
}

impl Patience {
    pub(super) const USUAL: Self =
        Self { torn: Duration::from_secs(10), rest: Duration::from_secs(1), open: Duration::from_secs(60) };
}

/// How much one drain may still take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub(super) lines: usize,
    pub(super) bytes: u64,
}

impl Room {
    fn is_full(self) -> bool {
        self.lines == 0 || self.bytes == 0
    }
}

/// What is done with a piece of a file.
pub(super) enum Taken {
    /// Nobody waits for it.
    Nothing,
    /// It counts as one of the lines that a drain may take, and is done with.
    Counted,
    /// It counts, and the file stays until this key is acknowledged.
    Until(MailKey),
}

/// What a reader of lines gets: the claim's name, the offset, the bytes, and whether the line is whole.
pub(super) type Take<'a> = dyn FnMut(&str, u64, &[u8], Piece) -> Taken + 'a;

/// A file below `.claimed`.
#[derive(Debug)]
pub(super) struct Claim {
    /// What its keys carry. It stays when the path changes.
    name: String,
    path: PathBuf,
    identity: Identity,
    /// Where the first line stands that was not taken.
    offset: u64,
    /// The offset that its path carries.
    saved: u64,
    /// Is the offset within a line that is too long?
    within_overlong: bool,
    /// A piece of our own that could not be taken back.
    without: Range<u64>,
    /// What was taken and not yet acknowledged.
    unacknowledged: HashSet<MailKey>,
    /// For how many seconds nobody had written to it when it was last read.
    rested: Option<u64>,
    /// Does it still stand under the mailbox' name, too?
    in_place: bool,
    /// Since when it doesn't.
    aside: Instant,
    /// Its length when it was last looked at, and since when it has had it.
    length: u64,
    grown: Instant,
    /// Since when each look found it to end in an unfinished line.
    torn: Option<Instant>,
    /// Did the last look leave something unread for want of room?
    more: bool,
    /// Something in it could be kept nowhere else.
    precious: bool,
    /// A line in it is too long to be kept in another file.
    has_overlong: bool,
    /// Somebody removed it.
    gone: bool,
}

impl Claim {
    /// A file that stands at `path`, of which all before `offset` is done with.
    pub(super) fn new(path: PathBuf, offset: u64) -> io::Result<Self> {
        let metadata = path.symlink_metadata()?;
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let name = name.split('.').take(2).collect::<Vec<_>>().join(".");
        let now = Instant::now();
        Ok(Self {
            name,
            path,
            identity: identity(&metadata),
            offset,
            saved: offset,
            within_overlong: false,
            without: 0..0,
            unacknowledged: HashSet::new(),
            rested: None,
            in_place: false,
            aside: now,
            length: offset,
            grown: now,
            torn: None,
            more: false,
            precious: false,
            has_overlong: false,
            gone: false,
        })
    }

    /// A file that an earlier run left: `<reader>.<uuid>.jsonl` or `<reader>.<uuid>.<offset>.jsonl`.
    pub(super) fn leftover(path: &Path) -> Option<(AgentName, Self)> {
        let parts: Vec<&str> = path.file_name()?.to_str()?.split('.').collect();
        let (reader, id, offset) = match parts.as_slice() {
            [reader, id, "jsonl"] => (reader, id, 0),
            [reader, id, offset, "jsonl"] => (reader, id, offset.parse().ok()?),
            _ => return None,
        };
        Uuid::parse_str(id).ok()?;
        let name = AgentName::parse(reader).ok()?;
        path.symlink_metadata().ok()?.is_file().then_some(())?;
        Some((name, Self::new(path.to_owned(), offset).ok()?))
    }

    /// Passes over a piece of our own that could not be taken back.
    pub(super) fn pass_over(&mut self, piece: Range<u64>) {
        self.without = piece;
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn identity(&self) -> Identity {
        self.identity
    }

    /// Is it still there? Numbers of removed files are used again soon.
    pub(super) fn stands(&self) -> bool {
        self.path.symlink_metadata().is_ok_and(|metadata| identity(&metadata) == self.identity)
    }

    pub(super) fn is_in_place(&self) -> bool {
        self.in_place
    }

    /// It stands under the mailbox' name, too, or it does so no longer.
    pub(super) fn stands_in_place(&mut self, in_place: bool) {
        if self.in_place != in_place {
            self.in_place = in_place;
            self.aside = Instant::now();
        }
    }

    /// It holds what can be kept nowhere else: it stays until the next run.
    pub(super) fn is_precious(&mut self) {
        self.precious = true;
    }

    /// May a mailbox that is torn be moved away? Only when its writer has rested for too long, or has kept it open all that time.
    pub(super) fn may_move_torn(&self, file: &File, patience: Patience) -> bool {
        let long = |since: Instant| since.elapsed() >= patience.torn;
        long(self.grown) || self.torn.is_some_and(long) && matches!(lease::writers(file), Writers::Present)
    }

    /// Notes how long it is now, and whether it ends in an unfinished line.
    fn note(&mut self, length: u64, torn: bool) {
        if length != self.length {
            self.length = length;
            self.grown = Instant::now();
        }
        self.torn = if torn { self.torn.or_else(|| Some(Instant::now())) } else { None };
    }

    /// For how many seconds nobody had written to it when it was last read: its lines are that old at least. `None` if the system
    /// can't tell.
    pub(super) fn rested(&self) -> Option<u64> {
        self.rested
    }

    /// Did the last look leave something unread for want of room?
    pub(super) fn has_more(&self) -> bool {
        self.more
    }

    /// Is there something to read, or to tidy up? Looks at the length alone.
    pub(super) fn deserves_look(&self, patience: Patience) -> bool {
        match self.path.symlink_metadata() {
            Err(_) => true,
            Ok(metadata) => self.more || metadata.len() != self.length || self.may_settle(patience),
        }
    }

    /// Could a look end it, or its unfinished line? A file that somebody keeps open for long is looked at again and again.
    fn may_settle(&self, patience: Patience) -> bool {
        if self.offset < self.length {
            return self.grown.elapsed() >= patience.torn;
        }
        !self.in_place && !self.precious && self.unacknowledged.is_empty() && self.aside.elapsed() >= patience.rest
    }

    /// Reads on, at most to where the room is used up.
    pub(super) fn read(&mut self, room: &mut Room, patience: Patience, take: &mut Take<'_>) -> io::Result<()> {
        self.more = false;
        let file = match open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.gone = true;
                return Ok(());
            }
            other => other?,
        };
        let metadata = file.metadata()?;
        let length = metadata.len();
        self.rested = seam::rested(&metadata);
        if length < self.offset {
            self.begin_anew()?;
        }
        let quiet = length == self.length && self.grown.elapsed() >= patience.torn;
        if length == self.offset || length == self.length && !quiet && self.torn.is_some() {
            self.note(length, self.torn.is_some() && length > self.offset);
            return Ok(());
        }
        let mut lines = Lines::new(file, self.offset)?;
        let torn = loop {
            if room.is_full() {
                self.more = self.offset < length;
                break false;
            }
            if self.offset == self.without.start && !self.without.is_empty() {
                self.offset = self.without.end;
                lines.go_to(self.offset)?;
            }
            let piece = lines.step()?;
            if lines.length == 0 {
                break false;
            }
            if piece == Piece::Torn && !self.within_overlong && !(quiet && self.is_abandoned(lines.file(), patience)) {
                break true;
            }
            self.take_piece(piece, &lines, room, take);
        };
        self.note(length, torn);
        Ok(())
    }

    fn take_piece(&mut self, piece: Piece, lines: &Lines, room: &mut Room, take: &mut Take<'_>) {
        let rest_of_overlong = self.within_overlong;
        self.within_overlong = piece == Piece::Overlong || rest_of_overlong && piece == Piece::Torn;
        self.has_overlong |= self.within_overlong;
        if !rest_of_overlong {
            let taken = take(&self.name, self.offset, &lines.bytes, piece);
            match taken {
                Taken::Nothing => {}
                Taken::Counted => room.lines -= 1,
                Taken::Until(key) => {
                    room.lines -= 1;
                    self.unacknowledged.insert(key);
                }
            }
        }
        room.bytes = room.bytes.saturating_sub(lines.length);
        self.offset += lines.length;
    }

    /// Will nobody finish the line at its end?
    fn is_abandoned(&self, file: &File, patience: Patience) -> bool {
        !self.in_place
            && match lease::writers(file) {
                Writers::Absent(_) => true,
                Writers::Present => false,
                Writers::Unknown => self.grown.elapsed() >= patience.open,
            }
    }

    /// Somebody emptied the file: what comes is another file to us, and gets keys of its own.
    fn begin_anew(&mut self) -> io::Result<()> {
        let reader = self.name.split('.').next().unwrap_or_default();
        let name = format!("{reader}.{}", seam::new_id());
        let path = self.path.with_file_name(format!("{name}.jsonl"));
        std::fs::rename(&self.path, &path)?;
        (self.name, self.path, self.offset, self.saved) = (name, path, 0, 0);
        (self.within_overlong, self.without) = (false, 0..0);
        self.unacknowledged.clear();
        Ok(())
    }

    /// These were acknowledged, or will never be.
    pub(super) fn settle(&mut self, keys: &HashSet<&MailKey>) {
        if !self.unacknowledged.is_empty() {
            self.unacknowledged.retain(|key| !keys.contains(key));
        }
    }

    /// Lets go of the file if nothing of it is needed any more; true when there is nothing left to keep in mind.
    ///
    /// What is only done with so far is marked so in the file's name.
    pub(super) fn let_go(&mut self, patience: Patience) -> bool {
        if self.gone || !self.unacknowledged.is_empty() {
            return self.gone;
        }
        let unneeded = !self.in_place && !self.more && !self.precious;
        let removed = unneeded && self.aside.elapsed() >= patience.rest && self.remove(patience);
        if !removed && !self.precious && !self.within_overlong {
            self.save();
        }
        removed
    }

    fn remove(&self, patience: Patience) -> bool {
        let file = match open(&self.path) {
            Ok(file) => file,
            Err(error) => return error.kind() == io::ErrorKind::NotFound,
        };
        let lease = match lease::writers(&file) {
            Writers::Absent(lease) => Some(lease),
            Writers::Unknown if self.grown.elapsed() >= patience.open => None,
            Writers::Present | Writers::Unknown => return false,
        };
        let read_to_its_end = file.metadata().is_ok_and(|metadata| metadata.len() == self.offset);
        if !read_to_its_end || lease.is_some_and(|lease| lease.is_asked_for()) {
            return false;
        }
        killpoint::pass("ack_before");
        let removed = if self.has_overlong { self.keep() } else { std::fs::remove_file(&self.path) };
        killpoint::pass("ack_after");
        removed.is_ok()
    }

    fn keep(&self) -> io::Result<()> {
        let quarantine = self.path.with_file_name("..").join(QUARANTINE);
        std::fs::rename(&self.path, quarantine.join(self.path.file_name().unwrap_or_default()))
    }

    /// Puts into the file's name how far it is done with. If that fails a later run gives some mail again, as outside mail.
    fn save(&mut self) {
        if self.saved == self.offset {
            return;
        }
        let path = self.path.with_file_name(format!("{}.{}.jsonl", self.name, self.offset));
        killpoint::pass("ack_before");
        if std::fs::rename(&self.path, &path).is_ok() {
            (self.path, self.saved) = (path, self.offset);
        }
        killpoint::pass("ack_after");
    }
}
