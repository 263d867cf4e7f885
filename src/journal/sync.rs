//! Sees to it that what was written reaches the disk soon, beside the program and not in its way.
//!
//! Knows files, and nothing of what stands in them.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long what was written may wait before the disk is told to keep it.
pub const SYNC_EVERY: Duration = Duration::from_millis(200);

/// A thread that syncs files some time after they were written. It sleeps while nothing is.
#[derive(Debug)]
pub(super) struct Syncer {
    written: Option<Sender<Arc<File>>>,
    thread: Option<JoinHandle<()>>,
}

impl Syncer {
    /// # Errors
    /// If no thread can be had.
    pub(super) fn start() -> io::Result<Self> {
        let (written, files) = channel();
        let thread = std::thread::Builder::new().name("journal".to_owned()).spawn(move || sync_all(&files))?;
        Ok(Self { written: Some(written), thread: Some(thread) })
    }

    /// The file was written.
    pub(super) fn soon(&self, file: &Arc<File>) {
        if let Some(written) = &self.written {
            // It fails only if the thread panicked; what is in the file then reaches the disk when the system wants.
            drop(written.send(Arc::clone(file)));
        }
    }
}

impl Drop for Syncer {
    /// What was written is on the disk afterwards.
    fn drop(&mut self) {
        drop(self.written.take());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn sync_all(written: &Receiver<Arc<File>>) {
    let mut open = true;
    while open {
        let Ok(first) = written.recv() else { return };
        let until = Instant::now() + SYNC_EVERY;
        let mut files = vec![first];
        loop {
            match written.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(file) if files.iter().any(|known| Arc::ptr_eq(known, &file)) => {}
                Ok(file) => files.push(file),
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => {
                    open = false;
                    break;
                }
            }
        }
        for file in files {
            // A disk that can't keep it fails the next write, and that is told.
            drop(file.sync_data());
        }
    }
}
