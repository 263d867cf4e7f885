//! Processes that a command left behind where nobody guards it: found, named, ended.
//!
//! Uses `/proc` where there is one. Knows nothing of the command itself.

use std::fs;
use std::os::fd::AsFd;
use std::path::Path;

use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::stat::fstat;
use nix::unistd::Pid;

use super::processes::{self, Process};

/// How often a session is looked at until nobody new is in it.
const LOOKS_MAX: usize = 20;

/// Ends all that is left in a group whose leader was just reaped, and names it.
///
/// They are stopped first: that tells at once whether there is anybody, and nobody can get away while they are named.
pub(super) fn end_group(group: Pid) -> Vec<String> {
    if killpg(group, Signal::SIGSTOP).is_err() {
        return Vec::new();
    }
    let alive: Vec<Process> = processes::all().filter(|process| process.is_alive && process.group == group).collect();
    if Path::new("/proc/self/stat").exists() && alive.is_empty() {
        // Only the dead that nobody has buried yet.
        return Vec::new();
    }
    let _ = killpg(group, Signal::SIGKILL);
    if alive.is_empty() {
        return vec!["its name is not known".to_owned()];
    }
    processes::names(alive.iter())
}

/// Ends all of a session but its leader, and names it. The leader must not be reaped yet: until then the number is its own.
pub(super) fn end_session(leader: Pid) -> Vec<String> {
    let mut ended = Vec::new();
    for _ in 0..LOOKS_MAX {
        let known = ended.len();
        ended = processes::all().filter(|p| p.is_alive && p.session == leader && p.pid != leader).collect();
        // Whoever is stopped has no more children: looked at again until nobody new is there.
        if ended.len() == known {
            break;
        }
        for process in &ended {
            let _ = kill(process.pid, Signal::SIGSTOP);
        }
    }
    ended.retain(Process::kill);
    processes::names(ended.iter())
}

/// The processes that hold the other end of a pipe, whatever group they moved to.
pub(super) fn holders(pipe: &impl AsFd) -> Vec<Process> {
    let Ok(status) = fstat(pipe) else { return Vec::new() };
    let link = format!("pipe:[{}]", status.st_ino);
    let own = Pid::this();
    let holds = |process: &Process| {
        let descriptors = fs::read_dir(format!("/proc/{}/fd", process.pid)).into_iter().flatten().flatten();
        descriptors
            .filter_map(|entry| fs::read_link(entry.path()).ok())
            .any(|target| target.as_os_str() == link.as_str())
    };
    processes::all().filter(|process| process.is_alive && process.pid != own).filter(holds).collect()
}
