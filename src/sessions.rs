//! Which sessions there are, from their journals: also beside one that runs. Changes nothing.
//!
//! Knows nothing of how a session is built again.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use uuid::Uuid;

use crate::config::Which;
use crate::journal::minute;
use crate::lock::{Holder, workspace_folder};
use crate::protocol::request::short;

/// Longest first request that is shown, in characters.
const REQUEST_CHARS_MAX: usize = 60;
/// How much of a long journal's beginning and end is looked at where a glance is enough, in bytes.
const GLANCE_BYTES: u64 = 64 * 1024;

/// One session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// UUIDv7: in the order in which they began.
    pub id: Uuid,
    /// Where it worked.
    pub workspace: PathBuf,
    /// RFC 3339.
    pub begun: String,
    /// RFC 3339: of its last event.
    pub last: String,
    /// The first line for the lead, shortened; `None` if nothing was ever said.
    pub first_request: Option<String>,
    /// The teammates that were ever spawned, and whether each has ended.
    pub team: Vec<(String, bool)>,
    /// How it ended.
    pub end: End,
}

/// How a session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// It has not.
    Running,
    /// As it should; why, in a few words.
    Left(String),
    /// Its process was killed, or the machine went down.
    CutOff,
}

/// The parts of an item that a summary needs.
#[derive(Deserialize)]
struct Peek {
    time: String,
    event: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    workspace: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    status: String,
}

/// All sessions of all workspaces, the last used first.
#[must_use]
pub fn all(state_dir: &Path) -> Vec<Summary> {
    let folders =
        fs::read_dir(state_dir).into_iter().flatten().filter_map(|entry| entry.ok().map(|entry| entry.path()));
    sorted(folders.flat_map(|folder| in_folder(&folder)).collect())
}

/// The sessions of one workspace in which something was said, the last used first.
#[must_use]
pub fn of_workspace(state_dir: &Path, workspace: &Path) -> Vec<Summary> {
    let mut sessions = in_folder(&workspace_folder(state_dir, workspace));
    sessions.retain(|session| session.first_request.is_some());
    sorted(sessions)
}

/// The session that is meant.
///
/// # Errors
/// There is none, or more than one; the text says what to do.
pub fn pick(state_dir: &Path, workspace: &Path, which: &Which) -> anyhow::Result<Summary> {
    let sessions = of_workspace(state_dir, workspace);
    let none = || anyhow::anyhow!("there is no session to go on with in {}; start one with s15", workspace.display());
    let text = match which {
        Which::Last | Which::Choose => return sessions.into_iter().next().ok_or_else(none),
        Which::Named(text) => text.trim().to_ascii_lowercase(),
    };
    let fits =
        |session: &Summary| session.id.to_string().contains(&text) || session.id.simple().to_string().contains(&text);
    let mut hits = sessions.iter().filter(|session| fits(session));
    match (hits.next(), hits.next()) {
        (Some(hit), None) => return Ok(hit.clone()),
        (Some(_), Some(_)) => {
            anyhow::bail!("more than one session's id contains {text:?}; give more of it (s15 sessions)")
        }
        (None, _) => {}
    }
    match all(state_dir).into_iter().find(fits) {
        Some(other) if other.workspace != workspace => {
            let place = other.workspace.display();
            anyhow::bail!("session {} belongs to {place}: s15 -C {place} --resume {text}", other.id)
        }
        Some(_) | None => anyhow::bail!("there is no session {text:?}; s15 sessions lists those that there are"),
    }
}

/// The last session of a workspace if it didn't come to its end: it was cut off, or left with a team that lives.
#[must_use]
pub fn unfinished(state_dir: &Path, workspace: &Path) -> Option<Summary> {
    let folder = workspace_folder(state_dir, workspace).join("sessions");
    let changed = |path: &Path| path.join("lead.jsonl").metadata().and_then(|metadata| metadata.modified()).ok();
    let newest = fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter_map(|path| changed(&path).map(|at| (at, path)))
        .max()?;
    let session = read(&newest.1, None, true)?;
    let team_lives = session.team.iter().any(|(_, ended)| !ended);
    (session.first_request.is_some() && (session.end == End::CutOff || team_lives)).then_some(session)
}

fn sorted(mut sessions: Vec<Summary>) -> Vec<Summary> {
    sessions.sort_by(|a, b| b.last.cmp(&a.last).then(b.id.cmp(&a.id)));
    sessions
}

fn in_folder(workspace_folder: &Path) -> Vec<Summary> {
    let running = running(&workspace_folder.join("lock"));
    let entries = fs::read_dir(workspace_folder.join("sessions")).into_iter().flatten();
    entries.filter_map(|entry| read(&entry.ok()?.path(), running, false)).collect()
}

/// The session that runs in a workspace, as its lock's holder says; nothing is locked for that.
fn running(lock: &Path) -> Option<Uuid> {
    let holder: Holder = serde_json::from_slice(&fs::read(lock).ok()?).ok()?;
    let pid = nix::unistd::Pid::from_raw(i32::try_from(holder.pid).ok()?);
    let lives = !matches!(nix::sys::signal::kill(pid, None), Err(nix::errno::Errno::ESRCH));
    lives.then_some(holder.session)
}

fn read(folder: &Path, running: Option<Uuid>, at_a_glance: bool) -> Option<Summary> {
    let id = Uuid::parse_str(folder.file_name()?.to_str()?).ok()?;
    let mut session = Summary {
        id,
        workspace: PathBuf::new(),
        begun: String::new(),
        last: String::new(),
        first_request: None,
        team: Vec::new(),
        end: End::CutOff,
    };
    let mut file = File::open(folder.join("lead.jsonl")).ok()?;
    let len = file.metadata().ok()?.len();
    if at_a_glance && len > 2 * GLANCE_BYTES {
        session.take_in(BufReader::new((&file).take(GLANCE_BYTES)));
        file.seek(SeekFrom::Start(len - GLANCE_BYTES)).ok()?;
    }
    session.take_in(BufReader::new(&file));
    if running == Some(id) {
        session.end = End::Running;
    }
    (!session.begun.is_empty()).then_some(session)
}

impl Summary {
    /// Lines that are no items, and halves of lines, are passed over.
    fn take_in(&mut self, lines: impl BufRead) {
        let items =
            lines.split(b'\n').map_while(Result::ok).filter_map(|line| serde_json::from_slice::<Peek>(&line).ok());
        for item in items {
            match item.event.as_str() {
                "session_started" if self.begun.is_empty() => {
                    self.begun.clone_from(&item.time);
                    self.workspace = PathBuf::from(&item.workspace);
                }
                "user_line" if self.first_request.is_none() => self.first_request = Some(shortened(&item.text)),
                "teammate" => {
                    let ended = matches!(item.status.as_str(), "shutdown" | "failed");
                    match self.team.iter_mut().find(|(name, _)| *name == item.name) {
                        Some(known) => known.1 = ended,
                        None => self.team.push((item.name.clone(), ended)),
                    }
                }
                _ => {}
            }
            self.end = if item.event == "session_ended" { End::Left(item.reason) } else { End::CutOff };
            self.last = item.time;
        }
    }

    /// When, what, who, how: one line.
    #[must_use]
    pub fn line(&self) -> String {
        let team = match self.team.as_slice() {
            [] => "no team".to_owned(),
            team => team.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", "),
        };
        let request = self.first_request.as_deref().unwrap_or("(nothing was said)");
        format!("{}  {}  {request}  [{team}]  {}", short(self.id), minute(&self.last), self.end)
    }
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Running => f.write_str("running"),
            Self::Left(reason) if reason.is_empty() => f.write_str("ended"),
            Self::Left(reason) => f.write_str(reason),
            Self::CutOff => f.write_str("cut off"),
        }
    }
}

/// One line without control characters.
fn shortened(text: &str) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let line = line.trim();
    match line.char_indices().nth(REQUEST_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
