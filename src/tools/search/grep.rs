//! Lines that fit a regular expression: files are searched side by side, hits shown in the order of their paths.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};

use super::super::paths::{Place, Workspace};
use super::super::{GrepArgs, Output, text};
use super::walk::{Found, threads, walk};
use super::{ERROR_CHARS_MAX, Pattern, begin, bounded, check_length, note};

/// Lines that one grep gives.
const HITS_MAX: usize = 200;
/// Characters of one line.
const LINE_CHARS_MAX: usize = 300;
/// The longest line that is searched.
const LINE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// `None`: broken off.
pub(in super::super) fn grep(workspace: &Workspace, call: &GrepArgs, off: &AtomicBool) -> Option<Output> {
    let (begin, expression, only) = match prepare(workspace, call) {
        Ok(prepared) => prepared,
        Err(why) => return Some(Output::error(why)),
    };
    let fits = |path: &Path| only.as_ref().is_none_or(|only| only.fits(path));
    let mut found = walk(begin.real(), workspace.root(), &fits, off)?;
    let hits = search(&begin, &found, &expression, off)?;
    found.unreadable += hits.unreadable;
    if hits.count == 0 {
        return Some(Output::done(format!("no line fits{}", note(&found))));
    }
    let lines = hits.kept.iter().flat_map(|(at, lines)| {
        let name = workspace.name(&found.paths[*at]);
        lines.iter().map(move |(number, line)| format!("{name}:{number}:{line}"))
    });
    Some(Output::done(bounded(lines, hits.count, HITS_MAX, "lines fit", &note(&found))))
}

fn prepare(workspace: &Workspace, call: &GrepArgs) -> Result<(Place, RegexMatcher, Option<Pattern>), String> {
    check_length(&call.pattern)?;
    let begin = begin(workspace, call.path.as_deref())?;
    let expression = RegexMatcherBuilder::new().line_terminator(Some(b'\n')).build(&call.pattern).map_err(|error| {
        let error = text::first_chars(&error.to_string(), ERROR_CHARS_MAX).to_owned();
        format!("the pattern is no regular expression for single lines: {error}\nEscape special characters with \\")
    })?;
    let only = call.glob.as_deref().map(|glob| Pattern::new(glob, workspace, &begin)).transpose()?;
    Ok((begin, expression, only))
}

/// What fits, by the number of its file.
#[derive(Default)]
struct Hits {
    /// At least the first [`HITS_MAX`] lines.
    kept: BTreeMap<usize, Vec<(u64, String)>>,
    kept_count: usize,
    count: usize,
    unreadable: usize,
}

impl Hits {
    fn add(&mut self, at: usize, lines: Vec<(u64, String)>, count: usize) {
        self.count += count;
        if lines.is_empty() {
            return;
        }
        self.kept_count += lines.len();
        self.kept.insert(at, lines);
        // The last files' lines go as soon as the others are enough, so that memory stays bounded.
        while let Some(last) = self.kept.last_entry()
            && self.kept_count - last.get().len() >= HITS_MAX
        {
            self.kept_count -= last.remove().len();
        }
    }
}

fn search(begin: &Place, found: &Found, expression: &RegexMatcher, off: &AtomicBool) -> Option<Hits> {
    let next = AtomicUsize::new(0);
    let hits = Mutex::new(Hits::default());
    let work = || {
        let mut searcher = SearcherBuilder::new()
            .binary_detection(BinaryDetection::quit(0))
            .line_number(true)
            .heap_limit(Some(LINE_BYTES_MAX))
            .build();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(path) = found.paths.get(at).filter(|_| !off.load(Ordering::Relaxed)) else { return };
            let mut of_file = OfFile { lines: Vec::new(), count: 0, off };
            let searched = search_file(begin, path, expression, &mut searcher, &mut of_file);
            let mut hits = hits.lock().unwrap_or_else(PoisonError::into_inner);
            hits.unreadable += usize::from(searched.is_err());
            hits.add(at, of_file.lines, of_file.count);
        }
    };
    std::thread::scope(|scope| {
        let others = threads().min(found.paths.len()).saturating_sub(1);
        for _ in 0..others {
            scope.spawn(work);
        }
        work();
    });
    let hits = hits.into_inner().unwrap_or_else(PoisonError::into_inner);
    (!off.load(Ordering::Relaxed)).then_some(hits)
}

fn search_file(
    begin: &Place,
    path: &Path,
    expression: &RegexMatcher,
    searcher: &mut Searcher,
    of_file: &mut OfFile<'_>,
) -> io::Result<()> {
    // Links are not followed, so opening one fails; that is no fault.
    let Some(file) = begin.below(path).and_then(|place| place.open().ok()) else {
        return if path.is_symlink() { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) };
    };
    if !file.metadata()?.is_file() {
        return Ok(());
    }
    searcher.search_file(expression, &file, of_file)
}

/// The hits of one file.
struct OfFile<'a> {
    lines: Vec<(u64, String)>,
    count: usize,
    off: &'a AtomicBool,
}

impl Sink for OfFile<'_> {
    type Error = io::Error;

    fn matched(&mut self, _searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.count += 1;
        if self.lines.len() < HITS_MAX {
            let line = found.bytes();
            let line = &line[..text::head_bytes(line, LINE_CHARS_MAX)];
            let mark = if line.len() < found.bytes().len() && !found.bytes()[line.len()..].starts_with(b"\n") {
                " …"
            } else {
                ""
            };
            let line = text::readable(line);
            self.lines.push((found.line_number().unwrap_or_default(), format!("{}{mark}", line.trim_end())));
        }
        Ok(!self.off.load(Ordering::Relaxed))
    }
}
