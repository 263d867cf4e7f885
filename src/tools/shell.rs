//! Running one command: its own process group, a time limit, bounded output, and nothing left behind.
//!
//! Knows nothing of who asked or why it must stop.

#[cfg(target_os = "linux")]
mod confined;
mod direct;
mod environment;
mod guarded;
#[cfg(target_os = "linux")]
mod guardian;
mod job;
mod leftovers;
mod processes;
mod running;
mod wire;

use std::fmt::Write as _;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use nix::sys::signal::Signal;

pub use self::environment::{Environment, Told};
use self::guarded::Guardians;
#[cfg(target_os = "linux")]
pub use self::guardian::guard_if_asked;
pub(crate) use self::job::JobRun;
pub(super) use self::job::prepare as prepare_job;
pub use self::job::{Job, JobEnd};
use self::running::{Ended, Pumped, Running, StartError};
use super::collector::{Collector, Sink};
use super::{BashArgs, Output, Stop};
use crate::sandbox::{self, Policy};

/// Longest time limit that a call can ask for, in seconds. The user's own default may be longer.
const TIMEOUT_SECS_MAX: u64 = 600;
/// Processes below one command at once.
const PROCESSES_MAX: usize = 512;
/// What is said where the guardian was lost.
const UNGUARDED: &str = "\nThe process that guards the command was killed or stopped, so the command was ended; what it \
                         moved to a session of its own may still run.";
/// How long output is still read after the command itself has ended, for what a child is just writing.
const PIPE_GRACE: Duration = Duration::from_millis(200);

/// How a guardian is called; the program's own name isn't in it, so that who ends the program by its name leaves the
/// guardians to do their work.
const GUARDIAN_NAME: &str = "cmd-guardian";

/// Where and how commands run.
pub(super) struct Shell {
    program: String,
    guardians: Option<Guardians>,
    environment: Environment,
    /// What holds for commands of calls that have no narrower policy.
    policy: Policy,
    workspace: PathBuf,
    out_dir: PathBuf,
    timeout: Duration,
}

/// What is to be run: `program -c command`, in a folder.
struct Order<'a> {
    program: &'a str,
    command: &'a str,
    folder: &'a Path,
    policy: &'a Policy,
}

/// How a command came to its end.
enum End {
    Exited(ExitStatus),
    TimedOut(Duration),
    Stopped(&'static str),
    /// It had too many processes.
    Crowd,
    /// Nobody knows how.
    Lost,
}

impl Shell {
    /// `timeout` is the limit of calls that don't ask for another.
    pub(super) fn new(workspace: &Path, out_dir: PathBuf, timeout: Duration) -> Self {
        Self {
            program: "bash".to_owned(),
            guardians: None,
            environment: Environment::new(&[], None),
            policy: Policy::Full,
            workspace: workspace.to_owned(),
            out_dir,
            timeout,
        }
    }

    /// For tests: another program in the place of bash.
    #[cfg(test)]
    pub(super) fn with_program(mut self, program: &str) -> Self {
        self.program = program.to_owned();
        self
    }

    /// What commands get of the user's variables.
    pub(super) fn with_environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }

    /// What commands may do, unless a call says otherwise.
    pub(super) fn under(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Each command below a guardian of its own.
    pub(super) fn guarded_by(mut self, program: &Path) -> Self {
        self.guardians = Some(Guardians::new(program));
        self
    }

    /// Runs a command to its end, its limit, or until `stop` completes. Dropped in the middle, it ends the command too.
    /// What holds for commands of calls that have no narrower policy.
    pub(super) fn policy(&self) -> &Policy {
        &self.policy
    }

    /// `policy`: what it may do, where that isn't what all may.
    pub(super) async fn run(&self, call: &BashArgs, policy: Option<&Policy>, stop: Stop<'_>) -> Output {
        let policy = policy.unwrap_or(&self.policy);
        let mut output = Collector::new(&self.out_dir);
        match self.carry_out(call, self.limit(call.timeout), policy, &mut output, stop).await {
            Ok((end, ended)) => {
                let said = output.finish();
                let mut output = describe(&end, &said, &ended);
                if changes_folder(&call.command) {
                    let folder = self.workspace.display();
                    // Writing to a String can't fail.
                    let _ =
                        write!(output.text, "\nIt began in {folder}, and so does the next command: a cd doesn't last.");
                }
                if let Some(hint) = self.closed(policy, &said).filter(|_| !output.ok) {
                    output.text.push('\n');
                    output.text.push_str(&hint);
                }
                output
            }
            Err(why) => Output::error(why),
        }
    }

    /// What the sandbox refused a command that failed.
    fn closed(&self, policy: &Policy, said: &str) -> Option<String> {
        sandbox::closed_by(policy.bounds()?, &self.workspace, said)
    }

    /// # Errors
    /// Why the command could not be started, and what to do about it.
    async fn carry_out(
        &self,
        call: &BashArgs,
        limit: Duration,
        policy: &Policy,
        output: &mut impl Sink,
        mut stop: Stop<'_>,
    ) -> Result<(End, Ended), String> {
        let order = Order { program: &self.program, command: &call.command, folder: &self.workspace, policy };
        let started = Running::start(self.guardians.as_ref(), &order, &self.environment).await;
        let mut running = match started {
            Ok(running) => running,
            Err(error) => return Err(self.not_started(&error, &call.command)),
        };
        let why = running.pump(output, limit, &mut stop, Running::has_exited).await;
        match why {
            Pumped::Enough => drop(running.pump(output, PIPE_GRACE, &mut stop, Running::is_closed).await),
            Pumped::Stopped(_) | Pumped::TimeUp => running.terminate(output).await,
        }
        let ended = running.end(output).await;
        if let Some(error) = &ended.not_started {
            return Err(self.not_started(error, &call.command));
        }
        let end = match (why, ended.status) {
            (Pumped::Enough, _) if ended.crowd => End::Crowd,
            (Pumped::Stopped(why), _) => End::Stopped(why),
            (Pumped::TimeUp, _) => End::TimedOut(limit),
            (Pumped::Enough, Some(status)) => End::Exited(status),
            (Pumped::Enough, None) => End::Lost,
        };
        Ok((end, ended))
    }

    fn limit(&self, seconds: Option<u64>) -> Duration {
        match seconds {
            None | Some(0) => self.timeout,
            Some(seconds) => Duration::from_secs(seconds.min(TIMEOUT_SECS_MAX.max(self.timeout.as_secs()))),
        }
    }

    /// What to do about a command that could not be started.
    fn not_started(&self, error: &StartError, command: &str) -> String {
        if !self.workspace.is_dir() {
            return format!("the workspace {} is gone; ask the user to bring it back", self.workspace.display());
        }
        let program = &self.program;
        let error = match error {
            StartError::Guardian(error) => {
                return format!("the process that guards commands could not be started: {error}; try again");
            }
            StartError::Sandbox(what) => {
                return format!("the command was not run, since its sandbox can't be had: {what}; tell the user");
            }
            StartError::Command(error) => error,
        };
        match error.kind() {
            // The search says "permission denied" when it couldn't look into a folder of PATH.
            io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => {
                format!("{program} was not found in PATH, or may not be run; ask the user to install it")
            }
            io::ErrorKind::ArgumentListTooLong => format!(
                "the command is too long ({} bytes); write it to a file with write_file and run that",
                command.len()
            ),
            _ if command.contains('\0') => "the command has a zero byte; leave it out".to_owned(),
            _other => format!("{program} could not be started: {error}; try again"),
        }
    }
}

/// Does a command go to another folder by itself? Who reads its result could take that folder for the next one's.
fn changes_folder(command: &str) -> bool {
    let mut words = command.split(|c: char| c.is_whitespace() || ";&|()".contains(c));
    words.any(|word| matches!(word, "cd" | "pushd"))
}

fn describe(end: &End, output: &str, ended: &Ended) -> Output {
    let output = if output.is_empty() { "(no output)" } else { output };
    let mut text = match end {
        End::Exited(_) | End::Lost => String::new(),
        End::TimedOut(limit) => format!(
            "error: timed out after {} s; the command and what it started were ended. Run a smaller step, or set a \
             higher timeout (at most {TIMEOUT_SECS_MAX}). Its output:\n",
            limit.as_secs_f64()
        ),
        End::Crowd => format!(
            "error: more than {PROCESSES_MAX} processes at once; the command and what it started were ended. Start fewer. Its \
             output:\n"
        ),
        End::Stopped(why) => {
            format!("error: interrupted: {why}; the command and what it started were ended. Its output:\n")
        }
    };
    text.push_str(output);
    if !output.ends_with('\n') {
        text.push('\n');
    }
    let (ok, ended_by_itself) = match end {
        End::Exited(status) => {
            text.push_str(&status_words(*status));
            (status.success(), true)
        }
        End::Lost => {
            text.push_str("exit code: unknown");
            (false, true)
        }
        End::TimedOut(_) | End::Stopped(_) | End::Crowd => {
            // The output alone stands at the end.
            text.truncate(text.trim_end_matches('\n').len());
            (false, false)
        }
    };
    text.push_str(&left_behind(ended, ended_by_itself));
    Output { ok, text }
}

/// What became of those that the command had started, a line each.
fn left_behind(ended: &Ended, ended_by_itself: bool) -> String {
    let mut text = String::new();
    // Writing to a String can't fail.
    if ended_by_itself && !ended.ended.is_empty() {
        let _ = write!(text, "\nA background process was ended with the command: {}", ended.ended.join(", "));
    }
    if !ended.refused.is_empty() {
        let _ = write!(text, "\nThese could not be ended and may still run: {}", ended.refused.join(", "));
    }
    if ended.unguarded {
        text.push_str(UNGUARDED);
    }
    text
}

fn status_words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code: {code}"),
        (None, Some(number)) => {
            let name = Signal::try_from(number).map_or("", Signal::as_str);
            format!("ended by signal {number} {name}").trim_end().to_owned()
        }
        (None, None) => "exit code: unknown".to_owned(),
    }
}
