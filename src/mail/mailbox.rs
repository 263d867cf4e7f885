//! One reader's mail: what the runtime issued to it, kept in memory, and the files in which everything else arrives.
//!
//! Knows nothing of other readers.

use std::collections::{BTreeMap, HashSet};
use std::fs::Metadata;
use std::io;
use std::path::Path;

use serde_json::json;
use uuid::Uuid;

use crate::killpoint;
use crate::protocol::{AgentName, Mail, MailKey, Message};
use crate::seam::{self, Defect};

use super::claim::{Claim, Patience, Room, Taken};
use super::folder::{self, ARCHIVE, Folder, MailError, QUARANTINE, ends_torn, file_name, identity, irregular, open};
use super::held::Held;
use super::lines::{LINE_BYTES_MAX, Piece};
use super::parse::{self, Line};
use super::{Drain, SetAside};

/// Files that were read to their end and only rest: the oldest beyond these are let go of early.
const RESTING_MAX: usize = 16;
/// How much of a line that is too long goes into quarantine by itself, in bytes; the whole file is kept, too.
const OVERLONG_KEPT_BYTES: usize = 1024;

/// One reader's mail.
#[derive(Debug)]
pub(super) struct Mailbox {
    /// As it was first written: the file's name follows it.
    name: AgentName,
    /// What the runtime issued.
    pub(super) held: Held,
    /// Outside lines that an earlier run of this session took.
    taken: HashSet<MailKey>,
    /// Oldest first; at most one of them still stands in place.
    claims: Vec<Claim>,
    /// Was it looked whether an earlier run left claims?
    settled_in: bool,
    /// What was last said to be wrong, so that it is said once.
    told: Option<String>,
}

/// What one drain writes elsewhere and says in the end.
#[derive(Default)]
struct Aside {
    /// Lines to keep, by folder and file.
    kept: BTreeMap<(&'static str, String), Vec<u8>>,
    /// Messages of earlier sessions.
    old: usize,
}

impl Mailbox {
    pub(super) fn new(name: AgentName) -> Self {
        Self { name, held: Held::default(), taken: HashSet::new(), claims: Vec::new(), settled_in: false, told: None }
    }

    /// Takes up what an earlier run left, before anything is claimed in this one.
    fn settle_in(&mut self, folder: &Folder) {
        self.settled_in = true;
        for mut claim in folder.claims_of(&self.name) {
            if self.claims.iter().any(|known| known.identity() == claim.identity()) {
                // A second name of one file, from a run that was killed in between.
                drop(std::fs::remove_file(claim.path()));
                continue;
            }
            let standing = folder.mailbox(&self.name).symlink_metadata();
            claim.stands_in_place(standing.is_ok_and(|metadata| identity(&metadata) == claim.identity()));
            self.claims.push(claim);
        }
    }

    /// Appends messages and issues them.
    pub(super) fn send(&mut self, batch: Vec<Message>, folder: &Folder) -> Result<(), MailError> {
        self.append(&batch, folder)?;
        self.held.issue(batch, true);
        Ok(())
    }

    /// Appends what was issued. `made`: are the folders there? What can't be written isn't tried again: memory is the truth.
    pub(super) fn write_out(&mut self, folder: &Folder, made: Result<(), MailError>) -> Result<(), MailError> {
        let unwritten = self.held.take_unwritten();
        made.and_then(|()| self.append(&unwritten, folder))
    }

    fn append(&mut self, batch: &[Message], folder: &Folder) -> Result<(), MailError> {
        let mut lines = Vec::new();
        for message in batch {
            serde_json::to_writer(&mut lines, message).map_err(|error| MailError::new(folder.path(), &error))?;
            lines.push(b'\n');
        }
        let claims = self.settled_in.then_some(&mut self.claims);
        folder.append(&self.name, &lines, claims)
    }

    /// An earlier run took this outside line.
    pub(super) fn pass_over(&mut self, key: MailKey) {
        self.taken.insert(key);
    }

    /// Takes what lies in the files.
    pub(super) fn take_files(&mut self, folder: &Folder, session: Uuid, patience: Patience, drain: &mut Drain) {
        let mut aside = Aside::default();
        let mut room = Room { lines: super::DRAIN_LINES_MAX, bytes: super::DRAIN_BYTES_MAX };
        if !self.settled_in {
            self.settle_in(folder);
        }
        let mut trouble = self.claim(folder, patience).err().map(|error| error.to_string());
        let mut claims = std::mem::take(&mut self.claims);
        for claim in &mut claims {
            let before = drain.mail.len();
            let mut take = |place: &str, offset, bytes: &[u8], piece| {
                self.take_line(place, offset, bytes, piece, session, drain, &mut aside)
            };
            if let Err(error) = claim.read(&mut room, patience, &mut take) {
                trouble = Some(MailError::io(claim.path(), &error).to_string());
            }
            for mail in &mut drain.mail[before..] {
                if let Mail::Outside(outside) = mail {
                    outside.waited = claim.rested();
                }
            }
        }
        drain.more = claims.iter().any(Claim::has_more);
        self.claims = claims;
        trouble = self.put_aside(folder, &aside).err().map(|error| error.to_string()).or(trouble);
        self.tidy(patience);
        match trouble {
            Some(trouble) => self.tell(drain, trouble),
            None => self.told = None,
        }
        if aside.old > 0 {
            let (count, mailbox) = (aside.old, file_name(&self.name));
            let old = format!(
                "{count} messages of an earlier session lay in {mailbox}; they are in .mailboxes/{ARCHIVE}, under that session"
            );
            drain.trouble = Some(drain.trouble.take().map_or(old.clone(), |trouble| format!("{trouble}\n{old}")));
        }
    }

    /// Says what is wrong, once.
    pub(super) fn tell(&mut self, drain: &mut Drain, trouble: String) {
        if self.told.as_ref() != Some(&trouble) {
            drain.trouble = Some(trouble.clone());
        }
        self.told = Some(trouble);
    }

    /// Takes the mailbox' files in hand, under the lock.
    fn claim(&mut self, folder: &Folder, patience: Patience) -> Result<(), MailError> {
        let path = folder.mailbox(&self.name);
        let found = match path.symlink_metadata() {
            Ok(metadata) if metadata.is_file() => Ok(Some(identity(&metadata)).filter(|_| metadata.len() > 0)),
            Ok(_) => Err(irregular()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        };
        let found = found.map_err(|error| MailError::io(&path, &error));
        let beside = folder.beside(&self.name);
        let has_beside = beside.symlink_metadata().is_ok();
        let standing = found.as_ref().ok().copied().flatten();
        self.left_place(standing);
        if standing.is_none() && !has_beside {
            return found.map(drop);
        }
        folder.make()?;
        let _lock = folder.lock(&self.name)?;
        self.claims.retain(Claim::stands);
        let claimed = standing.map_or(Ok(()), |standing| self.claim_mailbox(folder, &path, standing, patience));
        if has_beside {
            // Later than what stands in the mailbox, so it comes behind it.
            folder.move_aside(&beside, &self.name, &mut self.claims)?;
        }
        claimed.and(found.map(drop))
    }

    /// Moves the mailbox file aside or, while its last line is unfinished, gives it a second name and leaves it where the writer
    /// of that line will find it.
    fn claim_mailbox(
        &mut self,
        folder: &Folder,
        path: &Path,
        standing: folder::Identity,
        patience: Patience,
    ) -> Result<(), MailError> {
        let fail = |error: &io::Error| MailError::io(path, error);
        let file = open(path).map_err(|error| fail(&error))?;
        let metadata = file.metadata().map_err(|error| fail(&error))?;
        if identity(&metadata) != standing {
            // Replaced under our eyes: the next look takes it.
            return Ok(());
        }
        let torn = ends_torn(&file, metadata.len()).map_err(|error| fail(&error))?;
        let known = self.claims.iter().find(|claim| claim.is_in_place());
        match (torn, known) {
            (true, None) => self.claim_in_place(folder, path, &metadata, patience),
            (true, Some(claim)) if !claim.may_move_torn(&file, patience) => Ok(()),
            (true, Some(_)) => folder.move_aside(path, &self.name, &mut self.claims).map(drop),
            (false, _) => {
                let claim = folder.move_aside(path, &self.name, &mut self.claims)?;
                put_back_if_torn(claim, path);
                Ok(())
            }
        }
    }

    /// The claim that stood in place does so no longer if another file stands there, or none.
    fn left_place(&mut self, found: Option<folder::Identity>) {
        for claim in self.claims.iter_mut().filter(|claim| Some(claim.identity()) != found) {
            claim.stands_in_place(false);
        }
    }

    fn claim_in_place(
        &mut self,
        folder: &Folder,
        path: &Path,
        metadata: &Metadata,
        patience: Patience,
    ) -> Result<(), MailError> {
        let link = folder.claimed().join(folder::claim_name(&self.name));
        if std::fs::hard_link(path, &link).is_err() {
            // No second names here: nothing of the file is read until its last line is finished, or counts as dead.
            let dead =
                metadata.modified().ok().and_then(|at| at.elapsed().ok()).is_some_and(|age| age >= patience.torn);
            return if dead { folder.move_aside(path, &self.name, &mut self.claims).map(drop) } else { Ok(()) };
        }
        killpoint::pass("claimed");
        let mut claim = Claim::new(link, 0).map_err(|error| MailError::io(path, &error))?;
        claim.stands_in_place(claim.identity() == identity(metadata));
        self.claims.push(claim);
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "a line, where it stood, and where it goes")]
    fn take_line(
        &mut self,
        place: &str,
        offset: u64,
        bytes: &[u8],
        piece: Piece,
        session: Uuid,
        drain: &mut Drain,
        aside: &mut Aside,
    ) -> Taken {
        if let Some(at) = parse::after_stump(bytes) {
            let (stump, line) = bytes.split_at(at);
            if !parse::issued_id(stump).is_some_and(|id| self.held.meet(id)) {
                self.set_aside(stump, "an unfinished line, and another behind it".to_owned(), drain, aside);
            }
            return self.take_line(place, offset + at as u64, line, piece, session, drain, aside);
        }
        if let Some(id) = parse::issued_id(bytes).filter(|id| self.held.meet(*id)) {
            return self.until_acknowledged(id);
        }
        if piece == Piece::Overlong {
            let reason = format!("a line is longer than {LINE_BYTES_MAX} bytes; send the path of a file instead");
            return self.set_aside(&bytes[..OVERLONG_KEPT_BYTES], reason, drain, aside);
        }
        let line = match parse::line(bytes, session) {
            Line::Ours { id, .. } if self.held.meet(id) => return self.until_acknowledged(id),
            Line::Ours { or_else, .. } => *or_else,
            other => other,
        };
        match line {
            Line::Blank | Line::Ours { .. } => Taken::Nothing,
            Line::Old(session) => {
                aside.old += 1;
                let file = aside.kept.entry((ARCHIVE, format!("{session}.jsonl"))).or_default();
                file.extend_from_slice(bytes);
                file.push(b'\n');
                Taken::Counted
            }
            Line::Outside(said) => {
                let key = MailKey::Outside { claim: place.to_owned(), offset };
                if self.taken.remove(&key) {
                    return Taken::Nothing;
                }
                drain.mail.push(Mail::Outside(said.mail(key.clone())));
                Taken::Until(key)
            }
            Line::Bad(_) if piece == Piece::Torn => {
                let reason = "an unfinished line, and nobody is there to finish it".to_owned();
                self.set_aside(bytes, reason, drain, aside)
            }
            Line::Bad(_) if seam::broken(Defect::BadLineDropped) => Taken::Counted,
            Line::Bad(reason) => self.set_aside(bytes, reason, drain, aside),
        }
    }

    /// The record of a message stays as long as the message does.
    fn until_acknowledged(&self, id: Uuid) -> Taken {
        if self.held.is_outstanding(id) { Taken::Until(MailKey::Inside(id)) } else { Taken::Nothing }
    }

    fn set_aside(&self, bytes: &[u8], reason: String, drain: &mut Drain, aside: &mut Aside) -> Taken {
        let mailbox = file_name(&self.name);
        let at = format!("{:.3}", seam::now());
        let kept = json!({"reason": reason, "line": String::from_utf8_lossy(bytes), "at": at});
        let file = aside.kept.entry((QUARANTINE, mailbox.clone())).or_default();
        file.extend_from_slice(kept.to_string().as_bytes());
        file.push(b'\n');
        drain.set_aside.push(SetAside { mailbox, reason });
        Taken::Counted
    }

    fn put_aside(&mut self, folder: &Folder, aside: &Aside) -> Result<(), MailError> {
        for ((place, file), lines) in &aside.kept {
            if let Err(error) = folder.make().and_then(|()| folder.keep(place, file, lines)) {
                self.claims.iter_mut().for_each(Claim::is_precious);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Lets go of files that nobody needs any more.
    pub(super) fn tidy(&mut self, patience: Patience) {
        let mut early = self.claims.len().saturating_sub(RESTING_MAX);
        self.claims.retain_mut(|claim| {
            let rest = if early > 0 { std::time::Duration::ZERO } else { patience.rest };
            early = early.saturating_sub(1);
            !claim.let_go(Patience { rest, ..patience })
        });
    }

    /// The mail with these keys has reached its reader.
    pub(super) fn acknowledge(&mut self, keys: &[MailKey], patience: Patience) {
        let keys: HashSet<&MailKey> = keys.iter().collect();
        self.held.acknowledge(&keys);
        self.claims.iter_mut().for_each(|claim| claim.settle(&keys));
        self.tidy(patience);
    }

    /// Takes back what was issued and not acknowledged.
    pub(super) fn withdraw(&mut self, patience: Patience) -> Vec<Message> {
        let messages = self.held.withdraw();
        let keys: Vec<MailKey> = messages.iter().map(|message| MailKey::Inside(message.id)).collect();
        self.acknowledge(&keys, patience);
        messages
    }

    /// Takes back one message; its line, wherever it stands, is nobody's then.
    pub(super) fn withdraw_one(&mut self, id: Uuid, patience: Patience) -> Option<Message> {
        let message = self.held.withdraw_one(id)?;
        self.acknowledge(&[MailKey::Inside(id)], patience);
        Some(message)
    }

    pub(super) fn deserves_look(&self, folder: &Folder, patience: Patience) -> bool {
        self.held.waiting() > 0
            || self.claims.iter().any(|claim| claim.deserves_look(patience))
            || self.has_new_file(folder)
            || folder.beside(&self.name).symlink_metadata().is_ok()
            || !self.settled_in && folder.claims_of(&self.name).next().is_some()
    }

    fn has_new_file(&self, folder: &Folder) -> bool {
        match folder.mailbox(&self.name).symlink_metadata() {
            Ok(metadata) if metadata.is_file() => {
                let known = |claim: &Claim| claim.is_in_place() && claim.identity() == identity(&metadata);
                metadata.len() > 0 && !self.claims.iter().any(known)
            }
            Ok(_) => self.told.is_none(),
            Err(_) => false,
        }
    }
}

/// Somebody may have begun a line between our look and our move, and will come back to finish it by the file's old name.
pub(super) fn put_back_if_torn(claim: &mut Claim, path: &Path) {
    let torn = open(claim.path()).and_then(|file| {
        let length = file.metadata()?.len();
        ends_torn(&file, length)
    });
    // A link never replaces a file: a mailbox that was made anew meanwhile stays.
    if torn.is_ok_and(|torn| torn) && std::fs::hard_link(claim.path(), path).is_ok() {
        claim.stands_in_place(true);
    }
}
