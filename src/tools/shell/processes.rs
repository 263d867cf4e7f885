//! The processes of this machine, as `/proc` tells of them; none where there is no `/proc`.
//!
//! Knows nothing of commands.

use std::collections::HashMap;
use std::fmt;
use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::super::text;

/// Processes that are named.
const NAMED_MAX: usize = 5;

/// A line of `/proc/*/stat`.
pub(super) struct Process {
    pub(super) pid: Pid,
    pub(super) parent: Pid,
    pub(super) group: Pid,
    pub(super) session: Pid,
    name: String,
    /// Not one that has ended and waits for its burial.
    pub(super) is_alive: bool,
}

impl Process {
    /// Was it still there to be killed?
    pub(super) fn kill(&self) -> bool {
        kill(self.pid, Signal::SIGKILL).is_ok()
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.pid)
    }
}

/// All that can be seen.
pub(super) fn all() -> impl Iterator<Item = Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        entry.file_name().to_str()?.parse::<i32>().ok()?;
        parse(&fs::read(entry.path().join("stat")).ok()?)
    })
}

/// The living children of a session's leader, their children, and so on, and all else in its session: who loses its parent while
/// this looks is nobody's child that was seen.
#[cfg(target_os = "linux")]
pub(super) fn below(ancestor: Pid) -> Vec<Process> {
    let mut found = descendants(ancestor, all());
    found.retain(|process| process.is_alive);
    found
}

/// How many they are, with those that have ended and wait for their burial.
#[cfg(target_os = "linux")]
pub(super) fn count_below(ancestor: Pid) -> usize {
    descendants(ancestor, all()).len()
}

/// How many tasks there are on this machine, threads included: told at once, however many there are.
#[cfg(target_os = "linux")]
pub(super) fn tasks() -> Option<usize> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().nth(3)?.split_once('/')?.1.parse().ok()
}

#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "for the guardian alone"))]
fn descendants(ancestor: Pid, processes: impl Iterator<Item = Process>) -> Vec<Process> {
    let mut children: HashMap<Pid, Vec<Process>> = HashMap::new();
    for process in processes {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = children.remove(&ancestor).unwrap_or_default();
    let mut at = 0;
    while let Some(process) = found.get(at) {
        found.extend(children.remove(&process.pid).unwrap_or_default());
        at += 1;
    }
    let of_session = |process: &Process| process.session == ancestor && process.pid != ancestor;
    found.extend(children.into_values().flatten().filter(of_session));
    found
}

/// The first by their names, and how many more there are.
pub(super) fn names<'a>(processes: impl ExactSizeIterator<Item = &'a Process>) -> Vec<String> {
    let count = processes.len();
    let mut names: Vec<String> = processes.take(NAMED_MAX).map(Process::to_string).collect();
    if count > NAMED_MAX {
        names.push(format!("{} more", count - NAMED_MAX));
    }
    names
}

/// `pid (name) state parent group session …`; the name may hold anything, parentheses and spaces too.
fn parse(stat: &[u8]) -> Option<Process> {
    let open = stat.iter().position(|&byte| byte == b'(')?;
    let close = stat.iter().rposition(|&byte| byte == b')')?;
    let number = |text: &str| text.parse().ok().map(Pid::from_raw);
    let pid = number(std::str::from_utf8(&stat[..open]).ok()?.trim())?;
    let mut rest = std::str::from_utf8(stat.get(close + 1..)?).ok()?.split_whitespace();
    let is_alive = !matches!(rest.next()?, "Z" | "X");
    let (parent, group, session) = (number(rest.next()?)?, number(rest.next()?)?, number(rest.next()?)?);
    let name = text::one_line(&text::name(stat.get(open + 1..close)?), 40);
    Some(Process { pid, parent, group, session, name, is_alive })
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
            let numbers = [process.pid, process.parent, process.group, process.session];
            assert_eq!(numbers, [12, 1, 34, 5].map(Pid::from_raw));
        }
        for stat in [&b""[..], b"12", b"12 (x)", b"12 )x(", b"x (y) S 1 2 3", b"12 (x) S 1", b"12 (x) S 1 2"] {
            assert!(parse(stat).is_none());
        }
    }

    #[test]
    fn i9_descendants_are_found_in_any_order_and_strangers_are_not() {
        // The last one is its own ancestor, as after a reused number.
        let stats =
            ["9 (c) S 8 1 1", "3 (x) S 1 1 1", "8 (b) S 7 1 1", "7 (a) S 2 1 1", "6 (z) Z 2 1 1", "5 (y) S 5 1 1"];
        let found = descendants(Pid::from_raw(2), stats.iter().filter_map(|stat| parse(stat.as_bytes())));
        assert_eq!(names(found.iter()), ["a (7)", "z (6)", "b (8)", "c (9)"]);
        let torn = ["2 (leader) S 1 2 2", "8 (b) S 7 1 2", "9 (c) S 8 1 2", "3 (x) S 1 1 1"];
        let found = descendants(Pid::from_raw(2), torn.iter().filter_map(|stat| parse(stat.as_bytes())));
        assert_eq!(found.len(), 2, "their parent has just gone");
        let many: Vec<_> = (10..20).filter_map(|pid| parse(format!("{pid} (m) S 2 1 1").as_bytes())).collect();
        assert_eq!(names(many.iter()).last().unwrap(), "5 more");
    }
}
