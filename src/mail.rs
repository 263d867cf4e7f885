//! Mailboxes: a file a reader, filled and emptied in sight of everybody, while the truth about inside mail stays in memory.
//!
//! Inside mail is what this session issued: it is delivered from the runtime's own copy, whatever happens to its line. Everything
//! else in a mailbox is outside mail, told apart by where it stood. Knows nothing of agents or of what a message means.

mod claim;
mod folder;
mod held;
mod lease;
mod lines;
mod mailbox;
mod parse;
#[cfg(test)]
mod tests;
mod watch;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use uuid::Uuid;

use crate::killpoint;
use crate::protocol::{AgentName, Mail, MailKey, Message, MessageType, Metadata};
use crate::seam::{self, Defect};

use claim::Patience;
use folder::Folder;
use mailbox::Mailbox;

pub use folder::MailError;
pub use watch::Watch;

/// Lines that one drain takes from files at most; the rest waits for the next.
const DRAIN_LINES_MAX: usize = 500;
/// Bytes that one drain takes from files at most, but for the end of a line.
const DRAIN_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// All mailboxes of a workspace, for their one consumer.
#[derive(Debug)]
pub struct Post {
    folder: Folder,
    session: Uuid,
    mailboxes: HashMap<AgentName, Mailbox>,
    patience: Patience,
    last_id: Uuid,
    /// Were the folders made in this run? Then they are made anew when somebody removes them.
    made: bool,
}

/// What an earlier run of a session issued and took in.
#[derive(Debug, Default)]
pub struct Issued {
    /// Every message that was ever issued: its reader and its id.
    pub ids: Vec<(AgentName, Uuid)>,
    /// Those that were not acknowledged, oldest first, and whether their reader was given them.
    pub outstanding: Vec<(Message, bool)>,
    /// Outside mail that its reader was given.
    pub taken: Vec<(AgentName, MailKey)>,
}

/// What a drain found.
#[derive(Debug, Default)]
pub struct Drain {
    /// In order; each is given once.
    pub mail: Vec<Mail>,
    /// Lines that are no message. They are kept in `.mailboxes/.quarantine`.
    pub set_aside: Vec<SetAside>,
    /// Something the user should know; said once, until it has changed.
    pub trouble: Option<String>,
    /// Lines were left in files, for want of room.
    pub more: bool,
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
            mailboxes: HashMap::new(),
            patience: Patience::USUAL,
            last_id: Uuid::nil(),
            made: false,
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

    /// Makes the folders, and this run their one consumer. What an earlier run had taken and not finished is taken up when its reader drains.
    ///
    /// # Errors
    /// They can't be made, or another run reads them; the text names the path and the cause.
    pub fn prepare(&mut self) -> Result<(), MailError> {
        self.folder.make()?;
        self.folder.hold()?;
        self.made = true;
        Ok(())
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
        let id = id_after(self.last_id, seam::new_id());
        self.last_id = id;
        let timestamp = format!("{:.3}", seam::now());
        Message { id, session: self.session, from: from.clone(), to: to.clone(), kind, content, metadata, timestamp }
    }

    /// Sends messages to one reader in one write. On success they are issued: held in memory until acknowledged.
    ///
    /// A process that only sends needs no hold on the mailboxes; to their consumer its messages are outside mail.
    ///
    /// # Errors
    /// The file can't be written, or its lock can't be had; nothing was sent.
    ///
    /// # Panics
    /// In a debug build, when the messages are not all to one reader.
    pub fn send(&mut self, batch: Vec<Message>) -> Result<(), MailError> {
        let Some(to) = batch.first().map(|message| message.to.clone()) else { return Ok(()) };
        debug_assert!(batch.iter().all(|message| message.to == to), "one reader a batch");
        self.folder.make()?;
        self.made = true;
        self.mailboxes.entry(to.clone()).or_insert_with(|| Mailbox::new(to)).send(batch, &self.folder)
    }

    /// Issues messages to one reader: from here on they are held in memory until acknowledged. Their lines are written by
    /// [`Post::write_out`], once it is recorded that they were issued.
    pub fn issue(&mut self, batch: Vec<Message>) {
        let Some(to) = batch.first().map(|message| message.to.clone()) else { return };
        self.mailboxes.entry(to.clone()).or_insert_with(|| Mailbox::new(to)).held.issue(batch, false);
    }

    /// Writes the lines of messages that were issued to a reader, in one write.
    ///
    /// # Errors
    /// The file can't be written, or its lock can't be had; the messages are delivered from memory all the same.
    pub fn write_out(&mut self, to: &AgentName) -> Result<(), MailError> {
        let Some(mailbox) = self.mailboxes.get_mut(to).filter(|mailbox| mailbox.held.is_unwritten()) else {
            return Ok(());
        };
        self.made = true;
        let made = self.folder.make();
        mailbox.write_out(&self.folder, made)
    }

    /// Takes up the mail of a session that is resumed.
    pub fn restore(&mut self, past: Issued) {
        self.last_id = past.ids.iter().map(|(_, id)| *id).max().unwrap_or_default();
        let mut mailbox = |name: &AgentName, act: &mut dyn FnMut(&mut Mailbox)| {
            act(self.mailboxes.entry(name.clone()).or_insert_with(|| Mailbox::new(name.clone())));
        };
        for (to, id) in past.ids {
            mailbox(&to, &mut |mailbox| mailbox.held.expect(id));
        }
        for (message, drained) in past.outstanding {
            if !drained && seam::broken(Defect::ForgetUnread) {
                continue;
            }
            mailbox(&message.to.clone(), &mut |mailbox| mailbox.held.restore(message.clone(), drained));
        }
        for (reader, key) in past.taken {
            if !seam::broken(Defect::ForgetTaken) {
                mailbox(&reader, &mut |mailbox| mailbox.pass_over(key.clone()));
            }
        }
    }

    /// Takes what lies in a mailbox. Gives no mail twice; what it gave waits for its acknowledgement.
    ///
    /// Inside mail comes first and all of it; what lies in files is bounded, and the rest waits for the next drain.
    pub fn drain(&mut self, name: &AgentName) -> Drain {
        let mut drain = Drain::default();
        let made = if self.made { self.folder.make() } else { Ok(()) };
        let exists = self.folder.exists();
        let made = made.and_then(|()| if exists { self.folder.hold() } else { Ok(()) });
        let mailbox = self.mailboxes.entry(name.clone()).or_insert_with(|| Mailbox::new(name.clone()));
        // It needs no file for that: the file is the record, memory the truth.
        drain.mail.extend(mailbox.held.drain());
        if seam::broken(Defect::DeliverReversed) {
            drain.mail.reverse();
        }
        if let Err(error) = made {
            mailbox.tell(&mut drain, error.to_string());
        } else if exists {
            mailbox.take_files(&self.folder, self.session, self.patience, &mut drain);
        }
        if !drain.mail.is_empty() {
            killpoint::pass("drained");
        }
        drain
    }

    /// The mail with these keys has reached its reader. Keys that are not known, or no longer, are passed over.
    ///
    /// # Errors
    /// None at present: a file that can't be removed is tried again at the next drain.
    pub fn acknowledge(&mut self, name: &AgentName, keys: &[MailKey]) -> Result<(), MailError> {
        if let Some(mailbox) = self.mailboxes.get_mut(name).filter(|_| !seam::broken(Defect::NoAcknowledge)) {
            mailbox.acknowledge(keys, self.patience);
        }
        Ok(())
    }

    /// The reader has ended: its inside mail that was not acknowledged is taken back, oldest first.
    ///
    /// Outside mail that it was given and didn't acknowledge stays claimed, and is given again in the next run.
    pub fn withdraw(&mut self, name: &AgentName) -> Vec<Message> {
        self.mailboxes.get_mut(name).map_or_else(Vec::new, |mailbox| mailbox.withdraw(self.patience))
    }

    /// One message to a reader is taken back, drained or not, unless it was acknowledged.
    pub fn withdraw_one(&mut self, name: &AgentName, id: Uuid) -> Option<Message> {
        self.mailboxes.get_mut(name)?.withdraw_one(id, self.patience)
    }

    /// Was this message issued to that reader and not yet acknowledged?
    #[must_use]
    pub fn is_outstanding(&self, name: &AgentName, id: Uuid) -> bool {
        self.mailboxes.get(name).is_some_and(|mailbox| mailbox.held.is_outstanding(id))
    }

    /// Inside messages that were sent and not yet drained.
    #[must_use]
    pub fn waiting(&self, name: &AgentName) -> usize {
        self.mailboxes.get(name).map_or(0, |mailbox| mailbox.held.waiting())
    }

    /// Whose mailbox holds something that was not drained, or deserves a drain for what it may tidy up? A cheap look: no file is
    /// opened. A folder that was removed is made anew, so that others find it.
    #[must_use]
    pub fn with_mail<'a>(&self, readers: impl Iterator<Item = &'a AgentName>) -> Vec<AgentName> {
        if self.made && !(self.folder.exists() && self.folder.claimed().is_dir()) {
            // Who can't be helped here is told at the next drain.
            drop(self.folder.make());
        }
        let deserves_look = |name: &&AgentName| match self.mailboxes.get(*name) {
            Some(mailbox) => mailbox.deserves_look(&self.folder, self.patience),
            None => Mailbox::new((*name).clone()).deserves_look(&self.folder, self.patience),
        };
        readers.filter(deserves_look).cloned().collect()
    }
}

impl Drop for Post {
    /// Nobody comes back to tidy up: what is done with goes now, if nobody writes to it.
    fn drop(&mut self) {
        if seam::is_killed() {
            return;
        }
        let patience = Patience { rest: Duration::ZERO, ..self.patience };
        self.mailboxes.values_mut().for_each(|mailbox| mailbox.tidy(patience));
    }
}

/// `now`, or the id next to the last one where the clock stood or jumped back: mail keeps its order.
fn id_after(last: Uuid, now: Uuid) -> Uuid {
    if now > last { now } else { Uuid::from_u128(last.as_u128() + 1) }
}

/// Where a reader's mailbox lies in a workspace.
#[must_use]
pub fn mailbox_path(workspace: &Path, name: &AgentName) -> PathBuf {
    workspace.join(".mailboxes").join(folder::file_name(name))
}
