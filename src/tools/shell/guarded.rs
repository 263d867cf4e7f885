//! A command below a guardian, seen from the program: the guardian is asked for everything, and ends all if it hears no more.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as Pair;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf, pipe};
use tokio::process::{Child, Command};
use tokio::signal::unix::{self, SignalKind};
use tokio::time::timeout;

use super::running::{Ended, StartError};
use super::wire::{self, Report, Request};
use super::{Environment, GUARDIAN_NAME, Order, direct, leftovers};

/// Longest wait for a guardian to take its order. Only a machine that stands still takes this long.
const START_LIMIT: Duration = Duration::from_secs(30);
/// Longest wait for the last word of a guardian. Far longer than it keeps anybody waiting.
const LAST_WORD_LIMIT: Duration = Duration::from_secs(10);

/// Where guardians come from. One waits for the next command, since it takes longer to start than the command itself.
pub(super) struct Guardians {
    /// The program that is one when it is called so.
    program: PathBuf,
    spare: Mutex<Option<(Guarded, pipe::Receiver)>>,
}

impl Guardians {
    pub(super) fn new(program: &Path) -> Self {
        Self { program: program.to_owned(), spare: Mutex::default() }
    }

    /// Starts a command below a guardian, without input, output and errors in the pipe. That the
    /// command could not be started is told at its end.
    pub(super) async fn start(
        &self,
        order: &Order<'_>,
        environment: &Environment,
    ) -> Result<(Guarded, pipe::Receiver), StartError> {
        let order = wire::line(&Request::Run {
            program: order.program.to_owned(),
            arguments: vec!["-c".to_owned(), order.command.to_owned()],
            folder: order.folder.into(),
            variables: order.policy.variables().into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            policy: Box::new(order.policy.clone()),
        });
        let mut taken = self.swap(None);
        // It may have been ended by somebody else while it waited.
        if let Some((spare, _)) = &mut taken
            && spare.take(&order).await.is_err()
        {
            taken = None;
        }
        let taken = match taken {
            Some(taken) => taken,
            None => {
                let mut fresh = Guarded::waiting(&self.program, environment).map_err(StartError::Guardian)?;
                fresh.0.take(&order).await.map_err(StartError::Guardian)?;
                fresh
            }
        };
        // Now there is time, while the command runs. If it can't be done, the next command has it done.
        drop(self.swap(Guarded::waiting(&self.program, environment).ok()));
        Ok(taken)
    }

    fn swap(&self, spare: Option<(Guarded, pipe::Receiver)>) -> Option<(Guarded, pipe::Receiver)> {
        // Nothing is half done in there if another panicked.
        std::mem::replace(&mut *self.spare.lock().unwrap_or_else(PoisonError::into_inner), spare)
    }
}

/// A guardian, and soon the command below it. Dropped, the guardian hears no more and ends all below it.
pub(super) struct Guarded {
    /// Never waited for here: as long as its status isn't taken, the number of its session is its own.
    _guardian: Child,
    /// The guardian's process, and the session of all that didn't leave it.
    session: Pid,
    reports: Lines<BufReader<OwnedReadHalf>>,
    requests: OwnedWriteHalf,
    exited: bool,
    last_word: Option<Ended>,
}

impl Guarded {
    /// A guardian without a command, and its output to come.
    fn waiting(path: &Path, environment: &Environment) -> io::Result<(Self, pipe::Receiver)> {
        // A handler, so that nobody below inherits a SIGCHLD that is ignored.
        drop(unix::signal(SignalKind::child())?);
        let (near, far) = Pair::pair()?;
        near.set_nonblocking(true)?;
        let (reports, requests) = UnixStream::from_std(near)?.into_split();
        // One pipe for both, so that their order is kept.
        let (sender, receiver) = pipe::pipe()?;
        let output = sender.into_blocking_fd()?;
        let errors = output.try_clone()?;
        let mut process = Command::new(path);
        // The command isn't among its arguments: who looks for a process by them must not hit it.
        process.arg0(GUARDIAN_NAME).stdin(OwnedFd::from(far)).stdout(output).stderr(errors);
        environment.prepare(&mut process);
        let guardian = process.spawn()?;
        // `process` goes here, and with it our hold on the far ends.
        let waiting = Self {
            session: direct::pid(&guardian)?,
            _guardian: guardian,
            reports: BufReader::new(reports).lines(),
            requests,
            exited: false,
            last_word: None,
        };
        Ok((waiting, receiver))
    }

    async fn take(&mut self, order: &[u8]) -> io::Result<()> {
        self.nudge();
        let told = timeout(START_LIMIT, self.requests.write_all(order)).await;
        told.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    /// Completes when the command has ended, or nobody knows any more; can be dropped and called again.
    pub(super) async fn exited(&mut self) {
        while !self.exited {
            self.listen().await;
        }
    }

    pub(super) fn terminate(&mut self) {
        self.ask(&Request::Terminate);
    }

    pub(super) fn kill(&mut self) {
        self.ask(&Request::Kill);
    }

    /// Has all below the guardian ended.
    pub(super) async fn end(&mut self) -> Ended {
        if self.last_word.is_none() {
            self.ask(&Request::End);
        }
        let listening = async {
            while self.last_word.is_none() {
                self.listen().await;
            }
        };
        let answered = timeout(LAST_WORD_LIMIT, listening).await.is_ok();
        let mut ended = self.last_word.take().unwrap_or_default();
        if !answered {
            ended.unguarded = true;
        }
        if ended.unguarded {
            // One that doesn't answer is of no more use than none.
            ended.ended = leftovers::end_session(self.session);
            let _ = kill(self.session, Signal::SIGKILL);
        }
        ended
    }

    async fn report(&mut self) -> io::Result<Report> {
        let line = self.reports.next_line().await?;
        wire::read(line.ok_or(io::ErrorKind::UnexpectedEof)?.as_bytes())
    }

    async fn listen(&mut self) {
        match self.report().await {
            Ok(Report::Exited) => {}
            Ok(Report::Failed { errno, sandbox }) => {
                let error = match sandbox {
                    Some(what) => StartError::Sandbox(what),
                    None => StartError::Command(io::Error::from_raw_os_error(errno)),
                };
                self.last_word = Some(Ended { not_started: Some(error), ..Ended::default() });
            }
            Ok(Report::Ended { status, ended, refused, crowd }) => {
                let status = status.map(ExitStatus::from_raw);
                self.last_word = Some(Ended { status, ended, refused, crowd, ..Ended::default() });
            }
            Err(_) => self.last_word = Some(Ended { unguarded: true, ..Ended::default() }),
        }
        self.exited = true;
    }

    fn ask(&mut self, request: &Request) {
        self.nudge();
        // One that has ended says so itself.
        let _ = self.requests.try_write(&wire::line(request));
    }

    /// Who stops a guardian doesn't keep it stopped.
    fn nudge(&self) {
        let _ = kill(self.session, Signal::SIGCONT);
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.nudge();
    }
}
