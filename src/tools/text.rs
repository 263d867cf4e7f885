//! Any bytes as text that a model can read, and cuts that fall between characters.
//!
//! Knows nothing of where the bytes come from.

use std::fmt::Write as _;

/// What some bytes are shown as.
#[derive(Clone, Copy)]
enum Shown {
    Char(char),
    /// `\xNN`: no UTF-8, or a control character.
    Escape(u8),
    /// The first half of a CRLF.
    Nothing,
}

impl Shown {
    /// In characters.
    fn width(self) -> usize {
        match self {
            Self::Char(_) => 1,
            Self::Escape(_) => r"\xNN".len(),
            Self::Nothing => 0,
        }
    }
}

/// Each character or lone byte: how many bytes it takes up, and what it is shown as.
fn pieces(bytes: &[u8]) -> impl Iterator<Item = (usize, Shown)> {
    bytes.utf8_chunks().flat_map(|chunk| {
        let text = chunk.valid();
        let valid = text.char_indices().map(move |(at, c)| {
            let shown = match c {
                '\r' if text[at..].starts_with("\r\n") => Shown::Nothing,
                // A line that a terminal would write over.
                '\r' => Shown::Char('\n'),
                '\n' | '\t' => Shown::Char(c),
                // ASCII, so its code is its byte.
                c if c.is_ascii_control() => Shown::Escape(c as u8),
                c => Shown::Char(c),
            };
            (c.len_utf8(), shown)
        });
        valid.chain(chunk.invalid().iter().map(|&byte| (1, Shown::Escape(byte))))
    })
}

/// The bytes as text: what is no UTF-8, and control characters but tab and line end, as `\xNN`.
pub(super) fn readable(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for (_, shown) in pieces(bytes) {
        match shown {
            Shown::Char(c) => text.push(c),
            // Writing to a String can't fail.
            Shown::Escape(byte) => drop(write!(text, "\\x{byte:02x}")),
            Shown::Nothing => {}
        }
    }
    text
}

/// How many characters [`readable`] makes of the bytes.
pub(super) fn width(bytes: &[u8]) -> usize {
    pieces(bytes).map(|(_, shown)| shown.width()).sum()
}

/// How many of the first bytes can be shown in `chars_max` characters.
pub(super) fn head_bytes(bytes: &[u8], chars_max: usize) -> usize {
    let mut left = chars_max;
    let fits = |(taken, shown): (usize, Shown)| {
        left = left.checked_sub(shown.width())?;
        Some(taken)
    };
    pieces(bytes).map_while(fits).sum()
}

/// How many of the last bytes can be shown in `chars_max` characters.
pub(super) fn tail_bytes(bytes: &[u8], chars_max: usize) -> usize {
    let mut surplus = width(bytes).saturating_sub(chars_max);
    let mut from = 0;
    for (taken, shown) in pieces(bytes) {
        if surplus == 0 {
            break;
        }
        surplus = surplus.saturating_sub(shown.width());
        from += taken;
    }
    bytes.len() - from
}

/// How many of the last bytes are the beginning of a character that may go on.
pub(super) fn half_char_bytes(bytes: &[u8]) -> usize {
    let last = &bytes[bytes.len().saturating_sub(3)..];
    let begins = |count: &usize| match std::str::from_utf8(&last[last.len() - count..]) {
        Ok(_) => false,
        Err(error) => error.valid_up_to() == 0 && error.error_len().is_none(),
    };
    (1..=last.len()).find(begins).unwrap_or(0)
}

/// A file's name or path on one line: [`readable`], line ends and tabs escaped too.
pub(super) fn name(bytes: &[u8]) -> String {
    readable(bytes).replace('\n', "\\x0a").replace('\t', "\\x09")
}

/// Text on one line for a person: white space folded, control and direction characters left out.
pub(super) fn one_line(text: &str, chars_max: usize) -> String {
    let mut line = String::new();
    let mut gap = false;
    let mut chars = 0;
    // The text may be megabytes of a file: nothing past the cut is looked at.
    for c in text.chars() {
        if c.is_whitespace() || c.is_control() {
            gap = !line.is_empty();
            continue;
        }
        if is_direction(c) {
            continue;
        }
        if chars + usize::from(gap) + 1 > chars_max {
            line.pop();
            line.push('…');
            break;
        }
        if std::mem::take(&mut gap) {
            line.push(' ');
            chars += 1;
        }
        line.push(c);
        chars += 1;
    }
    line
}

/// Characters that reorder the text around them.
fn is_direction(c: char) -> bool {
    matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The first characters of a text.
pub(super) fn first_chars(text: &str, chars_max: usize) -> &str {
    text.char_indices().nth(chars_max).map_or(text, |(at, _)| &text[..at])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn i8_any_bytes_become_text_in_their_order() {
        for (bytes, text) in [
            (&b"A\xff\xfeB\0C\xe6\xb1 D\n"[..], "A\\xff\\xfeB\\x00C\\xe6\\xb1 D\n"),
            ("好\t的\r\nx\ry".as_bytes(), "好\t的\nx\ny"),
            (b"\x1b[31mred\x7f", "\\x1b[31mred\\x7f"),
            ("\u{fffd}".as_bytes(), "\u{fffd}"),
            (b"", ""),
        ] {
            assert_eq!(readable(bytes), text);
        }
    }

    #[test]
    fn one_line_is_short_and_inert() {
        for (text, line) in [
            ("cargo test \\\n\t--all\n", "cargo test \\ --all"),
            ("\u{1b}[2Jx\u{7}y", "[2Jx y"),
            ("a\u{202e}b", "ab"),
            (" \n ", ""),
        ] {
            assert_eq!(one_line(text, 200), line, "{text:?}");
        }
        let long = one_line(&"汉".repeat(1_000), 200);
        assert!(long.chars().count() == 200 && long.ends_with("汉…"), "{long}");
        assert_eq!(one_line(&"x".repeat(200), 200), "x".repeat(200));
    }

    proptest! {
        #[test]
        fn i8_cuts_fall_between_characters(text in ".{0,80}", chars_max in 0_usize..100) {
            let bytes = text.as_bytes();
            let head = &bytes[..head_bytes(bytes, chars_max)];
            let tail = &bytes[bytes.len() - tail_bytes(bytes, chars_max)..];
            for part in [head, tail] {
                prop_assert!(std::str::from_utf8(part).is_ok());
                prop_assert!(width(part) <= chars_max);
            }
            prop_assert!(head.len() == bytes.len() || width(head) + 4 > chars_max);
        }

        #[test]
        fn i8_width_is_the_length_of_what_is_shown(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(width(&bytes), readable(&bytes).chars().count());
        }
    }
}
