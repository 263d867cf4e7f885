//! Every call with its arguments, as types: the schema that a model sees and the parser of what it sends are one.
//!
//! Strings stand as the model wrote them. Knows nothing of how a call is carried out.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::spec::{self, Spec};
use super::team::TeamCall;
use super::text;
use crate::protocol::Effect;

/// Longest summary of a call, in characters.
pub(super) const SUMMARY_CHARS_MAX: usize = 200;

/// A call whose arguments fit.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    /// Done here, by a [`super::Workshop`].
    Local(LocalCall),
    /// Done by the owner of the team.
    Team(TeamCall),
}

/// The calls that touch files and programs.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(tag = "tool", rename_all = "snake_case")]
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

/// `bash`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct BashArgs {
    /// What `bash -c` runs, in the workspace.
    pub command: String,
    /// Time limit in seconds.
    pub timeout: Option<u64>,
    /// Goes on beside what its caller does next.
    pub run_in_background: Option<bool>,
}

/// `read_file`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct ReadFileArgs {
    /// In the workspace, or a long output of an earlier call.
    pub path: String,
    /// First line, from 1.
    pub offset: Option<u64>,
    /// How many lines.
    pub limit: Option<u64>,
}

/// `write_file`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct WriteFileArgs {
    /// In the workspace.
    pub path: String,
    /// All of it, written exactly so.
    pub content: String,
}

/// `edit_file`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct EditFileArgs {
    /// In the workspace.
    pub path: String,
    /// Stands there once, or is replaced everywhere.
    pub old_text: String,
    /// Taken as it is, but for the file's own line ends.
    pub new_text: String,
    /// Replace every occurrence.
    pub replace_all: Option<bool>,
}

/// `glob`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct GlobArgs {
    /// Such as `src/**/*.rs`.
    pub pattern: String,
    /// A folder to begin in.
    pub path: Option<String>,
}

/// `grep`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct GrepArgs {
    /// A regular expression.
    pub pattern: String,
    /// A file, or a folder to begin in.
    pub path: Option<String>,
    /// Only files whose path fits.
    pub glob: Option<String>,
}

impl Call {
    /// What it does to the world.
    #[must_use]
    pub fn effect(&self) -> Effect {
        self.spec().effect
    }

    /// The tool's name.
    #[must_use]
    pub fn tool(&self) -> &'static str {
        self.spec().name
    }

    /// One line for the user, without control characters and at most 200 characters: the command, the path, the addressee.
    #[must_use]
    pub fn summary(&self) -> String {
        let words = match self {
            Self::Local(call) => call.summary(),
            Self::Team(call) => call.summary(),
        };
        text::one_line(&words, SUMMARY_CHARS_MAX)
    }

    /// The call that a tool's fitted arguments make.
    pub(super) fn from_arguments(spec: &Spec, mut arguments: Map<String, Value>) -> Result<Self, String> {
        arguments.insert(spec::TAG.to_owned(), Value::from(spec.name));
        let arguments = Value::Object(arguments);
        if !spec::is_local(spec) {
            return serde_json::from_value(arguments).map(Self::Team).map_err(|error| error.to_string());
        }
        Ok(match serde_json::from_value(arguments).map_err(|error| error.to_string())? {
            LocalCall::Bash(call) if call.run_in_background == Some(true) => Self::Team(TeamCall::StartJob(call)),
            call => Self::Local(call),
        })
    }

    fn spec(&self) -> &'static Spec {
        match self {
            Self::Local(call) => call.spec(),
            Self::Team(call) => call.spec(),
        }
    }
}

impl LocalCall {
    pub(super) fn spec(&self) -> &'static Spec {
        match self {
            Self::Bash(_) => &spec::BASH,
            Self::ReadFile(_) => &spec::READ_FILE,
            Self::WriteFile(_) => &spec::WRITE_FILE,
            Self::EditFile(_) => &spec::EDIT_FILE,
            Self::Glob(_) => &spec::GLOB,
            Self::Grep(_) => &spec::GREP,
        }
    }

    fn summary(&self) -> String {
        let within = |pattern: &str, path: Option<&str>| match path {
            Some(path) => format!("{pattern} in {path}"),
            None => pattern.to_owned(),
        };
        match self {
            Self::Bash(call) => call.command.clone(),
            Self::ReadFile(call) => match call.offset {
                Some(offset) => format!("{} from line {offset}", call.path),
                None => call.path.clone(),
            },
            Self::WriteFile(call) => call.path.clone(),
            Self::EditFile(call) => call.path.clone(),
            Self::Glob(call) => within(&call.pattern, call.path.as_deref()),
            Self::Grep(call) => within(&call.pattern, call.path.as_deref().or(call.glob.as_deref())),
        }
    }
}
