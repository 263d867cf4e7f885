//! Lines of a file from an offset on, in bounded memory. Knows nothing of what a line means.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

/// Longest line that is read whole: the longest content with every character escaped, and room for the rest.
pub(super) const LINE_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Bytes that are read from the file at once.
const READ_BYTES: usize = 64 * 1024;

/// What comes next in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// A line, with its line end taken off.
    Whole,
    /// The end of the file, or a last line that has no end yet.
    Torn,
    /// A piece of a line that is too long to be read whole.
    Overlong,
}

/// The lines of a file.
#[derive(Debug)]
pub(super) struct Lines {
    reader: BufReader<File>,
    /// The bytes of the present piece, without its line end.
    pub(super) bytes: Vec<u8>,
    /// How many bytes of the file the present piece takes.
    pub(super) length: u64,
}

impl Lines {
    pub(super) fn new(file: File, offset: u64) -> io::Result<Self> {
        let mut reader = BufReader::with_capacity(READ_BYTES, file);
        reader.seek(SeekFrom::Start(offset))?;
        Ok(Self { reader, bytes: Vec::new(), length: 0 })
    }

    /// The file itself.
    pub(super) fn file(&self) -> &File {
        self.reader.get_ref()
    }

    /// Goes on at another place.
    pub(super) fn go_to(&mut self, offset: u64) -> io::Result<()> {
        self.reader.seek(SeekFrom::Start(offset)).map(drop)
    }

    /// Reads the next piece into `bytes`.
    pub(super) fn step(&mut self) -> io::Result<Piece> {
        self.bytes.clear();
        let limit = LINE_BYTES_MAX as u64 + 1;
        self.length = (&mut self.reader).take(limit).read_until(b'\n', &mut self.bytes)? as u64;
        if self.bytes.last() == Some(&b'\n') {
            self.bytes.pop();
            return Ok(Piece::Whole);
        }
        Ok(if self.length < limit { Piece::Torn } else { Piece::Overlong })
    }
}
