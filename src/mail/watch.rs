//! A watch over the mail folders. Only ever a hint: whoever is hinted at looks, and looking twice costs nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;

/// The safety look beside a working watch, for file systems that lose events.
const LOOK_EVERY_WATCHED: Duration = Duration::from_secs(8);
/// The look where there is no watch.
const LOOK_EVERY_UNWATCHED: Duration = Duration::from_millis(250);

/// A watch, or the knowledge that there is none.
#[derive(Debug)]
pub struct Watch {
    watcher: Option<RecommendedWatcher>,
    folder: PathBuf,
    /// What the folder was when it was watched: a folder made anew needs a new watch.
    identity: Option<u64>,
}

impl Watch {
    /// Watches a folder of mailboxes and the claimed ones below it. Gives a warning for the user when no watch can be had.
    pub fn start(folder: &Path, hint: Arc<Notify>) -> (Self, Option<String>) {
        let made = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Our own reading raises access events: answering them would never end.
            let ours = event.as_ref().is_ok_and(|event| matches!(event.kind, EventKind::Access(_)));
            if !ours {
                hint.notify_one();
            }
        });
        let mut watch = Self { watcher: None, folder: folder.to_owned(), identity: None };
        match made {
            Ok(watcher) => watch.watcher = Some(watcher),
            Err(error) => return (watch, Some(warning(folder, &error))),
        }
        match watch.attach() {
            Ok(()) => (watch, None),
            Err(error) => {
                watch.watcher = None;
                (watch, Some(warning(folder, &error)))
            }
        }
    }

    /// Is there a watch?
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.watcher.is_some()
    }

    /// How often to look without a hint.
    #[must_use]
    pub fn look_every(&self) -> Duration {
        if self.is_live() { LOOK_EVERY_WATCHED } else { LOOK_EVERY_UNWATCHED }
    }

    /// Watches anew if the folder was removed and made again.
    pub fn renew(&mut self) {
        if self.watcher.is_some() && identity(&self.folder) != self.identity && self.attach().is_err() {
            // Tried again at the next look; until then the safety look does it.
            self.identity = None;
        }
    }

    fn attach(&mut self) -> notify::Result<()> {
        let Some(watcher) = &mut self.watcher else { return Ok(()) };
        let before = identity(&self.folder);
        watcher.watch(&self.folder, RecursiveMode::NonRecursive)?;
        let claimed = self.folder.join(super::files::CLAIMED);
        if claimed.is_dir() {
            watcher.watch(&claimed, RecursiveMode::NonRecursive)?;
        }
        self.identity = before;
        Ok(())
    }
}

fn warning(folder: &Path, error: &notify::Error) -> String {
    format!(
        "{} can't be watched ({error}; the system's inotify limits may be used up): it is looked at four times a second instead",
        folder.display()
    )
}

#[cfg(unix)]
fn identity(folder: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(folder).ok().map(|metadata| metadata.ino())
}

#[cfg(not(unix))]
fn identity(folder: &Path) -> Option<u64> {
    folder.is_dir().then_some(0)
}
