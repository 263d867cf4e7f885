//! The one place in which local calls run.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::paths::Workspace;
use super::shell::Shell;
use super::{LocalCall, Output, Stop, files, search};

/// Runs local calls in one workspace.
pub struct Workshop {
    workspace: Workspace,
    shell: Shell,
}

impl Workshop {
    /// For a workspace; `out_dir` takes the outputs that are too long to show.
    ///
    /// # Errors
    /// The workspace is not there.
    pub fn new(workspace: &Path, out_dir: PathBuf, bash_timeout: Duration) -> io::Result<Self> {
        let workspace = Workspace::new(workspace, out_dir.clone())?;
        let shell = Shell { workspace: workspace.root().to_owned(), out_dir, timeout: bash_timeout };
        Ok(Self { workspace, shell })
    }

    /// Runs one call to its end, or until `stop` completes.
    pub async fn run(&self, call: LocalCall, stop: Stop<'_>) -> Output {
        match call {
            LocalCall::Bash(call) => self.shell.run(call, stop).await,
            LocalCall::ReadFile(call) => self.blocking(stop, move |workspace, _| files::read(workspace, &call)).await,
            LocalCall::WriteFile(call) => files::write(&self.workspace, &call),
            LocalCall::EditFile(call) => files::edit(&self.workspace, &call),
            LocalCall::Glob(call) => {
                self.blocking(stop, move |workspace, off| search::glob(workspace, &call, off)).await
            }
            LocalCall::Grep(call) => {
                self.blocking(stop, move |workspace, off| search::grep(workspace, &call, off)).await
            }
        }
    }

    /// Looks that may take long run beside the others and can be broken off; writes are short and whole.
    async fn blocking(
        &self,
        stop: Stop<'_>,
        look: impl FnOnce(&Workspace, &AtomicBool) -> Output + Send + 'static,
    ) -> Output {
        let cancelled = Arc::new(AtomicBool::new(false));
        let (workspace, off) = (self.workspace.clone(), Arc::clone(&cancelled));
        let looking = tokio::task::spawn_blocking(move || look(&workspace, &off));
        tokio::select! {
            output = looking => output.unwrap_or_else(|error| Output::error(format!("the call failed: {error}"))),
            why = stop => {
                cancelled.store(true, Ordering::Relaxed);
                Output::error(format!("interrupted: {why}"))
            }
        }
    }
}
