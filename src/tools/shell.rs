//! Running one command: its own process group, a time limit, bounded output, and nothing left behind.

use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::output::Collector;
use super::{BashArgs, Output, Stop};

/// Longest time limit that a call can ask for.
const TIMEOUT_MAX: Duration = Duration::from_secs(600);
/// From the polite signal to the other.
const TERM_GRACE: Duration = Duration::from_secs(1);
/// How long output is still read after the command itself has ended.
const PIPE_GRACE: Duration = Duration::from_millis(200);

/// Where and how commands run.
pub(super) struct Shell {
    pub(super) workspace: PathBuf,
    pub(super) out_dir: PathBuf,
    pub(super) timeout: Duration,
}

/// How the command came to its end.
enum End {
    Exited(ExitStatus),
    TimedOut(Duration),
    Stopped(&'static str),
}

/// Ends the group on every path out, a dropped future included.
struct Group(Pid);

impl Group {
    fn signal(&self, signal: Signal) -> bool {
        // Fails when nobody is left in the group.
        killpg(self.0, signal).is_ok()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
    }
}

impl Shell {
    pub(super) async fn run(&self, call: BashArgs, mut stop: Stop<'_>) -> Output {
        let limit = call.timeout.map_or(self.timeout, |seconds| Duration::from_secs(seconds.max(1))).min(TIMEOUT_MAX);
        let (mut child, mut output) = match self.start(&call.command) {
            Ok(started) => started,
            Err(error) => return Output::error(format!("bash can't be started: {error}")),
        };
        let Some(group) = child.id().and_then(|id| i32::try_from(id).ok()).map(|id| Group(Pid::from_raw(id))) else {
            return Output::error("bash ended before it began");
        };
        let mut collected = Collector::new(&self.out_dir);
        let deadline = Instant::now() + limit;
        let mut buffer = vec![0; 64 * 1024];
        let mut open = true;
        let end = loop {
            tokio::select! {
                biased;
                why = &mut stop => break End::Stopped(why),
                read = output.read(&mut buffer), if open => match read {
                    Ok(0) | Err(_) => open = false,
                    Ok(count) => collected.push(&buffer[..count]),
                },
                status = child.wait() => match status {
                    Ok(status) => break End::Exited(status),
                    Err(error) => return Output::error(format!("bash is lost: {error}")),
                },
                () = sleep_until(deadline) => break End::TimedOut(limit),
            }
        };
        if !matches!(end, End::Exited(_)) {
            end_group(&group, &mut child).await;
        }
        let drained = !open || drain(&mut output, &mut collected, &mut buffer).await;
        // Children that the command left behind end with it, whether or not they still hold the pipe.
        let left_behind = group.signal(Signal::SIGKILL) && matches!(end, End::Exited(_)) && !drained;
        drop(group);
        describe(&end, &collected.text(), left_behind)
    }

    fn start(&self, command: &str) -> std::io::Result<(Child, pipe::Receiver)> {
        // One pipe for both, so that their order is kept.
        let (sender, receiver) = pipe::pipe()?;
        let stdout = sender.into_blocking_fd()?;
        let stderr = stdout.try_clone()?;
        let mut process = Command::new("bash");
        process
            .arg("-c")
            .arg(command)
            .current_dir(&self.workspace)
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            .process_group(0)
            .kill_on_drop(true);
        clean_environment(&mut process);
        let child = process.spawn()?;
        // `process` still holds the writing ends; they must go, or the pipe never ends.
        drop(process);
        Ok((child, receiver))
    }
}

/// TERM, a moment, then KILL, for the whole group.
async fn end_group(group: &Group, child: &mut Child) {
    group.signal(Signal::SIGTERM);
    if timeout(TERM_GRACE, child.wait()).await.is_err() {
        group.signal(Signal::SIGKILL);
        // Killed: the wait is for the kernel alone.
        drop(child.wait().await);
    }
}

/// Reads what is left in the pipe; false if somebody still held it when the grace was over.
async fn drain(output: &mut pipe::Receiver, collected: &mut Collector, buffer: &mut [u8]) -> bool {
    let grace = sleep(PIPE_GRACE);
    tokio::pin!(grace);
    loop {
        tokio::select! {
            biased;
            read = output.read(buffer) => match read {
                Ok(0) | Err(_) => return true,
                Ok(count) => collected.push(&buffer[..count]),
            },
            () = &mut grace => return false,
        }
    }
}

fn describe(end: &End, text: &str, left_behind: bool) -> Output {
    use std::os::unix::process::ExitStatusExt;
    let (ok, line) = match end {
        End::Exited(status) => match (status.code(), status.signal()) {
            (Some(code), _) => (code == 0, format!("exit code: {code}")),
            (None, Some(signal)) => (false, format!("ended by signal {signal}")),
            (None, None) => (false, "ended without an exit code".to_owned()),
        },
        End::TimedOut(limit) => {
            (false, format!("timed out after {} s; the command and its children were ended", limit.as_secs()))
        }
        End::Stopped(why) => (false, format!("interrupted: {why}; the command and its children were ended")),
    };
    let left = if left_behind { "\n(a process it left in the background was ended)" } else { "" };
    let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    Output { ok, text: format!("{text}{gap}{line}{left}") }
}

/// Keys stay out of children; nothing waits for a key press.
fn clean_environment(process: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_none_or(is_secret) {
            process.env_remove(name);
        }
    }
    process.envs([("PAGER", "cat"), ("GIT_PAGER", "cat"), ("TERM", "dumb"), ("GIT_TERMINAL_PROMPT", "0")]);
}

/// Does a variable of this name hold something that a command has no business with?
pub(super) fn is_secret(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    upper.starts_with("S15_")
        || ["_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_PASSWD", "_CREDENTIALS"]
            .iter()
            .any(|ending| upper.ends_with(ending))
        || ["TOKEN", "SECRET", "PASSWORD", "API_KEY", "APIKEY"].contains(&upper.as_str())
}
