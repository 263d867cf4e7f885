//! What each way of failing means: whether the call is tried again, what the user reads, and what to do about it.
//!
//! Knows nothing of the HTTP library or of how long to wait.

mod refusal;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use super::secret::Secret;
use super::words::{html_title, one_line, shortened};

/// Why there was no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreachable {
    /// Nobody listens there.
    Refused,
    /// The host's name means nothing.
    Name,
    /// The certificate isn't trusted, or is for another name or time.
    Certificate,
    /// The server doesn't speak TLS there.
    NotTls,
    /// The time for it ran out.
    Timeout,
    /// Something else.
    Other,
}

/// What came instead of an answer, with status 200.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Foreign {
    /// A page.
    Html,
    /// JSON that is neither a reply nor an error.
    Json,
    /// Text.
    Text,
}

/// An answer whose status is not success.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    /// The status' usual name; empty when it has none.
    pub(crate) reason: &'static str,
    pub(crate) body: String,
    /// Where it redirects to.
    pub(crate) location: Option<String>,
    /// How long the server wants to be left alone.
    pub(crate) wish: Option<Duration>,
}

/// One way in which one try failed.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// No request can be made at all.
    Setup(String),
    /// No connection.
    Unreachable { how: Unreachable, detail: String },
    /// The connection broke before an answer began.
    Lost { detail: String },
    /// No first byte within the limit.
    FirstByte { limit: Duration },
    /// No further byte within the limit.
    Idle { limit: Duration },
    /// The answer ended before it was complete.
    Cut { detail: String },
    /// More bytes than any reply may have.
    TooLong { bytes_max: usize },
    /// A status other than success.
    Status(Refusal),
    /// An error in place of a reply, or in the middle of one.
    Told(Value),
    /// Something that is no reply.
    Foreign { what: Foreign, sample: String },
    /// Nothing but a filter's word.
    Filtered,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for Fault {}

/// May the call be tried again?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// It would fail in the same way.
    Never,
    /// After a wait, the server's own wish if it has one.
    After(Option<Duration>),
}

/// What is known about the call that failed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site<'a> {
    /// The full URL asked, without any password.
    pub(crate) url: &'a str,
    pub(crate) model: &'a str,
    pub(crate) key: Option<&'a Secret>,
}

/// A failure, judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// A few words for the line that announces a retry.
    pub(crate) cause: String,
    /// The whole message.
    pub(crate) text: String,
    pub(crate) status: Option<u16>,
    pub(crate) again: Again,
}

impl Foreign {
    fn word(self) -> &'static str {
        match self {
            Self::Html => "HTML",
            Self::Json => "JSON that is no reply",
            Self::Text => "plain text",
        }
    }
}

impl Site<'_> {
    /// A text from outside as it may be shown: the key masked, in one line, shortened.
    fn say(self, text: &str) -> String {
        shortened(&one_line(&self.mask(text)))
    }

    /// Before any cut: half a key is a leak, too.
    fn mask(self, text: &str) -> String {
        self.key.map_or_else(|| text.to_owned(), |key| key.mask(text))
    }
}

const BASE_URL_ADVICE: &str =
    "Check OPENAI_BASE_URL: it is the address before /chat/completions and most often ends in /v1.";
const SLOW_ADVICE: &str = "Is the server overloaded, or still loading the model? Try again, or raise the time limits.";

/// Judges one failed try.
pub(crate) fn judge(fault: &Fault, site: Site<'_>) -> Failure {
    match fault {
        Fault::Status(refusal) => return refusal::judge_status(refusal, site),
        Fault::Told(error) => return refusal::judge_told(error, site),
        Fault::Setup(_)
        | Fault::Unreachable { .. }
        | Fault::Lost { .. }
        | Fault::FirstByte { .. }
        | Fault::Idle { .. }
        | Fault::Cut { .. }
        | Fault::TooLong { .. }
        | Fault::Foreign { .. }
        | Fault::Filtered => {}
    }
    let text = format!("{}\n{}", what(fault, site), advice(fault));
    Failure { cause: cause(fault, site), text, status: None, again: again(fault) }
}

/// What happened, in one line.
fn what(fault: &Fault, site: Site<'_>) -> String {
    let url = site.url;
    match fault {
        Fault::Setup(detail) => format!("{url} can't be asked: {}", site.say(detail)),
        Fault::Unreachable { detail, .. } => {
            format!("no connection to {url}: {}", site.say(detail))
        }
        Fault::Lost { detail } => {
            format!("the connection to {url} broke before an answer came: {}", site.say(detail))
        }
        Fault::FirstByte { limit } => format!("{url} gave no answer within {}", span(*limit)),
        Fault::Idle { limit } => {
            format!("{url} fell silent for {} in the middle of its answer", span(*limit))
        }
        Fault::Cut { detail } => {
            format!("the answer of {url} was cut off before its end{}", aside(&site.say(detail)))
        }
        Fault::TooLong { bytes_max } => {
            format!("the answer of {url} is longer than {} MiB", bytes_max / 1024 / 1024)
        }
        Fault::Foreign { what, sample } => {
            let shown = match what {
                Foreign::Html => html_title(sample),
                Foreign::Json | Foreign::Text => sample.clone(),
            };
            let aside = aside(&site.say(&shown));
            format!("the server at {url} answered with {}, not with a model's reply{aside}", what.word())
        }
        Fault::Filtered => format!("the content filter of {url} held the reply back"),
        Fault::Status(_) | Fault::Told(_) => String::new(),
    }
}

/// The same in a few words.
fn cause(fault: &Fault, site: Site<'_>) -> String {
    match fault {
        Fault::Setup(detail) => site.say(detail),
        Fault::Unreachable { detail, .. } => format!("no connection{}", aside(&site.say(detail))),
        Fault::Lost { .. } => "connection lost".to_owned(),
        Fault::FirstByte { limit } => format!("no answer within {}", span(*limit)),
        Fault::Idle { limit } => format!("silent for {}", span(*limit)),
        Fault::Cut { .. } => "the reply was cut off".to_owned(),
        Fault::TooLong { .. } => "the reply is too long".to_owned(),
        Fault::Foreign { what, .. } => format!("answered with {}", what.word()),
        Fault::Filtered => "held back by a filter".to_owned(),
        Fault::Status(_) | Fault::Told(_) => String::new(),
    }
}

fn advice(fault: &Fault) -> &'static str {
    match fault {
        Fault::Setup(_) => "Check OPENAI_BASE_URL, and the system's certificates.",
        Fault::Unreachable { how, .. } => unreachable_advice(*how),
        Fault::Lost { .. } => "Is the server still running? Try again.",
        Fault::FirstByte { .. } | Fault::Idle { .. } => SLOW_ADVICE,
        Fault::Cut { .. } => "The server, or something on the way to it, ends connections early: try again.",
        Fault::TooLong { .. } => "Ask for less at once, or use another model.",
        Fault::Foreign { .. } => BASE_URL_ADVICE,
        Fault::Filtered => "Say it in other words, or use another model.",
        Fault::Status(_) | Fault::Told(_) => "",
    }
}

fn again(fault: &Fault) -> Again {
    match fault {
        Fault::Unreachable { how: Unreachable::Certificate | Unreachable::NotTls, .. }
        | Fault::Setup(_)
        | Fault::TooLong { .. }
        | Fault::Foreign { .. }
        | Fault::Filtered
        | Fault::Status(_)
        | Fault::Told(_) => Again::Never,
        Fault::Unreachable { .. }
        | Fault::Lost { .. }
        | Fault::FirstByte { .. }
        | Fault::Idle { .. }
        | Fault::Cut { .. } => Again::After(None),
    }
}

fn unreachable_advice(how: Unreachable) -> &'static str {
    match how {
        Unreachable::Refused => "Is the server running? Start it, or set OPENAI_BASE_URL to where it is.",
        Unreachable::Name => "Check the host's name in OPENAI_BASE_URL, and the network.",
        Unreachable::Certificate => {
            "Its certificate is not trusted here: check the clock and the name, or add its authority to the system's store or SSL_CERT_FILE."
        }
        Unreachable::NotTls => {
            "The server doesn't speak TLS there: set OPENAI_BASE_URL to an address that begins with http://."
        }
        Unreachable::Timeout | Unreachable::Other => {
            "Check OPENAI_BASE_URL, the network, and the proxy settings if there are any."
        }
    }
}

/// ` (text)`, or nothing.
fn aside(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(" ({text})") }
}

/// `1.5 s`, `60 s`.
fn span(time: Duration) -> String {
    if time.subsec_millis() == 0 { format!("{} s", time.as_secs()) } else { format!("{:.1} s", time.as_secs_f64()) }
}
