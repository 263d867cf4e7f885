//! Output of any size and any bytes, made into bounded text that a model can read. Cuts fall between characters.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use uuid::Uuid;

/// What is shown of an output that is too long: this many bytes from its beginning, and as many from its end.
const SIDE_BYTES: usize = 15_000;
/// The most of an output that is kept in a file.
const SPOOL_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Collects bytes in bounded memory; the whole goes to a file once it no longer fits.
pub(super) struct Collector {
    folder: PathBuf,
    head: Vec<u8>,
    tail: Vec<u8>,
    total: u64,
    spool: Option<(PathBuf, File)>,
    spool_failed: bool,
}

impl Collector {
    pub(super) fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            head: Vec::new(),
            tail: Vec::new(),
            total: 0,
            spool: None,
            spool_failed: false,
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let before = self.total;
        self.total += bytes.len() as u64;
        if self.total > 2 * SIDE_BYTES as u64 {
            self.spool(before, bytes);
        }
        let into_head = bytes.len().min(SIDE_BYTES - self.head.len());
        self.head.extend_from_slice(&bytes[..into_head]);
        self.tail.extend_from_slice(&bytes[into_head..]);
        if self.tail.len() > 4 * SIDE_BYTES {
            self.tail.drain(..self.tail.len() - 2 * SIDE_BYTES);
        }
    }

    /// Everything so far into the file when it is begun, then each piece.
    fn spool(&mut self, before: u64, bytes: &[u8]) {
        if self.spool.is_none() && !self.spool_failed {
            let path = self.folder.join(format!("output-{}.txt", Uuid::now_v7()));
            let begun =
                std::fs::create_dir_all(&self.folder).and_then(|()| File::create_new(&path)).and_then(|mut file| {
                    file.write_all(&self.head).and_then(|()| file.write_all(&self.tail)).map(|()| file)
                });
            match begun {
                Ok(file) => self.spool = Some((path, file)),
                Err(_) => self.spool_failed = true,
            }
        }
        let room = SPOOL_BYTES_MAX.saturating_sub(before);
        let piece = &bytes[..bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX))];
        if let Some((_, file)) = &mut self.spool
            && file.write_all(piece).is_err()
        {
            self.spool_failed = true;
        }
    }

    /// The text: whole, or its two ends with what was left out and where the whole is.
    pub(super) fn text(self) -> String {
        if self.total <= 2 * SIDE_BYTES as u64 {
            return readable(&[self.head, self.tail].concat());
        }
        let head_end = boundary_before(&self.head, self.head.len());
        let tail_from = boundary_after(&self.tail, self.tail.len().saturating_sub(SIDE_BYTES));
        let left_out = self.total - head_end as u64 - (self.tail.len() - tail_from) as u64;
        let place = match (&self.spool, self.spool_failed) {
            (Some((path, _)), false) if self.total <= SPOOL_BYTES_MAX => format!("the whole is in {}", path.display()),
            (Some((path, _)), false) => format!("the first {SPOOL_BYTES_MAX} bytes are in {}", path.display()),
            (Some(_), true) | (None, _) => "the whole could not be kept".to_owned(),
        };
        format!(
            "{}\n… ({left_out} bytes left out; {place}) …\n{}",
            readable(&self.head[..head_end]),
            readable(&self.tail[tail_from..])
        )
    }
}

/// Bytes as text: what is no UTF-8, and control characters but tab and line end, as `\xNN`.
pub(super) fn readable(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' | '\t' => text.push(c),
                '\r' => {}
                c if c.is_ascii_control() => {
                    // Writing to a String cannot fail.
                    let _ = write!(text, "\\x{:02x}", c as u32);
                }
                c => text.push(c),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// The nearest place at or before `at` that is not inside a character.
fn boundary_before(bytes: &[u8], at: usize) -> usize {
    let begun = (1..=3.min(at)).find(|back| bytes[at - back] & 0xc0 != 0x80);
    match begun {
        Some(back) if bytes[at - back] >= 0xc0 && back < sequence_length(bytes[at - back]) => at - back,
        Some(_) | None => at,
    }
}

/// The nearest place at or after `at` that is not inside a character.
fn boundary_after(bytes: &[u8], at: usize) -> usize {
    (at..bytes.len().min(at + 4)).find(|&place| bytes[place] & 0xc0 != 0x80).unwrap_or(at)
}

fn sequence_length(first: u8) -> usize {
    match first {
        0xf0.. => 4,
        0xe0.. => 3,
        0xc0.. => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_fall_between_characters_at_every_offset() {
        for lead_in in 0..4 {
            let folder = tempfile::tempdir().unwrap();
            let mut collector = Collector::new(folder.path());
            let mut bytes = vec![b'a'; lead_in];
            bytes.extend("汉".repeat(60_000).bytes());
            for piece in bytes.chunks(4096) {
                collector.push(piece);
            }
            let text = collector.text();
            assert!(!text.contains('\u{fffd}') && !text.contains("\\x"), "lead-in {lead_in}");
            let file = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
            assert_eq!(std::fs::read(&file).unwrap(), bytes);
            assert!(text.contains(&file.display().to_string()));
        }
    }

    #[test]
    fn any_bytes_become_readable_text_in_order() {
        let text = readable(b"A\xff\xfeB\0C\xe6\xb1 D\n");
        assert_eq!(text, "A\\xff\\xfeB\\x00C\\xe6\\xb1 D\n");
    }

    #[test]
    fn short_output_is_whole_and_makes_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut collector = Collector::new(folder.path());
        collector.push("好\n".as_bytes());
        assert_eq!(collector.text(), "好\n");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
