//! A command in the background: it runs beside everything else, and what it says waits until somebody looks.
//!
//! Knows nothing of who owns it, or of what its end means to them.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use crate::sandbox::Policy;

use super::super::collector::{Collector, Sink};
use super::super::{BashArgs, text};
use super::{End, PROCESSES_MAX, Shell, left_behind, status_words};

/// What is kept of the end of an output, whether or not somebody has looked at it.
const LAST_BYTES: usize = 1_500;
/// Lines of it that are shown.
const LAST_LINES: usize = 15;
/// Why a command ends that nobody holds any more.
const ABANDONED: &str = "nobody waits for it any more";

/// Its owner's hold on a command in the background. Dropped, it ends the command.
pub struct Job {
    output: Arc<Mutex<JobOutput>>,
    stop: watch::Sender<Option<&'static str>>,
    path: PathBuf,
}

/// How a command in the background came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobEnd {
    /// Did it end by itself, and well?
    pub ok: bool,
    /// The exit code or what else ended it, and what it left behind.
    pub words: String,
}

struct JobOutput {
    collector: Collector,
    last: VecDeque<u8>,
}

/// A command that does nothing before this is awaited.
pub(crate) type JobRun = Pin<Box<dyn Future<Output = JobEnd> + Send>>;

impl Job {
    /// What the command has said since the last look, bounded; `has_ended`: nothing more will come.
    #[must_use]
    pub fn look(&self, has_ended: bool) -> String {
        lock(&self.output).collector.look(has_ended)
    }

    /// The last of what it has said, whether or not somebody has looked at it.
    #[must_use]
    pub fn last_lines(&self) -> String {
        let said: Vec<u8> = lock(&self.output).last.iter().copied().collect();
        let shown = text::readable(&said[said.len() - text::tail_bytes(&said, LAST_BYTES)..]);
        let lines: Vec<&str> = shown.trim_end().lines().collect();
        lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
    }

    /// Ends the command: asked to, then made to.
    pub fn stop(&self, why: &'static str) {
        self.stop.send_if_modified(|stop| {
            let first = stop.is_none();
            *stop = stop.or(Some(why));
            first
        });
    }

    /// The file that takes all that it says.
    #[must_use]
    pub fn path(&self) -> &std::path::Path {
        &self.path
    }
}

/// A command to be run in the background, and its owner's hold on it. `name` is that of the file for its output.
pub(in super::super) fn prepare(
    shell: Arc<impl AsRef<Shell> + Send + Sync + 'static>,
    call: BashArgs,
    policy: Option<Policy>,
    limit: Duration,
    name: &str,
) -> (Job, JobRun) {
    let path = shell.as_ref().as_ref().out_dir.join(format!("{name}.txt"));
    let output = JobOutput { collector: Collector::keeping(path.clone()), last: VecDeque::new() };
    let output = Arc::new(Mutex::new(output));
    let (stop, stopped) = watch::channel(None);
    let job = Job { output: Arc::clone(&output), stop, path };
    let run = async move {
        let mut sink = output;
        let shell = shell.as_ref().as_ref();
        let policy = policy.as_ref().unwrap_or(&shell.policy);
        match shell.carry_out(&call, limit, policy, &mut sink, Box::pin(asked(stopped))).await {
            Err(why) => JobEnd { ok: false, words: why },
            Ok((end, ended)) => {
                let (ok, words, by_itself) = match end {
                    End::Exited(status) => (status.success(), status_words(status), true),
                    End::Lost => (false, "exit code: unknown".to_owned(), true),
                    End::TimedOut(limit) => (false, format!("timed out after {} s", limit.as_secs_f64()), false),
                    End::Crowd => (false, format!("ended: it had more than {PROCESSES_MAX} processes at once"), false),
                    End::Stopped(why) => (false, format!("stopped: {why}"), false),
                };
                let closed = if ok { None } else { shell.closed(policy, &last_of(&sink)) };
                let closed = closed.map(|closed| format!("\n{closed}")).unwrap_or_default();
                JobEnd { ok, words: words + &left_behind(&ended, by_itself) + &closed }
            }
        }
    };
    (job, Box::pin(run))
}

/// Completes when the command must end, or when nobody is left who could say so.
async fn asked(mut stopped: watch::Receiver<Option<&'static str>>) -> &'static str {
    match stopped.wait_for(Option::is_some).await {
        Ok(why) => why.unwrap_or(ABANDONED),
        Err(_) => ABANDONED,
    }
}

fn last_of(output: &Mutex<JobOutput>) -> String {
    let said: Vec<u8> = lock(output).last.iter().copied().collect();
    text::readable(&said)
}

fn lock(output: &Mutex<JobOutput>) -> MutexGuard<'_, JobOutput> {
    // Nothing is half done in there if another panicked.
    output.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sink for Arc<Mutex<JobOutput>> {
    fn push(&mut self, bytes: &[u8]) {
        let mut output = lock(self);
        output.collector.push(bytes);
        let kept = &bytes[bytes.len().saturating_sub(LAST_BYTES)..];
        let surplus = (output.last.len() + kept.len()).saturating_sub(LAST_BYTES);
        output.last.drain(..surplus);
        output.last.extend(kept);
    }
}
