//! Places opened by their exact path: a link on the way is none.
//!
//! Bounds are made when a session starts, and commands change folders all the while: who followed links here would open what
//! a command has put in a place instead of the place.

use std::fs::{self, File};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::{Component, Path};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, openat};
use nix::sys::stat::Mode;

/// Something that exists, and what it is.
pub(super) struct Spot {
    pub(super) fd: OwnedFd,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Folder,
    Device,
    /// A file, a socket, a pipe.
    Other,
}

impl Spot {
    /// What lies at an absolute path. `None`: nothing, or a link on the way.
    pub(super) fn at(path: &Path) -> nix::Result<Option<Self>> {
        let mut spot = Self::in_folder(AT_FDCWD, Path::new("/"))?;
        for part in path.components() {
            let (Some(above), Component::Normal(name)) = (&spot, part) else { continue };
            spot = Self::in_folder(&above.fd, Path::new(name))?;
        }
        Ok(spot)
    }

    /// What lies under a name in a folder, or in no folder. `None`: nothing, or a link.
    pub(super) fn in_folder(folder: impl AsFd, name: &Path) -> nix::Result<Option<Self>> {
        let fd = match openat(folder, name, OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP | Errno::EACCES) => return Ok(None),
            Err(errno) => return Err(errno),
        };
        let file = File::from(fd);
        let facts = file.metadata().map_err(|error| errno(&error))?.file_type();
        let kind = match () {
            () if facts.is_symlink() => return Ok(None),
            () if facts.is_dir() => Kind::Folder,
            () if facts.is_char_device() || facts.is_block_device() => Kind::Device,
            () => Kind::Other,
        };
        Ok(Some(Self { fd: file.into(), kind }))
    }

    /// The names in a folder.
    pub(super) fn names(&self) -> nix::Result<Vec<std::ffi::OsString>> {
        use std::os::fd::AsRawFd;
        let entries = match fs::read_dir(format!("/proc/self/fd/{}", self.fd.as_raw_fd())) {
            Ok(entries) => entries,
            // A folder that can't be listed holds nothing that could be named.
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => return Ok(Vec::new()),
            Err(error) => return Err(errno(&error)),
        };
        entries.map(|entry| Ok(entry.map_err(|error| errno(&error))?.file_name())).collect()
    }
}

pub(super) fn errno(error: &std::io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(0))
}
