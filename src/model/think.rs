//! Tells a leading `<think>…</think>` from the text that follows, also when the tags come in pieces. Pure.

use super::accumulate::Piece;

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// Where in the reply the stream is.
#[derive(Default)]
enum At {
    /// Before the first visible character: a thought may begin.
    #[default]
    Start,
    Inside,
    /// Past it: tags are ordinary text from here on.
    Text,
}

#[derive(Default)]
pub(super) struct Think {
    at: At,
    /// What may be the beginning of a tag.
    held: String,
}

impl Think {
    pub(super) fn split(&mut self, text: &str) -> Vec<Piece> {
        if matches!(self.at, At::Text) {
            return vec![Piece::Text(text.to_owned())];
        }
        self.held.push_str(text);
        let mut pieces = Vec::new();
        loop {
            match self.at {
                At::Start => {
                    let begin = self.held.trim_start();
                    if let Some(rest) = begin.strip_prefix(OPEN) {
                        self.held = rest.to_owned();
                        self.at = At::Inside;
                    } else if OPEN.starts_with(begin) {
                        return pieces;
                    } else {
                        self.at = At::Text;
                    }
                }
                At::Inside => match self.held.find(CLOSE) {
                    Some(end) => {
                        let rest = self.held[end + CLOSE.len()..].trim_start_matches('\n').to_owned();
                        self.held.truncate(end);
                        pieces.push(Piece::Reasoning(std::mem::replace(&mut self.held, rest)));
                        self.at = At::Text;
                    }
                    None => {
                        let keep = (1..CLOSE.len()).rev().find(|&n| self.held.ends_with(&CLOSE[..n])).unwrap_or(0);
                        let rest = self.held.split_off(self.held.len() - keep);
                        let thought = std::mem::replace(&mut self.held, rest);
                        if !thought.is_empty() {
                            pieces.push(Piece::Reasoning(thought));
                        }
                        return pieces;
                    }
                },
                At::Text => {
                    if !self.held.is_empty() {
                        pieces.push(Piece::Text(std::mem::take(&mut self.held)));
                    }
                    return pieces;
                }
            }
        }
    }

    pub(super) fn end(&mut self) -> Vec<Piece> {
        let held = std::mem::take(&mut self.held);
        if held.is_empty() || matches!(self.at, At::Inside) { Vec::new() } else { vec![Piece::Text(held)] }
    }
}
