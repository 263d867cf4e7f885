//! Replacing a file's content as a whole or not at all: a new file is written beside it and takes its name.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat, renameat};
use nix::sys::stat::Mode;
use nix::unistd::{UnlinkatFlags, unlinkat};
use uuid::Uuid;

use super::super::paths::{Missing, PASSAGE, Place, Workspace};
use super::super::{Intent, Output, WriteFileArgs};
use super::{Stamp, digest, not_regular, words};
use crate::seam::{self, Defect, Disk};

/// What a new file may be used for, before the process' own mask.
const NEW_FILE_MODE: u32 = 0o666;
/// The same while an old file's own mode isn't set yet.
const UNFINISHED_MODE: u32 = 0o600;
const WRITE_BITS: u32 = 0o222;

pub(in super::super) fn write(workspace: &Workspace, call: &WriteFileArgs, intent: Intent) -> Output {
    let place = match workspace.writable(&call.path) {
        Ok(place) => place,
        Err(why) => return Output::error(why),
    };
    intent(&digest(call.content.as_bytes()));
    match replace(&place, call.content.as_bytes(), None) {
        Ok(was) => {
            let done = match was {
                Was::Absent => "created",
                Was::There => "replaced",
            };
            let (lines, bytes) = (call.content.lines().count(), call.content.len());
            Output::done(format!("{done} {} ({lines} lines, {bytes} bytes)", place.shown()))
        }
        Err(why) => Output::error(format!("{} {why}", place.shown())),
    }
}

/// What stood at the place before.
pub(super) enum Was {
    Absent,
    There,
}

/// Puts the content at the place. Keeps the mode of what was there, and its owner where that is allowed; `since`: only
/// if nobody changed the file since it was read.
///
/// # Errors
/// The rest of a sentence that begins with the path. What was there still is.
pub(super) fn replace(place: &Place, content: &[u8], since: Option<Stamp>) -> Result<Was, String> {
    let failed = |error: io::Error| words(&error, "written");
    let folder = place.parent(Missing::IsMade).map_err(failed)?;
    let before = before(&folder, place.file_name())?;
    let mut beside = Beside::create(&folder, before.as_ref()).map_err(failed)?;
    let written = seam::write_all(Disk::Work, &beside.file, content);
    if !seam::broken(Defect::HalfWritten) {
        written.map_err(failed)?;
    }
    if let Some(before) = &before {
        keep(&beside.file, before).map_err(failed)?;
    }
    if let Some(since) = since
        && self::before(&folder, place.file_name())?.as_ref().map(Stamp::of) != Some(since)
    {
        return Err("was changed by somebody else in the meantime; read it again".to_owned());
    }
    beside.take_name(place.file_name()).map_err(failed)?;
    Ok(if before.is_some() { Was::There } else { Was::Absent })
}

/// What stands there now, if it may be replaced.
fn before(folder: &OwnedFd, name: &OsStr) -> Result<Option<Metadata>, String> {
    let flags = PASSAGE | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let metadata = match openat(folder, name, flags, Mode::empty()) {
        Ok(file) => File::from(file).metadata().map_err(|error| words(&error, "written"))?,
        Err(Errno::ENOENT) => return Ok(None),
        Err(error) => return Err(words(&error.into(), "written")),
    };
    match not_regular(&metadata) {
        Some(kind) => Err(format!("is {kind}")),
        None if metadata.mode() & WRITE_BITS == 0 => {
            Err("is read-only; chmod it first if it is yours to change".to_owned())
        }
        None => Ok(Some(metadata)),
    }
}

fn keep(file: &File, before: &Metadata) -> io::Result<()> {
    let now = file.metadata()?;
    if (now.uid(), now.gid()) != (before.uid(), before.gid()) {
        // Only root may give files away; a file of one's own is better than none.
        let _ = fchown(file, Some(before.uid()), Some(before.gid()));
    }
    file.set_permissions(Permissions::from_mode(before.mode() & 0o7777))
}

/// A file that is still nameless to others; gone again unless it takes its name.
struct Beside<'a> {
    folder: &'a OwnedFd,
    name: Option<OsString>,
    file: File,
}

impl<'a> Beside<'a> {
    fn create(folder: &'a OwnedFd, before: Option<&Metadata>) -> io::Result<Self> {
        let name = OsString::from(format!(".s15-{}.tmp", Uuid::new_v4().simple()));
        let mode = if before.is_some() { UNFINISHED_MODE } else { NEW_FILE_MODE };
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        // The type of a mode differs from system to system.
        let file = openat(folder, name.as_os_str(), flags, Mode::from_bits_truncate(mode as _))?;
        Ok(Self { folder, name: Some(name), file: file.into() })
    }

    fn take_name(&mut self, name: &OsStr) -> io::Result<()> {
        if let Some(own) = &self.name {
            renameat(self.folder, own.as_os_str(), self.folder, name)?;
        }
        self.name = None;
        Ok(())
    }
}

impl Drop for Beside<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // Nothing more can be done about a file that won't go.
            let _ = unlinkat(self.folder, name.as_os_str(), UnlinkatFlags::NoRemoveDir);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::whole_text;
    use super::*;

    #[test]
    fn i10_what_somebody_else_changed_since_it_was_read_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.txt");
        let workspace = Workspace::new(folder.path(), folder.path()).unwrap();
        for change in [
            |file: &std::path::Path| std::fs::write(file, "longer than before"),
            |file: &std::path::Path| std::fs::remove_file(file),
            |file: &std::path::Path| {
                std::fs::write(file.with_extension("new"), "before")?;
                std::fs::rename(file.with_extension("new"), file)
            },
        ] {
            std::fs::write(&file, "before").unwrap();
            let place = workspace.writable("a.txt").unwrap();
            let (_, stamp) = whole_text(&place).unwrap();
            change(&file).unwrap();
            let left = std::fs::read(&file).ok();
            let refused = replace(&place, b"after", Some(stamp)).err().unwrap();
            assert!(refused.contains("changed by somebody else in the meantime"), "{refused}");
            assert_eq!(std::fs::read(&file).ok(), left);
            assert!(std::fs::read_dir(folder.path()).unwrap().count() <= 1, "nothing is left beside it");
        }
    }
}
