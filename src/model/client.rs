//! The only code that knows the HTTP library: one logical call, its tries, its limits, its stream.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_openai::config::OpenAIConfig;
use async_openai::error::OpenAIError;
use async_openai::middleware::HttpRequestFactory;
use async_openai::traits::RequestOptionsBuilder;
use futures_util::StreamExt;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use serde_json::Value;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::accumulate::{Accumulator, Piece};
use super::failure::{self, Failure, Kind};
use super::{Ask, AskError, Progress, Reply, Secret};

/// Most of an answer that is no stream, in bytes.
const PLAIN_BYTES_MAX: usize = 16 * 1024 * 1024;

/// How a server is reached, and how long anything may take.
#[derive(Clone, Debug)]
pub struct ClientSettings {
    /// With or without a trailing slash; a bare host gets `/v1`.
    pub base_url: String,
    /// `None` for servers that need none.
    pub api_key: Option<Secret>,
    /// For the header.
    pub session: Uuid,
    /// Tries after the first.
    pub retries_max: u32,
    /// The first retry waits up to this; each further one up to twice the one before.
    pub retry_base: Duration,
    /// No retry waits longer, unless the server asks for it.
    pub retry_wait_max: Duration,
    /// For a connection.
    pub connect_timeout: Duration,
    /// For the first byte of an answer.
    pub first_byte_timeout: Duration,
    /// Between two chunks.
    pub idle_timeout: Duration,
}

/// The way to one model server. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    http: reqwest::Client,
    settings: ClientSettings,
    url: String,
    config: OpenAIConfig,
    stream_options_refused: AtomicBool,
}

/// A whole answer to a request for a stream, or a refusal, on its way through the library.
#[derive(Debug)]
enum Plain {
    Answer {
        body: String,
        content_type: String,
    },
    Refusal {
        status: u16,
        retry_after: Option<String>,
        body: String,
    },
}

impl std::fmt::Display for Plain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("not a stream")
    }
}

impl std::error::Error for Plain {}

impl Client {
    /// Prepares the way; nothing is sent.
    ///
    /// # Errors
    /// The URL is no http or https URL, or the platform's certificates can't be read.
    pub fn new(mut settings: ClientSettings) -> Result<Self, String> {
        let parsed = reqwest::Url::parse(settings.base_url.trim())
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            .ok_or_else(|| {
                format!(
                    "{:?} is no server's URL; OPENAI_BASE_URL looks like http://127.0.0.1:8080/v1",
                    settings.base_url
                )
            })?;
        let mut base = parsed.as_str().trim_end_matches('/').to_owned();
        if matches!(parsed.path(), "" | "/") {
            base.push_str("/v1");
        }
        let loopback = match parsed.host_str() {
            Some("localhost" | "[::1]") => true,
            Some(host) => host.starts_with("127."),
            None => false,
        };
        let mut http = reqwest::Client::builder()
            .connect_timeout(settings.connect_timeout)
            .tcp_nodelay(true);
        if loopback {
            http = http.no_proxy();
        }
        if parsed.scheme() == "http" {
            // Loading the platform's certificates is the most expensive part of starting; http needs none.
            http = http.tls_certs_only(std::iter::empty());
        }
        // A second installation is refused, and that is fine: the first one stands.
        drop(rustls::crypto::ring::default_provider().install_default());
        let http = http
            .build()
            .map_err(|error| format!("the HTTP client can't be made: {error}"))?;
        let key = settings.api_key.as_ref().map_or("none", Secret::expose);
        let config = OpenAIConfig::default()
            .with_api_base(&base)
            .with_api_key(key)
            .with_org_id("")
            .with_project_id("");
        let url = format!("{base}/chat/completions");
        settings.base_url = base;
        Ok(Self {
            inner: Arc::new(Inner {
                http,
                settings,
                url,
                config,
                stream_options_refused: AtomicBool::new(false),
            }),
        })
    }

    /// The base URL as it is used.
    #[must_use]
    pub fn base_url(&self) -> &str {
        &self.inner.settings.base_url
    }

    /// One logical call, with its retries.
    ///
    /// # Errors
    /// [`AskError`].
    pub async fn ask(
        &self,
        ask: &Ask<'_>,
        progress: &mut (dyn FnMut(Progress<'_>) + Send),
        cancel: &CancellationToken,
    ) -> Result<Reply, AskError> {
        let settings = &self.inner.settings;
        let mut partial = String::new();
        let mut accepted = false;
        let mut attempt = 0;
        loop {
            partial.clear();
            let mut progress = |step: Progress<'_>| {
                match &step {
                    Progress::Accepted if std::mem::replace(&mut accepted, true) => return,
                    Progress::Text(text) => partial.push_str(text),
                    Progress::Accepted
                    | Progress::Reasoning(_)
                    | Progress::Void
                    | Progress::Retry { .. } => {}
                }
                progress(step);
            };
            let tried = tokio::select! {
                biased;
                () = cancel.cancelled() => None,
                tried = self.attempt(ask, attempt, &mut progress) => Some(tried),
            };
            let failure = match tried {
                None => return Err(AskError::Cancelled { partial }),
                Some(Ok(reply)) => return Ok(reply),
                Some(Err(failure)) => failure,
            };
            progress(Progress::Void);
            if failure.refuses_stream_options()
                && !self
                    .inner
                    .stream_options_refused
                    .swap(true, Ordering::Relaxed)
            {
                continue;
            }
            if !failure.is_transient() || attempt >= settings.retries_max {
                let text = failure.message(&self.inner.url, ask.model, attempt + 1);
                return Err(AskError::Failed {
                    text: self.masked(&text),
                    status: failure.status(),
                });
            }
            attempt += 1;
            let wait = failure
                .retry_after
                .unwrap_or_else(|| self.back_off(attempt));
            let cause = self.masked(&failure.brief());
            progress(Progress::Retry {
                cause: &cause,
                wait,
                attempt,
                attempts_max: settings.retries_max,
            });
            tokio::select! {
                () = cancel.cancelled() => return Err(AskError::Cancelled { partial: String::new() }),
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// One try.
    async fn attempt(
        &self,
        ask: &Ask<'_>,
        attempt: u32,
        progress: &mut (dyn FnMut(Progress<'_>) + Send),
    ) -> Result<Reply, Failure> {
        let settings = &self.inner.settings;
        let headers = self.headers(ask, attempt).map_err(Kind::Unsendable)?;
        let done = Arc::new(AtomicBool::new(false));
        let client =
            async_openai::Client::build(self.inner.http.clone(), self.inner.config.clone())
                .with_http_service(self.service(Arc::clone(&done)));
        let chat = client.chat();
        let chat = chat.headers(headers);
        let with_options = !self.inner.stream_options_refused.load(Ordering::Relaxed);
        let body = ask.history.body(ask.model, ask.tools, with_options);
        let first_byte = format!(
            "no answer within {} s",
            settings.first_byte_timeout.as_secs_f32()
        );
        let opening = chat.create_stream_byot::<_, Value>(&body);
        let opened = timeout(settings.first_byte_timeout, opening)
            .await
            .map_err(|_| Kind::TimedOut(first_byte.clone()))?;
        let mut stream = match opened {
            Ok(stream) => stream,
            Err(error) => return plain_or_failure(error, progress),
        };
        let mut parts = Accumulator::default();
        loop {
            let (limit, what) = if parts.chunks == 0 {
                (settings.first_byte_timeout, first_byte.clone())
            } else {
                (
                    settings.idle_timeout,
                    format!("nothing came for {} s", settings.idle_timeout.as_secs_f32()),
                )
            };
            let Some(chunk) = timeout(limit, stream.next())
                .await
                .map_err(|_| Kind::TimedOut(what))?
            else {
                break;
            };
            match chunk {
                Ok(chunk) => take(&mut parts, &chunk, progress),
                Err(OpenAIError::JSONDeserialize(_, data)) if data.trim() == "[DONE]" => {
                    done.store(true, Ordering::Relaxed);
                    break;
                }
                Err(OpenAIError::JSONDeserialize(_, data)) if parts.chunks == 0 => {
                    return Err(Kind::NoAnswer(failure::bounded(&failure::page_text(&data))).into());
                }
                Err(OpenAIError::JSONDeserialize(_, data)) => {
                    return Err(Kind::InStream(format!(
                        "a line that is no JSON: {}",
                        failure::bounded(&data)
                    ))
                    .into());
                }
                Err(error) => return Err(Kind::Transport(transport_words(&error)).into()),
            }
            if parts.error.is_some() {
                break;
            }
        }
        finish(parts, done.load(Ordering::Relaxed), progress)
    }

    fn headers(&self, ask: &Ask<'_>, attempt: u32) -> Result<HeaderMap, String> {
        let mut headers = HeaderMap::new();
        let mut put = |name: &'static str, value: String| {
            HeaderValue::try_from(value)
                .map(|value| headers.insert(name, value))
                .map_err(|error| format!("header {name}: {error}"))
        };
        put("x-s15-agent", ask.agent.to_string())?;
        put("x-s15-session", self.inner.settings.session.to_string())?;
        put("x-s15-call", ask.call.to_string())?;
        put("x-s15-purpose", ask.purpose.word().to_owned())?;
        if attempt > 0 {
            put("x-s15-attempt", attempt.to_string())?;
        }
        Ok(headers)
    }

    /// Carries a request out. The only place where status, headers and the raw body of a refusal are all to be seen.
    fn service(
        &self,
        done: Arc<AtomicBool>,
    ) -> impl tower::Service<
        HttpRequestFactory,
        Response = reqwest::Response,
        Error = OpenAIError,
        Future = impl Future<Output = Result<reqwest::Response, OpenAIError>> + Send + 'static,
    > + Clone
    + Send
    + Sync
    + 'static {
        let http = self.inner.http.clone();
        let has_key = self.inner.settings.api_key.is_some();
        tower::service_fn(move |factory: HttpRequestFactory| {
            let (http, done) = (http.clone(), Arc::clone(&done));
            async move {
                let mut request = factory.build().await?;
                if !has_key {
                    request.headers_mut().remove(AUTHORIZATION);
                }
                let answer = http.execute(request).await.map_err(OpenAIError::Reqwest)?;
                let header = |name| {
                    answer
                        .headers()
                        .get(name)
                        .and_then(|value: &HeaderValue| value.to_str().ok())
                        .map(str::to_owned)
                };
                let content_type = header(CONTENT_TYPE)
                    .unwrap_or_default()
                    .to_ascii_lowercase();
                let status = answer.status();
                if !status.is_success() {
                    let retry_after = header(RETRY_AFTER);
                    let body = read_bounded(answer).await;
                    return Err(OpenAIError::Boxed(Box::new(Plain::Refusal {
                        status: status.as_u16(),
                        retry_after,
                        body,
                    })));
                }
                if content_type.contains("json") || content_type.contains("html") {
                    let body = read_bounded(answer).await;
                    return Err(OpenAIError::Boxed(Box::new(Plain::Answer {
                        body,
                        content_type,
                    })));
                }
                Ok(watched(answer, done))
            }
        })
    }

    /// Exponential with full jitter.
    fn back_off(&self, attempt: u32) -> Duration {
        let settings = &self.inner.settings;
        let ceiling = settings
            .retry_base
            .saturating_mul(2_u32.saturating_pow(attempt - 1))
            .min(settings.retry_wait_max);
        let random = u32::try_from(Uuid::new_v4().as_u128() & 0xffff).unwrap_or(0);
        ceiling * random / 0xffff
    }

    fn masked(&self, text: &str) -> String {
        self.inner
            .settings
            .api_key
            .as_ref()
            .map_or_else(|| text.to_owned(), |key| key.masked(text))
    }
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
    reqwest::Response::from(http_response(reqwest::Body::wrap_stream(
        bytes.chain(closing),
    )))
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
fn take(parts: &mut Accumulator, chunk: &Value, progress: &mut (dyn FnMut(Progress<'_>) + Send)) {
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
fn finish(
    mut parts: Accumulator,
    done: bool,
    progress: &mut (dyn FnMut(Progress<'_>) + Send),
) -> Result<Reply, Failure> {
    if let Some(error) = &parts.error {
        let words = failure::error_words(error)
            .map_or_else(|| failure::bounded(&error.to_string()), |(words, _)| words);
        return Err(Kind::InStream(words).into());
    }
    if parts.chunks == 0 {
        return Err(Kind::NoAnswer("an empty stream".to_owned()).into());
    }
    if matches!(
        parts.finish.as_deref(),
        Some("error" | "insufficient_system_resource")
    ) {
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
fn plain_or_failure(
    error: OpenAIError,
    progress: &mut (dyn FnMut(Progress<'_>) + Send),
) -> Result<Reply, Failure> {
    let boxed = match error {
        OpenAIError::Boxed(boxed) => boxed,
        error => return Err(Kind::Transport(transport_words(&error)).into()),
    };
    let plain = boxed
        .downcast::<Plain>()
        .map_err(|other| Kind::Transport(other.to_string()))?;
    match *plain {
        Plain::Refusal {
            status,
            retry_after,
            body,
        } => Err(failure::of_answer(status, retry_after.as_deref(), &body)),
        Plain::Answer { body, content_type } => {
            let parsed = serde_json::from_str::<Value>(&body).ok();
            let Some(answer) = parsed
                .filter(|answer| answer.get("choices").is_some() || answer.get("error").is_some())
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
fn transport_words(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    failure::bounded(&cause.to_string())
}
