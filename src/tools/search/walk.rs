//! The files below a folder that .gitignore doesn't exclude, without the program's own.
//!
//! Links are named but not followed. Knows nothing of patterns.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use ignore::{DirEntry, WalkBuilder, WalkState};

use super::in_order;

/// Folders that are not looked into.
const LEFT_OUT: [&str; 3] = [".git", ".mailboxes", ".team"];
/// More threads than this find no files faster.
const THREADS_MAX: usize = 8;

/// What a walk found.
pub(super) struct Found {
    /// Sorted.
    pub(super) paths: Vec<PathBuf>,
    /// Folders and files that could not be looked at.
    pub(super) unreadable: usize,
}

/// The regular files and links below `begin`, or `begin` itself, whose path fits. `None`: broken off.
pub(super) fn walk(
    begin: &Path,
    root: &Path,
    fits: &(dyn Fn(&Path) -> bool + Sync),
    off: &AtomicBool,
) -> Option<Found> {
    let mut builder = WalkBuilder::new(begin);
    builder.hidden(false).require_git(false).threads(threads()).filter_entry(is_looked_into);
    // The .gitignore files above count for a part of the workspace and within a repository; what lies above a
    // workspace that is none says nothing about it.
    builder.parents(begin != root || root.ancestors().any(|folder| folder.join(".git").exists()));
    let paths = Mutex::new(Vec::new());
    let unreadable = AtomicUsize::new(0);
    builder.build_parallel().run(|| {
        Box::new(|entry| {
            if off.load(Ordering::Relaxed) {
                return WalkState::Quit;
            }
            match entry {
                Ok(entry) if is_file(&entry) && fits(entry.path()) => {
                    paths.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(entry.into_path());
                }
                Ok(_) => {}
                Err(_) => drop(unreadable.fetch_add(1, Ordering::Relaxed)),
            }
            WalkState::Continue
        })
    });
    if off.load(Ordering::Relaxed) {
        return None;
    }
    let mut paths = paths.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    in_order(&mut paths);
    Some(Found { paths, unreadable: unreadable.into_inner() })
}

/// How many threads a search takes.
pub(super) fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(THREADS_MAX)
}

fn is_file(entry: &DirEntry) -> bool {
    entry.file_type().is_some_and(|kind| kind.is_file() || kind.is_symlink())
}

fn is_looked_into(entry: &DirEntry) -> bool {
    entry.depth() == 0 || !LEFT_OUT.iter().any(|name| entry.file_name() == *name)
}
