//! A session goes on that was left or cut off: everybody is back where they stood, and nothing is paid for before a line or `--yes`.

use crate::event::{Event, Level, Status};
use crate::journal::minute;
use crate::protocol::request::short;
use crate::protocol::{AgentName, MailKey, RequestTable};
use crate::tools::Role;

use super::ending::Ending;
use super::members::Teammate;
use super::recall::{Recalled, RecalledMember};
use super::{Session, desk, prompts};

impl Session {
    /// Takes up everything that the journal has, shows it, and waits, unless the user's own settings say go.
    pub(super) fn resume(&mut self, mut past: Recalled) {
        for damage in std::mem::take(&mut past.damage) {
            self.notice(Level::Warning, format!("the journal was damaged: {damage}"));
        }
        self.post.restore(past.issued());
        self.requests = RequestTable::restored(past.requests);
        self.letters = std::mem::take(&mut past.letters);
        self.confirmation = past.confirmation;
        self.recorded_confirmation = self.confirmation.clone();
        self.lines = past.lines;
        if !past.members.is_empty()
            && let Err(error) = self.open_mail()
        {
            self.notice(Level::Warning, error);
        }
        self.lead.in_turn = past.lead.in_turn;
        self.lead.shown = std::mem::take(&mut past.lead.shown);
        self.lead.remains = past.lead.remains();
        match self.lead.remains {
            Some(_) => self.restart_lead(),
            None => self.start_lead(),
        }
        for member in std::mem::take(&mut past.members) {
            self.bring_back(member);
        }
        if !self.team.is_empty() {
            self.write_roster();
        }
        self.asleep = !self.settings.yes;
        self.tell_lost_jobs(std::mem::take(&mut past.jobs));
        self.emit(Event::SessionResumed { state: self.resumed_text(&past.begun), waits: self.asleep });
        self.show_proposal_again();
        self.lead_turn_has_line = past.lead_turn_has_line;
        if !self.asleep {
            self.wake_all();
        }
    }

    /// The lead's task, with the conversation that it had.
    fn restart_lead(&mut self) {
        let start = self.start_of(Role::Lead, self.settings.model.clone(), prompts::lead(&self.settings));
        self.lead.start(start);
    }

    /// A teammate, with the conversation, the gate and the requests that it had.
    fn bring_back(&mut self, past: RecalledMember) {
        let RecalledMember { member, state, mut agent } = past;
        let name = member.name.clone();
        let Some(state) = state else {
            self.notice(Level::Warning, format!("{name} can't be brought back: how it stood is lost"));
            return;
        };
        let asked = state.ending;
        let model = member.model.clone().unwrap_or_else(|| self.settings.teammate_model.clone());
        let start = self.start_of(Role::Teammate, model, prompts::teammate(&self.settings, &member));
        let mut teammate = Teammate::recalled(member, state);
        let was_shown = |id| agent.shown.contains(&MailKey::Inside(id)) || !self.post.is_outstanding(&name, id);
        teammate.ending = asked.map(|id| Ending::recalled(id, was_shown(id)));
        teammate.desk.life = agent.lives;
        teammate.desk.in_turn = agent.in_turn;
        teammate.desk.shown = std::mem::take(&mut agent.shown);
        teammate.desk.remains = agent.remains();
        if !teammate.status.has_ended() {
            teammate.desk.start(start);
        }
        self.team.push(teammate);
    }

    /// How it all stands, for the user.
    fn resumed_text(&self, begun: &str) -> String {
        let mut text = format!("resumed: session {} of {}", short(self.settings.id), minute(begun));
        if !self.team.is_empty() || self.requests.pending().next().is_some() {
            let state = self.state_text();
            text.push_str(state.trim_start_matches("[Team state]"));
        }
        if !self.lines.is_empty() {
            text.push_str(&format!("\n{} of your lines were not answered yet", self.lines.len()));
        }
        if self.lead.in_turn {
            text.push_str("\nthe lead was in the middle of a turn");
        }
        text
    }

    /// A proposal that waits for the user is shown on this screen, too: only then can a line confirm it.
    fn show_proposal_again(&mut self) {
        if let Some(proposal) = self.confirmation.open_proposal().cloned() {
            let seq = self.emit(Event::ProposalChanged { proposal });
            self.confirmation.shown(seq);
        }
    }

    /// The user has said that it goes on: turns that were cut off, and mail that waits.
    pub(super) fn wake_all(&mut self) {
        self.asleep = false;
        self.plans_wait_again();
        let had_line = self.lead_turn_has_line;
        if self.lead.in_turn || !self.lines.is_empty() {
            let goes_on = self.lead.in_turn;
            self.begin_turn(&AgentName::lead());
            self.lead_turn_has_line = goes_on && had_line;
        }
        let cut_off = |desk: &desk::Desk, status: Status| desk.in_turn && desk.is_alive() && !status.has_ended();
        let names: Vec<(AgentName, bool)> = self
            .team
            .iter()
            .map(|teammate| (teammate.name().clone(), cut_off(&teammate.desk, teammate.status)))
            .collect();
        for (name, goes_on) in names {
            if goes_on {
                self.begin_turn(&name);
            }
        }
        self.look_everywhere();
    }
}
