//! An answer on its way through the HTTP library: its raw body, its true end, and what it is when it is no stream.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_openai::error::OpenAIError;
use futures_util::StreamExt;
use reqwest::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use serde_json::Value;

use super::accumulate::{Accumulator, Piece};
use super::failure::{self, Failure, Kind};
use super::{Progress, Reply};

/// Most of an answer that is no stream, in bytes.
const PLAIN_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A whole answer to a request for a stream, or a refusal, on its way through the library.
#[derive(Debug)]
enum Plain {
    Answer { body: String, content_type: String },
    Refusal { status: u16, retry_after: Option<String>, body: String },
}

impl std::fmt::Display for Plain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("not a stream")
    }
}

impl std::error::Error for Plain {}

/// Lets a stream through, with its end made plain; anything else is read whole and passed on as an error of the library's.
pub(super) async fn sorted(answer: reqwest::Response, done: Arc<AtomicBool>) -> Result<reqwest::Response, OpenAIError> {
    let header =
        |name| answer.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok()).map(str::to_owned);
    let content_type = header(CONTENT_TYPE).unwrap_or_default().to_ascii_lowercase();
    let status = answer.status();
    if !status.is_success() {
        let retry_after = header(RETRY_AFTER);
        let body = read_bounded(answer).await;
        return Err(OpenAIError::Boxed(Box::new(Plain::Refusal { status: status.as_u16(), retry_after, body })));
    }
    if content_type.contains("json") || content_type.contains("html") {
        let body = read_bounded(answer).await;
        return Err(OpenAIError::Boxed(Box::new(Plain::Answer { body, content_type })));
    }
    Ok(watched(answer, done))
}

/// The answer with its end made plain: `[DONE]` is noted, and a last event without its blank line gets one.
fn watched(answer: reqwest::Response, done: Arc<AtomicBool>) -> reqwest::Response {
    const MARK: &[u8] = b"[DONE]";
    let mut tail: Vec<u8> = Vec::new();
    let bytes = answer.bytes_stream().map(move |piece| {
        if let Ok(piece) = &piece {
            tail.extend_from_slice(piece);
            if tail.windows(MARK.len()).any(|window| window == MARK) {
                done.store(true, Ordering::Relaxed);
            }
            let keep = tail.len().min(MARK.len() - 1);
            tail.drain(..tail.len() - keep);
        }
        piece
    });
    let closing = futures_util::stream::once(async { Ok::<_, reqwest::Error>("\n\n".into()) });
    reqwest::Response::from(http_response(reqwest::Body::wrap_stream(bytes.chain(closing))))
}

fn http_response(body: reqwest::Body) -> http::Response<reqwest::Body> {
    http::Response::new(body)
}

async fn read_bounded(answer: reqwest::Response) -> String {
    let mut body = Vec::new();
    let mut stream = answer.bytes_stream();
    while let Some(Ok(piece)) = stream.next().await {
        body.extend_from_slice(&piece);
        if body.len() > PLAIN_BYTES_MAX {
            break;
        }
    }
    String::from_utf8_lossy(&body).into_owned()
}

/// Adds a chunk and passes its text on.
pub(super) fn take(parts: &mut Accumulator, chunk: &Value, progress: &mut (dyn FnMut(Progress<'_>) + Send)) {
    let pieces = parts.add(chunk);
    if parts.error.is_none() {
        progress(Progress::Accepted);
    }
    tell(&pieces, progress);
}

fn tell(pieces: &[Piece], progress: &mut (dyn FnMut(Progress<'_>) + Send)) {
    for piece in pieces {
        match piece {
            Piece::Text(text) => progress(Progress::Text(text)),
            Piece::Reasoning(text) => progress(Progress::Reasoning(text)),
        }
    }
}

/// Judges the end of a stream: a reply that did not come to its end is no reply.
pub(super) fn finish(
    mut parts: Accumulator,
    done: bool,
    progress: &mut (dyn FnMut(Progress<'_>) + Send),
) -> Result<Reply, Failure> {
    if let Some(error) = &parts.error {
        let words =
            failure::error_words(error).map_or_else(|| failure::bounded(&error.to_string()), |(words, _)| words);
        return Err(Kind::InStream(words).into());
    }
    if parts.chunks == 0 {
        return Err(Kind::NoAnswer("an empty stream".to_owned()).into());
    }
    if matches!(parts.finish.as_deref(), Some("error" | "insufficient_system_resource")) {
        return Err(Kind::InStream("the server could not finish the reply".to_owned()).into());
    }
    if parts.finish.is_none() && !done {
        return Err(Kind::Cut.into());
    }
    let rest = parts.end_text();
    tell(&rest, progress);
    Ok(Reply::build(parts))
}

/// A whole answer to a request for a stream is accepted if it is one; anything else says what came.
pub(super) fn plain_or_failure(
    error: OpenAIError,
    progress: &mut (dyn FnMut(Progress<'_>) + Send),
) -> Result<Reply, Failure> {
    let boxed = match error {
        OpenAIError::Boxed(boxed) => boxed,
        error => return Err(Kind::Transport(transport_words(&error)).into()),
    };
    let plain = boxed.downcast::<Plain>().map_err(|other| Kind::Transport(other.to_string()))?;
    match *plain {
        Plain::Refusal { status, retry_after, body } => Err(failure::of_answer(status, retry_after.as_deref(), &body)),
        Plain::Answer { body, content_type } => {
            let parsed = serde_json::from_str::<Value>(&body).ok();
            let Some(answer) = parsed.filter(|answer| answer.get("choices").is_some() || answer.get("error").is_some())
            else {
                let page = failure::bounded(&failure::page_text(&body));
                return Err(Kind::NoAnswer(format!("{content_type} came instead: {page}")).into());
            };
            let mut parts = Accumulator::default();
            take(&mut parts, &answer, progress);
            finish(parts, true, progress)
        }
    }
}

/// The innermost cause: it says what happened, the outer ones only where.
pub(super) fn transport_words(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    failure::bounded(&cause.to_string())
}
