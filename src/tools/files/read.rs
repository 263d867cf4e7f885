//! Reading a text file line by line, in bounded memory whatever its size.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::sync::atomic::{AtomicBool, Ordering};

use super::super::paths::Workspace;
use super::super::{Output, ReadFileArgs, text};
use super::{not_text, open_file, words};

/// Lines that one read gives.
const LINES_MAX: u64 = 2_000;
/// Characters that one read gives.
const READ_CHARS_MAX: usize = 50_000;
/// Characters of one line.
const LINE_CHARS_MAX: usize = 2_000;
/// What is kept of a line: as many characters of four bytes.
const LINE_BYTES_MAX: usize = 4 * LINE_CHARS_MAX;
/// Lines that are not shown are counted in files up to this size.
const COUNTED_BYTES_MAX: u64 = 256 * 1024 * 1024;
const BOM: &[u8] = "\u{feff}".as_bytes();

/// `None`: broken off.
pub(in super::super) fn read(workspace: &Workspace, call: &ReadFileArgs, off: &AtomicBool) -> Option<Output> {
    let opened = workspace.readable(&call.path).and_then(|place| Ok((open_file(&place)?, place)));
    let ((file, metadata), place) = match opened {
        Ok(opened) => opened,
        Err(why) => return Some(Output::error(why)),
    };
    let mut page = Page {
        lines: Lines { reader: BufReader::with_capacity(64 * 1024, file), bytes: Vec::new(), length: 0 },
        from: call.offset.unwrap_or(1).max(1),
        limit: call.limit.filter(|limit| *limit > 0).unwrap_or(LINES_MAX).min(LINES_MAX),
        count_rest: metadata.len() <= COUNTED_BYTES_MAX,
        off,
    };
    match page.show(place.shown()) {
        Ok(shown) => shown.map(Output::done),
        Err(why) => Some(Output::error(why)),
    }
}

/// A part of a file that was asked for.
struct Page<'a> {
    lines: Lines,
    from: u64,
    limit: u64,
    count_rest: bool,
    off: &'a AtomicBool,
}

impl Page<'_> {
    fn show(&mut self, path: &str) -> Result<Option<String>, String> {
        let mut shown = String::new();
        let mut chars = 0;
        let mut count = 0;
        // The number of the first line that was left out after the page.
        let mut next = None;
        while self.lines.advance().map_err(|error| format!("{path} {}", words(&error, "read")))? {
            if self.off.load(Ordering::Relaxed) {
                return Ok(None);
            }
            count += 1;
            let judged = count == 1 || (count >= self.from && next.is_none());
            if let Some(kind) = judged.then(|| not_text(&self.lines.bytes)).flatten() {
                return Err(format!("{path} is {kind}; look at it through bash (file, xxd, iconv)"));
            }
            if count < self.from || next.is_some() {
                continue;
            }
            let line = self.lines.shown(count).ok_or_else(|| {
                format!("{path} is not UTF-8 (line {count}); look at it through bash (file, iconv, xxd)")
            })?;
            chars += line.chars().count();
            if count - self.from < self.limit && (chars <= READ_CHARS_MAX || shown.is_empty()) {
                shown.push_str(&line);
            } else if self.count_rest {
                next = Some(count);
            } else {
                shown.push_str(&format!("… (more lines follow; go on with offset {count})\n"));
                return Ok(Some(shown));
            }
        }
        match next {
            Some(next) => {
                let left = count - next + 1;
                shown.push_str(&format!("… ({left} more lines; go on with offset {next})\n"));
            }
            None if count == 0 => shown.push_str("(the file is empty)"),
            None if count < self.from => {
                return Err(format!("{path} has {count} lines; offset {} is past its end", self.from));
            }
            None => {}
        }
        Ok(Some(shown))
    }
}

/// A file's lines, one at a time.
struct Lines {
    reader: BufReader<File>,
    /// The beginning of the present line, without its end.
    bytes: Vec<u8>,
    /// Of the whole line, without its end, in bytes.
    length: u64,
}

impl Lines {
    /// Goes to the next line; false at the end of the file.
    fn advance(&mut self) -> io::Result<bool> {
        self.bytes.clear();
        self.length = 0;
        let mut any = false;
        loop {
            let chunk = match self.reader.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if chunk.is_empty() {
                return Ok(any);
            }
            any = true;
            let end = chunk.iter().position(|&byte| byte == b'\n');
            let part = &chunk[..end.unwrap_or(chunk.len())];
            let room = LINE_BYTES_MAX.saturating_sub(self.bytes.len());
            self.bytes.extend_from_slice(&part[..part.len().min(room)]);
            self.length += part.len() as u64;
            let taken = part.len() + usize::from(end.is_some());
            self.reader.consume(taken);
            if end.is_some() {
                return Ok(true);
            }
        }
    }

    /// The present line with its number; `None` if it is no UTF-8.
    fn shown(&self, number: u64) -> Option<String> {
        let bytes = if number == 1 { self.bytes.strip_prefix(BOM).unwrap_or(&self.bytes) } else { &self.bytes };
        let whole = self.length == self.bytes.len() as u64;
        let line = match std::str::from_utf8(bytes) {
            Ok(line) => line,
            // Only the cut at LINE_BYTES_MAX may fall inside a character.
            Err(error) if !whole && error.error_len().is_none() => {
                std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()?
            }
            Err(_) => return None,
        };
        let line = if whole { line.strip_suffix('\r').unwrap_or(line) } else { line };
        let first = text::first_chars(line, LINE_CHARS_MAX);
        let mark = if whole && first.len() == line.len() {
            String::new()
        } else {
            format!(" … (line cut; it has {} bytes)", self.length)
        };
        Some(format!("{number:>6}\t{first}{mark}\n"))
    }
}
