//! A server for the tests that sends exact bytes and remembers what it was asked.
//!
//! Knows nothing of dialects: the tests write every answer themselves.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Ask, AskError, Client, ClientSettings, History, Progress, Purpose, Reply, Secret};
use crate::protocol::AgentName;

/// What the server does with a connection, in order; at the end it closes it.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Send(Vec<u8>),
    /// Waits until the client has closed the connection.
    Hang,
    /// Reads the next request on the same connection and answers it with the next script.
    Again,
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(super) struct Request {
    /// `POST /v1/chat/completions HTTP/1.1`
    pub(super) line: String,
    /// In lower case, one a line.
    pub(super) headers: String,
    pub(super) raw: String,
    pub(super) body: Value,
}

impl Request {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    }
}

#[derive(Default)]
struct State {
    scripts: Mutex<VecDeque<Vec<Step>>>,
    requests: Mutex<Vec<Request>>,
    connections: Mutex<usize>,
    closed: Notify,
}

pub(super) struct Mock {
    pub(super) base: String,
    state: Arc<State>,
}

impl Mock {
    /// Answers one request after the other with these scripts; further ones get a plain 418.
    pub(super) async fn start(scripts: Vec<Vec<Step>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}/v1", listener.local_addr().unwrap());
        let state = Arc::new(State { scripts: Mutex::new(scripts.into()), ..State::default() });
        let shared = state.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                *shared.connections.lock().unwrap() += 1;
                tokio::spawn(serve(socket, shared.clone()));
            }
        });
        Self { base, state }
    }

    pub(super) fn requests(&self) -> Vec<Request> {
        self.state.requests.lock().unwrap().clone()
    }

    pub(super) fn connections(&self) -> usize {
        *self.state.connections.lock().unwrap()
    }

    /// Waits until the client has closed a connection that hung.
    pub(super) async fn closed(&self) {
        self.state.closed.notified().await;
    }

    pub(super) fn client(&self) -> Client {
        Client::new(settings(&self.base)).unwrap()
    }
}

async fn serve(mut socket: TcpStream, state: Arc<State>) {
    socket.set_nodelay(true).unwrap();
    'requests: loop {
        let Some(request) = read_request(&mut socket).await else {
            return;
        };
        state.requests.lock().unwrap().push(request);
        let script = state.scripts.lock().unwrap().pop_front();
        for step in script.unwrap_or_else(|| vec![status(418, "", "not in the script")]) {
            match step {
                Step::Send(bytes) => {
                    if socket.write_all(&bytes).await.is_err() {
                        return;
                    }
                    // Lets the client read before the next write, so that the pieces arrive as pieces.
                    for _ in 0..3 {
                        tokio::task::yield_now().await;
                    }
                }
                Step::Hang => {
                    let mut rest = [0; 64];
                    while !matches!(socket.read(&mut rest).await, Ok(0) | Err(_)) {}
                    state.closed.notify_one();
                    return;
                }
                Step::Again => continue 'requests,
            }
        }
        return;
    }
}

async fn read_request(socket: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    loop {
        let mut piece = [0; 4096];
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, raw)) = text.split_once("\r\n\r\n") {
            let (line, headers) = head.split_once("\r\n").unwrap();
            let headers = headers.to_lowercase();
            let length = headers.lines().find_map(|line| line.strip_prefix("content-length:"));
            let length: usize = length.map_or(0, |length| length.trim().parse().unwrap());
            if raw.len() >= length {
                let body = serde_json::from_str(raw).unwrap_or(Value::Null);
                return Some(Request { line: line.to_owned(), headers, raw: raw.to_owned(), body });
            }
        }
        match socket.read(&mut piece).await {
            Ok(0) | Err(_) => return None,
            Ok(n) => bytes.extend_from_slice(&piece[..n]),
        }
    }
}

/// The head of an answer whose end is the end of the connection.
pub(super) fn head(content_type: &str) -> Step {
    send(&format!("HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\nconnection: close\r\n\r\n"))
}

pub(super) fn send(text: &str) -> Step {
    Step::Send(text.as_bytes().to_vec())
}

/// An answer of exactly these bytes as a stream of events.
pub(super) fn stream(body: &str) -> Vec<Step> {
    vec![head("text/event-stream"), send(body)]
}

/// A stream of events made of these chunks, with the mark of the end.
pub(super) fn chunks(chunks: &[Value]) -> Vec<Step> {
    stream(&(events(chunks) + "data: [DONE]\n\n"))
}

pub(super) fn events(chunks: &[Value]) -> String {
    chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect()
}

/// A chunk with this delta.
#[allow(clippy::needless_pass_by_value, reason = "callers write it in place")]
pub(super) fn delta(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

/// A chunk that ends the reply.
pub(super) fn finish(word: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": word}]})
}

/// A good short reply.
pub(super) fn says(text: &str) -> Vec<Step> {
    chunks(&[delta(json!({"content": text})), finish("stop")])
}

/// Another answer than success; `headers` with line ends.
pub(super) fn status(status: u16, headers: &str, body: &str) -> Step {
    send(&format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n{body}", body.len()))
}

/// Settings under which nothing takes long.
pub(super) fn settings(base: &str) -> ClientSettings {
    ClientSettings {
        base_url: base.to_owned(),
        api_key: Some(Secret::new("sk-test-0123456789")),
        session: Uuid::nil(),
        retries_max: 2,
        retry_base: Duration::from_millis(1),
        retry_wait_max: Duration::from_millis(4),
        connect_timeout: Duration::from_secs(5),
        first_byte_timeout: Duration::from_secs(20),
        idle_timeout: Duration::from_secs(20),
    }
}

/// How a call went.
pub(super) struct Outcome {
    pub(super) result: Result<Reply, AskError>,
    /// `accepted`, `text …`, `reasoning …`, `void`, `retry 1/2 …`
    pub(super) progress: Vec<String>,
}

impl Outcome {
    pub(super) fn reply(self) -> Reply {
        self.result.expect("a reply")
    }

    pub(super) fn failure(self) -> String {
        match self.result {
            Err(AskError::Failed { text, .. }) => text,
            other => panic!("no failure: {other:?}"),
        }
    }
}

pub(super) fn told(progress: Progress<'_>) -> String {
    match progress {
        Progress::Accepted => "accepted".to_owned(),
        Progress::Text(text) => format!("text {text}"),
        Progress::Reasoning(text) => format!("reasoning {text}"),
        Progress::Void => "void".to_owned(),
        Progress::Retry { cause, attempt, attempts_max, .. } => format!("retry {attempt}/{attempts_max} {cause}"),
    }
}

pub(super) async fn ask(client: &Client) -> Outcome {
    let mut history = History::new("be brief");
    history.push_user("hello");
    ask_with(client, &history, &json!([]), &CancellationToken::new()).await
}

pub(super) async fn ask_with(client: &Client, history: &History, tools: &Value, cancel: &CancellationToken) -> Outcome {
    let agent = AgentName::lead();
    let ask = Ask { agent: &agent, call: 7, purpose: Purpose::Turn, model: "tiny", history, tools };
    let mut progress = Vec::new();
    let result = client.ask(&ask, &mut |step| progress.push(told(step)), cancel).await;
    Outcome { result, progress }
}

/// Asks a server that gives this one answer.
pub(super) async fn answered(script: Vec<Step>) -> Outcome {
    let mock = Mock::start(vec![script]).await;
    ask(&mock.client()).await
}
