//! A started command: its output read and its end awaited together, and all that it started ended on every way out.
//!
//! Knows nothing of results; only what was read, how the command ended, and what it left behind.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::time::sleep;

use super::super::Stop;
use super::super::collector::Sink;
use super::direct::Direct;
use super::guarded::{Guarded, Guardians};
use super::{Environment, Order};

/// From the polite signal to the other.
const TERM_GRACE: Duration = Duration::from_secs(1);
/// What one read takes.
const READ_BYTES: usize = 64 * 1024;
/// Reads of [`READ_BYTES`] that take all that a pipe holds.
const PIPE_READS_MAX: usize = 16;

/// A command on its way. Dropped, it takes all with it that it started.
pub(super) struct Running {
    command: Held,
    pipe: pipe::Receiver,
    buffer: Vec<u8>,
    /// Somebody may still write.
    open: bool,
    exited: bool,
}

/// Who holds the command.
enum Held {
    Direct(Direct),
    Guarded(Guarded),
}

/// Why there is no command.
pub(super) enum StartError {
    Guardian(io::Error),
    Command(io::Error),
    /// What of its sandbox could not be had.
    Sandbox(String),
}

/// How a command ended, and what it left behind.
#[derive(Default)]
pub(super) struct Ended {
    /// Nothing if it was taken by somebody else.
    pub(super) status: Option<ExitStatus>,
    /// The names of those that were ended with it.
    pub(super) ended: Vec<String>,
    /// The names of those that could not be ended.
    pub(super) refused: Vec<String>,
    /// They were ended since they were too many.
    pub(super) crowd: bool,
    /// There was no command.
    pub(super) not_started: Option<StartError>,
    /// Its guardian was lost, and so perhaps were processes that moved to a session of their own.
    pub(super) unguarded: bool,
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
    /// Starts a command, without input, output and errors in one pipe; below a guardian if there
    /// are any.
    pub(super) async fn start(
        guardians: Option<&Guardians>,
        order: &Order<'_>,
        environment: &Environment,
    ) -> Result<Self, StartError> {
        let (command, pipe) = match guardians {
            Some(guardians) => {
                let (command, pipe) = guardians.start(order, environment).await?;
                (Held::Guarded(command), pipe)
            }
            None => {
                let (command, pipe) = Direct::start(order, environment)?;
                (Held::Direct(command), pipe)
            }
        };
        Ok(Self { command, pipe, buffer: vec![0; READ_BYTES], open: true, exited: false })
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
        output: &mut impl Sink,
        limit: Duration,
        stop: &mut Stop<'_>,
        enough: fn(&Self) -> bool,
    ) -> Pumped {
        let limit = sleep(limit);
        tokio::pin!(limit);
        while !enough(self) {
            tokio::select! {
                biased;
                why = stop.as_mut() => return Pumped::Stopped(why),
                () = &mut limit => return Pumped::TimeUp,
                () = self.command.exited(), if !self.exited => self.exited = true,
                read = self.pipe.read(&mut self.buffer), if self.open => match read {
                    Ok(0) | Err(_) => self.open = false,
                    Ok(count) => output.push(&self.buffer[..count]),
                },
            }
        }
        Pumped::Enough
    }

    /// TERM for the whole group and a moment to heed it, its last words included. What remains is for [`Self::end`].
    pub(super) async fn terminate(&mut self, output: &mut impl Sink) {
        match &mut self.command {
            Held::Direct(command) => command.terminate(),
            Held::Guarded(command) => command.terminate(),
        }
        let mut never: Stop<'_> = Box::pin(std::future::pending());
        self.pump(output, TERM_GRACE, &mut never, |running| running.exited && !running.open).await;
        if !self.exited {
            match &mut self.command {
                Held::Direct(command) => command.kill(),
                Held::Guarded(command) => command.kill(),
            }
            // Killed: the wait is for the kernel alone, and still has a limit.
            self.pump(output, TERM_GRACE, &mut never, Self::has_exited).await;
        }
    }

    /// Takes the command's status, ends what it left behind, and names that.
    pub(super) async fn end(&mut self, output: &mut impl Sink) -> Ended {
        self.read_what_is_there(output);
        match &mut self.command {
            Held::Direct(command) => command.end(self.open.then_some(&self.pipe)),
            Held::Guarded(command) => command.end().await,
        }
    }

    /// Empties the pipe without waiting.
    fn read_what_is_there(&mut self, output: &mut impl Sink) {
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
}

impl Held {
    /// Completes when the command has ended; can be dropped and called again.
    async fn exited(&mut self) {
        match self {
            Self::Direct(command) => command.exited().await,
            Self::Guarded(command) => command.exited().await,
        }
    }
}
