//! The journals: one file an agent, written by one thread, whole lines only.
//!
//! Knows which event belongs into whose journal; knows nothing of how a session is resumed from it.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use serde_json::json;
use uuid::Uuid;

use super::{Events, timestamp};
use crate::event::{Event, Item, Level};
use crate::private;
use crate::protocol::AgentName;

/// The version of a journal's form, in its first line.
pub const JOURNAL_VERSION: u32 = 1;
/// Most items that go into one write.
const BATCH_ITEMS_MAX: usize = 256;
/// How much of one journal is kept in memory while it can't be written; beyond that the journal is given up.
const PENDING_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The journals of a session, while they are written: `<folder>/<agent>.jsonl`.
///
/// The first line of each is `{"journal":1,"session":…,"agent":…,"created":…}`, every further one an [`Item`].
#[derive(Debug)]
pub struct Journal {
    work: Sender<Work>,
    thread: Option<JoinHandle<()>>,
}

enum Work {
    Item(Box<Item>),
    Close,
}

impl Journal {
    /// Writes everything that `events` tells from now on, but streaming text, below `folder`, which is made when it's needed.
    ///
    /// What can't be written is told once as a warning in `events` and tried again with the next item; the run goes on.
    ///
    /// # Errors
    /// If no thread can be had.
    pub fn start(folder: PathBuf, session: Uuid, events: &Events) -> io::Result<Self> {
        let (work, inbox) = channel();
        let mut writer = Writer { folder, session, events: events.clone(), files: BTreeMap::new(), told: false };
        let thread = std::thread::Builder::new().name("journal".to_owned()).spawn(move || writer.run(&inbox))?;
        let items = work.clone();
        events.attach(Box::new(move |item| match file_of(&item.event) {
            Some(_) => items.send(Work::Item(Box::new(item.clone()))).is_ok(),
            None => true,
        }));
        Ok(Self { work, thread: Some(thread) })
    }

    /// Writes what is still to be written and ends.
    pub fn close(self) {
        drop(self);
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else {
            return;
        };
        // Either can only fail if the thread panicked, and then there's nothing left to do.
        drop(self.work.send(Work::Close));
        drop(thread.join());
    }
}

/// Whose journal an event belongs into: an agent's own, or the lead's for what concerns the session; `None` for none.
fn file_of(event: &Event) -> Option<AgentName> {
    match event {
        Event::Text { .. } | Event::TextVoid { .. } => None,
        Event::Replied { agent, .. }
        | Event::ToolStarted { agent, .. }
        | Event::ToolEnded { agent, .. }
        | Event::Delivered { agent, .. }
        | Event::TurnStarted { agent }
        | Event::TurnEnded { agent, .. }
        | Event::Retry { agent, .. } => Some(agent.clone()),
        Event::SessionStarted { .. }
        | Event::UserLine { .. }
        | Event::Proposed { .. }
        | Event::ProposalChanged { .. }
        | Event::Confirmed { .. }
        | Event::ProposalVoided { .. }
        | Event::Teammate { .. }
        | Event::MailSent { .. }
        | Event::MailFromOutside { .. }
        | Event::MailSetAside { .. }
        | Event::RequestOpened { .. }
        | Event::RequestEnded { .. }
        | Event::GateChanged { .. }
        | Event::Wake { .. }
        | Event::Question { .. }
        | Event::Answered { .. }
        | Event::AllShutDown
        | Event::Notice { .. }
        | Event::SessionEnded { .. } => Some(AgentName::lead()),
    }
}

struct Writer {
    folder: PathBuf,
    session: Uuid,
    events: Events,
    files: BTreeMap<AgentName, AgentFile>,
    /// Was the user told that something can't be written?
    told: bool,
}

impl Writer {
    fn run(&mut self, inbox: &Receiver<Work>) {
        let mut open = true;
        while open {
            let Ok(first) = inbox.recv() else { return };
            for work in std::iter::once(first).chain(inbox.try_iter()).take(BATCH_ITEMS_MAX) {
                match work {
                    Work::Item(item) => self.keep(&item),
                    Work::Close => open = false,
                }
            }
            self.write_all();
        }
    }

    /// Puts an item with what is to be written.
    fn keep(&mut self, item: &Item) {
        let Some(agent) = file_of(&item.event) else {
            return;
        };
        // Only a map with keys that are no text can fail to be JSON, and no event has one.
        let Ok(mut line) = serde_json::to_vec(item) else {
            return;
        };
        line.push(b'\n');
        let file = self.files.entry(agent).or_insert_with_key(|agent| AgentFile::new(&self.folder, agent));
        file.push(&line);
    }

    fn write_all(&mut self) {
        let mut trouble = None;
        for (agent, file) in &mut self.files {
            if let Err(error) = file.write(self.session, agent) {
                trouble.get_or_insert_with(|| {
                    format!(
                        "can't write the journal {}: {error}; the run goes on, but what isn't recorded can't be resumed. Make room, \
                         or set S15_STATE_DIR to a folder that can be written",
                        file.path.display()
                    )
                });
            }
        }
        if let Some(text) = trouble.filter(|_| !self.told) {
            self.told = true;
            self.events.emit(Event::Notice { level: Level::Warning, text });
        }
    }
}

/// One journal.
struct AgentFile {
    path: PathBuf,
    file: Option<File>,
    /// How much of the file is whole lines, in bytes.
    len: u64,
    /// Whole lines that are not yet in the file.
    pending: Vec<u8>,
    /// Too much was lost: a journal with a hole is worse than one that ends.
    given_up: bool,
}

impl AgentFile {
    fn new(folder: &Path, agent: &AgentName) -> Self {
        // Lower case, since one name in two spellings is one agent.
        let path = folder.join(format!("{}.jsonl", agent.as_str().to_ascii_lowercase()));
        Self { path, file: None, len: 0, pending: Vec::new(), given_up: false }
    }

    fn push(&mut self, line: &[u8]) {
        if self.pending.len() + line.len() > PENDING_BYTES_MAX && !self.pending.is_empty() {
            self.pending = Vec::new();
            self.given_up = true;
        }
        if !self.given_up {
            self.pending.extend_from_slice(line);
        }
    }

    /// Appends what is pending, all or nothing.
    fn write(&mut self, session: Uuid, agent: &AgentName) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        if self.file.is_none() {
            self.open(session, agent)?;
        }
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        match file.write_all(&self.pending) {
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

    fn open(&mut self, session: Uuid, agent: &AgentName) -> io::Result<()> {
        if let Some(folder) = self.path.parent() {
            private::create_folder(folder)?;
        }
        let file = private::open(&self.path, OpenOptions::new().append(true).create(true))?;
        self.len = file.metadata()?.len();
        if self.len == 0 {
            let header =
                json!({ "journal": JOURNAL_VERSION, "session": session, "agent": agent, "created": timestamp() });
            let mut head = format!("{header}\n").into_bytes();
            head.append(&mut self.pending);
            self.pending = head;
        }
        self.file = Some(file);
        Ok(())
    }
}
