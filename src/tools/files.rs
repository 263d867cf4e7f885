//! Reading, writing and editing text files. A write that fails leaves what was there.
//!
//! Knows places that were already judged; nothing of agents, gates or who has read what.

mod edit;
mod nearest;
mod read;
mod replace;

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};

use nix::errno::Errno;
use uuid::Uuid;

use super::paths::{Place, Workspace};

pub(super) use edit::edit;
#[cfg(test)]
pub(super) use edit::edited;
pub(super) use read::read;
pub(super) use replace::write;

/// Files larger than this are not edited.
const EDIT_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// What tells whether a file changed since it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    file: (u64, u64),
    bytes: u64,
    changed: (i64, i64),
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            file: (metadata.dev(), metadata.ino()),
            bytes: metadata.len(),
            changed: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

/// Opens a regular file; anything else is refused in words, and nothing is waited for.
fn open_file(place: &Place) -> Result<(File, Metadata), String> {
    let shown = place.shown();
    let unreadable = |error: io::Error| format!("{shown} {}", words(&error, "read"));
    let opened = place.open().and_then(|file| file.metadata().map(|metadata| (file, metadata)));
    let (file, metadata) = opened.map_err(unreadable)?;
    match not_regular(&metadata) {
        Some(kind) => Err(format!("{shown} is {kind}")),
        None => Ok((file, metadata)),
    }
}

/// What it is instead of a regular file, and what to do then.
fn not_regular(metadata: &Metadata) -> Option<&'static str> {
    let kind = metadata.file_type();
    match () {
        () if kind.is_file() => None,
        () if kind.is_dir() => Some("a folder; list what is in it with glob"),
        () if kind.is_fifo() => Some("a FIFO, not a regular file; leave it alone"),
        () if kind.is_socket() => Some("a socket, not a regular file; leave it alone"),
        () if kind.is_symlink() => Some("a link that just changed; try again"),
        () => Some("a device, not a regular file; leave it alone"),
    }
}

/// All of a text file that is small enough to edit.
fn whole_text(place: &Place) -> Result<(String, Stamp), String> {
    let (file, metadata) = open_file(place)?;
    let shown = place.shown();
    if metadata.len() > EDIT_BYTES_MAX {
        return Err(format!("{shown} has {} bytes, too many to edit here; use sed through bash", metadata.len()));
    }
    let mut bytes = Vec::new();
    // A file may grow while it is read.
    file.take(EDIT_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("{shown} {}", words(&error, "read")))?;
    if let Some(kind) = not_text(&bytes) {
        return Err(format!("{shown} is {kind}; change it through bash"));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let place = error.utf8_error().valid_up_to();
        format!("{shown} is not UTF-8 (from byte {place} on); change it through bash, or convert it with iconv")
    })?;
    Ok((text, Stamp::of(&metadata)))
}

/// Looks no further than is needed to know.
fn not_text(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some("UTF-16 text, not UTF-8"),
        bytes if bytes.contains(&0) => Some("a binary file"),
        _text => None,
    }
}

/// What tells one content from another.
fn digest(content: &[u8]) -> String {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, content).to_string()
}

/// The digest of what a text file in the workspace holds now; `None` if it can't be read.
pub(super) fn digest_now(workspace: &Workspace, path: &str) -> Option<String> {
    let place = workspace.writable(path).ok()?;
    let (mut file, _) = open_file(&place).ok()?;
    let mut content = Vec::new();
    file.read_to_end(&mut content).ok()?;
    Some(digest(&content))
}

/// What went wrong, as the rest of a sentence that begins with the path.
fn words(error: &io::Error, verb: &str) -> String {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ENOENT) => "does not exist; look for it with glob".to_owned(),
        Some(Errno::EACCES | Errno::EPERM) => format!("can't be {verb}: permission denied"),
        Some(Errno::ENOTDIR) => format!("can't be {verb}: a part of the path is no folder"),
        Some(Errno::ELOOP | Errno::EXDEV) => format!("can't be {verb}: its path just changed; try again"),
        Some(Errno::ENAMETOOLONG) => format!("can't be {verb}: the name is too long"),
        Some(Errno::ENXIO) => "is a socket or a device without its driver; leave it alone".to_owned(),
        Some(_) | None => format!("can't be {verb}: {error}"),
    }
}
