//! Mailboxes: a file a reader, filled and emptied in sight of everybody, while the truth about inside mail stays in memory.
//!
//! Inside mail is what this session issued: it is delivered from the runtime's own copy, whatever happens to its line. Everything
//! else in a mailbox is outside mail, told apart by where it stood. Knows nothing of agents or of what a message means.

mod files;
mod parse;
#[cfg(test)]
mod process_tests;
mod read;
#[cfg(test)]
mod tests;
mod watch;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::protocol::{AgentName, Mail, MailKey, Message, MessageType, Metadata};

use files::{Claim, Folder, Live};
use parse::Line;

pub use files::MailError;
pub use watch::Watch;

/// Messages that one drain gives at most; the rest waits for the next.
const DRAIN_MESSAGES_MAX: usize = 500;

/// All mailboxes of a workspace, for their one consumer.
#[derive(Debug)]
pub struct Post {
    folder: Folder,
    session: Uuid,
    readers: HashMap<AgentName, Reader>,
    last_id: Uuid,
    leftovers_taken: bool,
}

/// What is known of one mailbox.
#[derive(Debug, Default)]
struct Reader {
    /// Issued and not yet acknowledged, oldest first.
    outstanding: Vec<Outstanding>,
    /// Lines of ours that stand in a file and were not read yet.
    expected: HashSet<Uuid>,
    /// How far the mailbox file was read in place.
    live: Live,
    /// Files moved aside and not yet done with.
    claims: Vec<Claim>,
}

#[derive(Debug)]
struct Outstanding {
    message: Message,
    drained: bool,
}

/// What a drain found.
#[derive(Debug, Default)]
pub struct Drain {
    /// In order; each is given once.
    pub mail: Vec<Mail>,
    /// Lines that are no message.
    pub set_aside: Vec<SetAside>,
    /// Something the user should know.
    pub trouble: Option<String>,
}

/// A line that was put into quarantine.
#[derive(Debug)]
pub struct SetAside {
    /// The mailbox' file name.
    pub mailbox: String,
    /// What is wrong with it.
    pub reason: String,
}

impl Post {
    /// For a workspace; touches nothing on disk.
    #[must_use]
    pub fn new(workspace: &Path, session: Uuid) -> Self {
        Self {
            folder: Folder::new(workspace.join(".mailboxes")),
            session,
            readers: HashMap::new(),
            last_id: Uuid::nil(),
            leftovers_taken: false,
        }
    }

    /// The folder of all mailboxes.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Makes this run the one consumer of mailboxes that are there already.
    ///
    /// # Errors
    /// Another run is; the text says what to do.
    pub fn hold(&self) -> Result<(), MailError> {
        self.folder.hold()
    }

    /// Makes the folders, and takes up what an earlier run had claimed and not finished.
    ///
    /// # Errors
    /// They can't be made; the text names the path and the cause.
    pub fn prepare(&mut self) -> Result<(), MailError> {
        self.folder.make()?;
        self.take_leftovers();
        Ok(())
    }

    /// Once, before anything is claimed in this run: what lies claimed then is an earlier run's.
    fn take_leftovers(&mut self) {
        if !std::mem::replace(&mut self.leftovers_taken, true) {
            for (name, claim) in self.folder.leftovers() {
                self.readers.entry(name).or_default().claims.push(claim);
            }
        }
    }

    /// A new message: a strictly increasing id, this session, the present time.
    pub fn compose(
        &mut self,
        from: &AgentName,
        to: &AgentName,
        kind: MessageType,
        content: String,
        metadata: Metadata,
    ) -> Message {
        let now = Uuid::now_v7();
        // A clock that stands or jumps back must not reorder mail.
        let id = if now > self.last_id { now } else { Uuid::from_u128(self.last_id.as_u128() + 1) };
        self.last_id = id;
        let timestamp = format!("{:.3}", jiff::Timestamp::now());
        Message { id, session: self.session, from: from.clone(), to: to.clone(), kind, content, metadata, timestamp }
    }

    /// Sends messages to one reader in one write. On success they are issued: held in memory until acknowledged.
    ///
    /// # Errors
    /// The file can't be written; nothing was sent.
    pub fn send(&mut self, batch: Vec<Message>) -> Result<(), MailError> {
        let Some(first) = batch.first() else { return Ok(()) };
        let to = first.to.clone();
        debug_assert!(batch.iter().all(|message| message.to == to), "one reader a batch");
        let mut lines = Vec::new();
        for message in &batch {
            serde_json::to_writer(&mut lines, message).map_err(|error| MailError::new(self.folder.path(), &error))?;
            lines.push(b'\n');
        }
        self.prepare()?;
        let written = self.folder.append(&to, &lines)?;
        let reader = self.readers.entry(to).or_default();
        for message in batch {
            if written {
                reader.expected.insert(message.id);
            }
            reader.outstanding.push(Outstanding { message, drained: false });
        }
        Ok(())
    }

    /// Takes what lies in a mailbox. Gives no mail twice; what it gave waits for its acknowledgement.
    pub fn drain(&mut self, name: &AgentName) -> Drain {
        let mut drain = Drain::default();
        let exists = self.folder.path().is_dir();
        if exists {
            self.take_leftovers();
        }
        let reader = self.readers.entry(name.clone()).or_default();
        for one in reader.outstanding.iter_mut().filter(|one| !one.drained) {
            one.drained = true;
            drain.mail.push(Mail::Inside(one.message.clone()));
        }
        if exists {
            if let Err(error) = self.folder.claim(name, &mut reader.live, &mut reader.claims) {
                drain.trouble = Some(error.to_string());
            }
            self.read_files(name, &mut drain);
        }
        drain
    }

    fn read_files(&mut self, name: &AgentName, drain: &mut Drain) {
        let Some(reader) = self.readers.get_mut(name) else { return };
        let mut old: HashMap<Uuid, usize> = HashMap::new();
        let folder = &self.folder;
        let session = self.session;
        let Reader { expected, live, claims, .. } = reader;
        let mailbox = files::file_name(name);
        let mut take = |place: &str, offset: u64, bytes: &[u8]| -> bool {
            match parse::line(bytes, session) {
                Line::Blank => false,
                Line::Issued(id) if expected.remove(&id) => false,
                Line::Old { session, .. } => {
                    *old.entry(session).or_default() += 1;
                    folder.archive(session, bytes);
                    false
                }
                Line::Bad(reason) => {
                    folder.quarantine(name, bytes, &reason);
                    drain.set_aside.push(SetAside { mailbox: mailbox.clone(), reason });
                    false
                }
                Line::Issued(_) | Line::Outside(_) => {
                    let key = MailKey::Outside { claim: place.to_owned(), offset };
                    drain.mail.push(Mail::Outside(parse::outside(bytes, key)));
                    true
                }
            }
        };
        let mut room = DRAIN_MESSAGES_MAX;
        for claim in claims.iter_mut() {
            claim.read(&mut room, &mut take);
        }
        live.read_in_place(&self.folder.mailbox(name), &mut room, &mut take);
        reader.claims.retain_mut(|claim| !claim.finished(&self.folder, name));
        if !old.is_empty() {
            let count: usize = old.values().sum();
            drain.trouble = Some(format!(
                "{count} messages of an earlier session lay in {mailbox}; they were put into .mailboxes/.quarantine"
            ));
        }
    }

    /// The mail with these keys has reached its reader.
    ///
    /// # Errors
    /// None at present: a file that can't be removed is tried again at the next drain.
    pub fn acknowledge(&mut self, name: &AgentName, keys: &[MailKey]) -> Result<(), MailError> {
        let Some(reader) = self.readers.get_mut(name) else { return Ok(()) };
        let keys: HashSet<&MailKey> = keys.iter().collect();
        reader.outstanding.retain(|one| !keys.contains(&MailKey::Inside(one.message.id)));
        for key in keys {
            if let MailKey::Outside { claim: place, offset } = key {
                reader.live.acknowledge(place, *offset);
                for claim in &mut reader.claims {
                    claim.acknowledge(place, *offset);
                }
            }
        }
        let folder = &self.folder;
        reader.claims.retain_mut(|claim| !claim.finished(folder, name));
        Ok(())
    }

    /// The reader has ended: its inside mail that was not acknowledged is taken back.
    pub fn withdraw(&mut self, name: &AgentName) -> Vec<Message> {
        let Some(reader) = self.readers.get_mut(name) else { return Vec::new() };
        reader.outstanding.drain(..).map(|one| one.message).collect()
    }

    /// Inside messages that were sent and not yet drained.
    #[must_use]
    pub fn waiting(&self, name: &AgentName) -> usize {
        self.readers.get(name).map_or(0, |reader| reader.outstanding.iter().filter(|one| !one.drained).count())
    }

    /// Whose mailbox holds something that was not drained? A cheap look: no file is opened.
    pub fn with_mail<'a>(&self, readers: impl Iterator<Item = &'a AgentName>) -> Vec<AgentName> {
        let has_mail = |name: &&AgentName| {
            let file = self.folder.mailbox(name);
            match self.readers.get(*name) {
                None => files::length(&file) > 0,
                Some(reader) => {
                    reader.outstanding.iter().any(|one| !one.drained)
                        || reader.live.has_more(&file)
                        || reader.claims.iter().any(Claim::has_more)
                }
            }
        };
        readers.filter(has_mail).cloned().collect()
    }
}

/// Where a reader's mailbox lies in a workspace.
#[must_use]
pub fn mailbox_path(workspace: &Path, name: &AgentName) -> PathBuf {
    workspace.join(".mailboxes").join(files::file_name(name))
}
