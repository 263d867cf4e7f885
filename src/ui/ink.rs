//! Text on its way to a terminal: made inert, measured, cut and coloured.
//!
//! Knows nothing of events or of where the text goes.

use unicode_width::UnicodeWidthChar;

use crate::protocol::AgentName;

/// What stands for a tab where text is measured.
const TAB: &str = "    ";
const ELLIPSIS: char = '…';
/// SGR codes of the agents' names; none that the tags use.
const NAME_CODES: [&str; 6] = ["36", "35", "34", "32", "96", "95"];

/// How a piece of a line is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    /// As it comes.
    Plain,
    /// Less important.
    Dim,
    /// A tag at a line's start.
    Tag,
    /// Something went well.
    Good,
    /// Something failed.
    Bad,
    /// Somebody should look.
    Warn,
    /// An agent's name; always the same colour for the same name.
    Name(&'static str),
}

impl Ink {
    /// The colour of an agent.
    pub(crate) fn of(name: &AgentName) -> Self {
        if name.is_lead() {
            return Self::Name("1");
        }
        let sum = name
            .as_str()
            .bytes()
            .fold(0xcbf2_9ce4_u32, |sum, byte| (sum ^ u32::from(byte.to_ascii_lowercase())).wrapping_mul(0x0100_0193));
        let index = usize::try_from(sum >> 8).unwrap_or_default() % NAME_CODES.len();
        Self::Name(NAME_CODES[index])
    }

    fn code(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Dim => Some("2"),
            Self::Tag => Some("1"),
            Self::Good => Some("32"),
            Self::Bad => Some("31"),
            Self::Warn => Some("33"),
            Self::Name(code) => Some(code),
        }
    }
}

/// One line under construction: pieces of inert text, each with its ink.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    pieces: Vec<(Ink, String)>,
}

impl Line {
    /// Adds text in an ink; tabs become spaces, line ends become spaces.
    #[must_use]
    pub(crate) fn with(mut self, ink: Ink, text: &str) -> Self {
        let text = inert(text).replace('\n', " ").replace('\t', TAB);
        self.pieces.push((ink, text));
        self
    }

    /// Adds plain text.
    #[must_use]
    pub(crate) fn text(self, text: &str) -> Self {
        self.with(Ink::Plain, text)
    }

    /// Adds an agent's name.
    #[must_use]
    pub(crate) fn name(self, name: &AgentName) -> Self {
        self.with(Ink::of(name), name.as_str())
    }

    /// Adds another line's pieces.
    pub(crate) fn append(&mut self, other: Self) {
        self.pieces.extend(other.pieces);
    }

    /// Columns that it takes.
    pub(crate) fn width(&self) -> usize {
        self.pieces.iter().map(|(_, text)| width(text)).sum()
    }

    /// Cuts it to `columns`, with `…` at the end of what was cut.
    #[must_use]
    pub(crate) fn cut(self, columns: usize) -> Self {
        if self.width() <= columns {
            return self;
        }
        let mut left = columns;
        let mut pieces = Vec::new();
        for (ink, text) in self.pieces {
            // The last column is for the ellipsis.
            if width(&text) < left {
                left -= width(&text);
                pieces.push((ink, text));
            } else {
                pieces.push((ink, cut(&format!("{text}{ELLIPSIS}{ELLIPSIS}"), left)));
                break;
            }
        }
        Self { pieces }
    }

    /// The line as text, with or without colour.
    pub(crate) fn paint(&self, color: bool) -> String {
        let mut out = String::new();
        for (ink, text) in &self.pieces {
            match ink.code().filter(|_| color && !text.is_empty()) {
                Some(code) => out.push_str(&format!("\x1b[{code}m{text}\x1b[0m")),
                None => out.push_str(text),
            }
        }
        out
    }
}

/// Makes text harmless for a terminal: control characters and what turns the reading direction are shown, not obeyed.
/// `\r\n` and a lone `\r` become `\n`; line ends and tabs stay.
#[must_use]
pub fn inert(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\r' => {
                if chars.peek() != Some(&'\n') {
                    out.push('\n');
                }
            }
            '\n' | '\t' => out.push(c),
            '\x7f' => out.push('␡'),
            // The pictures of the control characters stand in their order at U+2400.
            '\0'..='\x1f' => out.push(char::from_u32(0x2400 + u32::from(c)).unwrap_or('�')),
            c if is_hidden(c) => out.push_str(&format!("<U+{:04X}>", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

/// C1 controls, what turns the reading direction, and characters that carry unseen text.
fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{80}'..='\u{9f}'
        | '\u{61c}' | '\u{200e}' | '\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}')
}

/// Columns of inert text without line ends.
#[must_use]
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// Cuts text to `columns`, with `…` at the end when something is missing.
#[must_use]
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 0;
    for c in text.chars() {
        let columns_of_c = c.width().unwrap_or(0);
        if used + columns_of_c + 1 > columns {
            break;
        }
        used += columns_of_c;
        out.push(c);
    }
    if columns > 0 {
        out.push(ELLIPSIS);
    }
    out
}

/// Fills text up to `columns` with spaces.
#[must_use]
pub(crate) fn pad(text: &str, columns: usize) -> String {
    let missing = columns.saturating_sub(width(text));
    format!("{text}{}", " ".repeat(missing))
}
