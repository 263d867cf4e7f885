//! Linux: bounds are laid on a process between its fork and its exec, by a view of the file system of its own, by what it
//! gives up, and by Landlock.
//!
//! Knows nothing of commands, guardians or results.

mod grants;
mod landlocked;
mod mounts;
mod open;
mod privileges;

use std::io;

use nix::errno::Errno;

use super::policy::{Bounds, Network};

/// What could not be done, and why.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) what: &'static str,
    pub(crate) errno: Errno,
}

impl Fault {
    fn of(what: &'static str) -> impl FnOnce(Errno) -> Self {
        move |errno| Self { what, errno }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.what, io::Error::from(self.errno))
    }
}

/// Lays bounds on this process and all that it will start, for good. Only for one that has a single thread and is about to
/// become a command.
pub(crate) fn confine(bounds: &Bounds) -> Result<(), Fault> {
    if bounds.means.mounts {
        mounts::enter(bounds.network == Network::Denied && bounds.means.network)?;
        mounts::arrange(bounds)?;
    }
    privileges::give_up()?;
    if bounds.means.landlock {
        landlocked::restrict(bounds)?;
    }
    Ok(())
}

pub(super) use landlocked::abi;
pub(super) use mounts::{arrange, enter};
