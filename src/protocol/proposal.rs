//! A proposed team: validated, changed by the user, confirmed once, spent member by member.

use serde::{Deserialize, Serialize};

use super::confirm::{Verdict, verdict};
use super::name::AgentName;

/// Longest role, in characters.
pub const ROLE_CHARS_MAX: usize = 200;
/// Longest first task, in bytes.
pub const PROMPT_BYTES_MAX: usize = 64 * 1024;

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

/// A member as the model wrote it, before anything is checked.
#[derive(Clone, Debug, Default)]
pub struct MemberDraft {
    /// Any text.
    pub name: String,
    /// Any text.
    pub role: String,
    /// Any text.
    pub prompt: String,
    /// See [`Member::require_plan`].
    pub require_plan: bool,
    /// Empty counts as none.
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

impl Proposal {
    /// Builds a proposal from what the model wrote.
    ///
    /// # Errors
    /// A text that names every fault and what to do.
    pub fn validate(drafts: Vec<MemberDraft>, reason: String, members_max: usize) -> Result<Self, String> {
        let mut faults = Vec::new();
        if drafts.is_empty() {
            faults.push("there are no members; propose at least one, or do the work yourself".to_owned());
        }
        if drafts.len() > members_max {
            faults.push(format!("{} members are too many; at most {members_max} are allowed", drafts.len()));
        }
        let mut members: Vec<Member> = Vec::new();
        for (index, draft) in drafts.into_iter().enumerate() {
            match draft.check(index) {
                Ok(member) if members.iter().any(|other| other.name == member.name) => {
                    faults.push(format!("the name {} is used twice (names differ by more than case)", member.name));
                }
                Ok(member) => members.push(member),
                Err(fault) => faults.push(fault),
            }
        }
        if faults.is_empty() { Ok(Self { members, reason }) } else { Err(faults.join("; ")) }
    }

    /// Takes a member out.
    ///
    /// # Errors
    /// There is none of that name, or it is the last one.
    pub fn drop_member(&mut self, name: &AgentName) -> Result<(), String> {
        let index = self.index(name)?;
        if self.members.len() == 1 {
            return Err(format!("{name} is the last member; answer no to drop the whole proposal"));
        }
        self.members.remove(index);
        Ok(())
    }

    /// Says whether a member must have a plan approved.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn set_plan(&mut self, name: &AgentName, require_plan: bool) -> Result<(), String> {
        let index = self.index(name)?;
        self.members[index].require_plan = require_plan;
        Ok(())
    }

    /// Gives a member a model.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn set_model(&mut self, name: &AgentName, model: Option<String>) -> Result<(), String> {
        let index = self.index(name)?;
        self.members[index].model = model;
        Ok(())
    }

    fn index(&self, name: &AgentName) -> Result<usize, String> {
        let found = self.members.iter().position(|member| member.name == *name);
        found.ok_or_else(|| format!("{name} is not in the proposal; it has {}", self.names()))
    }

    /// The members' names, for a sentence.
    #[must_use]
    pub fn names(&self) -> String {
        self.members.iter().map(|member| member.name.as_str()).collect::<Vec<_>>().join(", ")
    }
}

impl MemberDraft {
    fn check(self, index: usize) -> Result<Member, String> {
        let name =
            AgentName::parse_teammate(self.name.trim()).map_err(|error| format!("member {}: {error}", index + 1))?;
        if self.prompt.trim().is_empty() {
            return Err(format!("{name} has no prompt; say what it is to do"));
        }
        if self.prompt.len() > PROMPT_BYTES_MAX {
            return Err(format!(
                "{name}'s prompt has over {PROMPT_BYTES_MAX} bytes; put the material into a file and name it"
            ));
        }
        if self.role.chars().count() > ROLE_CHARS_MAX {
            return Err(format!("{name}'s role has over {ROLE_CHARS_MAX} characters; a few words are enough"));
        }
        let role = if self.role.trim().is_empty() { "teammate".to_owned() } else { self.role.trim().to_owned() };
        let model = self.model.filter(|model| !model.trim().is_empty());
        Ok(Member { name, role, prompt: self.prompt, require_plan: self.require_plan, model })
    }
}

/// A confirmed entry with what the lead's spawn adds: a plan may be required in addition, and what the spawn's prompt says
/// beyond the confirmed one is said after it, as the lead could say it by mail.
#[must_use]
pub fn with_additions(entry: &Member, prompt: Option<&str>, require_plan: Option<bool>) -> Member {
    let addition = prompt.map(str::trim).filter(|prompt| !prompt.is_empty() && *prompt != entry.prompt.trim());
    let prompt = match addition {
        None => entry.prompt.clone(),
        Some(addition) => format!("{}\n\nThe lead adds: {addition}", entry.prompt.trim_end()),
    };
    Member { prompt, require_plan: entry.require_plan || require_plan == Some(true), ..entry.clone() }
}

/// What a line of the user's means for the open proposal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// The team is confirmed: these may be spawned, once each.
    Confirmed(Vec<AgentName>),
    /// A plain yes, but something else was said since the table: it may answer that. Ask by name.
    Ask,
    /// A plain no: the proposal is void.
    Declined,
    /// Nothing for the proposal.
    Conversation,
}

/// May a name be spawned now?
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpawnRight {
    /// It is confirmed and not yet spent.
    Granted,
    /// It is proposed and the user just spoke: the runtime asks by name.
    AskUser,
    /// No; the text says why and what to do, for the model.
    Refused(String),
}

/// The user's word on teams: the open proposal, and what is confirmed and not yet spent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Confirmation {
    open: Option<Open>,
    unspent: Vec<Member>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Open {
    proposal: Proposal,
    /// The event with which its table was last shown.
    seq: u64,
    /// Another line was typed after the table was on screen.
    other_line_since: bool,
}

impl Confirmation {
    /// Opens a proposal; it voids an earlier one and its unused confirmation. Gives the voided one if there was an open one.
    pub fn propose(&mut self, proposal: Proposal) -> Option<Proposal> {
        self.unspent.clear();
        let open = Open { proposal, seq: u64::MAX, other_line_since: false };
        self.open.replace(open).map(|former| former.proposal)
    }

    /// The open proposal's table is shown by this event.
    pub fn shown(&mut self, seq: u64) {
        if let Some(open) = &mut self.open {
            open.seq = seq;
        }
    }

    /// Changes the open proposal; it must be shown anew.
    ///
    /// # Errors
    /// There is none, or the change doesn't fit.
    pub fn edit(&mut self, change: impl FnOnce(&mut Proposal) -> Result<(), String>) -> Result<&Proposal, String> {
        let open = self.open.as_mut().ok_or("there is no open proposal to change")?;
        change(&mut open.proposal)?;
        Ok(&open.proposal)
    }

    /// Takes a line of the user's. `seen`: the last event on screen when Enter was pressed; what was typed before the table
    /// stood there is conversation.
    pub fn hear(&mut self, line: &str, seen: u64) -> Heard {
        let Some(open) = &mut self.open else { return Heard::Conversation };
        if seen < open.seq {
            return Heard::Conversation;
        }
        match verdict(line) {
            Verdict::Yes if open.other_line_since => Heard::Ask,
            Verdict::Yes => Heard::Confirmed(self.confirm()),
            Verdict::No => {
                self.open = None;
                Heard::Declined
            }
            Verdict::Other => {
                open.other_line_since = true;
                Heard::Conversation
            }
        }
    }

    /// The user's own word was had: by a line, by the runtime's question, or by a flag. Gives the members that may be spawned.
    pub fn confirm(&mut self) -> Vec<AgentName> {
        if let Some(open) = self.open.take() {
            self.unspent = open.proposal.members;
        }
        self.unspent.iter().map(|member| member.name.clone()).collect()
    }

    /// The user has answered no to the runtime's question: the open proposal is void.
    pub fn decline(&mut self) {
        self.open = None;
    }

    /// May this name be spawned? `after_line`: did a line of the user's start the lead's turn, or join it?
    #[must_use]
    pub fn may_spawn(&self, name: &AgentName, after_line: bool) -> SpawnRight {
        if self.unspent.iter().any(|member| member.name == *name) {
            return SpawnRight::Granted;
        }
        let Some(open) = &self.open else {
            return SpawnRight::Refused(format!(
                "{name} is not confirmed: nobody is spawned without the user's word. Propose the team with propose_team"
            ));
        };
        if !open.proposal.members.iter().any(|member| member.name == *name) {
            return SpawnRight::Refused(format!(
                "{name} is not in the proposal, which has {}; propose the team anew",
                open.proposal.names()
            ));
        }
        if after_line {
            SpawnRight::AskUser
        } else {
            SpawnRight::Refused(format!(
                "the user has not confirmed {name}; end your turn and wait for the user's own line (events never confirm)"
            ))
        }
    }

    /// Uses up a member's confirmation; gives the confirmed entry.
    pub fn spend(&mut self, name: &AgentName) -> Option<Member> {
        let index = self.unspent.iter().position(|member| member.name == *name)?;
        Some(self.unspent.remove(index))
    }

    /// The proposal that waits for the user.
    #[must_use]
    pub fn open_proposal(&self) -> Option<&Proposal> {
        self.open.as_ref().map(|open| &open.proposal)
    }

    /// Does a proposal wait for the user?
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// The names of the open proposal, for a question; empty without one.
    #[must_use]
    pub fn open_names(&self) -> String {
        self.open.as_ref().map(|open| open.proposal.names()).unwrap_or_default()
    }
}
