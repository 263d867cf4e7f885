//! How much mail is put before a reader at once: a backlog comes in portions, oldest first, so that no model call is flooded by it.

use super::message::Mail;
use super::shown;

/// Characters of mail, counted as they are shown, that one model call carries at most: about 16,000 tokens.
pub const PORTION_CHARS_MAX: usize = 48_000;

/// What waits behind a portion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rest {
    /// Messages that are known to wait.
    pub count: usize,
    /// May there be more, in files that were not read to their end?
    pub at_least: bool,
}

/// How many of the oldest make a portion: as many as fit, but one at the least.
#[must_use]
pub fn portion(mail: &[Mail]) -> usize {
    let mut chars = 0;
    let fits = |one: &&Mail| {
        chars += shown::chars(one);
        chars <= PORTION_CHARS_MAX
    };
    mail.iter().take_while(fits).count().max(1).min(mail.len())
}

/// Is it more than one portion?
#[must_use]
pub fn is_backlog(mail: &[Mail]) -> bool {
    portion(mail) < mail.len()
}

impl Rest {
    /// The line that says so; `None` if nothing waits.
    #[must_use]
    pub fn line(self) -> Option<String> {
        let waits = match self {
            Self { count: 0, at_least: false } => return None,
            Self { count: 0, at_least: true } => "more messages wait".to_owned(),
            Self { count: 1, at_least: false } => "1 more message waits".to_owned(),
            Self { count, at_least: false } => format!("{count} more messages wait"),
            Self { count, at_least: true } => format!("at least {count} more messages wait"),
        };
        Some(format!("({waits} for your next calls)"))
    }
}
