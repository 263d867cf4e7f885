//! A server's key: held, never shown.
//!
//! Knows not where it came from or where it goes.

use std::fmt;

/// A server's key. Neither `Debug` nor `Display` shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// Takes a key as it was given. White space around it is dropped; none is left: `None`.
    ///
    /// # Errors
    /// What is wrong with it, without the key itself: it goes into an HTTP header, so only visible ASCII is allowed.
    pub fn parse(text: &str) -> Result<Option<Self>, &'static str> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(None);
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("holds a space, a control character or a character outside ASCII; copy it again");
        }
        Ok(Some(Self(text.to_owned())))
    }

    /// The key itself, for the `Authorization` header and for finding it in what must not hold it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(hidden)")
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}
