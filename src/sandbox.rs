//! The operating system's help against commands that do more than they should.
//!
//! [`Policy`] says what a command may do, as plain data; [`Support`] what this machine can hold it with. The policy is laid on
//! the command alone, between its fork and its exec, and never on this program or a command's guardian. Knows nothing of
//! tools, agents or sessions.

mod hint;
#[cfg(target_os = "linux")]
mod linux;
mod places;
mod policy;
#[cfg(any(target_os = "macos", test))]
mod seatbelt;
mod support;

pub use hint::closed_by;
#[cfg(target_os = "linux")]
pub(crate) use linux::confine;
pub use places::Ground;
pub use policy::{BUILD_FOLDERS, Bounds, Means, Network, Policy};
#[cfg(target_os = "macos")]
pub(crate) use seatbelt::{PROGRAM as SEATBELT, profile as seatbelt_profile};
#[cfg(target_os = "linux")]
pub use support::probe_if_asked;
pub use support::{Support, Wanted};
