//! What happened, and where it is told: one numbered stream of events, the journals on disk, and the views in `.team/`.
//!
//! Knows the form of events and nothing of why they come; nothing written here is ever read back to decide something.

mod events;
mod mask;
#[cfg(test)]
mod tests;
mod views;
mod writer;

use std::path::{Path, PathBuf};

use uuid::Uuid;

pub use events::Events;
pub use mask::Mask;
pub use views::{RosterEntry, Views};
pub use writer::{JOURNAL_VERSION, Journal};

/// The present time: RFC 3339, UTC, milliseconds (`2026-11-30T12:00:00.000Z`).
#[must_use]
pub fn timestamp() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}

/// Where the journals of a session lie, below the folder of its workspace. `out/` in it is for long outputs.
#[must_use]
pub fn session_folder(workspace_folder: &Path, session: Uuid) -> PathBuf {
    workspace_folder.join("sessions").join(session.to_string())
}
