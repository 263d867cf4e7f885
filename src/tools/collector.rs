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

/// What takes an output piece by piece.
pub(super) trait Sink: Send {
    fn push(&mut self, bytes: &[u8]);
}

/// Takes an output piece by piece, and shows all that came since the last look.
pub(super) struct Collector {
    /// Where the file goes that takes the whole, once there is one.
    path: PathBuf,
    /// The first [`SIDE_BYTES`].
    head: Vec<u8>,
    /// The last [`SIDE_BYTES`] and more of what came after.
    tail: Vec<u8>,
    /// Since the last look.
    total: u64,
    /// All of it goes to the file, however little it is.
    keeps: bool,
    spool: Option<Spool>,
}

/// The file that takes the whole.
struct Spool {
    file: io::Result<File>,
    /// All that came for it.
    offered: u64,
    written: u64,
}

impl Collector {
    /// `folder` gets a file, and is made, when an output is too long to show.
    pub(super) fn new(folder: &Path) -> Self {
        let path = folder.join(format!("output-{}.txt", Uuid::now_v7()));
        Self { keeps: false, ..Self::keeping(path) }
    }

    /// One that keeps the whole in a file from the first byte, however often is looked.
    pub(super) fn keeping(path: PathBuf) -> Self {
        Self { path, head: Vec::new(), tail: Vec::new(), total: 0, keeps: true, spool: None }
    }

    /// All that came so far goes to the file; nothing of it was dropped yet.
    fn begin_spool(&mut self, parts: &[&[u8]]) {
        if self.spool.is_none() {
            let mut spool = Spool::create(&self.path);
            parts.iter().for_each(|part| spool.write(part));
            self.spool = Some(spool);
        }
    }

    /// What came since the last look: all of it, or its two ends with how much was left out and where the whole is. A
    /// character that has come by half waits for the next look, unless this is the last.
    pub(super) fn look(&mut self, is_last: bool) -> String {
        let head = std::mem::take(&mut self.head);
        let mut end = std::mem::take(&mut self.tail);
        let mut total = std::mem::take(&mut self.total);
        let dropped = total > (head.len() + end.len()) as u64;
        if !dropped {
            // The two parts are all there is.
            end = [&*head, &*end].concat();
        }
        if !is_last {
            let half = end.split_off(end.len() - text::half_char_bytes(&end));
            total -= half.len() as u64;
            self.total = half.len() as u64;
            self.head = half;
        }
        if !dropped {
            if text::width(&end) <= 2 * SIDE_CHARS {
                return text::readable(&end);
            }
            self.begin_spool(&[&end]);
        }
        let beginning = if dropped { &head } else { &end };
        let shown_head = &beginning[..text::head_bytes(beginning, SIDE_CHARS)];
        let shown_tail = &end[end.len() - text::tail_bytes(&end, SIDE_CHARS)..];
        let left_out = total - shown_head.len() as u64 - shown_tail.len() as u64;
        let place = self.spool.as_ref().map(|spool| spool.place(&self.path)).unwrap_or_default();
        format!(
            "{}\n… {left_out} bytes left out; {place} …\n{}",
            text::readable(shown_head),
            text::readable(shown_tail)
        )
    }

    /// The whole, or its two ends with how much was left out and where the whole is.
    pub(super) fn finish(mut self) -> String {
        self.look(true)
    }
}

impl Sink for Collector {
    fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        if self.keeps {
            self.begin_spool(&[]);
        }
        let (into_head, into_tail) = bytes.split_at(bytes.len().min(SIDE_BYTES - self.head.len()));
        self.head.extend_from_slice(into_head);
        self.tail.extend_from_slice(into_tail);
        if let Some(spool) = &mut self.spool {
            spool.write(bytes);
        }
        if self.tail.len() > 2 * SIDE_BYTES {
            let (head, tail) = (std::mem::take(&mut self.head), std::mem::take(&mut self.tail));
            self.begin_spool(&[&head, &tail]);
            (self.head, self.tail) = (head, tail);
            self.tail.drain(..self.tail.len() - SIDE_BYTES);
        }
    }
}

impl Spool {
    fn create(path: &Path) -> Self {
        let folder = path.parent().unwrap_or(path);
        let file = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .and_then(|()| OpenOptions::new().write(true).create_new(true).mode(0o600).open(path));
        Self { file, offered: 0, written: 0 }
    }

    fn write(&mut self, bytes: &[u8]) {
        self.offered += bytes.len() as u64;
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
    fn place(&self, path: &Path) -> String {
        match &self.file {
            Ok(_) if self.written == self.offered => format!("the whole is in {}", path.display()),
            Ok(_) => format!("the first {} bytes are in {}", self.written, path.display()),
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
        let path = collector.path.clone();
        assert_eq!(std::fs::metadata(path).unwrap().len(), SPOOL_BYTES_MAX);
        assert!(collector.finish().contains(&format!("the first {SPOOL_BYTES_MAX} bytes are in ")));
    }

    #[test]
    fn looks_show_each_byte_once_and_the_file_keeps_them_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out/job-1.txt");
        let mut collector = Collector::keeping(path.clone());
        let whole = format!("汉{}字\n", "é😀".repeat(50_000));
        let mut seen = String::new();
        for (number, piece) in whole.as_bytes().chunks(997).enumerate() {
            collector.push(piece);
            if number % 3 == 0 {
                seen.push_str(&collector.look(false));
            }
        }
        seen.push_str(&collector.look(true));
        assert!(seen == whole, "no character is torn by a look");
        assert_eq!(collector.look(true), "");
        collector.push("x".repeat(40_000).as_bytes());
        let text = collector.look(false);
        assert!(text.contains(&format!("10000 bytes left out; the whole is in {}", path.display())), "{}", text.len());
        assert_eq!(std::fs::read(path).unwrap().len(), whole.len() + 40_000);
        collector.push(b"\xff\xe6");
        assert_eq!((collector.look(false).as_str(), collector.look(true).as_str()), ("\\xff", "\\xe6"));
    }

    #[test]
    fn an_output_that_cannot_be_kept_is_shown_all_the_same() {
        let mut collector = Collector::new(Path::new("/dev/null/out"));
        collector.push("x".repeat(40_000).as_bytes());
        let text = collector.finish();
        assert!(text.contains("10000 bytes left out; the whole could not be kept"), "{}", &text[14_990..15_100]);
    }
}
