//! Folders and files that only their owner can read or change.
//!
//! Knows nothing of what is kept in them.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;

/// Makes a folder and those above it that are missing, for its owner alone (0700). One that exists stays as it is.
pub(crate) fn create_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Makes a folder directly below one that exists; refuses a link in its place, which may lead anywhere.
pub(crate) fn create_own_folder(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(facts) if facts.is_dir() => Ok(()),
        Ok(_) => Err(io::Error::other("something that is no folder stands in its place; remove it")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => create_folder(path),
        Err(error) => Err(error),
    }
}

/// Opens a file as `options` say; a new one is for its owner alone (0600).
pub(crate) fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options.open(path)
}
