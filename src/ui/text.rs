//! Text that came from a model, a tool or a stranger, made harmless for a terminal; and text measured in columns.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Control characters and invisible direction marks as visible signs; tabs and line ends stay.
pub(super) fn inert(text: &str) -> String {
    text.replace("\r\n", "\n")
        .chars()
        .map(|c| match c {
            '\n' | '\t' => c,
            '\x7f' => '␡',
            c if (c as u32) < 0x20 => char::from_u32(0x2400 + c as u32).unwrap_or('�'),
            '\u{80}'..='\u{9f}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '�',
            c => c,
        })
        .collect()
}

/// As many columns of one line as fit, with `…` where something is left out.
pub(super) fn fit(line: &str, columns: usize) -> String {
    if line.width() <= columns {
        return line.to_owned();
    }
    let mut used = 0;
    let mut fitting = String::new();
    for c in line.chars() {
        let width = c.width().unwrap_or(0);
        if used + width + 1 > columns {
            break;
        }
        used += width;
        fitting.push(c);
    }
    fitting.push('…');
    fitting
}

/// One line, filled with spaces to a number of columns.
pub(super) fn pad(line: &str, columns: usize) -> String {
    let missing = columns.saturating_sub(line.width());
    format!("{line}{}", " ".repeat(missing))
}

/// The first line, and how many more there are.
pub(super) fn first_line(text: &str) -> (&str, usize) {
    let text = text.trim();
    let mut lines = text.lines();
    (lines.next().unwrap_or_default(), lines.count())
}
