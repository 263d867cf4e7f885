//! Hides the server's key, and what looks like a key, in whatever is shown or stored.
//!
//! What a tool works on and what a model is sent is not touched. A session that is resumed has its histories from the journal, though:
//! there the mask stands in the key's place for the model, too. Knows nothing of where the masked text goes.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

use super::key_shapes;
use crate::event::{Event, Level};
use crate::seam::{self, Defect};

/// What stands in the key's place.
pub(super) const MASK: &str = "[key hidden]";
/// Shorter keys are the placeholders that local servers are given (`none`, `ollama`); they occur in ordinary text.
const KEY_BYTES_MIN: usize = 8;

/// Replaces one secret wherever it occurs, and everything that has the shape of one.
#[derive(Clone, Default)]
pub struct Mask(Option<String>);

impl Mask {
    /// Hides `key`. A key of fewer than 8 bytes is a placeholder and not hidden.
    #[must_use]
    pub fn new(key: Option<&str>) -> Self {
        Self(key.filter(|key| key.len() >= KEY_BYTES_MIN).map(str::to_owned))
    }

    /// The text without keys.
    #[must_use]
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match &self.0 {
            Some(key) if text.contains(key.as_str()) => {
                Cow::Owned(key_shapes::masked(&text.replace(key.as_str(), MASK)).into_owned())
            }
            Some(_) | None => key_shapes::masked(text),
        }
    }

    /// The event without keys, whatever part of it held one.
    pub(super) fn event(&self, event: Event) -> Event {
        if seam::broken(Defect::KeyShown) {
            return event;
        }
        let Ok(mut value) = serde_json::to_value(&event) else {
            return event;
        };
        if !self.clean(&mut value) {
            return event;
        }
        serde_json::from_value(value).unwrap_or_else(|_| Event::Notice {
            level: Level::Warning,
            text: "something that held a key was left out here".to_owned(),
        })
    }

    /// Masks every text in a value; was there anything to mask?
    fn clean(&self, value: &mut Value) -> bool {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
            Value::String(text) => {
                let Cow::Owned(clean) = self.text(text) else { return false };
                let found = clean != *text;
                *text = clean;
                found
            }
            Value::Array(values) => values.iter_mut().fold(false, |found, value| self.clean(value) | found),
            Value::Object(fields) => {
                let mut found = fields.values_mut().fold(false, |found, value| self.clean(value) | found);
                if fields.keys().any(|name| self.text(name) != name.as_str()) {
                    found = true;
                    let named = std::mem::take(fields);
                    fields.extend(named.into_iter().map(|(name, value)| (self.text(&name).into_owned(), value)));
                }
                found
            }
        }
    }
}

impl fmt::Debug for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mask")
    }
}
