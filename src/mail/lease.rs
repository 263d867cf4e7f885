//! Does anybody have a file open for writing? The kernel tells through a lease; elsewhere nobody can say.
//!
//! Knows nothing of mail.
#![allow(unsafe_code, reason = "fcntl has no safe wrapper for leases; each call says why it is sound")]

use std::fs::File;

/// What the kernel says about other writers of a file.
#[derive(Debug)]
pub(super) enum Writers<'a> {
    /// There are none, and none comes while the lease lives: whoever opens the file for writing waits until it is dropped.
    Absent(Lease<'a>),
    /// Somebody has it open for writing.
    Present,
    /// It can't be known here: another system, a file system without leases, a file of another user.
    Unknown,
}

/// A lease on an open file, given back when dropped.
#[derive(Debug)]
pub(super) struct Lease<'a>(#[cfg_attr(not(target_os = "linux"), expect(dead_code))] &'a File);

#[cfg(target_os = "linux")]
mod imp {
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd;

    use super::{Lease, Writers};

    /// Chooses the signal that tells a holder that its lease is asked for; not in every libc binding.
    const F_SETSIG: libc::c_int = 10;

    fn fcntl(file: &File, command: libc::c_int, argument: libc::c_int) -> io::Result<libc::c_int> {
        // SAFETY: the descriptor lives for the whole call, and the commands used here take an integer.
        match unsafe { libc::fcntl(file.as_raw_fd(), command, argument) } {
            -1 => Err(io::Error::last_os_error()),
            answer => Ok(answer),
        }
    }

    fn take(file: &File, kind: libc::c_int) -> Writers<'_> {
        // The signal would be SIGIO, which ends a process that doesn't catch it. SIGURG is ignored by default.
        if fcntl(file, F_SETSIG, libc::SIGURG).is_err() {
            return Writers::Unknown;
        }
        match fcntl(file, libc::F_SETLEASE, kind) {
            Ok(_) => Writers::Absent(Lease(file)),
            Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => Writers::Present,
            Err(_) => Writers::Unknown,
        }
    }

    /// Looks for writers of a file that is open for reading here. Readers, such as `tail -f`, don't count.
    pub(in crate::mail) fn writers(file: &File) -> Writers<'_> {
        take(file, libc::F_RDLCK)
    }

    /// Looks for anybody else who uses a file that is open for writing here.
    pub(in crate::mail) fn others(file: &File) -> Writers<'_> {
        take(file, libc::F_WRLCK)
    }

    impl Lease<'_> {
        /// Does somebody wait for the file by now?
        pub(in crate::mail) fn is_asked_for(&self) -> bool {
            fcntl(self.0, libc::F_GETLEASE, 0).is_ok_and(|kind| kind == libc::F_UNLCK)
        }
    }

    impl Drop for Lease<'_> {
        fn drop(&mut self) {
            // It also ends when the descriptor is closed, so nothing is lost if this fails.
            drop(fcntl(self.0, libc::F_SETLEASE, libc::F_UNLCK));
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod imp {
    use std::fs::File;

    use super::{Lease, Writers};

    pub(in crate::mail) fn writers(_: &File) -> Writers<'_> {
        Writers::Unknown
    }

    pub(in crate::mail) fn others(_: &File) -> Writers<'_> {
        Writers::Unknown
    }

    impl Lease<'_> {
        pub(in crate::mail) fn is_asked_for(&self) -> bool {
            false
        }
    }
}

pub(super) use imp::{others, writers};

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::fs::OpenOptions;
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn a_writer_is_seen_and_a_reader_is_not() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (path, _kept) = file.into_parts().1.keep().map(|path| (path.clone(), Remove(path))).unwrap();
        let reader = File::open(&path).unwrap();
        let _other_reader = File::open(&path).unwrap();
        let writer = OpenOptions::new().append(true).open(&path).unwrap();
        assert!(matches!(writers(&reader), Writers::Present));
        drop(writer);
        // A child of a neighbouring test may hold a copy of the descriptor until it has started its program.
        while !matches!(writers(&reader), Writers::Absent(_)) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_writer_that_comes_while_the_lease_is_held_waits_and_harms_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        File::create(&path).unwrap();
        let mut reader = File::open(&path).unwrap();
        let lease = loop {
            match writers(&reader) {
                Writers::Absent(lease) => break lease,
                Writers::Present => std::thread::yield_now(),
                // A file system without leases has nothing to show here.
                Writers::Unknown => return,
            }
        };
        let writer = std::thread::spawn(move || {
            OpenOptions::new().append(true).open(path).unwrap().write_all(b"late").unwrap();
        });
        while !lease.is_asked_for() {
            std::thread::yield_now();
        }
        drop(lease);
        writer.join().unwrap();
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "late");
    }

    struct Remove(std::path::PathBuf);

    impl Drop for Remove {
        fn drop(&mut self) {
            drop(std::fs::remove_file(&self.0));
        }
    }
}
