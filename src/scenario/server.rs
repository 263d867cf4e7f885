//! The server: takes requests on 127.0.0.1, judges each, lets the scenario answer, and remembers what came.
//!
//! Knows nothing of the program that asks: it sees HTTP alone, as any server would.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt, BufStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

use super::Scenario;
use super::conversation::Conversation;
use super::http::{self, Request};
use super::reply::{Frame, Reply};
use super::rule::Question;
use super::strict::{self, Prefix};

const JSON: &str = "application/json";
const MODEL_NAME: &str = "scripted";
const UNMATCHED_CHARS_MAX: usize = 120;
const READ_BUFFER_BYTES: usize = 64 * 1024;

/// How a scenario is served.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Decides the random delays, whatever the order in which requests come.
    pub seed: u64,
    /// The longest random delay before a reply; zero for none.
    pub delay_max: Duration,
    /// Milliseconds between two pieces of a streamed text that its rule doesn't set, so that a person sees it grow.
    pub piece_ms: u64,
    /// Answer a request that has faults with 400; otherwise they are only noted.
    pub strict: bool,
    /// Keep each request's headers and body for [`Running::requests`].
    pub record: bool,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self { seed: 0, delay_max: Duration::ZERO, piece_ms: 0, strict: true, record: true }
    }
}

/// A request that came.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The header `x-s15-agent`; empty when it was missing.
    pub agent: String,
    /// The header `x-s15-call`; 0 when it was missing or no number.
    pub call: u64,
    /// This agent's how-manieth request in its session, from 1; counts retries.
    pub n: u64,
    /// All headers, names in lower case; empty unless [`ServeOptions::record`].
    pub headers: BTreeMap<String, String>,
    /// The body; null when it is no JSON, or unless [`ServeOptions::record`].
    pub body: Value,
    /// The body's length in bytes.
    pub raw_len: usize,
    /// When its last byte was read.
    pub at: Instant,
    /// When the last byte of the answer was written; `None` while it isn't, or when the client went away.
    pub answered: Option<Instant>,
}

/// A server at work. It stops when this is dropped.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: AbortHandle,
}

impl Running {
    /// The base URL, such as `http://127.0.0.1:40123/v1`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// What was wrong with the requests so far, each with its agent and number. When [`ServeOptions::strict`], such a request
    /// was answered with 400.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        self.shared.state().faults.clone()
    }

    /// The model requests so far, in the order in which they came.
    #[must_use]
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.state().recorded.clone()
    }

    /// The requests that no rule took, each with its agent, number and the beginning of its last message.
    #[must_use]
    pub fn unmatched(&self) -> Vec<String> {
        self.shared.state().unmatched.clone()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Begins to serve on a free port of 127.0.0.1. Needs a tokio runtime with I/O and time.
///
/// # Errors
/// When no port can be had.
pub async fn serve(scenario: Scenario, options: ServeOptions) -> io::Result<Running> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    let shared = Arc::new(Shared { scenario, options, state: Mutex::default() });
    let task = tokio::spawn(accept(listener, Arc::clone(&shared))).abort_handle();
    Ok(Running { address, shared, task })
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => { connections.spawn(talk(stream, Arc::clone(&shared))); }
                // Out of descriptors, most likely: let others finish first.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Serves one connection to its end. An error of the connection is the client's to notice.
async fn talk(stream: TcpStream, shared: Arc<Shared>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufStream::with_capacity(READ_BUFFER_BYTES, READ_BUFFER_BYTES, stream);
    while let Some(request) = http::read_request(&mut stream).await? {
        let path = request.path.split('?').next().unwrap_or_default().trim_end_matches('/').to_owned();
        match request.method.as_str() {
            "POST" if path.ends_with("/chat/completions") => shared.complete(&request, &mut stream).await?,
            "GET" if path.ends_with("/models") => {
                let models = json!({"object": "list", "data": [{"id": MODEL_NAME, "object": "model", "created": 1, "owned_by": "s15"}]});
                send(&mut stream, &http::answer(200, JSON, models.to_string().as_bytes(), &BTreeMap::new())).await?;
            }
            _ => {
                send(&mut stream, &error(404, "no such path: POST /v1/chat/completions and GET /v1/models are served"))
                    .await?;
            }
        }
        if !request.keeps_connection() {
            break;
        }
    }
    Ok(())
}

async fn send(stream: &mut BufStream<TcpStream>, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes).await?;
    stream.flush().await
}

fn error(status: u16, message: &str) -> Vec<u8> {
    let body = json!({"error": {"message": message, "type": "invalid_request_error", "param": null, "code": null}});
    http::answer(status, JSON, body.to_string().as_bytes(), &BTreeMap::new())
}

#[derive(Debug)]
struct Shared {
    scenario: Scenario,
    options: ServeOptions,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    agents: HashMap<(String, String), Seen>,
    used: HashMap<usize, u64>,
    faults: Vec<String>,
    recorded: Vec<Recorded>,
    unmatched: Vec<String>,
}

/// What is known of one agent of one session.
#[derive(Debug, Default)]
struct Seen {
    requests: u64,
    prefix: Option<Prefix>,
}

/// A request that was let in.
struct Admitted {
    place: usize,
    n: u64,
    cached_bytes: usize,
    faults: Vec<String>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn complete(&self, request: &Request, stream: &mut BufStream<TcpStream>) -> io::Result<()> {
        let at = Instant::now();
        let header = |name: &str| request.headers.get(name).map(String::as_str);
        let agent = header("x-s15-agent").unwrap_or_default();
        let parsed = serde_json::from_slice::<Value>(&request.body).map_err(|e| format!("the body is no JSON: {e}"));
        let admitted = self.admit(request, &parsed, at);
        if self.options.strict && !admitted.faults.is_empty() {
            return send(stream, &error(400, &admitted.faults.join("; "))).await;
        }
        let body = parsed.unwrap_or_default(); // what is no JSON has a fault
        let reply = self.choose(agent, header("x-s15-purpose"), admitted.n, &body);
        let wait = Duration::from_millis(reply.delay_ms) + self.random_delay(agent, admitted.n);
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        let frame = Frame {
            id: &format!("{}_{}", if agent.is_empty() { "agent" } else { agent }, admitted.n),
            model: body.get("model").and_then(Value::as_str).unwrap_or(MODEL_NAME),
            request_bytes: request.body.len(),
            cached_bytes: admitted.cached_bytes,
        };
        if reply.is_fault() || body.get("stream") == Some(&Value::Bool(true)) {
            self.send_reply(&reply, &frame, stream).await?;
        } else {
            let whole = reply.whole(&frame).to_string();
            send(stream, &http::answer(200, JSON, whole.as_bytes(), &reply.headers)).await?;
        }
        if let Some(recorded) = self.state().recorded.get_mut(admitted.place) {
            recorded.answered = Some(Instant::now());
        }
        Ok(())
    }

    /// Judges a request and takes it down.
    fn admit(&self, request: &Request, parsed: &Result<Value, String>, at: Instant) -> Admitted {
        let header = |name: &str| request.headers.get(name).cloned().unwrap_or_default();
        let (agent, purpose) = (header("x-s15-agent"), header("x-s15-purpose"));
        let mut faults = strict::header_faults(&request.headers);
        match parsed {
            Ok(body) => faults.extend(strict::body_faults(body)),
            Err(fault) => faults.push(fault.clone()),
        }
        let mut state = self.state();
        let seen = state.agents.entry((header("x-s15-session"), agent.clone())).or_default();
        seen.requests += 1;
        let n = seen.requests;
        let cached_bytes = seen.check_prefix(&purpose, &request.body, &mut faults);
        state.faults.extend(faults.iter().map(|fault| format!("{agent} request {n}: {fault}")));
        let record = self.options.record;
        state.recorded.push(Recorded {
            call: header("x-s15-call").parse().unwrap_or_default(),
            agent,
            n,
            headers: if record { request.headers.clone() } else { BTreeMap::new() },
            body: parsed.as_ref().ok().filter(|_| record).cloned().unwrap_or_default(),
            raw_len: request.body.len(),
            at,
            answered: None,
        });
        Admitted { place: state.recorded.len() - 1, n, cached_bytes, faults }
    }

    /// The reply of the first rule that takes the request, or the fallback.
    fn choose(&self, agent: &str, purpose: Option<&str>, n: u64, body: &Value) -> Reply {
        let conversation = Conversation::new(body);
        let question = Question { agent, purpose, n, conversation: &conversation };
        let mut state = self.state();
        for (index, rule) in self.scenario.rules.iter().enumerate() {
            let used = state.used.entry(index).or_default();
            if !rule.has_uses_left(*used) {
                continue;
            }
            if let Some(captures) = rule.takes(&question) {
                *used += 1;
                return rule.reply(&captures, &conversation);
            }
        }
        let last: String =
            conversation.last().map(|entry| entry.text.chars().take(UNMATCHED_CHARS_MAX).collect()).unwrap_or_default();
        state.unmatched.push(format!("{agent} request {n}: {last}"));
        self.scenario.fallback(agent, &conversation)
    }

    async fn send_reply(&self, reply: &Reply, frame: &Frame<'_>, stream: &mut BufStream<TcpStream>) -> io::Result<()> {
        if reply.is_fault() {
            let body = reply.body.clone().unwrap_or_default();
            let bytes = http::answer(reply.status.unwrap_or(200), JSON, body.as_bytes(), &reply.headers);
            return send(stream, &bytes).await;
        }
        let piece_wait = Duration::from_millis(if reply.piece_ms > 0 { reply.piece_ms } else { self.options.piece_ms });
        let mut events = reply.events(frame);
        if reply.cut {
            events.truncate(events.len() / 2);
        }
        let mut bytes = http::head(200, "text/event-stream", None, &reply.headers);
        for event in &events {
            http::push_chunk(&mut bytes, event);
            if !piece_wait.is_zero() {
                send(stream, &bytes).await?;
                bytes.clear();
                tokio::time::sleep(piece_wait).await;
            }
        }
        if reply.cut {
            send(stream, &bytes).await?;
            return Err(io::Error::new(io::ErrorKind::ConnectionAborted, "the rule says to cut it here"));
        }
        bytes.extend_from_slice(http::LAST_CHUNK);
        send(stream, &bytes).await
    }

    fn random_delay(&self, agent: &str, n: u64) -> Duration {
        let longest = u64::try_from(self.options.delay_max.as_micros()).unwrap_or(u64::MAX);
        if longest == 0 {
            return Duration::ZERO;
        }
        let mut mixed = self.options.seed;
        for byte in agent.bytes().map(u64::from).chain([n]) {
            mixed = mix(mixed ^ byte);
        }
        Duration::from_micros(mixed % longest.saturating_add(1))
    }
}

impl Seen {
    /// Compares with the request before; gives how many bytes a server could have cached.
    fn check_prefix(&mut self, purpose: &str, raw: &[u8], faults: &mut Vec<String>) -> usize {
        match purpose {
            // After a compaction the history begins anew.
            "compact" => {
                self.prefix = None;
                0
            }
            "probe" => 0,
            _ => {
                let prefix = Prefix::of(raw);
                let cached = self.prefix.as_ref().map_or(0, Prefix::bytes);
                if let Some(earlier) = &self.prefix {
                    faults.extend(prefix.faults_after(earlier));
                }
                self.prefix = Some(prefix);
                cached
            }
        }
    }
}

/// Spreads a number over all 64 bits (the finishing step of splitmix64).
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
