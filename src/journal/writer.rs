//! The journals: one file an agent, written as things happen, whole units only.
//!
//! Knows which event belongs into whose journal; knows nothing of how a session is resumed from it.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use super::sync::Syncer;
use super::timestamp;
use crate::event::{Event, Item};
use crate::killpoint;
use crate::private;
use crate::protocol::AgentName;
use crate::seam::{self, Disk};

/// The version of a journal's form, in its first line.
pub const JOURNAL_VERSION: u32 = 2;
/// How much of one journal is kept in memory while it can't be written; beyond that the journal is given up.
const PENDING_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The journals of a session, while they are written: `<folder>/<agent>.jsonl`.
///
/// The first line of each is `{"journal":2,"session":…,"agent":…,"created":…}`, every further one an [`Item`]. What belongs
/// together is one unit of lines, written with one write: all of them but the last have `"more":true`.
///
/// A line is in the file, out of reach of a killed process, when a write returns. A power cut can cost what was written within
/// about the last [`super::SYNC_EVERY`].
#[derive(Debug)]
pub struct Journal {
    folder: PathBuf,
    session: Uuid,
    files: BTreeMap<AgentName, AgentFile>,
    syncer: Syncer,
    /// Was the user told that something can't be written?
    told: bool,
}

/// Why something isn't in the journal, said once.
#[derive(Debug)]
pub(super) struct Trouble {
    pub(super) text: String,
}

/// One line as it is written.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    item: &'a Item,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    more: bool,
}

impl Journal {
    /// For a session's folder, which is made when it's needed. A journal that is there already is continued, from its last whole
    /// unit on.
    ///
    /// What can't be written is told once as a warning and tried again with the next item; the run goes on.
    ///
    /// # Errors
    /// If no thread can be had.
    pub fn new(folder: PathBuf, session: Uuid) -> io::Result<Self> {
        Ok(Self { folder, session, files: BTreeMap::new(), syncer: Syncer::start()?, told: false })
    }

    /// Is everything in the files that was to be written?
    #[must_use]
    pub(super) fn is_whole(&self) -> bool {
        self.files.values().all(|file| file.pending.is_empty() && !file.given_up)
    }

    /// Writes one item into the journal of the agent that it is about.
    pub(super) fn write_own(&mut self, item: &Item) -> Result<(), Trouble> {
        match file_of(&item.event) {
            Some(agent) => self.write(agent, std::slice::from_ref(item)),
            None => Ok(()),
        }
    }

    /// Writes what the session did in one step into the lead's journal, all or nothing.
    pub(super) fn write_unit(&mut self, unit: &[Item]) -> Result<(), Trouble> {
        self.write(AgentName::lead(), unit)
    }

    fn write(&mut self, agent: AgentName, unit: &[Item]) -> Result<(), Trouble> {
        killpoint::pass("journal_before");
        let mut lines = Vec::new();
        for (at, item) in unit.iter().enumerate() {
            // Only a map with keys that are no text can fail to be JSON, and no event has one.
            if serde_json::to_writer(&mut lines, &Line { item, more: at + 1 < unit.len() }).is_ok() {
                lines.push(b'\n');
            }
        }
        let folder = &self.folder;
        let file = self.files.entry(agent).or_insert_with_key(|agent| AgentFile::new(folder, agent));
        file.push(&lines);
        let mut written = Ok(());
        // What another journal could not write is tried again, too.
        for (agent, file) in self.files.iter_mut().filter(|(_, file)| !file.pending.is_empty()) {
            match file.write(self.session, agent) {
                Ok(()) => file.file.iter().for_each(|file| self.syncer.soon(file)),
                Err(error) => written = written.and(Err((file.path.clone(), error))),
            }
        }
        killpoint::pass("journal_after");
        written.or_else(
            |(path, error)| if std::mem::replace(&mut self.told, true) { Ok(()) } else { Err(trouble(&path, &error)) },
        )
    }
}

fn trouble(path: &Path, error: &io::Error) -> Trouble {
    let text = format!(
        "can't write the journal {}: {error}; the run goes on, but what isn't recorded can't be resumed. Make room, \
         or set S15_STATE_DIR to a folder that can be written",
        path.display()
    );
    Trouble { text }
}

/// Whose journal an event belongs into that stands for itself: an agent's own, or the lead's for what concerns the session;
/// `None` for none.
fn file_of(event: &Event) -> Option<AgentName> {
    match event {
        Event::Text { .. } | Event::TextVoid { .. } => None,
        Event::Replied { agent, .. }
        | Event::ToolStarted { agent, .. }
        | Event::ToolEnded { agent, .. }
        | Event::Retry { agent, .. } => Some(agent.clone()),
        Event::Record(record) => Some(record.agent().cloned().unwrap_or_else(AgentName::lead)),
        Event::SessionStarted { .. }
        | Event::SessionResumed { .. }
        | Event::UserLine { .. }
        | Event::Proposed { .. }
        | Event::ProposalChanged { .. }
        | Event::Confirmed { .. }
        | Event::ProposalVoided { .. }
        | Event::Teammate { .. }
        | Event::MailSent { .. }
        | Event::MailFromOutside { .. }
        | Event::MailSetAside { .. }
        | Event::Delivered { .. }
        | Event::RequestOpened { .. }
        | Event::RequestEnded { .. }
        | Event::GateChanged { .. }
        | Event::Wake { .. }
        | Event::TurnStarted { .. }
        | Event::TurnEnded { .. }
        | Event::Question { .. }
        | Event::Answered { .. }
        | Event::AllShutDown
        | Event::Notice { .. }
        | Event::SessionEnded { .. } => Some(AgentName::lead()),
    }
}

/// The file name of an agent's journal. Lower case, since one name in two spellings is one agent.
pub(super) fn file_name(agent: &AgentName) -> String {
    format!("{}.jsonl", agent.as_str().to_ascii_lowercase())
}

/// One journal.
#[derive(Debug)]
struct AgentFile {
    path: PathBuf,
    file: Option<Arc<File>>,
    /// How much of the file is whole units, in bytes.
    len: u64,
    /// Whole units that are not yet in the file.
    pending: Vec<u8>,
    /// Too much was lost: a journal with a hole is worse than one that ends.
    given_up: bool,
}

impl AgentFile {
    fn new(folder: &Path, agent: &AgentName) -> Self {
        Self { path: folder.join(file_name(agent)), file: None, len: 0, pending: Vec::new(), given_up: false }
    }

    fn push(&mut self, lines: &[u8]) {
        if self.pending.len() + lines.len() > PENDING_BYTES_MAX && !self.pending.is_empty() {
            self.pending = Vec::new();
            self.given_up = true;
        }
        if !self.given_up {
            self.pending.extend_from_slice(lines);
        }
    }

    /// Appends what is pending, all or nothing.
    fn write(&mut self, session: Uuid, agent: &AgentName) -> io::Result<()> {
        let file = match &self.file {
            Some(file) => Arc::clone(file),
            None => self.open(session, agent)?,
        };
        if killpoint::due("journal_torn") {
            drop((&*file).write_all(&self.pending[..self.pending.len() / 2]));
            killpoint::die("journal_torn");
        }
        match seam::write_all(Disk::Journal, &*file, &self.pending) {
            Ok(()) => {
                self.len += self.pending.len() as u64;
                self.pending.clear();
                Ok(())
            }
            Err(error) => {
                // A torn line would spoil the next one too.
                drop(file.set_len(self.len));
                Err(error)
            }
        }
    }

    fn open(&mut self, session: Uuid, agent: &AgentName) -> io::Result<Arc<File>> {
        if let Some(folder) = self.path.parent() {
            private::create_folder(folder)?;
        }
        let file = private::open(&self.path, OpenOptions::new().read(true).append(true).create(true))?;
        self.len = super::reader::whole_len(&file)?;
        if self.len < file.metadata()?.len() {
            file.set_len(self.len)?;
        }
        if self.len == 0 {
            let header =
                json!({ "journal": JOURNAL_VERSION, "session": session, "agent": agent, "created": timestamp() });
            let mut head = format!("{header}\n").into_bytes();
            head.append(&mut self.pending);
            self.pending = head;
        }
        let file = Arc::new(file);
        self.file = Some(Arc::clone(&file));
        Ok(file)
    }
}
