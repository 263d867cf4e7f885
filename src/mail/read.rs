//! Reading a file that others may still write: whole lines only, and whether anybody still has it open.
#![allow(unsafe_code, reason = "system calls without a safe wrapper; each says why it is sound")]

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// Bytes that are read at once.
pub(super) const CHUNK_BYTES: usize = 4 * 1024 * 1024;

/// A line: the file's name, its offset there, its bytes. True if it became outside mail that must be acknowledged.
pub(super) type Take<'a> = dyn FnMut(&str, u64, &[u8]) -> bool + 'a;

/// Reads whole lines from `offset` on, at most `room` of them.
pub(super) fn read_on(
    file: &File,
    place: &str,
    offset: &mut u64,
    room: &mut usize,
    unacknowledged: &mut HashSet<(String, u64)>,
    take: &mut Take<'_>,
) {
    let mut chunk = Vec::new();
    let mut reader = file;
    if reader.seek(SeekFrom::Start(*offset)).is_err()
        || reader.take(CHUNK_BYTES as u64).read_to_end(&mut chunk).is_err()
    {
        return;
    }
    let mut rest = chunk.as_slice();
    while *room > 0 {
        let Some(end) = rest.iter().position(|&byte| byte == b'\n') else { break };
        if take(place, *offset, &rest[..end]) {
            unacknowledged.insert((place.to_owned(), *offset));
            *room -= 1;
        }
        *offset += end as u64 + 1;
        rest = &rest[end + 1..];
    }
    if rest.len() == CHUNK_BYTES {
        // A line longer than any that is accepted: passed over piece by piece, each set aside.
        take(place, *offset, &rest[..64]);
        *offset += rest.len() as u64;
    }
}

/// Does another process, or another descriptor, have the file open? `None` where that can't be known.
#[cfg(target_os = "linux")]
pub(super) fn held_elsewhere(file: &File) -> Option<bool> {
    use std::os::fd::AsRawFd;
    // SAFETY: fcntl on a descriptor that lives for the whole call.
    let leased = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK) };
    if leased == 0 {
        // SAFETY: as above.
        unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_UNLCK) };
        return Some(false);
    }
    match io::Error::last_os_error().raw_os_error() {
        Some(libc::EAGAIN) => Some(true),
        _ => None,
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn held_elsewhere(_: &File) -> Option<bool> {
    None
}
