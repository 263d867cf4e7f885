//! What to say when a text is not found: why it may be, and the lines that are most like it.

use super::super::text;

/// Lines that are compared.
const LINES_MAX: usize = 200_000;
/// Of each line, the characters that are compared and shown.
const LINE_CHARS_MAX: usize = 200;
/// Lines that are shown.
const SHOWN_MAX: usize = 3;
/// Lines of a block that differs in white space alone, which are shown.
const BLOCK_SHOWN_MAX: usize = 10;
/// From this likeness on, in hundredths, a line is worth showing.
const LIKENESS_MIN: usize = 40;

/// The rest of a sentence after `old_text was not found in …;`.
pub(super) fn advice(text: &str, wanted: &str) -> String {
    let lines: Vec<&str> = text.lines().take(LINES_MAX).collect();
    let wanted: Vec<&str> = wanted.lines().collect();
    if has_line_numbers(&wanted) {
        return "leave out the line numbers that read_file puts before each line".to_owned();
    }
    if let Some(at) = but_for_space(&lines, &wanted) {
        let block = numbered(&lines, at..at + wanted.len().min(BLOCK_SHOWN_MAX));
        return format!("it differs only in white space from\n{block}");
    }
    let near = nearest(&lines, &wanted);
    if near.is_empty() {
        return "nothing there is like it; read the file again".to_owned();
    }
    let near: Vec<String> = near.into_iter().map(|at| numbered(&lines, at..at + 1)).collect();
    format!("the nearest lines are\n{}", near.join("\n"))
}

fn numbered(lines: &[&str], range: std::ops::Range<usize>) -> String {
    let shown = range.map(|at| format!("{:>6}\t{}", at + 1, text::first_chars(lines[at], LINE_CHARS_MAX)));
    shown.collect::<Vec<_>>().join("\n")
}

fn has_line_numbers(wanted: &[&str]) -> bool {
    let is_numbered =
        |line: &&str| line.split_once('\t').is_some_and(|(number, _)| number.trim().parse::<u64>().is_ok());
    !wanted.is_empty() && wanted.iter().all(is_numbered)
}

/// Where the wanted lines stand, white space aside.
fn but_for_space(lines: &[&str], wanted: &[&str]) -> Option<usize> {
    let bare = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let wanted: Vec<String> = wanted.iter().map(|line| bare(line)).collect();
    let first = wanted.first().filter(|_| wanted.iter().any(|line| !line.is_empty()))?;
    let last = lines.len().checked_sub(wanted.len())?;
    let fits = |at: &usize| {
        bare(lines[*at]) == *first && wanted.iter().zip(&lines[*at..]).all(|(wanted, line)| bare(line) == *wanted)
    };
    (0..=last).find(fits)
}

/// The lines most like the first wanted line that says anything; the best first.
fn nearest(lines: &[&str], wanted: &[&str]) -> Vec<usize> {
    let Some(first) = wanted.iter().map(|line| line.trim()).find(|line| !line.is_empty()) else { return Vec::new() };
    let first = pairs(first);
    let likeness = |line: &&str| likeness(&first, &pairs(line.trim()));
    let mut scored: Vec<(usize, usize)> =
        lines.iter().map(likeness).enumerate().map(|(at, likeness)| (likeness, at)).collect();
    scored.retain(|(likeness, _)| *likeness >= LIKENESS_MIN);
    scored.sort_by_key(|(likeness, at)| (std::cmp::Reverse(*likeness), *at));
    scored.into_iter().take(SHOWN_MAX).map(|(_, at)| at).collect()
}

/// Each two characters side by side, sorted. A lone one stands beside nothing.
fn pairs(line: &str) -> Vec<(char, char)> {
    let line = text::first_chars(line, LINE_CHARS_MAX);
    let mut pairs: Vec<_> = line.chars().zip(line.chars().skip(1)).collect();
    if pairs.is_empty() {
        pairs.extend(line.chars().map(|c| (c, '\0')));
    }
    pairs.sort_unstable();
    pairs
}

/// How many pairs two lines share, in hundredths of all they have.
fn likeness(one: &[(char, char)], other: &[(char, char)]) -> usize {
    let (mut at, mut beside, mut shared) = (0, 0, 0_usize);
    while let (Some(a), Some(b)) = (one.get(at), other.get(beside)) {
        match a.cmp(b) {
            std::cmp::Ordering::Less => at += 1,
            std::cmp::Ordering::Greater => beside += 1,
            std::cmp::Ordering::Equal => (at, beside, shared) = (at + 1, beside + 1, shared + 1),
        }
    }
    (200 * shared).checked_div(one.len() + other.len()).unwrap_or(0)
}
