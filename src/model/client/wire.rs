//! Sends a request and looks at the answer before the SSE layer does: its status, its headers, and what kind of body it has.
//!
//! Knows nothing of what the events in it mean.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reqwest::{Body, Response};
use serde_json::Value;
use tokio::time::{Instant, timeout, timeout_at};

use super::cause::{innermost, sending_fault};
use super::relay::{REPLY_BYTES_MAX, Seen, relayed};
use crate::model::backoff::wish;
use crate::model::failure::{Fault, Foreign, Refusal};
use crate::model::surrogates;

/// How much is read of an answer that is only shown, in bytes.
const ERROR_BYTES_MAX: usize = 64 * 1024;

/// Some servers begin a text with it.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The limits of one try.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Until the first byte of the body.
    pub(super) first_byte: Duration,
    /// Between two bytes.
    pub(super) idle: Duration,
}

/// Sends a request and gives its answer as a stream of events, whatever form it came in.
///
/// # Errors
/// What the answer was, when it was none, and why there was none.
pub(super) async fn exchange(
    http: &reqwest::Client,
    request: reqwest::Request,
    limits: Limits,
    seen: &Seen,
) -> Result<Response, Fault> {
    let deadline = Instant::now() + limits.first_byte;
    let late = Fault::FirstByte { limit: limits.first_byte };
    let mut response = match timeout_at(deadline, http.execute(request)).await {
        Ok(answer) => answer.map_err(|error| sending_fault(&error))?,
        Err(_) => return Err(late),
    };
    if !response.status().is_success() {
        return Err(status_fault(response, limits.idle).await);
    }
    let mut head = Vec::new();
    let first = loop {
        match timeout_at(deadline, response.chunk()).await {
            Ok(Ok(Some(bytes))) => head.extend_from_slice(&bytes),
            Ok(Ok(None)) => break None,
            Ok(Err(error)) => {
                return Err(Fault::Cut { detail: innermost(&error) });
            }
            Err(_) => return Err(late),
        }
        if let Some(byte) = head.iter().copied().find(|b| !b.is_ascii_whitespace() && !BYTE_ORDER_MARK.contains(b)) {
            break Some(byte);
        }
    };
    // The SSE layer panics at a byte order mark.
    while head.starts_with(BYTE_ORDER_MARK) || head.first().is_some_and(u8::is_ascii_whitespace) {
        let taken = if head.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 1 };
        head.drain(..taken);
    }
    match first {
        Some(b'{' | b'[') => whole_json(response, head, limits.idle, seen).await,
        Some(b'<') => {
            let sample = read_shown(&mut response, head, limits.idle).await;
            Err(Fault::Foreign { what: Foreign::Html, sample })
        }
        Some(_) | None => Ok(with_body_of(response, |source| relayed(source, head, limits.idle, seen.clone()))),
    }
}

/// Reads JSON that came where a stream of events was asked for, and hands it on as events.
async fn whole_json(mut response: Response, mut body: Vec<u8>, idle: Duration, seen: &Seen) -> Result<Response, Fault> {
    let end = read_all(&mut response, &mut body, REPLY_BYTES_MAX, idle).await;
    seen.add(&body);
    if let Some(fault) = end {
        return Err(fault);
    }
    let text = String::from_utf8_lossy(&body);
    let values: Result<Vec<Value>, _> = match surrogates::parse(&text) {
        Ok(value) => Ok(vec![value]),
        // One value a line is a stream, too.
        Err(_) => serde_json::Deserializer::from_str(&text).into_iter().collect(),
    };
    let values = values.map_err(|_| Fault::Foreign { what: Foreign::Text, sample: seen.sample() })?;
    let mut events = String::new();
    for value in values {
        match value {
            Value::Array(items) => items.iter().for_each(|item| events += &format!("data: {item}\n\n")),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                events += &format!("data: {value}\n\n");
            }
        }
    }
    // Only a whole message tells of its own end; lines need one of their own, as events do.
    seen.ended(Fault::Cut { detail: String::new() });
    Ok(with_body(response, Body::from(events)))
}

/// Reads what is left into `body`, up to a limit; gives why it ended early, if it did.
async fn read_all(response: &mut Response, body: &mut Vec<u8>, bytes_max: usize, idle: Duration) -> Option<Fault> {
    loop {
        if body.len() > bytes_max {
            body.truncate(bytes_max);
            return Some(Fault::TooLong { bytes_max });
        }
        match timeout(idle, response.chunk()).await {
            Ok(Ok(Some(bytes))) => body.extend_from_slice(&bytes),
            Ok(Ok(None)) => return None,
            Ok(Err(error)) => {
                return Some(Fault::Cut { detail: innermost(&error) });
            }
            Err(_) => return Some(Fault::Idle { limit: idle }),
        }
    }
}

/// Reads an answer that is only shown, as far as it comes within one limit for all of it.
async fn read_shown(response: &mut Response, mut body: Vec<u8>, limit: Duration) -> String {
    // What has come until then says enough.
    let _ = timeout(limit, read_all(response, &mut body, ERROR_BYTES_MAX, limit)).await;
    String::from_utf8_lossy(&body).into_owned()
}

async fn status_fault(mut response: Response, idle: Duration) -> Fault {
    let status = response.status();
    let headers = response.headers().clone();
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| i64::try_from(time.as_secs()).unwrap_or(i64::MAX));
    let body = read_shown(&mut response, Vec::new(), idle).await;
    Fault::Status(Refusal {
        status: status.as_u16(),
        reason: status.canonical_reason().unwrap_or_default(),
        body,
        location: header("location"),
        wish: wish(&header, now),
    })
}

/// The answer with its body led through something.
fn with_body_of(mut response: Response, lead: impl FnOnce(Response) -> Body) -> Response {
    let shell = Response::from(http::Response::new(Body::default()));
    let source = std::mem::replace(&mut response, shell);
    with_body(response, lead(source))
}

fn with_body(response: Response, body: Body) -> Response {
    let (mut parts, _) = http::Response::<Body>::from(response).into_parts();
    parts.headers.remove(reqwest::header::CONTENT_LENGTH);
    Response::from(http::Response::from_parts(parts, body))
}
