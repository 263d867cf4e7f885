//! The only code that knows the HTTP library: one logical call, its tries, its limits, its stream.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_openai::config::OpenAIConfig;
use async_openai::error::OpenAIError;
use async_openai::middleware::HttpRequestFactory;
use async_openai::traits::RequestOptionsBuilder;
use futures_util::StreamExt;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use serde_json::Value;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::accumulate::Accumulator;
use super::failure::{self, Failure, Kind};
use super::wire::{self, finish, plain_or_failure, take, transport_words};
use super::{Ask, AskError, Progress, Reply, Secret};

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
        let mut http = reqwest::Client::builder().connect_timeout(settings.connect_timeout).tcp_nodelay(true);
        if loopback {
            http = http.no_proxy();
        }
        if parsed.scheme() == "http" {
            // Loading the platform's certificates is the most expensive part of starting; http needs none.
            http = http.tls_certs_only(std::iter::empty());
        }
        // A second installation is refused, and that is fine: the first one stands.
        drop(rustls::crypto::ring::default_provider().install_default());
        let http = http.build().map_err(|error| format!("the HTTP client can't be made: {error}"))?;
        let key = settings.api_key.as_ref().map_or("none", Secret::expose);
        let config = OpenAIConfig::default().with_api_base(&base).with_api_key(key).with_org_id("").with_project_id("");
        let url = format!("{base}/chat/completions");
        settings.base_url = base;
        Ok(Self {
            inner: Arc::new(Inner { http, settings, url, config, stream_options_refused: AtomicBool::new(false) }),
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
                    Progress::Accepted | Progress::Reasoning(_) | Progress::Void | Progress::Retry { .. } => {}
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
            if failure.refuses_stream_options() && !self.inner.stream_options_refused.swap(true, Ordering::Relaxed) {
                continue;
            }
            if !failure.is_transient() || attempt >= settings.retries_max {
                let text = failure.message(&self.inner.url, ask.model, attempt + 1);
                return Err(AskError::Failed { text: self.masked(&text), status: failure.status() });
            }
            attempt += 1;
            let wait = failure.retry_after.unwrap_or_else(|| self.back_off(attempt));
            let cause = self.masked(&failure.brief());
            progress(Progress::Retry { cause: &cause, wait, attempt, attempts_max: settings.retries_max });
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
        let client = async_openai::Client::build(self.inner.http.clone(), self.inner.config.clone())
            .with_http_service(self.service(Arc::clone(&done)));
        let chat = client.chat();
        let chat = chat.headers(headers);
        let with_options = !self.inner.stream_options_refused.load(Ordering::Relaxed);
        let body = ask.history.body(ask.model, ask.tools, with_options);
        let first_byte = format!("no answer within {} s", settings.first_byte_timeout.as_secs_f32());
        let opening = chat.create_stream_byot::<_, Value>(&body);
        let opened =
            timeout(settings.first_byte_timeout, opening).await.map_err(|_| Kind::TimedOut(first_byte.clone()))?;
        let mut stream = match opened {
            Ok(stream) => stream,
            Err(error) => return plain_or_failure(error, progress),
        };
        let mut parts = Accumulator::default();
        loop {
            let (limit, what) = if parts.chunks == 0 {
                (settings.first_byte_timeout, first_byte.clone())
            } else {
                (settings.idle_timeout, format!("nothing came for {} s", settings.idle_timeout.as_secs_f32()))
            };
            let Some(chunk) = timeout(limit, stream.next()).await.map_err(|_| Kind::TimedOut(what))? else { break };
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
                    return Err(Kind::InStream(format!("a line that is no JSON: {}", failure::bounded(&data))).into());
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
                wire::sorted(answer, done).await
            }
        })
    }

    /// Exponential with full jitter.
    fn back_off(&self, attempt: u32) -> Duration {
        let settings = &self.inner.settings;
        let ceiling =
            settings.retry_base.saturating_mul(2_u32.saturating_pow(attempt - 1)).min(settings.retry_wait_max);
        let random = u32::try_from(Uuid::new_v4().as_u128() & 0xffff).unwrap_or(0);
        ceiling * random / 0xffff
    }

    fn masked(&self, text: &str) -> String {
        self.inner.settings.api_key.as_ref().map_or_else(|| text.to_owned(), |key| key.masked(text))
    }
}
