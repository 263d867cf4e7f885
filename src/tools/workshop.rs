//! The one place in which local calls run, and are broken off.
//!
//! Knows nothing of agents, gates or the team.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::timeout;

use crate::seam;

use crate::protocol::Scope;
use crate::sandbox::{BUILD_FOLDERS, Policy};

use super::paths::{AMEND, Workspace};
use super::shell::{Environment, Job, JobRun, Shell, prepare_job};
use super::{BashArgs, Intent, LocalCall, Output, Stop, files, search, text};

/// How long a write that has begun may take to end after it was told to.
const WRITE_GRACE: Duration = Duration::from_secs(5);

/// Runs local calls in one workspace, for all agents.
pub struct Workshop {
    files: Arc<Files>,
    shell: Shell,
}

struct Files {
    workspace: Workspace,
    /// One change of a file at a time, so that no edit is lost to another.
    writing: Mutex<()>,
}

impl Workshop {
    /// For a workspace; `out_dir` is made when there is an output too long to show, and can be read by agents.
    /// `bash_timeout` is the limit of commands that don't ask for another.
    ///
    /// # Errors
    /// The workspace is no folder that can be entered.
    pub fn new(workspace: &Path, out_dir: PathBuf, bash_timeout: Duration) -> io::Result<Self> {
        let workspace = Workspace::new(workspace, &out_dir)?;
        let shell = Shell::new(workspace.root(), out_dir, bash_timeout);
        Ok(Self { files: Arc::new(Files { workspace, writing: Mutex::new(()) }), shell })
    }

    /// Which of the user's variables commands get; without it none that looks like a secret.
    #[must_use]
    pub fn with_environment(mut self, environment: Environment) -> Self {
        self.shell = self.shell.with_environment(environment);
        self
    }

    /// What commands may do, unless a call says otherwise; what is closed to them is closed to file tools too. Without it
    /// there is no sandbox. Called before the first call.
    #[must_use]
    pub fn under(mut self, policy: Policy) -> Self {
        if let (Some(bounds), Some(files)) = (policy.bounds(), Arc::get_mut(&mut self.files)) {
            files.workspace.keep_to(bounds);
        }
        self.shell = self.shell.under(policy);
        self
    }

    /// Each command below a process of its own that ends all it leaves behind, even if this process is killed: `program`,
    /// which calls [`super::guard_if_asked`] first of all.
    #[must_use]
    pub fn guarded_by(mut self, program: &Path) -> Self {
        self.shell = self.shell.guarded_by(program);
        self
    }

    /// Runs one call to its end, or until `stop` completes; one that must stop before it began does nothing. Its output
    /// says what was done. Dropped in the middle, a command's processes are ended and a search stops.
    pub async fn run(&self, call: LocalCall, stop: Stop<'_>) -> Output {
        self.run_recorded(call, stop, Box::new(|_| {})).await
    }

    /// Like [`Workshop::run`]; `intent` hears of a change of a file right before it is made.
    pub async fn run_recorded(&self, call: LocalCall, stop: Stop<'_>, intent: Intent) -> Output {
        self.run_under(None, call, stop, intent).await
    }

    /// Like [`Workshop::run_recorded`], under a policy of this call's own: a narrower one for an approved plan
    /// ([`crate::sandbox::Bounds::writing_only`], [`crate::sandbox::Bounds::keeping`]), or none that confines it for a call that
    /// the user let out. Only commands are held to it.
    pub async fn run_under(
        &self,
        policy: Option<&Policy>,
        call: LocalCall,
        mut stop: Stop<'_>,
        intent: Intent,
    ) -> Output {
        if let Some(why) = stop.as_mut().now_or_never() {
            return interrupted(why, "nothing was done");
        }
        match call {
            LocalCall::Bash(call) => self.shell.run(&call, policy, stop).await,
            LocalCall::ReadFile(call) => {
                self.look(stop, move |files, off| files::read(&files.workspace, &call, off)).await
            }
            LocalCall::Glob(call) => {
                self.look(stop, move |files, off| search::glob(&files.workspace, &call, off)).await
            }
            LocalCall::Grep(call) => {
                self.look(stop, move |files, off| search::grep(&files.workspace, &call, off)).await
            }
            LocalCall::WriteFile(call) => {
                self.write(stop, move |files| files::write(&files.workspace, &call, intent)).await
            }
            LocalCall::EditFile(call) => {
                self.write(stop, move |files| files::edit(&files.workspace, &call, intent)).await
            }
        }
    }

    /// Like [`Workshop::run_recorded`], within what an approved plan opens: file tools write there alone, and so do commands.
    pub async fn run_within(&self, scope: &Scope, call: LocalCall, stop: Stop<'_>, intent: Intent) -> Output {
        match call {
            LocalCall::Bash(bash) => match self.policy_within(scope, &bash.command) {
                Ok(policy) => self.run_under(policy.as_ref(), LocalCall::Bash(bash), stop, intent).await,
                Err(why) => Output::error(why),
            },
            LocalCall::WriteFile(call) => {
                let scope = scope.clone();
                self.write(stop, move |files| files::write(&files.workspace.within(&scope), &call, intent)).await
            }
            LocalCall::EditFile(call) => {
                let scope = scope.clone();
                self.write(stop, move |files| files::edit(&files.workspace.within(&scope), &call, intent)).await
            }
            call @ (LocalCall::ReadFile(_) | LocalCall::Glob(_) | LocalCall::Grep(_)) => {
                self.run_under(None, call, stop, intent).await
            }
        }
    }

    /// What holds for a command that an approved plan bounds; `None`: what holds for all.
    ///
    /// # Errors
    /// The plan names commands and this is none of them, or nothing here can hold it to the plan's places. The text says what to do.
    pub(crate) fn policy_within(&self, scope: &Scope, command: &str) -> Result<Option<Policy>, String> {
        let named = scope.names_command(command);
        if named == Some(false) {
            return Err(format!("this command is outside your approved plan, which opens {scope}. {AMEND}"));
        }
        if scope.is_everything() {
            return Ok(None);
        }
        match (self.shell.policy().bounds(), named) {
            (Some(bounds), _) => {
                let root = self.files.workspace.root();
                // Folders are asked for with nothing in them yet, too; a file that isn't there is write_file's to make.
                let places = scope.paths().iter().map(String::as_str).chain(BUILD_FOLDERS).map(|path| root.join(path));
                Ok(Some(Policy::Confined(bounds.writing_only(&places.collect::<Vec<_>>()))))
            }
            (None, Some(_)) => Ok(None),
            (None, None) => Err(format!(
                "without a sandbox nothing holds a command to your approved plan's places; name the command in it. {AMEND}"
            )),
        }
    }

    /// A command for the background and its owner's hold on it: it runs when it is awaited, and its end says how it ended.
    /// `name` is new in this session, and that of the file for its output. `policy`: as in [`Workshop::run_under`].
    pub(crate) fn job(
        self: &Arc<Self>,
        call: BashArgs,
        policy: Option<Policy>,
        limit: Duration,
        name: &str,
    ) -> (Job, JobRun) {
        prepare_job(Arc::clone(self), call, policy, limit, name)
    }

    /// Does the file that a call changes hold what an earlier run's [`Intent`] heard of?
    pub async fn holds(&self, call: &LocalCall, digest: &str) -> bool {
        let path = match call {
            LocalCall::WriteFile(call) => call.path.clone(),
            LocalCall::EditFile(call) => call.path.clone(),
            LocalCall::Bash(_) | LocalCall::ReadFile(_) | LocalCall::Glob(_) | LocalCall::Grep(_) => return false,
        };
        let files = Arc::clone(&self.files);
        let now = seam::beside(move || files::digest_now(&files.workspace, &path)).await;
        now.ok().flatten().is_some_and(|now| now == digest)
    }

    /// Reading and searching, beside the others. One that must stop is told so and left to itself.
    async fn look(
        &self,
        stop: Stop<'_>,
        work: impl FnOnce(&Files, &AtomicBool) -> Option<Output> + Send + 'static,
    ) -> Output {
        let off = OffWhenDropped::default();
        let (files, told) = (Arc::clone(&self.files), Arc::clone(&off.0));
        let working = seam::beside(move || work(&files, &told));
        tokio::select! {
            biased;
            done = working => finished(done, "it was stopped"),
            why = stop => interrupted(why, "nothing was changed"),
        }
    }

    /// Changing a file, alone. One that must stop is waited for if it has begun, since its result must be true.
    async fn write(&self, stop: Stop<'_>, work: impl FnOnce(&Files) -> Output + Send + 'static) -> Output {
        let off = OffWhenDropped::default();
        let (files, told) = (Arc::clone(&self.files), Arc::clone(&off.0));
        let mut working = seam::beside(move || {
            // Nothing is half done if another's write panicked: files are replaced as a whole.
            let _alone = files.writing.lock().unwrap_or_else(PoisonError::into_inner);
            (!told.load(Ordering::Relaxed)).then(|| work(&files))
        });
        let why = tokio::select! {
            biased;
            done = &mut working => return finished(done, "it was stopped"),
            why = stop => why,
        };
        drop(off);
        match timeout(WRITE_GRACE, working).await {
            Ok(done) => finished(done, why),
            Err(_) => interrupted(why, "the disk doesn't answer: whether the file was changed is not known, read it"),
        }
    }
}

impl AsRef<Shell> for Workshop {
    fn as_ref(&self) -> &Shell {
        &self.shell
    }
}

/// Tells the work that nobody waits for it any more.
#[derive(Default)]
struct OffWhenDropped(Arc<AtomicBool>);

impl Drop for OffWhenDropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn finished(done: Result<Option<Output>, tokio::task::JoinError>, why: &str) -> Output {
    match done {
        Ok(Some(output)) => output,
        Ok(None) => interrupted(why, "nothing was changed"),
        Err(error) => {
            let error = text::one_line(&error.to_string(), 300);
            Output::error(format!("the tool failed by a fault of its own ({error}); try another way"))
        }
    }
}

fn interrupted(why: &str, so: &str) -> Output {
    Output::error(format!("interrupted: {why}; {so}"))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::task::Poll;

    use super::super::WriteFileArgs;
    use super::*;

    #[tokio::test]
    async fn i3_a_write_that_waits_for_another_and_must_stop_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let workshop = Workshop::new(folder.path(), folder.path().join("out"), WRITE_GRACE).unwrap();
        let files = Arc::clone(&workshop.files);
        let ((held, is_held), (let_go, may_go)) = (channel(), channel::<()>());
        let holder = std::thread::spawn(move || {
            let _alone = files.writing.lock().unwrap();
            held.send(()).unwrap();
            may_go.recv().unwrap();
        });
        is_held.recv().unwrap();
        // Looked at before the call begins, and again while the write waits.
        let mut looks = 0;
        let stop: Stop<'_> = Box::pin(std::future::poll_fn(move |_| {
            looks += 1;
            if looks < 2 { Poll::Pending } else { Poll::Ready("the gate closed") }
        }));
        let call = LocalCall::WriteFile(WriteFileArgs { path: "a.txt".to_owned(), content: "x".to_owned() });
        // Polled in this order, so that the lock is let go of after the write was told to stop.
        let (output, ()) = tokio::join!(biased; workshop.run(call, stop), async { let_go.send(()).unwrap() });
        holder.join().unwrap();
        assert_eq!(output.text, "error: interrupted: the gate closed; nothing was changed");
        assert!(!folder.path().join("a.txt").exists());
    }
}
