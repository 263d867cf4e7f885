//! The HTTP client behind the calls, made when the first of them needs it.
//!
//! Knows nothing of requests' bodies or of answers.

use std::sync::OnceLock;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderValue};
use reqwest::redirect::Policy;

use super::cause::innermost;
use super::endpoint::Endpoint;

/// How long an unused connection is kept.
const CONNECTION_IDLE_MAX: Duration = Duration::from_secs(30);

/// Variables that may name a proxy for plain HTTP.
const PROXY_VARIABLES: [&str; 4] = ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];

/// Those that may name one for TLS.
const TLS_PROXY_VARIABLES: [&str; 4] = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

/// How the server is reached.
pub(super) struct Connection {
    url: Url,
    key: Option<HeaderValue>,
    /// No proxy is asked.
    is_direct: bool,
    needs_tls: bool,
    connect_timeout: Duration,
    /// Made once: the system's certificates take a while to load, and a start that asks nothing needn't wait for them.
    ready: OnceLock<Result<Ready, String>>,
}

/// What a request needs.
#[derive(Clone, Debug)]
pub(super) struct Ready {
    pub(super) http: reqwest::Client,
    /// Without user and password.
    pub(super) url: Url,
    pub(super) authorization: Option<HeaderValue>,
}

impl Connection {
    pub(super) fn new(endpoint: &Endpoint, key: Option<HeaderValue>, connect_timeout: Duration) -> Self {
        let is_direct = endpoint.is_loopback();
        Self {
            url: endpoint.url.clone(),
            key,
            is_direct,
            needs_tls: endpoint.is_https() || (!is_direct && has_tls_proxy()),
            connect_timeout,
            ready: OnceLock::new(),
        }
    }

    /// The client, made now if this is the first call.
    ///
    /// # Errors
    /// Why there can't be one, as a text.
    pub(super) fn ready(&self) -> Result<Ready, String> {
        self.ready.get_or_init(|| self.make()).clone()
    }

    /// The variable that names a proxy for this server, if one is set (`NO_PROXY` may still except it).
    pub(super) fn proxy_variable(&self) -> Option<&'static str> {
        let variables = if self.url.scheme() == "https" { TLS_PROXY_VARIABLES } else { PROXY_VARIABLES };
        let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        variables.into_iter().find(is_set).filter(|_| !self.is_direct)
    }

    fn make(&self) -> Result<Ready, String> {
        // Another client of this process may have installed it already; that's as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .connect_timeout(self.connect_timeout)
            .pool_idle_timeout(CONNECTION_IDLE_MAX)
            // A redirected POST becomes a GET, and a key must not go where nobody sent it.
            .redirect(Policy::none())
            .user_agent(concat!("s15/", env!("CARGO_PKG_VERSION")));
        if self.is_direct {
            builder = builder.no_proxy();
        }
        if !self.needs_tls {
            // Nothing is ever verified over plain HTTP: don't load the system's certificates for it.
            builder = builder.tls_certs_only([]);
        }
        let http = builder.build().map_err(|error| format!("no HTTP client: {}", innermost(&error)))?;
        // reqwest itself turns user and password of a URL into a header.
        let mut probe =
            http.post(self.url.clone()).build().map_err(|error| format!("no request: {}", innermost(&error)))?;
        let from_url = probe.headers_mut().remove(AUTHORIZATION);
        let url = probe.url().clone();
        Ok(Ready { http, url, authorization: self.key.clone().or(from_url) })
    }
}

fn has_tls_proxy() -> bool {
    PROXY_VARIABLES
        .iter()
        .filter_map(|name| std::env::var(name).ok())
        .any(|proxy| proxy.trim_start().to_lowercase().starts_with("https:"))
}
