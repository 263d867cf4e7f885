//! The one stream of events: everything that happens gets its number and time here and goes to all who subscribed.
//!
//! Knows nothing of who listens.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc::UnboundedSender;

use super::{Mask, timestamp};
use crate::event::{Event, Item};

/// A subscriber; `false` when it is gone.
type Sink = Box<dyn Fn(&Item) -> bool + Send>;

/// A handle on the session's stream of events. Clones speak into the same stream.
#[derive(Clone)]
pub struct Events {
    inner: Arc<Inner>,
}

struct Inner {
    mask: Mask,
    stream: Mutex<Stream>,
}

#[derive(Default)]
struct Stream {
    seq: u64,
    time: String,
    sinks: Vec<Sink>,
}

impl Events {
    /// A stream in which `mask` hides the key wherever it occurs.
    #[must_use]
    pub fn new(mask: Mask) -> Self {
        Self { inner: Arc::new(Inner { mask, stream: Mutex::default() }) }
    }

    /// Sends every later item to `items`, until its receiver is dropped.
    pub fn subscribe(&self, items: UnboundedSender<Item>) {
        self.attach(Box::new(move |item| items.send(item.clone()).is_ok()));
    }

    /// Calls `sink` for every later item, until it gives `false`. It must neither block nor emit.
    pub(super) fn attach(&self, sink: Sink) {
        self.with_stream(|stream| stream.sinks.push(sink));
    }

    /// Tells everybody what happened; gives its number. Numbers have no gaps, and every subscriber gets them in order.
    pub fn emit(&self, event: Event) -> u64 {
        let event = self.inner.mask.event(event);
        self.with_stream(|stream| {
            stream.seq += 1;
            // A clock that is set back doesn't turn the order round.
            stream.time = timestamp().max(std::mem::take(&mut stream.time));
            let item = Item { seq: stream.seq, time: stream.time.clone(), event };
            stream.sinks.retain(|sink| sink(&item));
            item.seq
        })
    }

    /// Runs `act` on the stream. A panic elsewhere leaves it usable: no step of it is half done.
    fn with_stream<T>(&self, act: impl FnOnce(&mut Stream) -> T) -> T {
        act(&mut self.inner.stream.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Events")
    }
}
