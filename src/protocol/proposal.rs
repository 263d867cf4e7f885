//! A proposed team: validated, changed by the user, confirmed once, spent member by member.

use serde::{Deserialize, Serialize};

use super::name::AgentName;

/// One proposed teammate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Member {
    /// Its name.
    pub name: AgentName,
    /// What it is for, in a few words.
    pub role: String,
    /// Its first task.
    pub prompt: String,
    /// Must it have a plan approved before it may change anything?
    #[serde(default)]
    pub require_plan: bool,
    /// Its model; `None` for the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// A proposed team.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Proposal {
    /// At least one, no two of one name.
    pub members: Vec<Member>,
    /// Why this team.
    pub reason: String,
}
