//! What the program and the guardian of a command say to each other: one JSON value a line.

use std::ffi::OsString;
use std::io;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::sandbox::Policy;

/// From the program to the guardian. That nobody is there to say anything any more is an order too: to end all.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Request {
    /// The first, once.
    Run {
        program: String,
        arguments: Vec<String>,
        folder: OsString,
        /// What the command finds in its environment besides the guardian's own.
        variables: Vec<(String, OsString)>,
        policy: Box<Policy>,
    },
    /// TERM for the command and all below it.
    Terminate,
    /// KILL for them.
    Kill,
    /// End what is left, and tell.
    End,
}

/// From the guardian to the program.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Report {
    /// The command could not be started; the last word.
    Failed {
        errno: i32,
        /// What of its sandbox could not be had, if that was why.
        sandbox: Option<String>,
    },
    /// It has ended, and left others behind.
    Exited,
    /// It and all below it have ended; the last word.
    Ended {
        /// As the system tells it.
        status: Option<i32>,
        /// The names of those that were ended with it.
        ended: Vec<String>,
        /// The names of those that could not be ended.
        refused: Vec<String>,
        /// They were ended since they were too many.
        #[serde(default)]
        crowd: bool,
    },
}

/// A line with its end.
pub(super) fn line(value: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(value).expect("these types have no way to fail");
    line.push(b'\n');
    line
}

pub(super) fn read<T: DeserializeOwned>(line: &[u8]) -> io::Result<T> {
    serde_json::from_slice(line).map_err(io::Error::from)
}
