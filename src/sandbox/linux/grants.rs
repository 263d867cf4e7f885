//! Which places Landlock's rules have to name: they only grant, with all that is below, so a folder with something closed in it
//! is granted entry by entry instead, and is itself not granted.

use std::path::{Path, PathBuf};

use nix::errno::Errno;

use super::open::{Kind, Spot};

/// Entries that are granted one by one, at most; a folder with more can't be opened around what is closed in it.
const GRANTS_MAX: usize = 20_000;

/// Calls `grant` for each place at and below `top` that holds nothing of `closed`.
pub(super) fn around<E: From<Errno>>(
    top: &Path,
    closed: &[PathBuf],
    grant: &mut impl FnMut(Spot) -> Result<(), E>,
) -> Result<(), E> {
    let Some(spot) = Spot::at(top)? else { return Ok(()) };
    let mut left = GRANTS_MAX;
    descend(spot, top, closed, &mut left, grant)
}

fn descend<E: From<Errno>>(
    spot: Spot,
    path: &Path,
    closed: &[PathBuf],
    left: &mut usize,
    grant: &mut impl FnMut(Spot) -> Result<(), E>,
) -> Result<(), E> {
    if closed.iter().any(|closed| path == closed) {
        return Ok(());
    }
    if spot.kind != Kind::Folder || !closed.iter().any(|closed| closed.starts_with(path)) {
        *left = left.checked_sub(1).ok_or(Errno::E2BIG)?;
        return grant(spot);
    }
    for name in spot.names()? {
        if let Some(below) = Spot::in_folder(&spot.fd, Path::new(&name))? {
            descend(below, &path.join(name), closed, left, grant)?;
        }
    }
    Ok(())
}
