//! Leads the body of an answer to the SSE layer: with a limit on every wait and on its length, and mended where that layer would fail.
//!
//! Knows nothing of JSON or of what the events mean.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::stream::unfold;
use reqwest::{Body, Response};
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::cause::innermost;
use crate::model::failure::Fault;

/// Longest answer that is read, in bytes.
pub(super) const REPLY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// How much of an answer is kept to show what came, in bytes.
const SAMPLE_BYTES_MAX: usize = 2048;

/// How long to wait, in the background, for the end of a body whose mark of the end was read.
const DRAIN_WAIT_MAX: Duration = Duration::from_secs(1);

/// A field that some servers write errors into, instead of `data:`.
const ERROR_FIELD: &[u8] = b"error:";

/// The mark that nothing follows.
const END_MARK: &[u8] = b"[DONE]";

/// Stands for bytes that are no text.
const REPLACEMENT: &str = "\u{fffd}";

/// What was seen of the body while the SSE layer read it, which keeps none of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen(Arc<Mutex<Notes>>);

#[derive(Debug, Default)]
struct Notes {
    /// Its beginning.
    sample: Vec<u8>,
    /// Its last bytes, in which a mark that is cut in two is found.
    tail: Vec<u8>,
    /// Was the mark of the end in it?
    is_marked: bool,
    /// Why the bytes ended; `None` when the SSE layer stopped reading by itself, as it does at the mark.
    end: Option<Fault>,
}

impl Seen {
    /// Why the stream ended, if it wasn't the mark of the end.
    pub(super) fn end(&self) -> Option<Fault> {
        let notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let stopped = || (!notes.is_marked).then(|| Fault::Cut { detail: "its reader stopped".to_owned() });
        notes.end.clone().or_else(stopped)
    }

    fn is_marked(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_marked
    }

    /// The beginning of the body, as text.
    pub(super) fn sample(&self) -> String {
        let notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&notes.sample).trim().to_owned()
    }

    pub(super) fn add(&self, bytes: &[u8]) {
        let mut notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let holds_mark = |text: &[u8]| text.windows(END_MARK.len()).any(|window| window == END_MARK);
        let seam = [notes.tail.as_slice(), &bytes[..bytes.len().min(END_MARK.len())]].concat();
        notes.is_marked = notes.is_marked || holds_mark(&seam) || holds_mark(bytes);
        notes.tail = seam[seam.len().saturating_sub(END_MARK.len())..].to_vec();
        if bytes.len() > END_MARK.len() {
            notes.tail = bytes[bytes.len() - END_MARK.len()..].to_vec();
        }
        let room = SAMPLE_BYTES_MAX.saturating_sub(notes.sample.len()).min(bytes.len());
        notes.sample.extend_from_slice(&bytes[..room]);
    }

    /// Notes why the stream ended.
    pub(super) fn ended(&self, fault: Fault) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).end = Some(fault);
    }
}

/// The body on its way to the SSE layer.
struct Relay {
    /// There until the relay is dropped.
    response: Option<Response>,
    /// What was read already.
    head: Option<Vec<u8>>,
    idle: Duration,
    left: usize,
    mend: Mend,
    seen: Seen,
    stage: Stage,
}

#[derive(PartialEq)]
enum Stage {
    Reading,
    /// The last event's blank line was added; the end is told when the SSE layer asks for more.
    Sealed,
    Over,
}

/// The body as the SSE layer gets it; `head` was read of it already.
pub(super) fn relayed(response: Response, head: Vec<u8>, idle: Duration, seen: Seen) -> Body {
    let relay = Relay {
        response: Some(response),
        head: Some(head),
        idle,
        left: REPLY_BYTES_MAX,
        mend: Mend::default(),
        seen,
        stage: Stage::Reading,
    };
    Body::wrap_stream(unfold(relay, |mut relay| async move { relay.next().await.map(|item| (item, relay)) }))
}

impl Relay {
    async fn next(&mut self) -> Option<Result<Vec<u8>, std::io::Error>> {
        match self.stage {
            Stage::Reading => {}
            Stage::Sealed => {
                self.seen.ended(Fault::Cut { detail: String::new() });
                self.stage = Stage::Over;
                return None;
            }
            Stage::Over => return None,
        }
        let bytes = match self.head.take() {
            Some(head) => Ok(Some(head)),
            None => match timeout(self.idle, chunk(self.response.as_mut())).await {
                Ok(Ok(bytes)) => Ok(bytes),
                Ok(Err(error)) => Err(Fault::Cut { detail: innermost(&error) }),
                Err(_) => Err(Fault::Idle { limit: self.idle }),
            },
        };
        match bytes {
            Ok(Some(bytes)) if bytes.len() > self.left => {
                Some(self.fail(Fault::TooLong { bytes_max: REPLY_BYTES_MAX }))
            }
            Ok(Some(bytes)) => {
                self.left -= bytes.len();
                self.seen.add(&bytes);
                Some(Ok(self.mend.feed(&bytes)))
            }
            Ok(None) => {
                self.stage = Stage::Sealed;
                let mut rest = self.mend.finish();
                rest.extend_from_slice(b"\n\n");
                Some(Ok(rest))
            }
            Err(fault) => Some(self.fail(fault)),
        }
    }

    fn fail(&mut self, fault: Fault) -> Result<Vec<u8>, std::io::Error> {
        self.seen.ended(fault);
        self.stage = Stage::Over;
        Err(std::io::Error::other("the answer broke off"))
    }
}

/// The next bytes of a body.
async fn chunk(response: Option<&mut Response>) -> reqwest::Result<Option<Vec<u8>>> {
    let Some(response) = response else {
        return Ok(None);
    };
    Ok(response.chunk().await?.map(|bytes| bytes.to_vec()))
}

impl Drop for Relay {
    /// The SSE layer stops at the mark of the end; a body that isn't read to its own end costs the connection.
    fn drop(&mut self) {
        let is_over = self.stage != Stage::Reading || !self.seen.is_marked();
        let (Some(mut response), Ok(runtime)) = (self.response.take(), Handle::try_current()) else {
            return;
        };
        if is_over {
            return;
        }
        runtime.spawn(async move {
            let rest = async { while let Ok(Some(_)) = response.chunk().await {} };
            // Too late is no harm: the connection is closed then.
            let _ = timeout(DRAIN_WAIT_MAX, rest).await;
        });
    }
}

/// Mends two things the SSE layer fails at: lines that begin with `error:`, which it would drop, become events; and bytes
/// that are no text, at which it would hold back everything after them, become U+FFFD.
struct Mend {
    /// How many bytes of the field's name have been seen since the line began; `None` within a line of another kind.
    matched: Option<usize>,
    /// The beginning of a character whose end has not come yet.
    torn: Vec<u8>,
}

impl Default for Mend {
    fn default() -> Self {
        Self { matched: Some(0), torn: Vec::new() }
    }
}

impl Mend {
    fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len() + ERROR_FIELD.len());
        if self.torn.is_empty() {
            self.take(bytes, &mut out);
        } else {
            let joined = [std::mem::take(&mut self.torn).as_slice(), bytes].concat();
            self.take(&joined, &mut out);
        }
        out
    }

    /// What was held back at the end.
    fn finish(&mut self) -> Vec<u8> {
        let mut out = ERROR_FIELD[..self.matched.take().unwrap_or(0)].to_vec();
        if !self.torn.is_empty() {
            out.extend_from_slice(REPLACEMENT.as_bytes());
        }
        out
    }

    fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let mut rest = bytes;
        loop {
            let Err(error) = std::str::from_utf8(rest) else {
                self.take_text(rest, out);
                return;
            };
            let (text, bad) = rest.split_at(error.valid_up_to());
            self.take_text(text, out);
            let Some(length) = error.error_len() else {
                bad.clone_into(&mut self.torn);
                return;
            };
            self.take_text(REPLACEMENT.as_bytes(), out);
            rest = &bad[length..];
        }
    }

    fn take_text(&mut self, text: &[u8], out: &mut Vec<u8>) {
        for &byte in text {
            match self.matched {
                Some(n) if byte == ERROR_FIELD[n] => {
                    self.matched = Some(n + 1);
                    if n + 1 == ERROR_FIELD.len() {
                        out.extend_from_slice(b"\ndata:");
                        self.matched = None;
                    }
                }
                Some(n) => {
                    out.extend_from_slice(&ERROR_FIELD[..n]);
                    self.plain(byte, out);
                }
                None => self.plain(byte, out),
            }
        }
    }

    fn plain(&mut self, byte: u8, out: &mut Vec<u8>) {
        out.push(byte);
        self.matched = matches!(byte, b'\n' | b'\r').then_some(0);
    }
}
