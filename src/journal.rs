//! What happened, and where it is told: one numbered stream of events, the journals on disk, and the views in `.team/`.
//!
//! Knows the form of events and nothing of why they come. The journals are read back when a session is resumed; the views are
//! written and never read.

mod events;
mod key_shapes;
mod mask;
mod reader;
mod sync;
#[cfg(test)]
mod tests;
mod views;
mod writer;

use std::path::{Path, PathBuf};

use uuid::Uuid;

pub use events::Events;
pub use mask::Mask;
pub use reader::{Past, Unreadable, read_session};
pub use sync::SYNC_EVERY;
pub use views::{RosterEntry, Views};
pub use writer::{JOURNAL_VERSION, Journal};

/// The present time: RFC 3339, UTC, milliseconds (`2026-11-30T12:00:00.000Z`).
#[must_use]
pub fn timestamp() -> String {
    format!("{:.3}", crate::seam::now())
}

/// A timestamp for people: the user's own time zone, to the minute (`2026-11-30 13:00`). What is no timestamp stays as it is.
#[must_use]
pub fn minute(timestamp: &str) -> String {
    match timestamp.parse::<jiff::Timestamp>() {
        Ok(time) => time.to_zoned_datetime(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string(),
        Err(_) => timestamp.to_owned(),
    }
}

/// Where the journals of a session lie, below the folder of its workspace. `out/` in it is for long outputs.
#[must_use]
pub fn session_folder(workspace_folder: &Path, session: Uuid) -> PathBuf {
    workspace_folder.join("sessions").join(session.to_string())
}
