//! Reads a session's journals back, also beside the run that writes them: the good part of whatever is there.
//!
//! Changes nothing on disk. Knows nothing of what the items mean together.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use serde::Deserialize;
use uuid::Uuid;

use super::JOURNAL_VERSION;
use super::writer::file_name;
use crate::event::Item;
use crate::protocol::AgentName;

/// How far back from its end a file is looked at in one step, in bytes.
const BACK_STEP: u64 = 64 * 1024;

/// What a session's journals say.
#[derive(Debug, Default)]
pub struct Past {
    /// In the order in which they happened.
    pub items: Vec<Item>,
    /// What is missing or could not be read, a sentence each.
    pub damage: Vec<String>,
}

/// Why a session can't be read. The text says what to do.
#[derive(Debug)]
pub struct Unreadable(String);

impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unreadable {}

#[derive(Deserialize)]
struct Header {
    journal: u32,
    session: Uuid,
    agent: AgentName,
}

/// A line: an item, and whether the next one belongs to the same unit.
#[derive(Deserialize)]
struct Line {
    #[serde(flatten)]
    item: Item,
    #[serde(default)]
    more: bool,
}

/// Reads the journals in a session's folder.
///
/// Lines that are damaged are left out and named; the unfinished end of a file is left out, with what belongs to it.
///
/// # Errors
/// There is no lead's journal, or a later version wrote one.
pub fn read_session(folder: &Path, session: Uuid) -> Result<Past, Unreadable> {
    let mut past = Past::default();
    let lead = folder.join(file_name(&AgentName::lead()));
    if !lead.is_file() {
        return Err(Unreadable(format!(
            "session {session} can't be resumed: its lead's journal is missing ({})",
            lead.display()
        )));
    }
    let failed = |path: &Path, error: &io::Error| Unreadable(format!("{} can't be read: {error}", path.display()));
    let mut paths: Vec<_> = fs::read_dir(folder)
        .map_err(|error| failed(folder, &error))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .collect();
    paths.sort();
    for path in paths {
        let bytes = fs::read(&path).map_err(|error| failed(&path, &error))?;
        read_journal(&bytes, &path, session, &mut past)?;
    }
    past.items.sort_by_key(|item| item.seq);
    Ok(past)
}

fn read_journal(bytes: &[u8], path: &Path, session: Uuid, past: &mut Past) -> Result<(), Unreadable> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut rest = bytes;
    let head = next_line(&mut rest).and_then(|line| serde_json::from_slice::<Header>(line).ok());
    match head {
        Some(head) if head.journal != JOURNAL_VERSION => {
            return Err(Unreadable(format!(
                "{} was written in form {} of the journal, and this version of s15 reads form {JOURNAL_VERSION}; resume it with the \
                 version that wrote it",
                path.display(),
                head.journal
            )));
        }
        Some(head) if head.session == session && file_name(&head.agent) == name => {}
        Some(_) | None => {
            past.damage.push(format!("{name} is not a journal of this session and was left out"));
            return Ok(());
        }
    }
    let (mut bad, mut first_bad, mut number) = (0, 0, 1);
    // Items of a unit whose last line has not come yet.
    let mut unit: Vec<Item> = Vec::new();
    while let Some(line) = next_line(&mut rest) {
        number += 1;
        match serde_json::from_slice::<Line>(line) {
            Ok(Line { item, more }) => {
                unit.push(item);
                if !more {
                    past.items.append(&mut unit);
                }
            }
            Err(_) => {
                first_bad = if bad == 0 { number } else { first_bad };
                bad += 1;
            }
        }
    }
    if bad > 0 {
        past.damage
            .push(format!("{bad} lines of {name} can't be read (the first is line {first_bad}) and were left out"));
    }
    if !unit.is_empty() || !rest.is_empty() {
        past.damage.push(format!("the end of {name} was cut off in the middle of a write; all before it is restored"));
    }
    Ok(())
}

/// The next whole line without its end; what is no whole line stays.
fn next_line<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = rest.iter().position(|&byte| byte == b'\n')?;
    let line = &rest[..end];
    *rest = &rest[end + 1..];
    Some(line)
}

/// How much of a journal is whole units, in bytes: what stands behind was torn when its writer ended.
pub(super) fn whole_len(file: &File) -> io::Result<u64> {
    let mut file = file;
    let len = file.metadata()?.len();
    // Looks at ever more of the end, until the last line of a whole unit stands in it.
    let mut from = len;
    while from > 0 {
        from = from.saturating_sub(BACK_STEP.max(len - from));
        file.seek(SeekFrom::Start(from))?;
        let mut tail = Vec::new();
        file.take(len - from).read_to_end(&mut tail)?;
        // A line of which the beginning isn't in the tail can't be judged.
        let begin =
            if from == 0 { 0 } else { tail.iter().position(|&byte| byte == b'\n').map_or(tail.len(), |at| at + 1) };
        if let Some(end) = last_unit_end(&tail[begin..]) {
            return Ok(from + (begin + end) as u64);
        }
    }
    Ok(0)
}

/// Where the last whole unit ends in these lines.
fn last_unit_end(lines: &[u8]) -> Option<usize> {
    let mut end = lines.iter().rposition(|&byte| byte == b'\n')? + 1;
    loop {
        let begin = lines[..end - 1].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        // A damaged line ends a unit as well as a whole one: what can't be read is kept as it is.
        let more = serde_json::from_slice::<More>(&lines[begin..end]).is_ok_and(|line| line.more);
        if !more {
            return Some(end);
        }
        if begin == 0 {
            return None;
        }
        end = begin;
    }
}

#[derive(Deserialize)]
struct More {
    #[serde(default)]
    more: bool,
}
