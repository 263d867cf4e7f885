//! Asks a model server over HTTP: one call, its limits, its retries, and the stream of its answer.
//!
//! The only code that knows async-openai, reqwest and rustls. Knows nothing of agents' work or of what a reply leads to.

mod attempt;
mod cause;
mod connection;
mod endpoint;
mod relay;
mod wire;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use self::connection::Connection;
use self::endpoint::{Endpoint, authorization};
use super::backoff::Backoff;
use super::failure::{Again, Fault, Refusal, Site, judge};
use super::history::Omit;
use super::words::Words;
use super::{Ask, AskError, Progress, Reply, Secret};

/// Words with which servers refuse a field, as against asking for it.
const REFUSALS: [&str; 9] = [
    "unsupported",
    "not supported",
    "not permitted",
    "not allowed",
    "unrecognized",
    "unknown",
    "unexpected",
    "extra",
    "invalid",
];

/// What a client is made of. It has no `Debug`: the address may have a password in it.
#[derive(Clone)]
pub struct ClientSettings {
    /// The address before `/chat/completions`; trailing slashes don't matter, `http://host:port` alone gets `/v1`.
    pub base_url: String,
    /// The key, if there is one; without it no `Authorization` is sent.
    pub api_key: Option<Secret>,
    /// Sent as `x-s15-session`.
    pub session: Uuid,
    /// How often a call is tried again (so one more request than this).
    pub retries_max: u32,
    /// The upper end of the first wait; it doubles with each retry.
    pub retry_base: Duration,
    /// The upper end of every wait; what the server itself asks for is followed up to twice this.
    pub retry_wait_max: Duration,
    /// Name, TCP and TLS together.
    pub connect_timeout: Duration,
    /// From the request until the first byte of the answer's body.
    pub first_byte_timeout: Duration,
    /// Between two bytes of it.
    pub idle_timeout: Duration,
}

/// A server to ask. Cheap to clone; all clones share connections and what was learnt about the server.
#[derive(Clone)]
pub struct Client(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) settings: ClientSettings,
    endpoint: Endpoint,
    connection: Connection,
    /// The server refused `stream_options`.
    no_stream_options: AtomicBool,
    /// The server refused the thinking that it had sent itself.
    no_reasoning: AtomicBool,
    /// Answers in the server's place.
    #[cfg(test)]
    pub(super) simulated: Option<Arc<dyn super::simulated::SimulatedModel>>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("url", &self.0.endpoint.shown).finish_non_exhaustive()
    }
}

impl Client {
    /// Reads the settings; connects nowhere and loads nothing yet.
    ///
    /// # Errors
    /// A text that says what is wrong with the address or the key, and how to set it right.
    pub fn new(settings: ClientSettings) -> Result<Self, String> {
        let endpoint = Endpoint::parse(&settings.base_url)?;
        let connection =
            Connection::new(&endpoint, authorization(settings.api_key.as_ref())?, settings.connect_timeout);
        Ok(Self(Arc::new(Inner {
            settings,
            endpoint,
            connection,
            no_stream_options: AtomicBool::new(false),
            no_reasoning: AtomicBool::new(false),
            #[cfg(test)]
            simulated: None,
        })))
    }

    /// The full URL that is asked, without any secret in it.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.0.endpoint.shown
    }

    /// Asks, and tries again where that may help, until there is a reply, a clear failure, or a cancel.
    ///
    /// `progress` hears what happens meanwhile, in order. Cancelling closes the connection at once.
    ///
    /// # Errors
    /// [`AskError`].
    pub async fn ask(
        &self,
        ask: &Ask<'_>,
        progress: &mut (dyn FnMut(Progress<'_>) + Send),
        cancel: &CancellationToken,
    ) -> Result<Reply, AskError> {
        let mut show = Show { progress, accepted: false, text: String::new(), dirty: false };
        match cancel.run_until_cancelled(self.tries(ask, &mut show)).await {
            Some(outcome) => outcome,
            None => Err(AskError::Cancelled { partial: show.text }),
        }
    }

    async fn tries(&self, ask: &Ask<'_>, show: &mut Show<'_>) -> Result<Reply, AskError> {
        let settings = &self.0.settings;
        let backoff = Backoff { base: settings.retry_base, wait_max: settings.retry_wait_max };
        let site = Site { url: &self.0.endpoint.shown, model: ask.model, key: settings.api_key.as_ref() };
        let mut requests = 0;
        let mut retries = 0;
        loop {
            let omit = self.omit();
            let fault = match self.attempt(ask, requests, omit, show).await {
                Ok(reply) => return Ok(reply),
                Err(fault) => fault,
            };
            requests += 1;
            show.void();
            if self.learn(&fault, omit) {
                continue;
            }
            let failure = judge(&fault, site);
            let wish = match failure.again {
                Again::After(wish) if retries < settings.retries_max => wish,
                Again::After(_) | Again::Never => {
                    let text = if retries == 0 { failure.text } else { tried(&failure.text, retries + 1) };
                    return Err(AskError::Failed { text, status: failure.status });
                }
            };
            retries += 1;
            let wait = backoff.wait(retries, wish);
            let (cause, attempts_max) = (failure.cause.as_str(), settings.retries_max);
            (show.progress)(Progress::Retry { cause, wait, attempt: retries, attempts_max });
            sleep(wait).await;
        }
    }

    fn omit(&self) -> Omit {
        Omit {
            stream_options: self.0.no_stream_options.load(Ordering::Relaxed),
            reasoning: self.0.no_reasoning.load(Ordering::Relaxed),
        }
    }

    /// Remembers an optional field that the server refused; `true` when the call can go out again without it.
    fn learn(&self, fault: &Fault, sent: Omit) -> bool {
        let Fault::Status(Refusal { status: 400 | 422, body, .. }) = fault else {
            return false;
        };
        if !sent.stream_options && body.contains("stream_options") {
            self.0.no_stream_options.store(true, Ordering::Relaxed);
            return true;
        }
        let words = Words::of_body(body);
        if !sent.reasoning && words.mention(&["reasoning"]) && words.mention(&REFUSALS) {
            self.0.no_reasoning.store(true, Ordering::Relaxed);
            return true;
        }
        false
    }
}

/// The message with the number of requests in its first line.
fn tried(text: &str, times: u32) -> String {
    match text.split_once('\n') {
        Some((what, advice)) => format!("{what} (tried {times} times)\n{advice}"),
        None => format!("{text} (tried {times} times)"),
    }
}

/// What whoever asked has been told.
pub(super) struct Show<'p> {
    progress: &'p mut (dyn FnMut(Progress<'_>) + Send),
    accepted: bool,
    /// The text of the present try.
    text: String,
    /// Was anything of it shown?
    dirty: bool,
}

impl Show<'_> {
    pub(super) fn accepted(&mut self) {
        if !self.accepted {
            self.accepted = true;
            (self.progress)(Progress::Accepted);
        }
    }

    pub(super) fn text(&mut self, text: &str) {
        self.dirty = true;
        self.text.push_str(text);
        (self.progress)(Progress::Text(text));
    }

    fn reasoning(&mut self, text: &str) {
        self.dirty = true;
        (self.progress)(Progress::Reasoning(text));
    }

    fn void(&mut self) {
        self.text.clear();
        if std::mem::take(&mut self.dirty) {
            (self.progress)(Progress::Void);
        }
    }
}
