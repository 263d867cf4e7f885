//! One request and the stream of its answer, through async-openai's untyped stream.
//!
//! Knows nothing of retries: what went wrong is a [`Fault`], judged elsewhere.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use async_openai::config::OpenAIConfig;
use async_openai::error::OpenAIError;
use async_openai::middleware::HttpRequestFactory;
use async_openai::traits::RequestOptionsBuilder;
use futures_util::StreamExt;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use tokio::time::timeout;

use super::connection::Ready;
use super::relay::Seen;
use super::wire::{Limits, exchange};
use super::{Client, Show};
use crate::model::accumulate::{Accumulator, Delta, Draft, Ending, Fed, Finish};
use crate::model::failure::{Fault, Foreign, Unreachable};
use crate::model::history::Omit;
use crate::model::{Ask, Reply, reply, surrogates};

/// How long to wait for the tokens and the mark of the end once the reply itself is over.
const TRAILER_WAIT_MAX: Duration = Duration::from_secs(2);

/// A server may send nothing but keep-alive lines for this many times the limit between two bytes.
const KEEP_ALIVE_FACTOR: u32 = 10;

type Events = Pin<Box<dyn futures_util::Stream<Item = Result<Value, OpenAIError>> + Send>>;

impl Client {
    /// Sends the request once. `resend`: how often it has been sent before.
    pub(super) async fn attempt(
        &self,
        ask: &Ask<'_>,
        resend: u32,
        omit: Omit,
        show: &mut Show<'_>,
    ) -> Result<Reply, Fault> {
        #[cfg(test)]
        if let Some(model) = &self.0.simulated {
            return self.play(model.answer(ask, resend), ask, show).await;
        }
        let ready = self.0.connection.ready().map_err(Fault::Setup)?;
        let settings = &self.0.settings;
        let limits = Limits { first_byte: settings.first_byte_timeout, idle: settings.idle_timeout };
        let seen = Seen::default();
        let client = sender(ready, limits, seen.clone());
        let body = ask.history.body(ask.model, ask.tools, omit);
        let events: Result<Events, OpenAIError> =
            client.chat().headers(self.headers(ask, resend)).create_stream_byot(body).await;
        let proxy = self.0.connection.proxy_variable();
        let events = events.map_err(|error| with_proxy(opening_fault(error), proxy))?;
        let draft = follow(events, limits.idle, &seen, show).await?;
        if draft.finish == Finish::Filtered && draft.calls.is_empty() && draft.text.trim().is_empty() {
            return Err(Fault::Filtered);
        }
        Ok(reply::from_draft(draft, ask.history))
    }

    fn headers(&self, ask: &Ask<'_>, resend: u32) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let mut put = |name: &'static str, value: &str| {
            // Names, numbers and ids are plain ASCII by their types; a value that weren't would be left out, not break the call.
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        };
        put("x-s15-agent", ask.agent.as_str());
        put("x-s15-session", &self.0.settings.session.to_string());
        put("x-s15-call", &ask.call.to_string());
        put("x-s15-purpose", ask.purpose.word());
        if resend > 0 {
            put("x-s15-attempt", &resend.to_string());
        }
        headers
    }
}

/// An async-openai client whose requests go through our own exchange: without its retries, and with the raw answer in sight.
fn sender(ready: Ready, limits: Limits, seen: Seen) -> async_openai::Client<OpenAIConfig> {
    // Every setting that the library would else take from the environment is set here.
    let config =
        OpenAIConfig::new().with_org_id("").with_project_id("").with_api_key("").with_api_base(ready.url.as_str());
    let http = ready.http.clone();
    let service = tower::service_fn(move |factory: HttpRequestFactory| {
        let (ready, seen) = (ready.clone(), seen.clone());
        let work: Pin<Box<dyn Future<Output = Result<reqwest::Response, OpenAIError>> + Send>> = Box::pin(async move {
            let mut request = factory.build().await?;
            *request.url_mut() = ready.url;
            request.headers_mut().remove(AUTHORIZATION);
            if let Some(authorization) = ready.authorization {
                request.headers_mut().insert(AUTHORIZATION, authorization);
            }
            exchange(&ready.http, request, limits, &seen).await.map_err(|fault| OpenAIError::Boxed(Box::new(fault)))
        });
        work
    });
    async_openai::Client::build(http, config).with_http_service(service)
}

/// Why the stream could not be opened.
fn opening_fault(error: OpenAIError) -> Fault {
    match error {
        OpenAIError::Boxed(inner) => match inner.downcast::<Fault>() {
            Ok(fault) => *fault,
            Err(other) => Fault::Setup(other.to_string()),
        },
        other => Fault::Setup(other.to_string()),
    }
}

/// A proxy that may be to blame is named.
fn with_proxy(fault: Fault, variable: Option<&str>) -> Fault {
    match (fault, variable) {
        (Fault::Unreachable { how, detail }, Some(variable)) => {
            // Who refused may have been the proxy: nothing is known about the server.
            let how = if how == Unreachable::Refused { Unreachable::Other } else { how };
            Fault::Unreachable { how, detail: format!("{detail}; {variable} names a proxy") }
        }
        (fault, _) => fault,
    }
}

/// What the stream gave next.
enum Next {
    Chunk(Value),
    /// A line that carries nothing.
    Nothing,
    /// The end, and why it came where it wasn't the server's own mark.
    End(Option<Fault>),
}

/// Reads the stream to its end.
async fn follow(mut events: Events, idle: Duration, seen: &Seen, show: &mut Show<'_>) -> Result<Draft, Fault> {
    let mut reply = Accumulator::default();
    let mut is_reply = false;
    let end = loop {
        let limit =
            if reply.is_finished() { idle.min(TRAILER_WAIT_MAX) } else { idle.saturating_mul(KEEP_ALIVE_FACTOR) };
        let next = match timeout(limit, events.next()).await {
            Ok(event) => read(event, seen),
            Err(_) => Next::End(Some(Fault::Idle { limit })),
        };
        match next {
            Next::Chunk(chunk) => {
                let fed = reply.feed(&chunk, &mut |delta| {
                    show.accepted();
                    say(show, delta);
                });
                match fed.map_err(Fault::Told)? {
                    Fed::Good => {
                        is_reply = true;
                        show.accepted();
                    }
                    Fed::Foreign => {}
                }
            }
            Next::Nothing => {}
            Next::End(end) => break end,
        }
    };
    if !is_reply {
        return Err(no_reply(end, &seen.sample()));
    }
    let ending = if end.is_none() { Ending::Marked } else { Ending::Unmarked };
    reply
        .complete(ending, &mut |delta| say(show, delta))
        .ok_or_else(|| end.unwrap_or(Fault::Cut { detail: String::new() }))
}

fn say(show: &mut Show<'_>, delta: Delta<'_>) {
    match delta {
        Delta::Text(text) => show.text(text),
        Delta::Reasoning(text) => show.reasoning(text),
    }
}

fn read(event: Option<Result<Value, OpenAIError>>, seen: &Seen) -> Next {
    let error = match event {
        None => return Next::End(seen.end()),
        Some(Ok(chunk)) => return Next::Chunk(chunk),
        Some(Err(error)) => error,
    };
    match error {
        OpenAIError::JSONDeserialize(error, data) => {
            let data = data.trim();
            if data == "[DONE]" {
                return Next::End(None);
            }
            match surrogates::parse(data) {
                Ok(chunk) => Next::Chunk(chunk),
                // A word such as `ping` is no torn piece of a reply.
                Err(_) if !data.contains(['{', '}', '"']) => Next::Nothing,
                Err(_) => Next::End(Some(Fault::Cut { detail: format!("a piece of it is no JSON: {error}") })),
            }
        }
        other => Next::End(Some(seen.end().unwrap_or_else(|| Fault::Cut { detail: other.to_string() }))),
    }
}

/// What it means that not one piece of a reply came.
fn no_reply(end: Option<Fault>, sample: &str) -> Fault {
    let is_stream = sample.is_empty() || sample.lines().any(|line| line.starts_with("data:") || line.starts_with(':'));
    match end {
        Some(Fault::Cut { detail }) if !detail.is_empty() => Fault::Cut { detail },
        Some(Fault::Cut { .. }) | None if is_stream => Fault::Cut { detail: "there was no reply in it".to_owned() },
        Some(Fault::Cut { .. }) | None => {
            let what = if sample.starts_with(['{', '[']) { Foreign::Json } else { Foreign::Text };
            Fault::Foreign { what, sample: sample.to_owned() }
        }
        Some(other) => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_that_may_be_to_blame_is_named() {
        let refused = || Fault::Unreachable { how: Unreachable::Refused, detail: "refused".to_owned() };
        let blamed = format!("{}", with_proxy(refused(), Some("HTTPS_PROXY")));
        assert!(blamed.contains("refused; HTTPS_PROXY names a proxy") && blamed.contains("Other"));
        assert!(format!("{}", with_proxy(refused(), None)).contains("Refused"));
    }
}
