//! A command as a child of this process, where there is no guardian: its group is ended with it, and who holds its pipe.
//! Who leaves both gets away, and so do all if this process is killed.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::signal::unix::{self, SignalKind};
use tokio::time::sleep;

use crate::sandbox::Policy;

use super::running::{Ended, StartError};
use super::{Environment, Order, leftovers};

/// How often the command's end is looked for where its signal may be blocked.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Dropped, it takes its group with it.
pub(super) struct Direct {
    child: Child,
    /// The command's process, and its group.
    pid: Pid,
    /// Told when any child of this process changes its state.
    children: unix::Signal,
    /// The group's number may belong to others from here on.
    reaped: bool,
}

impl Direct {
    /// Starts a command, without input, output and errors in the pipe.
    pub(super) fn start(order: &Order<'_>, environment: &Environment) -> Result<(Self, pipe::Receiver), StartError> {
        let process = command(order)?;
        Self::started(process, order, environment).map_err(StartError::Command)
    }

    fn started(
        mut process: Command,
        order: &Order<'_>,
        environment: &Environment,
    ) -> io::Result<(Self, pipe::Receiver)> {
        // Before the start, so that no end is missed.
        let children = unix::signal(SignalKind::child())?;
        // One pipe for both, so that their order is kept.
        let (sender, receiver) = pipe::pipe()?;
        let output = sender.into_blocking_fd()?;
        process.arg("-c").arg(order.command).current_dir(order.folder);
        // A group, but no hook before exec: that keeps to the fast way of starting a process.
        let errors = output.try_clone()?;
        process.stdin(Stdio::null()).stdout(output).stderr(errors).process_group(0).kill_on_drop(true);
        environment.prepare(&mut process);
        process.envs(order.policy.variables());
        let child = process.spawn()?;
        // `process` goes here, and with it our hold on the writing end, or the pipe would never end.
        Ok((Self { pid: pid(&child)?, child, children, reaped: false }, receiver))
    }

    /// Completes when the command has ended; can be dropped and called again.
    pub(super) async fn exited(&mut self) {
        while !self.look_for_exit() {
            tokio::select! {
                _ = self.children.recv() => {}
                () = sleep(LOOK_EVERY) => {}
            }
        }
    }

    pub(super) fn terminate(&self) {
        // Nobody left to signal is no fault.
        let _ = killpg(self.pid, Signal::SIGTERM);
        // A stopped process hears nothing else.
        let _ = killpg(self.pid, Signal::SIGCONT);
    }

    pub(super) fn kill(&self) {
        let _ = killpg(self.pid, Signal::SIGKILL);
    }

    /// Takes the status, and ends what is left in the group or holds the pipe.
    pub(super) fn end(&mut self, pipe: Option<&pipe::Receiver>) -> Ended {
        let holders = pipe.map(leftovers::holders).unwrap_or_default();
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
        Ended { status, ended, ..Ended::default() }
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

impl Drop for Direct {
    fn drop(&mut self) {
        if !self.reaped {
            let _ = killpg(self.pid, Signal::SIGKILL);
        }
    }
}

/// The shell, under the platform's own sandbox where there is one. Linux lays bounds on what a guardian starts, and a command
/// without a guardian isn't started without them.
fn command(order: &Order<'_>) -> Result<Command, StartError> {
    match order.policy {
        Policy::Full => Ok(Command::new(order.program)),
        #[cfg(target_os = "macos")]
        Policy::Confined(bounds) => {
            let mut process = Command::new(crate::sandbox::SEATBELT);
            process.arg("-p").arg(crate::sandbox::seatbelt_profile(bounds)).arg(order.program);
            Ok(process)
        }
        #[cfg(not(target_os = "macos"))]
        Policy::Confined(_) => Err(StartError::Sandbox("only a guarded command can be confined".to_owned())),
    }
}

/// The number of a child that was not waited for yet.
pub(super) fn pid(child: &Child) -> io::Result<Pid> {
    let id = child.id().and_then(|id| i32::try_from(id).ok()).ok_or(io::ErrorKind::NotFound)?;
    Ok(Pid::from_raw(id))
}
