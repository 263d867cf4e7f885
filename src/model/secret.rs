//! A text that must never be shown, and the masking of it in texts that are shown.
//!
//! Doesn't know where the secret comes from or where it is sent.

use std::fmt;

/// What stands in a text in place of a secret.
const MASK: &str = "***";

/// Shorter secrets are placeholders that local servers are given (`x`, `none`): masking those would tear ordinary words apart.
const MASKED_BYTES_MIN: usize = 8;

/// A key. `Debug` and `Display` never show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes a key as it was given, without the white space around it.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.trim().to_owned())
    }

    /// Is there nothing in it?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The key itself, for the one place that sends it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// `text` with every occurrence of the key masked. Do it before any cut: half a key is a leak, too.
    #[must_use]
    pub fn mask(&self, text: &str) -> String {
        if self.0.len() < MASKED_BYTES_MIN {
            return text.to_owned();
        }
        text.replace(&self.0, MASK)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i12_a_secret_is_never_shown() {
        let secret = Secret::new(" sk-very-secret\n");
        assert_eq!(secret.expose(), "sk-very-secret");
        assert!(!format!("{secret} {secret:?}").contains("very"));
        assert_eq!(secret.mask("Bearer sk-very-secret was refused"), "Bearer *** was refused");
    }

    #[test]
    fn a_placeholder_tears_no_words_apart() {
        assert_eq!(Secret::new("none").mask("none of these"), "none of these");
    }
}
