//! Output of any size in bounded memory: both ends to show, the whole in a file.
//!
//! Knows nothing of processes.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::text;

/// What is shown of a long output: so much of its beginning, and as much of its end.
pub(super) const SIDE_CHARS: usize = 15_000;
/// What is kept of each side in memory: enough for as many characters of four bytes, and for one that is cut.
const SIDE_BYTES: usize = 4 * SIDE_CHARS + 4;
/// The most of an output that is kept in its file.
pub(super) const SPOOL_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Takes an output piece by piece.
pub(super) struct Collector {
    folder: PathBuf,
    /// The first [`SIDE_BYTES`].
    head: Vec<u8>,
    /// The last [`SIDE_BYTES`] and more of what came after.
    tail: Vec<u8>,
    total: u64,
    spool: Option<Spool>,
}

/// The file that takes the whole.
struct Spool {
    path: PathBuf,
    file: io::Result<File>,
    written: u64,
}

impl Collector {
    /// `folder` gets a file, and is made, when an output is too long to show.
    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), head: Vec::new(), tail: Vec::new(), total: 0, spool: None }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (into_head, into_tail) = bytes.split_at(bytes.len().min(SIDE_BYTES - self.head.len()));
        self.head.extend_from_slice(into_head);
        self.tail.extend_from_slice(into_tail);
        if let Some(spool) = &mut self.spool {
            spool.write(bytes);
        }
        if self.tail.len() > 2 * SIDE_BYTES {
            self.begin_spool();
            self.tail.drain(..self.tail.len() - SIDE_BYTES);
        }
    }

    /// All that came so far goes to the file; nothing of it was dropped yet.
    fn begin_spool(&mut self) {
        if self.spool.is_none() {
            let mut spool = Spool::create(&self.folder);
            spool.write(&self.head);
            spool.write(&self.tail);
            self.spool = Some(spool);
        }
    }

    /// The whole, or its two ends with how much was left out and where the whole is.
    pub(super) fn finish(mut self) -> String {
        let mut end = std::mem::take(&mut self.tail);
        if self.spool.is_none() {
            // Nothing was dropped: the two parts are all there is.
            let whole = [&*self.head, &*end].concat();
            if text::width(&whole) <= 2 * SIDE_CHARS {
                return text::readable(&whole);
            }
            self.tail = end;
            self.begin_spool();
            end = whole;
        }
        let head = &self.head[..text::head_bytes(&self.head, SIDE_CHARS)];
        let tail = &end[end.len() - text::tail_bytes(&end, SIDE_CHARS)..];
        let left_out = self.total - head.len() as u64 - tail.len() as u64;
        let place = self.spool.as_ref().map(|spool| spool.place(self.total)).unwrap_or_default();
        format!("{}\n… {left_out} bytes left out; {place} …\n{}", text::readable(head), text::readable(tail))
    }
}

impl Spool {
    fn create(folder: &Path) -> Self {
        let path = folder.join(format!("output-{}.txt", Uuid::now_v7()));
        let file = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .and_then(|()| OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path));
        Self { path, file, written: 0 }
    }

    fn write(&mut self, bytes: &[u8]) {
        let room = usize::try_from(SPOOL_BYTES_MAX - self.written).unwrap_or(usize::MAX);
        let piece = &bytes[..bytes.len().min(room)];
        if let Ok(file) = &mut self.file {
            match file.write_all(piece) {
                Ok(()) => self.written += piece.len() as u64,
                Err(error) => self.file = Err(error),
            }
        }
    }

    /// Where the whole is, or what there is of it.
    fn place(&self, total: u64) -> String {
        match &self.file {
            Ok(_) if self.written == total => format!("the whole is in {}", self.path.display()),
            Ok(_) => format!("the first {} bytes are in {}", self.written, self.path.display()),
            Err(error) => format!("the whole could not be kept ({error})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collected(bytes: &[u8], piece: usize) -> (String, Option<Vec<u8>>) {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let mut collector = Collector::new(&out);
        bytes.chunks(piece).for_each(|piece| collector.push(piece));
        let text = collector.finish();
        let spooled = std::fs::read_dir(&out).ok().map(|mut entries| {
            let path = entries.next().unwrap().unwrap().path();
            assert!(text.contains(&path.display().to_string()), "the file is named");
            std::fs::read(path).unwrap()
        });
        (text, spooled)
    }

    #[test]
    fn i8_cuts_fall_between_characters_at_every_offset_and_size() {
        for unit in ["汉", "é", "x", "😀"] {
            for lead_in in 0..5 {
                for count in [29_990, 30_001, 60_000, 200_000] {
                    let whole = format!("{}{}\n", "a".repeat(lead_in), unit.repeat(count));
                    let (text, spooled) = collected(whole.as_bytes(), 4_096 - lead_in);
                    assert!(!text.contains('\u{fffd}') && !text.contains("\\x"), "{unit} {lead_in} {count}");
                    if whole.chars().count() <= 2 * SIDE_CHARS {
                        assert_eq!((text, spooled), (whole, None));
                        continue;
                    }
                    assert_eq!(spooled.as_deref(), Some(whole.as_bytes()));
                    let (head, rest) = text.split_once("\n… ").unwrap();
                    let (note, tail) = rest.split_once(" …\n").unwrap();
                    assert!(whole.starts_with(head) && whole.ends_with(tail));
                    assert_eq!((head.chars().count(), tail.chars().count()), (SIDE_CHARS, SIDE_CHARS));
                    let left_out = whole.len() - head.len() - tail.len();
                    assert!(note.starts_with(&format!("{left_out} bytes left out; the whole is in ")), "{note}");
                }
            }
        }
    }

    #[test]
    fn i8_binary_output_is_bounded_as_it_is_shown() {
        let (text, spooled) = collected(&[0xff; 9_000], 100);
        assert!(text.contains("1500 bytes left out") && text.chars().count() < 31_000, "{}", text.chars().count());
        assert_eq!(spooled.map(|bytes| bytes.len()), Some(9_000));
    }

    #[test]
    fn i8_memory_and_file_stay_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let mut collector = Collector::new(folder.path());
        let piece = vec![b'x'; 1024 * 1024];
        for _ in 0..70 {
            collector.push(&piece);
            assert!(collector.head.len() + collector.tail.len() <= 3 * SIDE_BYTES);
        }
        let path = collector.spool.as_ref().unwrap().path.clone();
        assert_eq!(std::fs::metadata(path).unwrap().len(), SPOOL_BYTES_MAX);
        assert!(collector.finish().contains(&format!("the first {SPOOL_BYTES_MAX} bytes are in ")));
    }

    #[test]
    fn an_output_that_cannot_be_kept_is_shown_all_the_same() {
        let mut collector = Collector::new(Path::new("/dev/null/out"));
        collector.push("x".repeat(40_000).as_bytes());
        let text = collector.finish();
        assert!(text.contains("10000 bytes left out; the whole could not be kept"), "{}", &text[14_990..15_100]);
    }
}
