//! A started command: its output read and its end awaited together, and its whole group ended on every way out.
//!
//! Knows nothing of results; only what was read, how the command ended, and what it left behind.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::signal::unix::{self, SignalKind};
use tokio::time::{Instant, interval_at, sleep};

use super::super::Stop;
use super::super::collector::Collector;
use super::{environment, leftovers};

/// From the polite signal to the other.
const TERM_GRACE: Duration = Duration::from_secs(1);
/// What one read takes.
const READ_BYTES: usize = 64 * 1024;
/// Reads of [`READ_BYTES`] that take all that a pipe holds.
const PIPE_READS_MAX: usize = 16;
/// How often the command's end is looked for where its signal may be blocked.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A command on its way. Dropped, it takes its group with it.
pub(super) struct Running {
    child: Child,
    /// The command's process, and its group.
    pid: Pid,
    /// Told when any child of this process changes its state.
    children: unix::Signal,
    pipe: pipe::Receiver,
    buffer: Vec<u8>,
    /// Somebody may still write.
    open: bool,
    exited: bool,
    /// The group's number may belong to others from here on.
    reaped: bool,
}

/// Why reading paused.
#[derive(Clone, Copy)]
pub(super) enum Pumped {
    /// What was waited for has come.
    Enough,
    TimeUp,
    Stopped(&'static str),
}

impl Running {
    /// Starts `program -c command` in a folder, without input, output and errors in one pipe.
    pub(super) fn start(program: &OsStr, command: &str, folder: &Path) -> io::Result<Self> {
        // Before the start, so that no end is missed.
        let children = unix::signal(SignalKind::child())?;
        // One pipe for both, so that their order is kept.
        let (sender, pipe) = pipe::pipe()?;
        let stdout = sender.into_blocking_fd()?;
        let stderr = stdout.try_clone()?;
        let mut process = Command::new(program);
        process.arg("-c").arg(command).current_dir(folder);
        // A group, but no hook before exec: that keeps to the fast way of starting a process.
        process.stdin(Stdio::null()).stdout(stdout).stderr(stderr).process_group(0).kill_on_drop(true);
        environment::prepare(&mut process);
        let child = process.spawn()?;
        let id = child.id().and_then(|id| i32::try_from(id).ok()).ok_or(io::ErrorKind::NotFound)?;
        // `process` goes here, and with it our hold on the writing end, or the pipe would never end.
        Ok(Self {
            child,
            pid: Pid::from_raw(id),
            children,
            pipe,
            buffer: vec![0; READ_BYTES],
            open: true,
            exited: false,
            reaped: false,
        })
    }

    pub(super) fn has_exited(&self) -> bool {
        self.exited
    }

    pub(super) fn is_closed(&self) -> bool {
        !self.open
    }

    /// Reads output until it is enough, the limit is over or `stop` completes. The limit and the command's end are
    /// looked at before each read: output without end must not hide them.
    pub(super) async fn pump(
        &mut self,
        output: &mut Collector,
        limit: Duration,
        stop: &mut Stop<'_>,
        enough: fn(&Self) -> bool,
    ) -> Pumped {
        let limit = sleep(limit);
        tokio::pin!(limit);
        let mut look = interval_at(Instant::now() + LOOK_EVERY, LOOK_EVERY);
        while !enough(self) {
            tokio::select! {
                biased;
                why = stop.as_mut() => return Pumped::Stopped(why),
                () = &mut limit => return Pumped::TimeUp,
                _ = self.children.recv(), if !self.exited => self.exited = self.look_for_exit(),
                _ = look.tick(), if !self.exited => self.exited = self.look_for_exit(),
                read = self.pipe.read(&mut self.buffer), if self.open => match read {
                    Ok(0) | Err(_) => self.open = false,
                    Ok(count) => output.push(&self.buffer[..count]),
                },
            }
        }
        Pumped::Enough
    }

    /// TERM for the whole group and a moment to heed it, its last words included. What remains is for [`Self::end`].
    pub(super) async fn terminate(&mut self, output: &mut Collector) {
        // Nobody left to signal is no fault.
        let _ = killpg(self.pid, Signal::SIGTERM);
        // A stopped process hears nothing else.
        let _ = killpg(self.pid, Signal::SIGCONT);
        let mut never: Stop<'_> = Box::pin(std::future::pending());
        self.pump(output, TERM_GRACE, &mut never, |running| running.exited && !running.open).await;
        if !self.exited {
            let _ = killpg(self.pid, Signal::SIGKILL);
            // Killed: the wait is for the kernel alone, and still has a limit.
            self.pump(output, TERM_GRACE, &mut never, Self::has_exited).await;
        }
    }

    /// Takes the command's status, ends what it left behind, and names that.
    pub(super) fn end(&mut self, output: &mut Collector) -> (Option<ExitStatus>, Vec<String>) {
        self.read_what_is_there(output);
        let holders = if self.open { leftovers::holders(&self.pipe) } else { Vec::new() };
        let status = self.child.try_wait().ok().flatten();
        self.reaped = true;
        let mut ended = leftovers::end_group(self.pid);
        for holder in holders {
            if holder.kill() {
                ended.push(holder.to_string());
            }
        }
        ended.sort();
        ended.dedup();
        (status, ended)
    }

    /// Empties the pipe without waiting.
    fn read_what_is_there(&mut self, output: &mut Collector) {
        // A flood is not followed any further than a pipe can hold.
        for _ in 0..PIPE_READS_MAX {
            match self.pipe.try_read(&mut self.buffer) {
                Ok(0) => {
                    self.open = false;
                    return;
                }
                Ok(count) => output.push(&self.buffer[..count]),
                Err(_) => return,
            }
        }
    }

    /// Has the command ended? On Linux its status is left for later: until it is taken, the group's number is its own,
    /// so that a signal can't reach strangers.
    #[cfg(target_os = "linux")]
    fn look_for_exit(&mut self) -> bool {
        use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        !matches!(waitid(Id::Pid(self.pid), flags), Ok(WaitStatus::StillAlive))
    }

    #[cfg(not(target_os = "linux"))]
    fn look_for_exit(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.reaped {
            let _ = killpg(self.pid, Signal::SIGKILL);
        }
    }
}
