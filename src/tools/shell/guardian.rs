//! The guardian of one command: a process of its own, between the program and the command, that ends all that the command
//! leaves behind, at the latest when the program is gone.
//!
//! Whoever loses its parent gets the guardian as the new one, so nobody below it can get away, by a session of its own
//! either. Does as it is told over its standard input; knows nothing of agents, output or time limits.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, killpg};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::{Pid, dup2_stderr, dup2_stdout, setsid};

use super::confined::{NotStarted, Order, enter, start};
use super::processes::{self, Process};
use super::wire::{self, Report, Request};
use super::{GUARDIAN_NAME, PROCESSES_MAX};

/// From the polite signal to the other, when the program is gone.
const TERM_GRACE: Duration = Duration::from_millis(300);
/// How long the program is kept waiting until all are ended. Who is there after that may not be ended by this user, or has
/// children faster than they can be ended.
const END_LIMIT: Duration = Duration::from_secs(1);
/// How long is tried when nobody waits for it.
const HUNT_LIMIT: Duration = Duration::from_secs(30);
/// How often is looked whether there are too many.
const CROWD_LOOK_EVERY: Duration = Duration::from_millis(100);
/// How many are buried before all else is looked at again.
const BURIED_MAX: usize = 1_000;
/// How often is looked for those that came in between.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Is this process to be a guardian? Then it is one, until it has ended all below it.
pub fn guard_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os();
    let asked = arguments.next().is_some_and(|name| name == GUARDIAN_NAME) && arguments.next().is_none();
    asked.then(|| match guard() {
        Ok(()) => ExitCode::SUCCESS,
        // The program sees that nothing more is said.
        Err(_) => ExitCode::FAILURE,
    })
}

fn guard() -> io::Result<()> {
    // A signal that is meant for the command must not end its guardian.
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK)?;
    prctl::set_child_subreaper(true)?;
    // Who was stopped hears of the program's end all the same. That a thread's end counts as one does no harm.
    prctl::set_pdeathsig(Signal::SIGCONT)?;
    prctl::set_name(c"cmd-guardian")?;
    // Without a terminal, for all below.
    setsid()?;
    let mut children = SigSet::empty();
    children.add(Signal::SIGCHLD);
    let children = SignalFd::with_flags(&children, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
    let mut program = Program::new()?;
    let Some(Request::Run { program: name, arguments, folder, variables, policy }) = program.wait()? else {
        return Ok(());
    };
    let null = File::options().write(true).open("/dev/null")?;
    let order = Order { program: &name, arguments: &arguments, variables: &variables, policy: &policy };
    let command = match enter(&folder).and_then(|()| start(&order, &folder, &before)) {
        Ok(command) => command,
        Err(NotStarted { error, sandbox }) => {
            return program.tell(&Report::Failed { errno: error.raw_os_error().unwrap_or(0), sandbox });
        }
    };
    // The command's output ends with the last who writes, and that isn't its guardian.
    dup2_stdout(&null)?;
    dup2_stderr(&null)?;
    let others = processes::tasks().unwrap_or_default();
    Guardian { program, children, command, exited: false, status: None, others }.watch()
}

/// The connection to the program.
struct Program {
    socket: BufReader<UnixStream>,
    line: Vec<u8>,
}

/// What there is to hear.
enum Heard {
    Nothing,
    /// The program is gone, or doesn't want the command any more.
    Closed,
    Request(Request),
}

impl Program {
    fn new() -> io::Result<Self> {
        let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        Ok(Self { socket: BufReader::new(socket), line: Vec::new() })
    }

    /// The first request, waited for; nothing if none will come. Others are not waited for.
    fn wait(&mut self) -> io::Result<Option<Request>> {
        let heard = self.hear()?;
        self.socket.get_ref().set_nonblocking(true)?;
        Ok(match heard {
            Heard::Nothing | Heard::Closed => None,
            Heard::Request(request) => Some(request),
        })
    }

    fn hear(&mut self) -> io::Result<Heard> {
        match self.socket.read_until(b'\n', &mut self.line) {
            Ok(_) if self.line.ends_with(b"\n") => {
                let request = wire::read(&self.line)?;
                self.line.clear();
                Ok(Heard::Request(request))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Heard::Nothing),
            Ok(_) | Err(_) => Ok(Heard::Closed),
        }
    }

    fn tell(&mut self, report: &Report) -> io::Result<()> {
        self.socket.get_mut().write_all(&wire::line(report))
    }
}

struct Guardian {
    program: Program,
    /// Can be read when a child has ended.
    children: SignalFd,
    /// Its process, and its group until it has exited.
    command: Pid,
    exited: bool,
    status: Option<ExitStatus>,
    /// Tasks of this machine that are not below, as far as is known.
    others: usize,
}

impl Guardian {
    /// Until nobody is left. What can't be told is left untold; the program being gone shows as a request.
    fn watch(&mut self) -> io::Result<()> {
        let mut told = false;
        while self.reap() {
            if self.exited && !told {
                told = true;
                let _ = self.program.tell(&Report::Exited);
            }
            // All that was said is heard before the next wait.
            match self.program.hear() {
                Ok(Heard::Nothing) => {
                    self.wait(brief(CROWD_LOOK_EVERY), true)?;
                    if self.is_crowd() {
                        return self.disperse();
                    }
                }
                Ok(Heard::Request(Request::Terminate)) => self.signal(Signal::SIGTERM),
                Ok(Heard::Request(Request::Kill)) => self.signal(Signal::SIGKILL),
                Ok(Heard::Request(Request::End)) => {
                    let (ended, refused) = self.end();
                    let told = self.last_word(ended, refused, false);
                    self.hunt();
                    return told;
                }
                Ok(Heard::Closed | Heard::Request(Request::Run { .. })) | Err(_) => {
                    self.give_up();
                    return Ok(());
                }
            }
        }
        self.last_word(Vec::new(), Vec::new(), false)
    }

    /// Are there so many more tasks on this machine than others had that too many may be below? Told without counting them.
    fn may_be_crowd(&mut self) -> bool {
        let Some(tasks) = processes::tasks() else { return false };
        self.others = self.others.min(tasks);
        tasks - self.others > PROCESSES_MAX
    }

    /// Are there too many below?
    fn is_crowd(&mut self) -> bool {
        if !self.may_be_crowd() {
            return false;
        }
        // Who would be the one of thousands that gets a turn doesn't come to the end of counting them.
        let _ = killpg(self.command, Signal::SIGSTOP);
        let below = processes::count_below(Pid::this());
        self.others = processes::tasks().unwrap_or_default().saturating_sub(below);
        if below <= PROCESSES_MAX {
            let _ = killpg(self.command, Signal::SIGCONT);
        }
        below > PROCESSES_MAX
    }

    /// Ends all below, and tells why.
    fn disperse(&mut self) -> io::Result<()> {
        // Most are in the command's group, and a group is ended at once.
        let _ = killpg(self.command, Signal::SIGKILL);
        let (ended, refused) = self.end();
        let told = self.last_word(ended, refused, true);
        self.hunt();
        told
    }

    fn last_word(&mut self, ended: Vec<String>, refused: Vec<String>, crowd: bool) -> io::Result<()> {
        let status = self.status.map(ExitStatus::into_raw);
        self.program.tell(&Report::Ended { status, ended, refused, crowd })
    }

    /// Nobody wants to know any more: TERM, a moment to heed it, and the end.
    fn give_up(&mut self) {
        self.signal(Signal::SIGTERM);
        let until = Instant::now() + TERM_GRACE;
        while self.reap() && Instant::now() < until {
            self.wait_briefly();
        }
        self.hunt();
    }

    /// Ends all below, and doesn't give up soon.
    fn hunt(&mut self) {
        let until = Instant::now() + HUNT_LIMIT;
        while self.reap() && Instant::now() < until {
            self.end();
        }
    }

    /// A signal for all below, and a nudge for those that are stopped and hear nothing else.
    fn signal(&self, signal: Signal) {
        let group_is_own = !self.exited;
        for signal in [signal, Signal::SIGCONT] {
            // At once, so that nobody of it can see another end before.
            if group_is_own {
                let _ = killpg(self.command, signal);
            }
        }
        for process in processes::below(Pid::this()) {
            if !(group_is_own && process.group == self.command) {
                let _ = kill(process.pid, signal);
                let _ = kill(process.pid, Signal::SIGCONT);
            }
        }
    }

    /// Ends all below; the names of those that it ended, and of those that could not be ended.
    fn end(&mut self) -> (Vec<String>, Vec<String>) {
        let until = Instant::now() + END_LIMIT;
        let mut found = BTreeMap::new();
        // Stopped first: who is stopped has no more children and can't get away while the others are found. The number of a group
        // whose leader was buried belongs to who is left of it, and if there are many, some are.
        if !self.exited || self.may_be_crowd() {
            let _ = killpg(self.command, Signal::SIGSTOP);
        }
        while self.reap() && find_and(Signal::SIGSTOP, &mut found) && Instant::now() < until {}
        find_and(Signal::SIGKILL, &mut found);
        while self.reap() && Instant::now() < until {
            self.wait_briefly();
            find_and(Signal::SIGKILL, &mut found);
        }
        let left: Vec<Pid> =
            if self.reap() { processes::below(Pid::this()).iter().map(|p| p.pid).collect() } else { Vec::new() };
        let (refused, ended): (Vec<_>, Vec<_>) = found.into_values().partition(|process| left.contains(&process.pid));
        (processes::names(ended.iter()), processes::names(refused.iter()))
    }

    /// Buries those that have ended, before others take them for alive. Is anybody left?
    fn reap(&mut self) -> bool {
        while let Ok(Some(_)) = self.children.read_signal() {}
        let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        // Where they end faster than they are buried, something else must be done about them.
        for _ in 0..BURIED_MAX {
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) => return true,
                Ok(ended) if ended.pid() == Some(self.command) && !self.exited => {
                    (self.exited, self.status) = (true, exit_status(ended));
                }
                // Somebody ended by a signal that has no name; who isn't told.
                Err(Errno::EINVAL) => self.exited |= waitid(Id::Pid(self.command), look) == Err(Errno::ECHILD),
                Ok(_) | Err(Errno::EINTR) => {}
                Err(_) => return false,
            }
        }
        true
    }

    fn wait_briefly(&self) {
        let brief = brief(LOOK_EVERY);
        // If it can't be waited for, it is looked for all the same.
        let _ = self.wait(brief, false);
    }

    /// Waits for a child's end, or a request too.
    fn wait(&self, limit: PollTimeout, or_request: bool) -> io::Result<()> {
        let children = PollFd::new(self.children.as_fd(), PollFlags::POLLIN);
        let requests = PollFd::new(self.program.socket.get_ref().as_fd(), PollFlags::POLLIN);
        let waited = if or_request { poll(&mut [children, requests], limit) } else { poll(&mut [children], limit) };
        match waited {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

fn brief(time: Duration) -> PollTimeout {
    PollTimeout::try_from(time).unwrap_or(PollTimeout::ZERO)
}

/// Sends a signal to all below. Was anybody there who was not found before?
fn find_and(signal: Signal, found: &mut BTreeMap<Pid, Process>) -> bool {
    let mut any = false;
    let mut groups = BTreeSet::new();
    for process in processes::below(Pid::this()) {
        // Nobody but who is below can be in a group of one that is; the guardian's own is left out.
        if process.group == Pid::this() {
            let _ = kill(process.pid, signal);
        } else if groups.insert(process.group) {
            let _ = killpg(process.group, signal);
        }
        any |= found.insert(process.pid, process).is_none();
    }
    any
}

/// Nothing for one that hasn't ended.
fn exit_status(ended: WaitStatus) -> Option<ExitStatus> {
    let WaitStatus::Exited(_, code) = ended else {
        let WaitStatus::Signaled(_, signal, _) = ended else { return None };
        return Some(ExitStatus::from_raw(signal as i32));
    };
    Some(ExitStatus::from_raw(code << 8))
}
