//! From a proposed team to a running one: proposal, the user's own word, spawn.

use crate::agent::{CallEnd, Caller};
use crate::event::Event;
use crate::protocol::proposal::{MemberDraft, SpawnRight, with_additions};
use crate::protocol::{AgentName, Metadata, Proposal};
use crate::seam::{self, Defect};
use crate::tools::MemberArgs;

use super::Session;
use super::user::Asked;

/// A spawn that waits for the user's answer.
pub(super) struct WaitingSpawn {
    name: AgentName,
    prompt: Option<String>,
    require_plan: Option<bool>,
    caller: Caller,
}

impl Session {
    /// The lead proposes a team; its turn ends, unless the user's settings confirm every proposal.
    pub(super) fn propose(&mut self, members: Vec<MemberArgs>, reason: String) -> CallEnd {
        let drafts = members.into_iter().map(draft).collect();
        let proposal = match Proposal::validate(drafts, reason, self.settings.teammates_max) {
            Ok(proposal) => proposal,
            Err(why) => return CallEnd::error(why),
        };
        // A question that stands is about the team before: its answer must not reach this one.
        self.answer_question(false);
        if self.confirmation.propose(proposal.clone()).is_some() {
            self.emit(Event::ProposalVoided { reason: "replaced by a new proposal".to_owned() });
        }
        let seq = self.emit(Event::Proposed { proposal });
        self.confirmation.shown(seq);
        if self.settings.yes {
            self.confirm();
            return CallEnd::done(
                "proposed, and confirmed by the user's own --yes: spawn them now with spawn_teammate",
            );
        }
        CallEnd::yielded("shown to the user. Your turn ends; spawn nobody before the user has confirmed")
    }

    /// The user has confirmed the open proposal.
    pub(super) fn confirm(&mut self) {
        let members = self.confirmation.confirm();
        self.emit(Event::Confirmed { members });
    }

    /// `spawn_teammate`: an idle member gets a new task, a confirmed one is started, anything else needs the user.
    pub(super) fn spawn_call(
        &mut self,
        text: &str,
        prompt: Option<String>,
        require_plan: Option<bool>,
        caller: Caller,
    ) {
        let name = match AgentName::parse_teammate(text.trim()) {
            Ok(name) => name,
            Err(error) => return self.settle_call(caller, CallEnd::error(error)),
        };
        let end = match self.confirmation.may_spawn(&name, self.lead_turn_has_line) {
            SpawnRight::Granted => self.spawn_confirmed(&name, prompt.as_deref(), require_plan),
            SpawnRight::AskUser if !self.is_living(&name) => {
                return self.ask_for_spawn(WaitingSpawn { name, prompt, require_plan, caller });
            }
            SpawnRight::AskUser => self.spawn_existing(&name, prompt, require_plan, String::new()),
            SpawnRight::Refused(why) => self.spawn_existing(&name, prompt, require_plan, why),
        };
        self.settle_call(caller, end);
    }

    fn is_living(&self, name: &AgentName) -> bool {
        self.teammate(name).is_some_and(|teammate| !teammate.status.has_ended())
    }

    /// Starts a confirmed member; a living namesake keeps its confirmation unspent.
    fn spawn_confirmed(&mut self, name: &AgentName, prompt: Option<&str>, require_plan: Option<bool>) -> CallEnd {
        if self.is_living(name) {
            let Some(entry) = self.confirmation.spend(name) else { return CallEnd::error("not confirmed") };
            let entry = with_additions(&entry, prompt, require_plan);
            return self.assign(name, &entry.prompt, entry.require_plan);
        }
        let living = self.living().count();
        if living >= self.settings.teammates_max {
            return CallEnd::error(format!(
                "{living} teammates are alive, the limit is {}; shut one down first",
                self.settings.teammates_max
            ));
        }
        let Some(entry) = self.confirmation.spend(name) else { return CallEnd::error("not confirmed") };
        let entry = with_additions(&entry, prompt, require_plan);
        match self.start_teammate(entry) {
            Ok(()) => CallEnd::done(format!("{name} is spawned and works; its result comes as a team event")),
            Err(why) => {
                CallEnd::error(format!("{name} was not spawned: {why}. Teammates need mailboxes; tell the user"))
            }
        }
    }

    /// A name without an unspent confirmation: a member of the team that is there already, or a refusal.
    fn spawn_existing(
        &mut self,
        name: &AgentName,
        prompt: Option<String>,
        require_plan: Option<bool>,
        refusal: String,
    ) -> CallEnd {
        let Some(teammate) = self.teammate(name) else { return CallEnd::error(refusal) };
        let ended = teammate.status.has_ended();
        if teammate.desk.busy && !ended {
            return CallEnd::error(format!(
                "{name} already exists and is working; wait for its result, or write to it with send_message"
            ));
        }
        let Some(prompt) = prompt.filter(|prompt| !prompt.trim().is_empty()) else {
            return CallEnd::error(format!("{name} already exists; say in `prompt` what it is to do now"));
        };
        if !ended {
            let require_plan = teammate.member.require_plan || require_plan == Some(true);
            self.begin_work(name, &prompt, require_plan, Metadata::default());
            return CallEnd::done(format!("{name} was idle and has the new task"));
        }
        if teammate.stopped_by_user {
            return CallEnd::error(format!("the user stopped {name}: propose it again with propose_team"));
        }
        if !self.lead_turn_has_line && !seam::broken(Defect::ReturnUnasked) {
            return CallEnd::error(format!("{name} has ended; it returns only when the user asks for something"));
        }
        let mut member = teammate.member.clone();
        member.prompt = prompt;
        let member = with_additions(&member, None, require_plan);
        match self.start_teammate(member) {
            Ok(()) => CallEnd::done(format!("{name} is back with its own history and works")),
            Err(why) => CallEnd::error(format!("{name} could not return: {why}")),
        }
    }

    fn ask_for_spawn(&mut self, waiting: WaitingSpawn) {
        let text = format!("Start {}? [y/N]", self.confirmation.open_names());
        self.ask_user(text, Asked::Spawn(waiting));
    }

    /// The user has answered the question about a spawn.
    pub(super) fn spawn_answered(&mut self, waiting: WaitingSpawn, yes: bool) {
        let end = if yes {
            self.confirm();
            self.spawn_confirmed(&waiting.name, waiting.prompt.as_deref(), waiting.require_plan)
        } else {
            // One no is for all of them: the next spawn in the same reply isn't asked again.
            self.confirmation.decline();
            self.emit(Event::ProposalVoided { reason: "declined by the user".to_owned() });
            CallEnd::error("the user did not confirm; nobody was spawned. Ask what they want changed")
        };
        self.settle_call(waiting.caller, end);
    }
}

fn draft(member: MemberArgs) -> MemberDraft {
    MemberDraft {
        name: member.name,
        role: member.role,
        prompt: member.prompt,
        require_plan: member.require_plan.unwrap_or(false),
        model: member.model,
    }
}
