//! One run a workspace: a lock of the operating system that dies with its holder, and where a workspace's state is kept.
//!
//! Knows nothing of sessions' contents.

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::journal::timestamp;
use crate::private;

/// Longest readable part of a workspace's key, in characters.
const KEY_NAME_CHARS_MAX: usize = 40;
/// How often a holder that has just taken the lock is given time to write who it is.
const HOLDER_READS_MAX: u32 = 10;
/// How often the lock of a process that is gone is tried for.
const DEAD_HOLDER_TRIES_MAX: u32 = 100;
const HOLDER_READ_EVERY: Duration = Duration::from_millis(10);

/// The right to run in a workspace, until it is dropped or its process ends, however it ends.
#[derive(Debug)]
pub struct WorkspaceLock {
    file: File,
}

/// Who holds a lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Its process.
    pub pid: u32,
    /// RFC 3339.
    pub since: String,
    /// Its session.
    pub session: Uuid,
}

impl Holder {
    /// Its lock lives on for a moment if it was killed while it started another process: that has it until it has become
    /// the other program.
    fn is_dead(&self) -> bool {
        let pid = i32::try_from(self.pid).unwrap_or(i32::MAX);
        kill(Pid::from_raw(pid), None) == Err(Errno::ESRCH)
    }
}

/// Why there is no lock. The text says what is lost and what to do.
#[derive(Debug)]
pub enum LockError {
    /// Another run works here: this one must not begin.
    Held {
        /// The workspace.
        workspace: PathBuf,
        /// Who; `None` if it can't be told.
        holder: Option<Holder>,
    },
    /// The state folder can't be used. The run can go on without lock and journal, and must say so.
    Unusable {
        /// What can't be written.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
}

impl WorkspaceLock {
    /// Takes the lock of a workspace (absolute, canonical); makes its folder where needed.
    ///
    /// # Errors
    /// [`LockError::Held`] ends the run with exit code 2; [`LockError::Unusable`] is told to the user once.
    pub fn take(state_dir: &Path, workspace: &Path, session: Uuid) -> Result<Self, LockError> {
        let folder = workspace_folder(state_dir, workspace);
        let unusable = |path: &Path, cause| LockError::Unusable { path: path.to_owned(), cause };
        private::create_folder(&folder).map_err(|cause| unusable(&folder, cause))?;
        let path = folder.join("lock");
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = private::open(&path, &mut options).map_err(|cause| unusable(&path, cause))?;
        for left in (0..DEAD_HOLDER_TRIES_MAX).rev() {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) => {
                    let holder = read_holder(&mut file);
                    if left == 0 || !holder.as_ref().is_some_and(Holder::is_dead) {
                        return Err(LockError::Held { workspace: workspace.to_owned(), holder });
                    }
                    std::thread::sleep(HOLDER_READ_EVERY);
                }
                Err(TryLockError::Error(cause)) => return Err(unusable(&path, cause)),
            }
        }
        let holder = Holder { pid: std::process::id(), since: timestamp(), session };
        write_holder(&mut file, &holder).map_err(|cause| unusable(&path, cause))?;
        Ok(Self { file })
    }
}

impl Drop for WorkspaceLock {
    fn drop(&mut self) {
        // The next holder is never taken for this one. The lock itself goes with the file; the file stays, since a lock on a
        // file that is deleted and made anew would hold nobody off.
        drop(self.file.set_len(0));
    }
}

fn write_holder(file: &mut File, holder: &Holder) -> io::Result<()> {
    let mut line = serde_json::to_vec(holder)?;
    line.push(b'\n');
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(&line)
}

fn read_holder(file: &mut File) -> Option<Holder> {
    for read in 0..HOLDER_READS_MAX {
        if read > 0 {
            std::thread::sleep(HOLDER_READ_EVERY);
        }
        let mut text = String::new();
        file.rewind().ok()?;
        file.read_to_string(&mut text).ok()?;
        if let Ok(holder) = serde_json::from_str(&text) {
            return Some(holder);
        }
    }
    None
}

/// Does a run hold a workspace's lock? Nobody is kept from taking it meanwhile but for a moment.
#[must_use]
pub fn is_held(state_dir: &Path, workspace: &Path) -> Option<Holder> {
    let mut file = File::open(workspace_folder(state_dir, workspace).join("lock")).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => read_holder(&mut file),
        Ok(()) | Err(TryLockError::Error(_)) => None,
    }
}

/// The folder below the state folder that belongs to a workspace.
#[must_use]
pub fn workspace_folder(state_dir: &Path, workspace: &Path) -> PathBuf {
    state_dir.join(workspace_key(workspace))
}

/// The name of that folder: what the workspace is called, and a hash of where it is.
fn workspace_key(workspace: &Path) -> String {
    let name = workspace.file_name().unwrap_or_default().to_string_lossy();
    let safe = |c: char| {
        if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' }
    };
    let name: String = name.trim_start_matches('.').chars().take(KEY_NAME_CHARS_MAX).map(safe).collect();
    let name = if name.is_empty() { "root" } else { &name };
    format!("{name}-{:016x}", fnv_1a_64(workspace.as_os_str().as_encoded_bytes()))
}

/// A hash that stays the same from release to release, which the standard library's doesn't promise.
fn fnv_1a_64(bytes: &[u8]) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    bytes.iter().fold(OFFSET, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME))
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held { workspace, holder } => {
                write!(f, "another s15 works in {}", workspace.display())?;
                if let Some(Holder { pid, since, .. }) = holder {
                    write!(f, " (process {pid}, since {since})")?;
                }
                f.write_str("; end it first, or work in another folder with -C DIR")
            }
            Self::Unusable { path, cause } => write!(
                f,
                "can't write {}: {cause}; this run keeps no journal, can't be resumed, and isn't protected from a second run \
                 here. Set S15_STATE_DIR to a folder that can be written",
                path.display()
            ),
        }
    }
}

impl std::error::Error for LockError {}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_second_run_is_told_who_and_since_when() {
        let state = tempfile::tempdir().unwrap();
        let session = Uuid::now_v7();
        let lock = WorkspaceLock::take(state.path(), Path::new("/some/project"), session).unwrap();
        let error = WorkspaceLock::take(state.path(), Path::new("/some/project"), Uuid::now_v7()).unwrap_err();
        let LockError::Held { holder: Some(holder), .. } = &error else { panic!("{error}") };
        assert_eq!((holder.pid, holder.session), (std::process::id(), session));
        let text = error.to_string();
        for part in ["/some/project", &std::process::id().to_string(), &holder.since, "-C"] {
            assert!(text.contains(part), "{part:?} is not in: {text}");
        }
        let other = WorkspaceLock::take(state.path(), Path::new("/other/project"), session);
        assert!(other.is_ok(), "another workspace is free");
        drop(lock);
        assert!(WorkspaceLock::take(state.path(), Path::new("/some/project"), session).is_ok());
    }

    /// The other process of the next test.
    #[test]
    #[ignore = "no test by itself: the test below runs it as another process"]
    fn hold_until_killed() {
        let Some(state) = std::env::var_os("LOCK_TEST_STATE") else {
            return;
        };
        let _lock = WorkspaceLock::take(Path::new(&state), Path::new("/some/project"), Uuid::now_v7()).unwrap();
        writeln!(io::stdout(), "\nheld").unwrap();
        std::thread::sleep(Duration::from_secs(600));
    }

    #[test]
    fn the_lock_dies_with_its_holder() {
        let state = tempfile::tempdir().unwrap();
        let mut holder = Command::new(std::env::current_exe().unwrap())
            .args(["lock::tests::hold_until_killed", "--exact", "--ignored", "--nocapture"])
            .env("LOCK_TEST_STATE", state.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(holder.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap() == "held"));
        let take = || WorkspaceLock::take(state.path(), Path::new("/some/project"), Uuid::now_v7());
        let LockError::Held { holder: Some(told), .. } = take().unwrap_err() else { panic!("not held") };
        assert_eq!(told.pid, holder.id());
        holder.kill().unwrap();
        holder.wait().unwrap();
        assert!(take().is_ok());
    }

    /// It was killed while it started another process, which hasn't become the other program yet.
    #[test]
    fn the_lock_of_one_that_is_gone_is_waited_for() {
        let state = tempfile::tempdir().unwrap();
        let take = || WorkspaceLock::take(state.path(), Path::new("/p"), Uuid::now_v7());
        let mut lock = take().unwrap();
        let mut gone = Command::new("true").spawn().unwrap();
        gone.wait().unwrap();
        write_holder(&mut lock.file, &Holder { pid: gone.id(), since: timestamp(), session: Uuid::now_v7() }).unwrap();
        let heir = lock.file.try_clone().unwrap();
        let (waits, waiting) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let taken = scope.spawn(move || {
                waits.send(()).unwrap();
                take().is_ok()
            });
            waiting.recv().unwrap();
            std::thread::sleep(HOLDER_READ_EVERY);
            heir.unlock().unwrap();
            assert!(taken.join().unwrap());
        });
        std::mem::forget(lock);
    }

    #[test]
    fn a_damaged_lock_file_harms_nobody() {
        let state = tempfile::tempdir().unwrap();
        let take = || WorkspaceLock::take(state.path(), Path::new("/p"), Uuid::now_v7());
        let path = workspace_folder(state.path(), Path::new("/p")).join("lock");
        drop(take().unwrap());
        std::fs::write(&path, b"\xff\xfe no json").unwrap();
        let lock = take().unwrap();
        std::fs::write(&path, "{").unwrap();
        let text = take().unwrap_err().to_string();
        assert!(text.starts_with("another s15 works in /p; end it"), "{text}");
        drop(lock);
    }

    #[test]
    fn an_unusable_state_folder_is_named_with_what_is_lost() {
        let state = tempfile::tempdir().unwrap();
        let file = state.path().join("file");
        std::fs::write(&file, "").unwrap();
        let error = WorkspaceLock::take(&file, Path::new("/p"), Uuid::now_v7()).unwrap_err();
        assert!(matches!(error, LockError::Unusable { .. }));
        let text = error.to_string();
        for part in [file.to_str().unwrap(), "journal", "S15_STATE_DIR"] {
            assert!(text.contains(part), "{part:?} is not in: {text}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_can_look_in() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().unwrap();
        let state = root.path().join("a/b");
        let _lock = WorkspaceLock::take(&state, Path::new("/p"), Uuid::now_v7()).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let folder = workspace_folder(&state, Path::new("/p"));
        assert_eq!((mode(&state), mode(&folder), mode(&folder.join("lock"))), (0o700, 0o700, 0o600));
    }

    #[test]
    fn a_workspace_key_is_readable_safe_and_always_the_same() {
        assert_eq!(fnv_1a_64(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv_1a_64(b"foobar"), 0x8594_4171_f739_67e8);
        assert_eq!(workspace_key(Path::new("/home/me/my project")), "my-project-313b5ed7a7794e4a");
        assert!(workspace_key(Path::new("/")).starts_with("root-"));
        assert!(workspace_key(Path::new("/a/.dot")).starts_with("dot-"));
        assert!(workspace_key(Path::new("/项目")).starts_with("项目-"));
        assert_ne!(workspace_key(Path::new("/a/x")), workspace_key(Path::new("/b/x")));
        let long = format!("/{}", "长".repeat(80));
        assert!(workspace_key(Path::new(&long)).len() <= 255);
    }
}
