//! A watch over the mail folders. Only ever a hint: whoever is hinted at looks, and looking twice costs nothing.
//!
//! Knows nothing of what lies in a mailbox.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use notify::event::{ModifyKind, RenameMode};
use notify::{ErrorKind, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;

use super::folder::{CLAIMED, Identity, identity};

/// The safety look beside a working watch, for file systems that lose events.
const LOOK_EVERY_WATCHED: Duration = Duration::from_secs(8);
/// The look where there is no watch.
const LOOK_EVERY_UNWATCHED: Duration = Duration::from_millis(250);

/// A watch, or the knowledge that there is none.
#[derive(Debug)]
pub struct Watch {
    watcher: Option<RecommendedWatcher>,
    folders: Folders,
    /// Which folders are watched: one that was made, or made anew, needs a new watch.
    watched: Option<Identities>,
    /// A watched folder went, or events were lost.
    stale: Arc<AtomicBool>,
}

/// The folder of mailboxes, and the one of claimed files if it is there yet.
type Identities = (Identity, Option<Identity>);

/// The two folders that are watched. The others below them are not, so that locks and quarantine wake nobody.
#[derive(Clone, Debug)]
struct Folders {
    mailboxes: PathBuf,
    claimed: PathBuf,
}

/// What an event asks for.
#[derive(Debug, PartialEq, Eq)]
enum Means {
    Nothing,
    Look,
    LookAndRenew,
}

impl Watch {
    /// Watches a folder of mailboxes and the claimed ones below it. Gives a warning for the user when no watch can be had.
    pub fn start(folder: &Path, hint: Arc<Notify>) -> (Self, Option<String>) {
        // Events carry absolute paths.
        let mailboxes = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let folders = Folders { claimed: mailboxes.join(CLAIMED), mailboxes };
        let stale = Arc::new(AtomicBool::new(false));
        #[cfg(test)]
        if let Some(stand_in) = crate::seam::stand_in() {
            let watched = stand_in.watch(hint).then(|| folders.identities()).flatten();
            return (Self { watcher: None, folders, watched, stale }, None);
        }
        let handler = {
            let (folders, stale) = (folders.clone(), Arc::clone(&stale));
            move |event: notify::Result<notify::Event>| match folders.meaning(&event) {
                Means::Nothing => {}
                Means::Look => hint.notify_one(),
                Means::LookAndRenew => {
                    stale.store(true, Ordering::Release);
                    hint.notify_one();
                }
            }
        };
        let mut watch = Self { watcher: None, folders, watched: None, stale };
        let attached = notify::recommended_watcher(handler).and_then(|watcher| {
            watch.watcher = Some(watcher);
            watch.attach()
        });
        let Err(error) = attached else { return (watch, None) };
        watch.watcher = None;
        let warning = warning(folder, &error);
        (watch, Some(warning))
    }

    /// Is there a watch, on the folders that stand there now as far as is known?
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.watched.is_some()
    }

    /// How often to look without a hint.
    #[must_use]
    pub fn look_every(&self) -> Duration {
        if self.is_live() { LOOK_EVERY_WATCHED } else { LOOK_EVERY_UNWATCHED }
    }

    /// Watches anew if a folder was removed or replaced, or events were lost. Cheap where nothing happened.
    pub fn renew(&mut self) {
        if self.watcher.is_none() {
            return;
        }
        let stale = self.stale.swap(false, Ordering::AcqRel);
        if stale || self.watched.is_none() || self.watched != self.folders.identities() {
            // Tried again at the next look; until it succeeds, looks are frequent.
            drop(self.attach());
        }
    }

    fn attach(&mut self) -> notify::Result<()> {
        self.watched = None;
        let Some(watcher) = &mut self.watcher else { return Ok(()) };
        let before = self.folders.identities();
        for folder in [&self.folders.mailboxes, &self.folders.claimed] {
            // What is left of a former watch of that name; there may be none.
            drop(watcher.unwatch(folder));
        }
        watcher.watch(&self.folders.mailboxes, RecursiveMode::NonRecursive)?;
        if before.is_some_and(|(_, claimed)| claimed.is_some()) {
            watcher.watch(&self.folders.claimed, RecursiveMode::NonRecursive)?;
        }
        self.watched = before;
        Ok(())
    }
}

impl Folders {
    fn identities(&self) -> Option<Identities> {
        let of = |folder: &Path| folder.symlink_metadata().ok().map(|metadata| identity(&metadata));
        Some((of(&self.mailboxes)?, of(&self.claimed)))
    }

    /// Our own reading raises access events, and our own moves raise those of names: answering them would never end.
    fn meaning(&self, event: &notify::Result<notify::Event>) -> Means {
        let Ok(event) = event else { return Means::LookAndRenew };
        if event.need_rescan() {
            return Means::LookAndRenew;
        }
        if matches!(event.kind, EventKind::Access(_) | EventKind::Modify(ModifyKind::Metadata(_))) {
            return Means::Nothing;
        }
        let is_folder = |path: &PathBuf| *path == self.mailboxes || *path == self.claimed;
        if event.paths.iter().any(is_folder) {
            return Means::LookAndRenew;
        }
        let filled = match event.kind {
            EventKind::Create(_) | EventKind::Modify(ModifyKind::Data(_)) => true,
            EventKind::Modify(ModifyKind::Name(mode)) => mode != RenameMode::From,
            EventKind::Remove(_) | EventKind::Access(_) => false,
            EventKind::Modify(_) | EventKind::Any | EventKind::Other => true,
        };
        let grew = matches!(event.kind, EventKind::Modify(ModifyKind::Data(_) | ModifyKind::Any));
        let is_mail = |path: &PathBuf| {
            let mailbox = path.parent() == Some(&self.mailboxes);
            path.extension().is_some_and(|end| end == "jsonl") && (mailbox || grew)
        };
        let paths = match event.kind {
            // Of both names of a move, the new one.
            EventKind::Modify(ModifyKind::Name(RenameMode::Both)) => event.paths.last(),
            _ => event.paths.first(),
        };
        if filled && paths.is_some_and(is_mail) { Means::Look } else { Means::Nothing }
    }
}

fn warning(folder: &Path, error: &notify::Error) -> String {
    let used_up = |errno| matches!(&error.kind, ErrorKind::Io(cause) if cause.raw_os_error() == Some(errno));
    let cause = if matches!(error.kind, ErrorKind::MaxFilesWatch) || used_up(libc::ENOSPC) {
        "all inotify watches of this user are in use; raise fs.inotify.max_user_watches".to_owned()
    } else if used_up(libc::EMFILE) {
        "all inotify instances of this user are in use; raise fs.inotify.max_user_instances".to_owned()
    } else {
        error.to_string()
    };
    let every = LOOK_EVERY_UNWATCHED.as_millis();
    format!("{} can't be watched ({cause}): it is looked at every {every} ms instead", folder.display())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use notify::event::{AccessKind, CreateKind, DataChange, Flag, RemoveKind};

    use super::*;

    /// Far longer than any event takes; only a failing test waits for it.
    const LONG: Duration = Duration::from_secs(30);

    async fn hinted(hint: &Notify) {
        tokio::time::timeout(LONG, hint.notified()).await.unwrap();
    }

    /// Takes hints until one `done`.
    async fn hinted_until(hint: &Notify, mut done: impl FnMut() -> bool) {
        while !done() {
            hinted(hint).await;
        }
    }

    #[tokio::test]
    async fn an_append_is_hinted_at_also_to_a_claimed_file_and_after_the_folder_was_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let hint = Arc::new(Notify::new());
        let (mut watch, warning) = Watch::start(folder.path(), hint.clone());
        if warning.is_some() {
            // Without a watch to be had there is nothing to see here.
            return;
        }
        fs::write(folder.path().join("lead.jsonl"), "x\n").unwrap();
        hinted(&hint).await;
        let claimed = folder.path().join(CLAIMED);
        fs::create_dir(&claimed).unwrap();
        let stale = Arc::clone(&watch.stale);
        hinted_until(&hint, || stale.load(Ordering::Acquire)).await;
        watch.renew();
        let mut job = fs::File::create(claimed.join("lead.x.jsonl")).unwrap();
        job.write_all(b"y\n").unwrap();
        hinted(&hint).await;

        let moved = folder.path().with_extension("moved");
        fs::rename(folder.path(), &moved).unwrap();
        fs::remove_dir_all(&moved).unwrap();
        hinted_until(&hint, || stale.load(Ordering::Acquire)).await;
        watch.renew();
        assert!(!watch.is_live() && watch.look_every() == LOOK_EVERY_UNWATCHED, "the folder is gone");
        fs::create_dir_all(folder.path().join(CLAIMED)).unwrap();
        watch.renew();
        assert!(watch.is_live() && watch.look_every() == LOOK_EVERY_WATCHED);
        let path = folder.path().join("lead.jsonl");
        fs::write(&path, "z\n").unwrap();
        hinted(&hint).await;
    }

    #[test]
    fn i7_our_own_reading_moving_and_locking_wakes_nobody() {
        let folders = Folders { mailboxes: "/m".into(), claimed: "/m/.claimed".into() };
        let meaning = |kind, path: &str| folders.meaning(&Ok(notify::Event::new(kind).add_path(path.into())));
        let data = EventKind::Modify(ModifyKind::Data(DataChange::Any));
        let name = |mode| EventKind::Modify(ModifyKind::Name(mode));
        for (kind, path) in [
            (EventKind::Access(AccessKind::Any), "/m/lead.jsonl"),
            (EventKind::Create(CreateKind::File), "/m/.claimed/lead.x.jsonl"),
            (EventKind::Remove(RemoveKind::File), "/m/.claimed/lead.x.jsonl"),
            (EventKind::Remove(RemoveKind::File), "/m/lead.jsonl"),
            (name(RenameMode::From), "/m/lead.jsonl"),
            (name(RenameMode::To), "/m/.claimed/lead.x.jsonl"),
            (data, "/m/.gitignore"),
        ] {
            assert_eq!(meaning(kind, path), Means::Nothing, "{kind:?} {path}");
        }
        for (kind, path) in [
            (data, "/m/lead.jsonl"),
            (data, "/m/.claimed/lead.x.jsonl"),
            (EventKind::Create(CreateKind::File), "/m/lead.jsonl"),
            (name(RenameMode::To), "/m/lead.jsonl"),
        ] {
            assert_eq!(meaning(kind, path), Means::Look, "{kind:?} {path}");
        }
        assert_eq!(meaning(EventKind::Remove(RemoveKind::Folder), "/m"), Means::LookAndRenew);
        assert_eq!(meaning(EventKind::Create(CreateKind::Folder), "/m/.claimed"), Means::LookAndRenew);
        let lost = notify::Event::new(EventKind::Other).set_flag(Flag::Rescan);
        assert_eq!(folders.meaning(&Ok(lost)), Means::LookAndRenew);
    }

    #[test]
    fn a_limit_is_named_and_what_it_means() {
        let (watch, warning) = Watch::start(Path::new("/no such folder"), Arc::new(Notify::new()));
        assert!(warning.unwrap().contains("250 ms") && !watch.is_live());
        let used_up = |errno| notify::Error::io(std::io::Error::from_raw_os_error(errno));
        assert!(super::warning(Path::new("/m"), &used_up(libc::EMFILE)).contains("max_user_instances"));
        assert!(super::warning(Path::new("/m"), &used_up(libc::ENOSPC)).contains("max_user_watches"));
    }
}
