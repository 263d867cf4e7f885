//! Named places at which a test can have this process killed, to prove that nothing is lost there. Not in release builds.
//!
//! `S15_TEST_KILL=<point>:<n>` sends the process SIGKILL when it passes that point for the n-th time (from 1). With
//! `S15_TEST_KILL_LOG=<file>` the point's name is first appended to that file as a line, so that a test can count what fired.

/// Passes a point: in a development build the process may end here, as if somebody had pulled the plug.
#[inline]
pub fn pass(point: &str) {
    #[cfg(debug_assertions)]
    armed::pass(point);
    #[cfg(not(debug_assertions))]
    let _ = point;
}

/// Is this the pass at which the point kills? For a caller that must do half of something first; it then calls [`die`].
#[inline]
#[must_use]
pub fn due(point: &str) -> bool {
    #[cfg(debug_assertions)]
    return armed::due(point);
    #[cfg(not(debug_assertions))]
    {
        let _ = point;
        false
    }
}

/// Ends the process after [`due`] said so; does nothing in a release build.
#[inline]
pub fn die(point: &str) {
    #[cfg(debug_assertions)]
    armed::die(point);
    #[cfg(not(debug_assertions))]
    let _ = point;
}

#[cfg(debug_assertions)]
mod armed {
    use std::io::Write;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    struct Armed {
        point: String,
        left: AtomicU64,
    }

    fn armed() -> Option<&'static Armed> {
        static ARMED: OnceLock<Option<Armed>> = OnceLock::new();
        let read = || {
            let text = std::env::var("S15_TEST_KILL").ok()?;
            let (point, count) = text.rsplit_once(':')?;
            Some(Armed { point: point.to_owned(), left: AtomicU64::new(count.parse().ok()?) })
        };
        ARMED.get_or_init(read).as_ref()
    }

    pub(super) fn due(point: &str) -> bool {
        armed().is_some_and(|armed| armed.point == point && armed.left.fetch_sub(1, Ordering::SeqCst) == 1)
    }

    pub(super) fn pass(point: &str) {
        if due(point) {
            die(point);
        }
    }

    pub(super) fn die(point: &str) {
        if let Some(path) = std::env::var_os("S15_TEST_KILL_LOG") {
            let log = std::fs::OpenOptions::new().append(true).create(true).open(path);
            let written = log.and_then(|mut log| log.write_all(format!("{point}\n").as_bytes()));
            assert!(written.is_ok(), "the log of kill points can't be written: {written:?}");
        }
        // SAFETY-free: nix wraps the call; a process can always kill itself.
        // A process may always kill itself; what happens if not is below.
        let _ = nix::sys::signal::kill(nix::unistd::Pid::this(), nix::sys::signal::Signal::SIGKILL);
        loop {
            std::thread::park();
        }
    }
}
