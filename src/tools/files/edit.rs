//! Replacing a text in a file: exactly what was named, and nothing else of the file changes.
//!
//! A model writes LF, a file may have CRLF: texts are compared without regard to that, and the new text gets the line
//! ends of its place. Nothing in the new text is expanded.

use std::borrow::Cow;

use super::super::paths::Workspace;
use super::super::{EditFileArgs, Intent, Output};
use super::nearest;
use super::replace::replace;
use super::{digest, whole_text};

/// Line numbers that are named.
const LINES_NAMED_MAX: usize = 20;

pub(in super::super) fn edit(workspace: &Workspace, call: &EditFileArgs, intent: Intent) -> Output {
    if call.old_text.is_empty() {
        return Output::error(
            "old_text is empty: give the text that is to be replaced, or use write_file for a new file",
        );
    }
    if call.old_text == call.new_text {
        return Output::error("old_text and new_text are the same: nothing would change");
    }
    let place = match workspace.writable(&call.path) {
        Ok(place) => place,
        Err(why) => return Output::error(why),
    };
    let (text, stamp) = match whole_text(&place) {
        Ok(found) => found,
        Err(why) => return Output::error(why),
    };
    let shown = place.shown();
    let edited = match edited(&text, &call.old_text, &call.new_text, call.replace_all.unwrap_or(false)) {
        Ok(edited) => edited,
        Err(Refused::NotFound) => {
            let advice = nearest::advice(&text, &call.old_text);
            return Output::error(format!("old_text was not found in {shown}; {advice}"));
        }
        Err(Refused::Ambiguous(lines)) => {
            return Output::error(format!(
                "old_text matches {} times in {shown} (lines {}); add surrounding lines until it is unique, or set \
                 replace_all",
                lines.len(),
                listed(&lines)
            ));
        }
    };
    intent(&digest(edited.text.as_bytes()));
    match replace(&place, edited.text.as_bytes(), Some(stamp)) {
        Ok(_) => {
            let (count, lines) = (edited.lines.len(), listed(&edited.lines));
            let places = if count == 1 { format!("line {lines}") } else { format!("{count} places: lines {lines}") };
            Output::done(format!("edited {shown} ({places})"))
        }
        Err(why) => Output::error(format!("{shown} {why}")),
    }
}

/// A text after the edit, and at which lines of the text before it something was replaced.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) struct Edited {
    pub(in super::super) text: String,
    pub(in super::super) lines: Vec<usize>,
}

/// Why nothing was replaced.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) enum Refused {
    NotFound,
    /// It begins at these lines.
    Ambiguous(Vec<usize>),
}

pub(in super::super) fn edited(text: &str, old: &str, new: &str, all: bool) -> Result<Edited, Refused> {
    let plain = Plain::of(text);
    let old = without_cr(old);
    let mut starts: Vec<usize> = plain.text.match_indices(&*old).map(|(at, _)| at).collect();
    if let (&[only], false) = (&*starts, all) {
        // A second match may overlap the first.
        let next = plain.text[only..].chars().next().map_or(1, char::len_utf8);
        starts.extend(plain.text[only + next..].find(&*old).map(|at| only + next + at));
    }
    let lines = line_numbers(&plain.text, &starts);
    match (starts.len(), all) {
        (0, _) => return Err(Refused::NotFound),
        (2.., false) => return Err(Refused::Ambiguous(lines)),
        (1.., _) => {}
    }
    let mut edited = String::with_capacity(text.len() + new.len());
    let mut from = 0;
    for start in starts {
        let (begin, end) = (plain.place(start), plain.place(start + old.len()));
        edited.push_str(&text[from..begin]);
        edited.push_str(&with_line_ends(new, line_end_at(text, begin, end)));
        from = end;
    }
    edited.push_str(&text[from..]);
    Ok(Edited { text: edited, lines })
}

/// A text with LF alone, and the way back.
struct Plain<'a> {
    text: Cow<'a, str>,
    /// Where in `text` a line end stands that lost its CR, in order.
    taken: Vec<usize>,
}

impl<'a> Plain<'a> {
    fn of(text: &'a str) -> Self {
        let taken = text.match_indices("\r\n").enumerate().map(|(before, (at, _))| at - before).collect();
        Self { text: without_cr(text), taken }
    }

    /// The place in the text as it was; before the CR of a line end that begins there.
    fn place(&self, at: usize) -> usize {
        at + self.taken.partition_point(|&taken| taken < at)
    }
}

fn without_cr(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") { Cow::Owned(text.replace("\r\n", "\n")) } else { Cow::Borrowed(text) }
}

/// How lines end at a place: in it, else before it, else after it; `None` in a text of one line.
fn line_end_at(text: &str, begin: usize, end: usize) -> Option<&'static str> {
    let at = text[begin..end].find('\n').map(|at| begin + at);
    let at = at.or_else(|| text[..begin].rfind('\n')).or_else(|| text[end..].find('\n').map(|at| end + at))?;
    Some(if text[..at].ends_with('\r') { "\r\n" } else { "\n" })
}

fn with_line_ends<'a>(text: &'a str, line_end: Option<&str>) -> Cow<'a, str> {
    match line_end {
        None => Cow::Borrowed(text),
        Some("\n") => without_cr(text),
        Some(line_end) => Cow::Owned(without_cr(text).replace('\n', line_end)),
    }
}

/// The line of each of these places, which are in order.
fn line_numbers(text: &str, places: &[usize]) -> Vec<usize> {
    let mut line = 1;
    let mut from = 0;
    let number = |&at: &usize| {
        line += text[from..at].matches('\n').count();
        from = at;
        line
    };
    places.iter().map(number).collect()
}

fn listed(lines: &[usize]) -> String {
    let mut words: Vec<String> = lines.iter().take(LINES_NAMED_MAX).map(usize::to_string).collect();
    if lines.len() > LINES_NAMED_MAX {
        words.push("…".to_owned());
    }
    words.join(", ")
}
