//! What agents can do: a closed set of calls, each with its schema, its effect and who has it.
//!
//! Team calls are parsed into data here and carried out by the owner of the team; everything else runs in a [`Workshop`].
//! Knows nothing of gates, permissions or models.

mod arguments;
mod files;
mod output;
mod paths;
mod search;
mod shell;
mod spec;
#[cfg(test)]
mod tests;
mod workshop;

use std::future::Future;
use std::pin::Pin;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::protocol::Effect;

pub use arguments::{BashArgs, EditFileArgs, GlobArgs, GrepArgs, MemberArgs, ReadFileArgs, TeamCall, WriteFileArgs};
pub use spec::{PROPOSE_TEAM, definitions};
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

/// The result of a call, for the model. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Did it do what was asked?
    pub ok: bool,
    /// Begins with `error:` if it could not be done at all.
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

/// A call whose arguments fit.
#[derive(Clone, Debug)]
pub enum Call {
    /// Done here, by a [`Workshop`].
    Local(LocalCall),
    /// Done by the owner of the team.
    Team(TeamCall),
}

/// The calls that touch files and programs.
#[derive(Clone, Debug)]
pub enum LocalCall {
    /// Runs a command.
    Bash(BashArgs),
    /// Reads a file.
    ReadFile(ReadFileArgs),
    /// Writes a whole file.
    WriteFile(WriteFileArgs),
    /// Replaces text in a file.
    EditFile(EditFileArgs),
    /// Lists files by pattern.
    Glob(GlobArgs),
    /// Searches in files.
    Grep(GrepArgs),
}

/// Parses a call of an agent of this role.
///
/// # Errors
/// A text for the model that begins with `error:`: the tool is not this role's, or what is wrong with the arguments.
pub fn parse(role: Role, name: &str, arguments: Map<String, Value>) -> Result<Call, String> {
    let Some(spec) = spec::find(role, name) else {
        return Err(format!("error: there is no tool {name:?}; the tools are: {}", spec::names(role).join(", ")));
    };
    (spec.parse)(arguments).map_err(|why| format!("error: {name}: {why}"))
}

/// Fits arguments to a type, with the small mistakes of small models mended: numbers, booleans and lists written as strings.
fn fit<T: for<'de> Deserialize<'de>>(mut arguments: Map<String, Value>) -> Result<T, String> {
    arguments.retain(|_, value| !value.is_null());
    let first = serde_json::from_value(Value::Object(arguments.clone()));
    let error = match first {
        Ok(fitting) => return Ok(fitting),
        Err(error) => error,
    };
    for value in arguments.values_mut() {
        let Value::String(text) = value else { continue };
        match serde_json::from_str(text.trim()) {
            Ok(mended @ (Value::Number(_) | Value::Bool(_) | Value::Array(_))) => *value = mended,
            Ok(Value::Null | Value::String(_) | Value::Object(_)) | Err(_) => {}
        }
    }
    serde_json::from_value(Value::Object(arguments)).map_err(|_| error.to_string())
}

impl Call {
    /// What it does to the world.
    #[must_use]
    pub fn effect(&self) -> Effect {
        match self {
            Self::Local(LocalCall::Bash(_)) => Effect::Execute,
            Self::Local(LocalCall::WriteFile(_) | LocalCall::EditFile(_)) => Effect::Write,
            Self::Local(LocalCall::ReadFile(_) | LocalCall::Glob(_) | LocalCall::Grep(_)) => Effect::Read,
            Self::Team(_) => Effect::Team,
        }
    }

    /// One line for the user: the command, the path, the addressee.
    #[must_use]
    pub fn summary(&self) -> String {
        let text = match self {
            Self::Local(LocalCall::Bash(call)) => call.command.clone(),
            Self::Local(LocalCall::ReadFile(call)) => call.path.clone(),
            Self::Local(LocalCall::WriteFile(call)) => call.path.clone(),
            Self::Local(LocalCall::EditFile(call)) => call.path.clone(),
            Self::Local(LocalCall::Glob(call)) => call.pattern.clone(),
            Self::Local(LocalCall::Grep(call)) => call.pattern.clone(),
            Self::Team(call) => call.summary(),
        };
        let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect();
        line.trim().to_owned()
    }
}
