//! Finding files by pattern and lines by expression, as .gitignore allows: bounded and sorted.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use globset::{Glob, GlobMatcher};
use grep_regex::RegexMatcher;
use grep_searcher::sinks::Lossy;
use grep_searcher::{BinaryDetection, SearcherBuilder};
use ignore::WalkBuilder;

use super::paths::Workspace;
use super::{GlobArgs, GrepArgs, Output};

/// Paths that one glob gives.
const PATHS_MAX: usize = 200;
/// Lines that one grep gives.
const HITS_MAX: usize = 200;
/// Characters of one line.
const LINE_CHARS_MAX: usize = 300;

pub(super) fn glob(workspace: &Workspace, call: &GlobArgs, cancelled: &AtomicBool) -> Output {
    let begin = match workspace.readable(call.path.as_deref().unwrap_or(".")) {
        Ok(begin) => begin,
        Err(why) => return Output::error(why),
    };
    let matcher = match matcher(&call.pattern) {
        Ok(matcher) => matcher,
        Err(why) => return Output::error(why),
    };
    let fits = |path: &Path| {
        let from_begin = path.strip_prefix(&begin).unwrap_or(path);
        matcher.is_match(workspace.shown(path))
            || matcher.is_match(from_begin)
            || path.file_name().is_some_and(|name| matcher.is_match(name))
    };
    let paths = files(&begin, cancelled);
    let fitting: Vec<String> =
        paths.iter().filter(|path| fits(path)).map(|path| workspace.shown(path).display().to_string()).collect();
    if fitting.is_empty() {
        return Output::done("no file fits");
    }
    Output::done(bounded(&fitting, PATHS_MAX, "paths"))
}

pub(super) fn grep(workspace: &Workspace, call: &GrepArgs, cancelled: &AtomicBool) -> Output {
    let begin = match workspace.readable(call.path.as_deref().unwrap_or(".")) {
        Ok(begin) => begin,
        Err(why) => return Output::error(why),
    };
    let expression = match RegexMatcher::new_line_matcher(&call.pattern) {
        Ok(expression) => expression,
        Err(error) => return Output::error(format!("the pattern is no regular expression: {error}")),
    };
    let only = match call.glob.as_deref().map(matcher).transpose() {
        Ok(only) => only,
        Err(why) => return Output::error(why),
    };
    let fits = |path: &Path| {
        only.as_ref().is_none_or(|only| {
            only.is_match(workspace.shown(path)) || path.file_name().is_some_and(|name| only.is_match(name))
        })
    };
    let mut searcher = SearcherBuilder::new().binary_detection(BinaryDetection::quit(0)).line_number(true).build();
    let mut hits = Vec::new();
    let mut count = 0_usize;
    for path in files(&begin, cancelled).into_iter().filter(|path| fits(path)) {
        let shown = workspace.shown(&path).display().to_string();
        let sink = Lossy(|number, line| {
            count += 1;
            if hits.len() < HITS_MAX {
                let line: String = line.trim_end().chars().take(LINE_CHARS_MAX).collect();
                hits.push(format!("{shown}:{number}:{line}"));
            }
            Ok(!cancelled.load(Ordering::Relaxed))
        });
        // A file that can't be read holds no hit.
        drop(searcher.search_path(&expression, &path, sink));
    }
    if hits.is_empty() {
        return Output::done("no line fits");
    }
    if count > hits.len() {
        hits.push(format!("… ({} more lines fit; narrow the search)", count - hits.len()));
    }
    Output::done(hits.join("\n"))
}

fn matcher(pattern: &str) -> Result<GlobMatcher, String> {
    let pattern = pattern.trim_start_matches("./");
    Glob::new(pattern).map(|glob| glob.compile_matcher()).map_err(|error| format!("the pattern does not fit: {error}"))
}

/// The files below a folder, or the file itself, sorted.
fn files(begin: &Path, cancelled: &AtomicBool) -> Vec<PathBuf> {
    let walk = WalkBuilder::new(begin)
        .hidden(false)
        .require_git(false)
        .filter_entry(|entry| !matches!(entry.file_name().to_str(), Some(".git" | ".mailboxes" | ".team")))
        .build();
    let mut files: Vec<PathBuf> = walk
        .take_while(|_| !cancelled.load(Ordering::Relaxed))
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
        .map(ignore::DirEntry::into_path)
        .collect();
    files.sort();
    files
}

fn bounded(lines: &[String], max: usize, what: &str) -> String {
    let mut text = lines[..lines.len().min(max)].join("\n");
    if lines.len() > max {
        text.push_str(&format!("\n… ({} more {what}; narrow the pattern)", lines.len() - max));
    }
    text
}
