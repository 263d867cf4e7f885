//! Finding files by pattern and lines by expression, as .gitignore allows: sorted, bounded, on all processors.
//!
//! Knows places that were already judged; each file is opened from the workspace's own handle.

mod grep;
mod walk;

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use globset::{GlobBuilder, GlobSet};

use self::walk::{Found, walk};
use super::paths::{Place, Workspace};
use super::{GlobArgs, Output, text};

pub(super) use grep::grep;

/// Paths that one glob gives.
const PATHS_MAX: usize = 200;
/// Longest pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 4_096;
/// What is shown of what is wrong with a pattern, in characters.
const ERROR_CHARS_MAX: usize = 600;
/// Characters that one search gives.
const SHOWN_CHARS_MAX: usize = 30_000;

/// `None`: broken off.
pub(super) fn glob(workspace: &Workspace, call: &GlobArgs, off: &AtomicBool) -> Option<Output> {
    let prepared = begin(workspace, call.path.as_deref()).and_then(|begin| {
        let pattern = Pattern::new(&call.pattern, workspace, &begin)?;
        Ok((begin, pattern))
    });
    let (begin, pattern) = match prepared {
        Ok(prepared) => prepared,
        Err(why) => return Some(Output::error(why)),
    };
    let found = walk(begin.real(), workspace.root(), &|path: &Path| pattern.fits(path), off)?;
    if found.paths.is_empty() {
        return Some(Output::done(format!("no file fits{}", note(&found))));
    }
    let lines = found.paths.iter().map(|path| workspace.name(path));
    Some(Output::done(bounded(lines, found.paths.len(), PATHS_MAX, "files", &note(&found))))
}

fn check_length(pattern: &str) -> Result<(), String> {
    match pattern.len() {
        0 => Err("the pattern is empty; give one that fits what you look for".to_owned()),
        bytes if bytes > PATTERN_BYTES_MAX => Err(format!(
            "the pattern has {bytes} bytes; at most {PATTERN_BYTES_MAX} are taken, so look for a part of it"
        )),
        _fits => Ok(()),
    }
}

/// Where to look.
fn begin(workspace: &Workspace, path: Option<&str>) -> Result<Place, String> {
    let begin = workspace.readable(path.unwrap_or("."))?;
    match begin.open() {
        Ok(_) => Ok(begin),
        Err(error) => Err(format!("{} can't be searched: {error}; look around with glob", begin.shown())),
    }
}

/// Lines up to both limits, and how many were left out.
fn bounded(lines: impl Iterator<Item = String>, count: usize, lines_max: usize, what: &str, note: &str) -> String {
    let mut shown: Vec<String> = Vec::new();
    let mut chars = 0;
    for line in lines.take(lines_max) {
        chars += line.chars().count() + 1;
        if chars > SHOWN_CHARS_MAX && !shown.is_empty() {
            break;
        }
        shown.push(line);
    }
    let left_out = count - shown.len();
    let more = if left_out > 0 { format!("\n… ({left_out} more {what}; narrow the search)") } else { String::new() };
    format!("{}{more}{note}", shown.join("\n"))
}

fn note(found: &Found) -> String {
    match found.unreadable {
        0 => String::new(),
        count => format!("\n(places that could not be looked at: {count})"),
    }
}

/// Which paths are meant: by the path from the workspace, from where the search begins, or by the name alone.
struct Pattern {
    matcher: GlobSet,
    root: std::path::PathBuf,
    begin: std::path::PathBuf,
    /// Without a slash a pattern means names, at any depth.
    by_name: bool,
}

impl Pattern {
    fn new(pattern: &str, workspace: &Workspace, begin: &Place) -> Result<Self, String> {
        let root = format!("{}/", workspace.root().display());
        let mut inside = pattern.strip_prefix(&root).unwrap_or(pattern).to_owned();
        while let Some(rest) = inside.strip_prefix("./") {
            inside = rest.to_owned();
        }
        check_length(pattern)?;
        if inside.is_empty() || inside.starts_with('/') || inside.split('/').any(|part| part == "..") {
            let shown = text::one_line(pattern, 400);
            return Err(format!(
                "the pattern `{shown}` fits no file: give one relative to the workspace, e.g. src/**/*.rs"
            ));
        }
        // A folder's name means all that is in it.
        if begin.real().join(&inside).is_dir() {
            inside = format!("{}/**", inside.trim_end_matches('/'));
        }
        // A set of one, since a single glob panics where a set gives an error.
        let glob = GlobBuilder::new(&inside).literal_separator(true).build();
        let matcher = glob.and_then(|glob| GlobSet::builder().add(glob).build());
        let matcher = matcher.map_err(|error| {
            let error = text::one_line(&error.to_string(), ERROR_CHARS_MAX);
            format!("the pattern is no glob: {error}; try one like src/**/*.rs")
        })?;
        Ok(Self {
            matcher,
            root: workspace.root().to_owned(),
            begin: begin.real().to_owned(),
            by_name: !inside.contains('/'),
        })
    }

    fn fits(&self, path: &Path) -> bool {
        let fits = |base: &Path| path.strip_prefix(base).is_ok_and(|path| self.matcher.is_match(path));
        let name = path.file_name().unwrap_or_default();
        (self.by_name && self.matcher.is_match(Path::new(name))) || fits(&self.root) || fits(&self.begin)
    }
}

/// Sorts as a reader expects: by the bytes of the whole path.
fn in_order(paths: &mut [std::path::PathBuf]) {
    paths.sort_unstable_by(|one, other| one.as_os_str().as_bytes().cmp(other.as_os_str().as_bytes()));
}
