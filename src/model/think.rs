//! Parts a streamed text into thinking (`<think>…</think>` at its beginning) and what is said.
//!
//! Knows nothing of where the pieces come from; they may be cut anywhere, also within a tag.

/// The tags that are understood, opening and closing.
const TAGS: [(&str, &str); 2] = [("<think>", "</think>"), ("<thinking>", "</thinking>")];

/// A piece of one kind or the other.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Said(String),
    Thought(String),
}

/// The parting, one for a reply.
#[derive(Debug, Default)]
pub(crate) struct Parting {
    state: State,
    /// What can't be judged yet: the beginning of a tag, or white space before one.
    held: String,
}

#[derive(Debug, Default, PartialEq)]
enum State {
    /// Nothing but white space so far: thinking may begin.
    #[default]
    Beginning,
    /// Within the tag whose end this is.
    Thinking(&'static str),
    /// After thinking: line ends before the text are dropped.
    Between,
    /// In the text; tags mean nothing any more.
    Saying,
}

impl Parting {
    /// Takes the next piece; gives what can be shown now.
    pub(crate) fn feed(&mut self, piece: &str) -> Vec<Part> {
        let mut parts = Vec::new();
        if self.state == State::Saying {
            if !piece.is_empty() {
                parts.push(Part::Said(piece.to_owned()));
            }
            return parts;
        }
        self.held.push_str(piece);
        while self.step(&mut parts) {}
        parts
    }

    /// The piece that was held back at the end of the reply.
    pub(crate) fn finish(&mut self) -> Option<Part> {
        let held = std::mem::take(&mut self.held);
        match self.state {
            State::Thinking(_) => (!held.is_empty()).then_some(Part::Thought(held)),
            State::Beginning | State::Between | State::Saying => (!held.trim().is_empty()).then_some(Part::Said(held)),
        }
    }

    /// Judges what is held; `true` when there may be more to judge.
    fn step(&mut self, parts: &mut Vec<Part>) -> bool {
        match self.state {
            State::Beginning => self.begin(),
            State::Thinking(end) => self.think(end, parts),
            State::Between => {
                let said = self.held.trim_start().len();
                self.held.drain(..self.held.len() - said);
                let goes_on = !self.held.is_empty();
                if goes_on {
                    self.state = State::Saying;
                }
                goes_on
            }
            State::Saying => {
                let held = std::mem::take(&mut self.held);
                if !held.is_empty() {
                    parts.push(Part::Said(held));
                }
                false
            }
        }
    }

    fn begin(&mut self) -> bool {
        let text = self.held.trim_start();
        for (open, close) in TAGS {
            if let Some(rest) = text.strip_prefix(open) {
                self.held = rest.to_owned();
                self.state = State::Thinking(close);
                return true;
            }
        }
        if TAGS.iter().any(|(open, _)| open.starts_with(text)) {
            return false;
        }
        self.state = State::Saying;
        true
    }

    fn think(&mut self, end: &'static str, parts: &mut Vec<Part>) -> bool {
        if let Some(at) = self.held.find(end) {
            let thought = self.held[..at].to_owned();
            if !thought.is_empty() {
                parts.push(Part::Thought(thought));
            }
            self.held.drain(..at + end.len());
            self.state = State::Between;
            return true;
        }
        let kept = (1..end.len()).rev().find(|&n| self.held.ends_with(&end[..n])).unwrap_or(0);
        let thought: String = self.held.drain(..self.held.len() - kept).collect();
        if !thought.is_empty() {
            parts.push(Part::Thought(thought));
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parted(pieces: &[&str]) -> (String, String) {
        let mut parting = Parting::default();
        let mut parts = Vec::new();
        for piece in pieces {
            parts.extend(parting.feed(piece));
        }
        parts.extend(parting.finish());
        let (mut said, mut thought) = (String::new(), String::new());
        for part in parts {
            match part {
                Part::Said(text) => said += &text,
                Part::Thought(text) => thought += &text,
            }
        }
        (said, thought)
    }

    #[test]
    fn thinking_at_the_beginning_is_parted_wherever_it_is_cut() {
        let text = "\n<think>3 < 5, </thin no\n</think>\n\nDie Antwort <think> bleibt";
        let whole = parted(&[text]);
        assert_eq!(whole.0, "Die Antwort <think> bleibt");
        assert_eq!(whole.1, "3 < 5, </thin no\n");
        for at in 0..=text.len() {
            assert_eq!(parted(&[&text[..at], &text[at..]]), whole, "cut at {at}");
        }
        let letters: Vec<String> = text.chars().map(String::from).collect();
        let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
        assert_eq!(parted(&letters), whole);
    }

    #[test]
    fn text_without_thinking_is_left_as_it_is() {
        for text in ["hello", "  indented", "<thing>", "<", "a<think>b</think>"] {
            assert_eq!(parted(&[text]), (text.to_owned(), String::new()));
        }
    }

    #[test]
    fn thinking_without_an_end_says_nothing() {
        assert_eq!(parted(&["<thinking>on and on"]), (String::new(), "on and on".to_owned()));
        assert_eq!(parted(&["  \n"]), (String::new(), String::new()));
    }
}
