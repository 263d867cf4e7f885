//! `.team/` in the workspace: how the team stands, for people and tools. Written, never read.
//!
//! Knows nothing of what the values mean; every file is replaced whole, so that a reader never sees half of one.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use crate::event::Status;
use crate::private;
use crate::protocol::{AgentName, Request};

/// One member as `.team/config.json` shows it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RosterEntry {
    /// Its name.
    pub name: AgentName,
    /// What it is for.
    pub role: String,
    /// What it does.
    pub status: Status,
    /// Its model.
    pub model: String,
    /// Was it confirmed under a plan gate?
    pub require_plan: bool,
}

/// The writer of `.team/`. Touches nothing before the first view is written.
#[derive(Debug)]
pub struct Views {
    folder: PathBuf,
    told: AtomicBool,
}

impl Views {
    /// The views of a workspace (absolute).
    #[must_use]
    pub fn new(workspace: &Path) -> Self {
        Self { folder: workspace.join(".team"), told: AtomicBool::new(false) }
    }

    /// Writes `.team/config.json`. Gives a text for the user the first time that any view can't be written.
    #[must_use]
    pub fn write_roster(&self, session: Uuid, members: &[RosterEntry]) -> Option<String> {
        let written = self.prepare().and_then(|()| {
            let roster = json!({ "session": session, "members": members });
            replace(&self.folder, "config.json", &roster)
        });
        self.tell(written)
    }

    /// Writes `.team/requests/<id>.json`. Gives a text for the user the first time that any view can't be written.
    #[must_use]
    pub fn write_request(&self, request: &Request) -> Option<String> {
        let written = self.prepare().and_then(|()| {
            let folder = self.folder.join("requests");
            private::create_own_folder(&folder)?;
            replace(&folder, &format!("{}.json", request.id), request)
        });
        self.tell(written)
    }

    /// Makes the folder where it's missing, also when somebody removed it in between.
    fn prepare(&self) -> io::Result<()> {
        private::create_own_folder(&self.folder)?;
        match private::open(&self.folder.join(".gitignore"), OpenOptions::new().write(true).create_new(true)) {
            Ok(mut file) => file.write_all(b"*\n"),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn tell(&self, written: io::Result<()>) -> Option<String> {
        let error = written.err()?;
        let first = !self.told.swap(true, Ordering::Relaxed);
        first.then(|| {
            format!(
                "can't write {}: {error}; the team works on, but that view of it for people and tools is missing or stale",
                self.folder.display()
            )
        })
    }
}

/// Puts a value in a file's place, whole.
fn replace(folder: &Path, name: &str, value: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(folder)?;
    file.write_all(&text)?;
    file.persist(folder.join(name))?;
    Ok(())
}
