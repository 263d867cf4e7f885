//! What agents can do: a closed set of calls, each with its schema, its effect and who has it.
//!
//! Team calls are parsed into data here and carried out by the owner of the team; everything else runs in a [`Workshop`].
//! Knows nothing of gates, permissions, models or the session.

mod calls;
mod collector;
mod files;
mod fit;
mod paths;
mod search;
mod shell;
mod spec;
mod team;
#[cfg(test)]
mod tests;
mod text;
mod workshop;

use std::pin::Pin;

use serde_json::{Map, Value};

pub use calls::{BashArgs, Call, EditFileArgs, GlobArgs, GrepArgs, LocalCall, ReadFileArgs, WriteFileArgs};
#[cfg(target_os = "linux")]
pub use shell::guard_if_asked;
pub use shell::{Environment, Job, JobEnd, Told};
pub use spec::{PROPOSE_TEAM, definitions, is_work};
pub use team::{MemberArgs, TeamCall};
pub use workshop::Workshop;

/// Who calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The lead.
    Lead,
    /// A teammate.
    Teammate,
}

/// Completes, with the reason, when a running call must end now.
pub type Stop<'a> = Pin<Box<dyn Future<Output = &'static str> + Send + 'a>>;

/// Hears, right before a file is replaced, the digest of what it will hold.
pub type Intent = Box<dyn FnOnce(&str) + Send>;

/// The result of a call, for the model. Its text is never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Did it do what was asked? A command that ends with another exit code than 0 did not.
    pub ok: bool,
    /// Begins with `error:` if the call could not be done or was broken off.
    pub text: String,
}

impl Output {
    pub(crate) fn done(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { ok: true, text: if text.is_empty() { "(no output)".to_owned() } else { text } }
    }

    pub(crate) fn error(text: impl std::fmt::Display) -> Self {
        Self { ok: false, text: format!("error: {text}") }
    }
}

/// Parses a call of an agent of this role. Small mistakes of small models are mended: numbers, booleans and lists that
/// were written as strings, empty optional fields, fields that the tool doesn't have.
///
/// # Errors
/// A text for the model that begins with `error:`: the role has no such tool (and which it has), or which field is
/// missing or of the wrong kind (and what the tool takes).
pub fn parse(role: Role, name: &str, arguments: Map<String, Value>) -> Result<Call, String> {
    let Some(spec) = spec::find(role, name) else {
        let (name, names) = (text::one_line(name, calls::SUMMARY_CHARS_MAX), spec::names(role).join(", "));
        return Err(format!("error: there is no tool `{name}`; the tools are: {names}"));
    };
    let form = spec::form(spec);
    let fitted = fit::fit(arguments, form).and_then(|arguments| Call::from_arguments(spec, arguments));
    fitted.map_err(|why| format!("error: {name}: {why}; {}", fit::takes(name, form)))
}
