//! What went wrong with a call, whether another try can mend it, and the words for it. Pure.

use std::time::Duration;

use serde_json::Value;

/// Longest excerpt of a server's own words, in characters.
const WORDS_CHARS_MAX: usize = 300;
/// Longest wait that a server's `Retry-After` can ask for.
pub(super) const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// A failed try.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) kind: Kind,
    /// What the server asked to wait.
    pub(super) retry_after: Option<Duration>,
}

#[derive(Debug)]
pub(super) enum Kind {
    /// The server answered with a status that is no success.
    Status { status: u16, words: String, code: String },
    /// No connection, or it broke.
    Transport(String),
    /// A limit of ours ran out; the text says which.
    TimedOut(String),
    /// The stream ended before the reply did.
    Cut,
    /// The server reported an error in the middle of a stream.
    InStream(String),
    /// What came is no answer of a model server.
    NoAnswer(String),
    /// The request could not be built.
    Unsendable(String),
}

impl From<Kind> for Failure {
    fn from(kind: Kind) -> Self {
        Self { kind, retry_after: None }
    }
}

impl Failure {
    pub(super) fn status(&self) -> Option<u16> {
        match self.kind {
            Kind::Status { status, .. } => Some(status),
            Kind::Transport(_)
            | Kind::TimedOut(_)
            | Kind::Cut
            | Kind::InStream(_)
            | Kind::NoAnswer(_)
            | Kind::Unsendable(_) => None,
        }
    }

    /// Can another try mend it?
    pub(super) fn is_transient(&self) -> bool {
        match &self.kind {
            Kind::Status { status, code, .. } => {
                matches!(status, 408 | 409 | 425 | 429 | 500..=599) && code != "insufficient_quota"
            }
            Kind::Transport(_) | Kind::TimedOut(_) | Kind::Cut | Kind::InStream(_) => true,
            Kind::NoAnswer(_) | Kind::Unsendable(_) => false,
        }
    }

    /// The server refused the field `stream_options`.
    pub(super) fn refuses_stream_options(&self) -> bool {
        matches!(&self.kind, Kind::Status { status: 400 | 422, words, .. } if words.contains("stream_options"))
    }

    /// A few words, for a line about a retry.
    pub(super) fn brief(&self) -> String {
        match &self.kind {
            Kind::Status { status: 429, .. } => "rate limited (429)".to_owned(),
            Kind::Status { status, .. } => format!("server error {status}"),
            Kind::Transport(words) => words.clone(),
            Kind::TimedOut(what) => what.clone(),
            Kind::Cut => "the reply was cut off".to_owned(),
            Kind::InStream(words) => format!("the server reported: {words}"),
            Kind::NoAnswer(words) | Kind::Unsendable(words) => words.clone(),
        }
    }

    /// One clear message: what, where, the server's own words, what to do.
    pub(super) fn message(&self, url: &str, model: &str, tries: u32) -> String {
        let after = if tries > 1 { format!(" (after {tries} tries)") } else { String::new() };
        match &self.kind {
            Kind::Status { status, words, code } => {
                let words = if words.is_empty() { String::new() } else { format!(": {words}") };
                format!("{url} answered {status}{words}{after}\n{}", advice(*status, code, model))
            }
            Kind::Transport(words) => {
                format!("{url} can't be reached: {words}{after}\nIs the server running, and is OPENAI_BASE_URL right?")
            }
            Kind::TimedOut(what) => format!("{url}: {what}{after}\nThe server may be overloaded; try again"),
            Kind::Cut => format!("{url}: the reply was cut off before its end{after}\nTry again"),
            Kind::InStream(words) => {
                format!("{url} reported an error in the middle of its reply: {words}{after}\nTry again")
            }
            Kind::NoAnswer(what) => {
                format!(
                    "{url} gave no chat-completions answer: {what}{after}\nCheck OPENAI_BASE_URL; it usually ends in /v1"
                )
            }
            Kind::Unsendable(what) => {
                format!("{url}: the request can't be sent: {what}\nCheck OPENAI_BASE_URL and OPENAI_API_KEY")
            }
        }
    }
}

fn advice(status: u16, code: &str, model: &str) -> String {
    match (status, code) {
        (401 | 403, _) => "Check OPENAI_API_KEY (and that it belongs to this server)".to_owned(),
        (_, "model_not_found") => model_advice(model),
        (404, _) => format!(
            "Check OPENAI_BASE_URL (it usually ends in /v1) and the model name {model:?} (--model, OPENAI_MODEL)"
        ),
        (400 | 422, _) => format!("The server refused the request for model {model:?}; its words say why"),
        (413, _) => "The conversation is too long for this server".to_owned(),
        (_, "insufficient_quota") => "The account has no credit left; see the provider's billing page".to_owned(),
        (429, _) => "The server limits the rate; wait a little and try again".to_owned(),
        _ => "The server has a problem of its own; try again later".to_owned(),
    }
}

fn model_advice(model: &str) -> String {
    format!("The server has no model {model:?}; name one it has with --model or OPENAI_MODEL")
}

/// The failure that an answer without success is.
pub(super) fn of_answer(status: u16, retry_after: Option<&str>, body: &str) -> Failure {
    let (words, code) = server_words(body);
    Failure { kind: Kind::Status { status, words, code }, retry_after: retry_after.and_then(parse_retry_after) }
}

/// The server's own words and its error code, out of any of the shapes in which servers put them.
fn server_words(body: &str) -> (String, String) {
    let parsed: Value = serde_json::from_str(body).unwrap_or(Value::Null);
    let first = parsed.as_array().and_then(|list| list.first()).unwrap_or(&parsed);
    let error = first.get("error").unwrap_or(first);
    error_words(error).unwrap_or_else(|| (bounded(&page_text(body)), String::new()))
}

/// The words and code of an error object, or of an error that is just a text.
pub(super) fn error_words(error: &Value) -> Option<(String, String)> {
    if let Some(text) = error.as_str() {
        return Some((bounded(text), String::new()));
    }
    let message = error.get("message").or_else(|| error.get("detail"))?;
    let message = message.as_str().map_or_else(|| message.to_string(), str::to_owned);
    let code = error.get("code").or_else(|| error.get("type")).and_then(Value::as_str).unwrap_or_default();
    Some((bounded(&message), code.to_owned()))
}

/// What a page that is no JSON says: its title, or its text.
pub(super) fn page_text(body: &str) -> String {
    let lower = body.to_ascii_lowercase();
    let title = lower.find("<title>").and_then(|from| {
        let from = from + "<title>".len();
        lower[from..].find("</title>").map(|to| body[from..from + to].trim().to_owned())
    });
    title.unwrap_or_else(|| body.split_whitespace().collect::<Vec<_>>().join(" "))
}

pub(super) fn bounded(text: &str) -> String {
    let mut words: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(WORDS_CHARS_MAX).collect();
    if text.chars().nth(WORDS_CHARS_MAX).is_some() {
        words.push('…');
    }
    words
}

/// `Retry-After` as seconds or as an HTTP date, bounded.
fn parse_retry_after(text: &str) -> Option<Duration> {
    let seconds = match text.trim().parse::<f64>() {
        Ok(seconds) if seconds.is_finite() && seconds >= 0.0 => seconds,
        Ok(_) => return None,
        Err(_) => {
            let at = jiff::fmt::rfc2822::parse(text.trim()).ok()?.timestamp();
            (at.as_second() - jiff::Timestamp::now().as_second()).max(0) as f64
        }
    };
    Some(Duration::from_secs_f64(seconds.min(RETRY_AFTER_MAX.as_secs_f64())))
}
