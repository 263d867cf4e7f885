//! The server: takes requests on 127.0.0.1, judges each, lets the scenario answer, and remembers what came.
//!
//! Knows nothing of the program that asks: it sees HTTP alone, as any server would.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt, BufStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

use super::Scenario;
use super::clerk::{Clerk, Recorded, ServeOptions};
use super::http::{self, Request};
use super::reply::{Frame, Reply};

const JSON: &str = "application/json";
const NO_SUCH_PATH: &str = "no such path: POST /v1/chat/completions and GET /v1/models are served";
const MODEL_NAME: &str = "scripted";
const READ_BUFFER_BYTES: usize = 64 * 1024;

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
        self.shared.clerk().faults().to_vec()
    }

    /// The model requests so far, in the order in which they came.
    #[must_use]
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.clerk().recorded().to_vec()
    }

    /// The requests that no rule took, each with its agent, number and the beginning of its last message.
    #[must_use]
    pub fn unmatched(&self) -> Vec<String> {
        self.shared.clerk().unmatched().to_vec()
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
    let shared = Arc::new(Shared { options: options.clone(), clerk: Mutex::new(Clerk::new(scenario, options)) });
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
        let path = request.path.split('?').next().unwrap_or_default();
        let path = path.trim_end_matches('/');
        match request.method.as_str() {
            "POST" if path.ends_with("/chat/completions") => {
                shared.complete(&request, &mut stream).await?;
            }
            "GET" if path.ends_with("/models") => send(&mut stream, &models()).await?,
            _ => send(&mut stream, &error(404, NO_SUCH_PATH)).await?,
        }
        if !request.keeps_connection() {
            break;
        }
    }
    Ok(())
}

fn models() -> Vec<u8> {
    let model = json!({"id": MODEL_NAME, "object": "model", "created": 1, "owned_by": "s15"});
    let list = json!({"object": "list", "data": [model]}).to_string();
    http::answer(200, JSON, list.as_bytes(), &BTreeMap::new())
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
    options: ServeOptions,
    clerk: Mutex<Clerk>,
}

impl Shared {
    fn clerk(&self) -> MutexGuard<'_, Clerk> {
        self.clerk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn complete(&self, request: &Request, stream: &mut BufStream<TcpStream>) -> io::Result<()> {
        let admitted = self.clerk().admit(&request.headers, &request.body, Instant::now());
        if self.options.strict && !admitted.faults.is_empty() {
            return send(stream, &error(400, &admitted.faults.join("; "))).await;
        }
        let agent = request.headers.get("x-s15-agent").map_or("", String::as_str);
        let (reply, random_delay) = {
            let mut clerk = self.clerk();
            let reply = clerk.choose(&request.headers, &admitted);
            (reply, clerk.random_delay(agent, admitted.n))
        };
        let wait = Duration::from_millis(reply.delay_ms) + random_delay;
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        let model = admitted.body.get("model").and_then(Value::as_str);
        let frame = Frame {
            id: &format!("{agent}_{}", admitted.n),
            model: model.unwrap_or(MODEL_NAME),
            request_bytes: request.body.len(),
            cached_bytes: admitted.cached_bytes,
        };
        let streamed = admitted.body.get("stream") == Some(&Value::Bool(true));
        self.send_reply(&reply, &frame, streamed, stream).await?;
        self.clerk().answered(admitted.place, Instant::now());
        Ok(())
    }

    async fn send_reply(
        &self,
        reply: &Reply,
        frame: &Frame<'_>,
        streamed: bool,
        stream: &mut BufStream<TcpStream>,
    ) -> io::Result<()> {
        let more = &reply.headers;
        if reply.is_fault() {
            let body = reply.body.as_deref().unwrap_or_default();
            let status = reply.status.unwrap_or(200);
            return send(stream, &http::answer(status, JSON, body.as_bytes(), more)).await;
        }
        if !streamed {
            let whole = reply.whole(frame).to_string();
            return send(stream, &http::answer(200, JSON, whole.as_bytes(), more)).await;
        }
        let piece_delay = match reply.piece_ms {
            0 => self.options.piece_delay,
            millis => Duration::from_millis(millis),
        };
        let mut events = reply.events(frame);
        if reply.cut {
            events.truncate(events.len() / 2);
        }
        let mut bytes = http::head(200, "text/event-stream", None, more);
        for event in &events {
            http::push_chunk(&mut bytes, event);
            if !piece_delay.is_zero() {
                send(stream, &bytes).await?;
                bytes.clear();
                tokio::time::sleep(piece_delay).await;
            }
        }
        if reply.cut {
            send(stream, &bytes).await?;
            return Err(io::Error::other("the rule says to cut it here"));
        }
        bytes.extend_from_slice(http::LAST_CHUNK);
        send(stream, &bytes).await
    }
}
