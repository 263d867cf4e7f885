//! The one stream of events: everything that happens gets its number and time here, is journaled, and goes to all who subscribed.
//!
//! Knows nothing of who listens.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc::UnboundedSender;

use super::writer::Trouble;
use super::{Journal, Mask, timestamp};
use crate::event::{Event, Item, Level};

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
    journal: Option<Journal>,
}

impl Events {
    /// A stream in which `mask` hides the key wherever it occurs.
    #[must_use]
    pub fn new(mask: Mask) -> Self {
        Self { inner: Arc::new(Inner { mask, stream: Mutex::default() }) }
    }

    /// Sends every later item that can be shown to `items`, until its receiver is dropped.
    pub fn subscribe(&self, items: UnboundedSender<Item>) {
        let show = move |item: &Item| matches!(item.event, Event::Record(_)) || items.send(item.clone()).is_ok();
        self.with_stream(|stream| stream.sinks.push(Box::new(show)));
    }

    /// Has every later item seen, bookkeeping too, right when it happens.
    #[cfg(test)]
    pub(crate) fn observe(&self, see: impl Fn(&Item) + Send + 'static) {
        self.with_stream(|stream| {
            stream.sinks.push(Box::new(move |item| {
                see(item);
                true
            }));
        });
    }

    /// Writes every later item into `journal`; numbers go on after `last_seq`.
    pub fn journal_to(&self, journal: Journal, last_seq: u64) {
        self.with_stream(|stream| {
            stream.journal = Some(journal);
            stream.seq = stream.seq.max(last_seq);
        });
    }

    /// Ends the journal: what was written is on the disk when this returns.
    pub fn close_journal(&self) {
        drop(self.with_stream(|stream| stream.journal.take()));
    }

    /// Is all that was recorded in the journal? True also without one: there is nothing then that could be resumed.
    #[must_use]
    pub fn all_recorded(&self) -> bool {
        self.with_stream(|stream| stream.journal.as_ref().is_none_or(Journal::is_whole))
    }

    /// Records what happened and tells everybody; gives its number. Numbers have no gaps, and every subscriber gets them in order.
    pub fn emit(&self, event: Event) -> u64 {
        let (item, trouble) = self.with_stream(|stream| {
            let item = stream.number(self.inner.mask.event(event));
            let trouble = stream.journal.as_mut().and_then(|journal| journal.write_own(&item).err());
            stream.tell(&item);
            (item, trouble)
        });
        self.say(trouble);
        item.seq
    }

    /// Numbers what happened and tells everybody. It must be recorded afterwards, as part of a unit.
    pub fn tell(&self, event: Event) -> Item {
        self.with_stream(|stream| {
            let item = stream.number(self.inner.mask.event(event));
            stream.tell(&item);
            item
        })
    }

    /// Records what belongs together: after a crash either all of it is there, or nothing. What could not be written before is
    /// tried again, also when there is nothing new.
    pub fn record(&self, unit: &[Item]) {
        let record = |stream: &mut Stream| {
            let journal = stream.journal.as_mut()?;
            let nothing = unit.is_empty() && journal.is_whole();
            if nothing { None } else { journal.write_unit(unit).err() }
        };
        self.say(self.with_stream(record));
    }

    /// Tells, once, that the journal can't be written.
    fn say(&self, trouble: Option<Trouble>) {
        if let Some(Trouble { text }) = trouble {
            self.emit(Event::Notice { level: Level::Warning, text });
        }
    }

    /// Runs `act` on the stream. A panic elsewhere leaves it usable: no step of it is half done.
    fn with_stream<T>(&self, act: impl FnOnce(&mut Stream) -> T) -> T {
        act(&mut self.inner.stream.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Stream {
    fn number(&mut self, event: Event) -> Item {
        self.seq += 1;
        // A clock that is set back doesn't turn the order round.
        self.time = timestamp().max(std::mem::take(&mut self.time));
        Item { seq: self.seq, time: self.time.clone(), event }
    }

    fn tell(&mut self, item: &Item) {
        self.sinks.retain(|sink| sink(item));
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Events")
    }
}
