//! Processes that a command left behind: found, named, ended.
//!
//! Uses `/proc` where there is one. Knows nothing of the command itself.

use std::fmt;
use std::fs;
use std::os::fd::AsFd;
use std::path::Path;

use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::stat::fstat;
use nix::unistd::Pid;

use super::super::text;

/// Processes that are named.
const NAMED_MAX: usize = 5;

/// A process that is still there.
pub(super) struct Leftover {
    pid: Pid,
    name: String,
}

impl Leftover {
    /// Was it still there to be killed?
    pub(super) fn kill(&self) -> bool {
        kill(self.pid, Signal::SIGKILL).is_ok()
    }
}

impl fmt::Display for Leftover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.pid)
    }
}

/// Ends all that is left in a group whose leader was just reaped, and names it.
///
/// They are stopped first: that tells at once whether there is anybody, and nobody can get away while they are named.
pub(super) fn end_group(group: Pid) -> Vec<String> {
    if killpg(group, Signal::SIGSTOP).is_err() {
        return Vec::new();
    }
    let alive: Vec<Leftover> =
        processes().filter(|process| process.is_alive && process.group == group).map(Into::into).collect();
    if Path::new("/proc/self/stat").exists() && alive.is_empty() {
        // Only the dead that nobody has buried yet.
        return Vec::new();
    }
    let _ = killpg(group, Signal::SIGKILL);
    let mut names: Vec<String> = alive.iter().take(NAMED_MAX).map(Leftover::to_string).collect();
    match alive.len() {
        0 => names.push("its name is not known".to_owned()),
        count if count > NAMED_MAX => names.push(format!("{} more", count - NAMED_MAX)),
        _few => {}
    }
    names
}

/// The processes that hold the other end of a pipe, whatever group they moved to.
pub(super) fn holders(pipe: &impl AsFd) -> Vec<Leftover> {
    let Ok(status) = fstat(pipe) else { return Vec::new() };
    let link = format!("pipe:[{}]", status.st_ino);
    let own = Pid::this();
    let holds = |process: &Process| {
        let descriptors = fs::read_dir(format!("/proc/{}/fd", process.pid)).into_iter().flatten().flatten();
        descriptors
            .filter_map(|entry| fs::read_link(entry.path()).ok())
            .any(|target| target.as_os_str() == link.as_str())
    };
    processes().filter(|process| process.is_alive && process.pid != own).filter(holds).map(Into::into).collect()
}

/// A line of `/proc/*/stat`.
struct Process {
    pid: Pid,
    name: String,
    is_alive: bool,
    group: Pid,
}

impl From<Process> for Leftover {
    fn from(process: Process) -> Self {
        Self { pid: process.pid, name: process.name }
    }
}

fn processes() -> impl Iterator<Item = Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        entry.file_name().to_str()?.parse::<i32>().ok()?;
        parse(&fs::read(entry.path().join("stat")).ok()?)
    })
}

/// `pid (name) state parent group …`; the name may hold anything, parentheses and spaces too.
fn parse(stat: &[u8]) -> Option<Process> {
    let open = stat.iter().position(|&byte| byte == b'(')?;
    let close = stat.iter().rposition(|&byte| byte == b')')?;
    let number = |text: &str| text.parse().ok().map(Pid::from_raw);
    let pid = number(std::str::from_utf8(&stat[..open]).ok()?.trim())?;
    let mut rest = std::str::from_utf8(stat.get(close + 1..)?).ok()?.split_whitespace();
    let is_alive = !matches!(rest.next()?, "Z" | "X");
    let group = number(rest.nth(1)?)?;
    let name = text::one_line(&text::name(stat.get(open + 1..close)?), 40);
    Some(Process { pid, name, is_alive, group })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i8_names_of_processes_may_hold_anything() {
        for (stat, name, is_alive) in [
            (&b"12 (sleep) S 1 34 5"[..], "sleep", true),
            (b"12 (a) Z (b) Z 1 34 5", "a) Z (b", false),
            (b"12 (\xff\n) T 1 34 5", "\\xff\\x0a", true),
        ] {
            let process = parse(stat).unwrap();
            assert_eq!((process.name.as_str(), process.is_alive), (name, is_alive));
            assert_eq!((process.pid, process.group), (Pid::from_raw(12), Pid::from_raw(34)));
        }
        for stat in [&b""[..], b"12", b"12 (x)", b"12 )x(", b"x (y) S 1 2", b"12 (x) S 1"] {
            assert!(parse(stat).is_none());
        }
    }
}
