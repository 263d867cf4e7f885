//! Agent names: safe as a file name, unique without regard to case.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Longest name, in bytes (names are ASCII).
pub const NAME_BYTES_MAX: usize = 64;

/// Names that no teammate can have, compared without regard to case.
pub const RESERVED: [&str; 5] = ["lead", "user", "agent", "system", "all"];

/// The name of an agent (`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`) or of the user.
///
/// Two names that differ only in case are equal, since mailboxes are files and some file systems fold case.
/// A value can only be built from text that is safe as a file name.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AgentName(Arc<str>);

/// Why a text is no agent name; the text of the error says what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameError {
    /// Empty, too long, or a character outside `A-Z a-z 0-9 _ -`.
    Malformed(String),
    /// One of [`RESERVED`].
    Reserved(String),
}

impl AgentName {
    /// Parses any well-formed name, the reserved ones included.
    ///
    /// # Errors
    /// [`NameError::Malformed`].
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let well_formed = text.len() <= NAME_BYTES_MAX
            && text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        if well_formed { Ok(Self(text.into())) } else { Err(NameError::Malformed(text.chars().take(80).collect())) }
    }

    /// Parses a name that a teammate may have.
    ///
    /// # Errors
    /// [`NameError::Malformed`] or [`NameError::Reserved`].
    pub fn parse_teammate(text: &str) -> Result<Self, NameError> {
        let name = Self::parse(text)?;
        if RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(text)) {
            return Err(NameError::Reserved(text.to_owned()));
        }
        Ok(name)
    }

    /// The lead.
    #[must_use]
    pub fn lead() -> Self {
        Self("lead".into())
    }

    /// The developer at the prompt, as the sender or resolver of something.
    #[must_use]
    pub fn user() -> Self {
        Self("user".into())
    }

    /// The runtime itself, as the sender of `undelivered`, `team_quiet` and the like.
    #[must_use]
    pub fn system() -> Self {
        Self("system".into())
    }

    /// Is this the lead?
    #[must_use]
    pub fn is_lead(&self) -> bool {
        self.0.eq_ignore_ascii_case("lead")
    }

    /// The name as it was first written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl PartialEq for AgentName {
    fn eq(&self, other: &Self) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

impl Eq for AgentName {}

impl Hash for AgentName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for byte in self.0.bytes() {
            state.write_u8(byte.to_ascii_lowercase());
        }
        state.write_u8(0xff);
    }
}

impl PartialOrd for AgentName {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for AgentName {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let folded = |name: &Self| name.0.to_ascii_lowercase();
        folded(self).cmp(&folded(other))
    }
}

impl fmt::Display for AgentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl TryFrom<String> for AgentName {
    type Error = NameError;
    fn try_from(text: String) -> Result<Self, NameError> {
        Self::parse(&text)
    }
}

impl From<AgentName> for String {
    fn from(name: AgentName) -> Self {
        name.0.as_ref().to_owned()
    }
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(text) => write!(
                f,
                "{text:?} is not a name: use 1 to {NAME_BYTES_MAX} letters, digits, `_` or `-`, beginning with a letter or digit"
            ),
            Self::Reserved(text) => write!(f, "{text:?} is reserved; choose another name"),
        }
    }
}

impl std::error::Error for NameError {}
