//! Hides the server's key in whatever is shown or stored.
//!
//! Knows one secret text; knows nothing of where the masked text goes.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

use crate::event::{Event, Level};
use crate::seam::{self, Defect};

/// What stands in the key's place.
const MASK: &str = "[key hidden]";
/// Shorter keys are the placeholders that local servers are given (`none`, `ollama`); they occur in ordinary text.
const KEY_BYTES_MIN: usize = 8;

/// Replaces one secret wherever it occurs.
#[derive(Clone, Default)]
pub struct Mask(Option<String>);

impl Mask {
    /// Hides `key`. A key of fewer than 8 bytes is a placeholder and not hidden.
    #[must_use]
    pub fn new(key: Option<&str>) -> Self {
        Self(key.filter(|key| key.len() >= KEY_BYTES_MIN).map(str::to_owned))
    }

    /// The text without the key.
    #[must_use]
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match &self.0 {
            Some(key) if text.contains(key.as_str()) => Cow::Owned(text.replace(key.as_str(), MASK)),
            Some(_) | None => Cow::Borrowed(text),
        }
    }

    /// The event without the key, whatever part of it held the key.
    pub(super) fn event(&self, event: Event) -> Event {
        let Some(key) = self.0.as_ref().filter(|_| !seam::broken(Defect::KeyShown)) else { return event };
        let Ok(mut value) = serde_json::to_value(&event) else {
            return event;
        };
        if !self.clean(&mut value, key) {
            return event;
        }
        serde_json::from_value(value).unwrap_or_else(|_| Event::Notice {
            level: Level::Warning,
            text: "something that held the server's key was left out here".to_owned(),
        })
    }

    /// Masks every text in a value; was there anything to mask?
    fn clean(&self, value: &mut Value, key: &str) -> bool {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
            Value::String(text) => {
                let found = text.contains(key);
                if found {
                    *text = text.replace(key, MASK);
                }
                found
            }
            Value::Array(values) => values.iter_mut().fold(false, |found, value| self.clean(value, key) | found),
            Value::Object(fields) => {
                let mut found = fields.values_mut().fold(false, |found, value| self.clean(value, key) | found);
                if fields.keys().any(|name| name.contains(key)) {
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
