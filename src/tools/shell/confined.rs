//! The start of a command by its guardian: without input, in a group of its own, within its bounds.
//!
//! Where there are bounds, they are laid on between fork and exec: the guardian has one thread only, so that its copy may do
//! whatever it likes. Another start of this program in between would do the same and take longer.

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawnp};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, chdir, pipe2};

use crate::sandbox::{self, Bounds, Policy};

/// What is to be started.
pub(super) struct Order<'a> {
    pub(super) program: &'a str,
    pub(super) arguments: &'a [String],
    /// Besides the guardian's own.
    pub(super) variables: &'a [(String, OsString)],
    pub(super) policy: &'a Policy,
}

/// Why there is no command.
pub(super) struct NotStarted {
    pub(super) error: io::Error,
    /// What of its sandbox could not be had, if that was why.
    pub(super) sandbox: Option<String>,
}

impl From<io::Error> for NotStarted {
    fn from(error: io::Error) -> Self {
        Self { error, sandbox: None }
    }
}

impl From<Errno> for NotStarted {
    fn from(errno: Errno) -> Self {
        io::Error::from(errno).into()
    }
}

pub(super) fn enter(folder: &OsStr) -> Result<(), NotStarted> {
    Ok(chdir(folder)?)
}

/// Starts a program; what is blocked here isn't blocked there. This process is in `folder`.
pub(super) fn start(order: &Order<'_>, folder: &OsStr, blocked: &SigSet) -> Result<Pid, NotStarted> {
    match order.policy {
        Policy::Full => Ok(start_free(order, blocked)?),
        Policy::Confined(bounds) => start_confined(order, bounds, folder, blocked),
    }
}

fn start_free(order: &Order<'_>, blocked: &SigSet) -> nix::Result<Pid> {
    let text = |text: &[u8]| CString::new(text).map_err(|_| Errno::EINVAL);
    let name = text(order.program.as_bytes())?;
    let mut all = vec![name.clone()];
    for argument in order.arguments {
        all.push(text(argument.as_bytes())?);
    }
    let own = std::env::vars_os().filter(|(name, _)| order.variables.iter().all(|(other, _)| name != other.as_str()));
    let more = order.variables.iter().map(|(name, value)| (OsString::from(name), value.clone()));
    let variables = own.chain(more).map(|(name, value)| text(&[name.as_bytes(), b"=", value.as_bytes()].concat()));
    let variables: Vec<CString> = variables.collect::<Result<_, _>>()?;
    let mut files = PosixSpawnFileActions::init()?;
    files.add_open(0, "/dev/null", OFlag::O_RDONLY, Mode::empty())?;
    let mut how = PosixSpawnAttr::init()?;
    how.set_pgroup(Pid::from_raw(0))?;
    how.set_sigmask(blocked)?;
    // Rust's own start ignores it.
    let mut default = SigSet::empty();
    default.add(Signal::SIGPIPE);
    how.set_sigdefault(&default)?;
    how.set_flags(
        PosixSpawnFlags::POSIX_SPAWN_SETPGROUP
            | PosixSpawnFlags::POSIX_SPAWN_SETSIGMASK
            | PosixSpawnFlags::POSIX_SPAWN_SETSIGDEF,
    )?;
    posix_spawnp(&name, &files, &how, &all, &variables)
}

#[allow(unsafe_code, reason = "a hook between fork and exec is unsafe by its nature")]
fn start_confined(order: &Order<'_>, bounds: &Bounds, folder: &OsStr, blocked: &SigSet) -> Result<Pid, NotStarted> {
    // The hook's own error is a number alone.
    let (faults, mut fault) =
        pipe2(OFlag::O_CLOEXEC).map(|(reader, writer)| (File::from(reader), File::from(writer)))?;
    let mut process = Command::new(order.program);
    process.args(order.arguments).envs(order.variables.iter().map(|(name, value)| (name, value)));
    process.stdin(Stdio::null()).process_group(0);
    let (bounds, folder, blocked) = (bounds.clone(), folder.to_owned(), *blocked);
    let confine = move || {
        sandbox::confine(&bounds).map_err(|why| {
            // Who can't be told the reason still sees the number.
            let _ = write!(fault, "{why}");
            io::Error::from(why.errno)
        })?;
        // The present folder is still that of the view before.
        chdir(folder.as_os_str())?;
        blocked.thread_swap_mask(SigmaskHow::SIG_SETMASK)?;
        Ok(())
    };
    // SAFETY: this process has a single thread, so nothing is half done in its copy, and it may allocate and open files there.
    unsafe { process.pre_exec(confine) };
    let spawned = process.spawn();
    // The writing end goes with the hook, or reading would not end.
    drop(process);
    match spawned {
        Ok(child) => Ok(Pid::from_raw(i32::try_from(child.id()).map_err(io::Error::other)?)),
        Err(error) => {
            let mut why = String::new();
            (&faults).read_to_string(&mut why)?;
            Err(NotStarted { error, sandbox: Some(why).filter(|why| !why.is_empty()) })
        }
    }
}
