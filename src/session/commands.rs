//! The commands typed at the prompt. They work without the model.

use crate::event::{Event, Level};
use crate::protocol::{AgentName, Proposal};

use super::Session;

/// Name, arguments, and what it does.
const COMMANDS: [(&str, &str, &str); 9] = [
    ("/help", "", "what can be typed"),
    ("/team", "[drop NAME | plan NAME on|off | model NAME MODEL]", "who is there; or change the proposal"),
    ("/stop", "NAME", "end a teammate now"),
    ("/jobs", "", "the commands that run in the background"),
    ("/requests", "", "the requests and where they stand"),
    ("/approve", "ID [PATH …]", "approve a plan, or only these places of it"),
    ("/reject", "ID [reason]", "reject a plan"),
    ("/retry", "", "ask the lead's model again after a failure"),
    ("/quit", "", "leave"),
];

/// The commands' names.
pub fn names() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().map(|(name, ..)| *name)
}

impl Session {
    pub(super) fn command(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default();
        let rest: Vec<&str> = words.collect();
        match (name, rest.as_slice()) {
            ("/help", _) => self.notice(Level::Info, help()),
            ("/team", []) => self.notice(Level::Info, self.state_text()),
            ("/team", edit) => self.edit_proposal(edit),
            ("/stop", [name]) => self.stop_command(name),
            ("/stop", _) => self.usage("/stop"),
            ("/jobs", _) => self.notice(Level::Info, self.jobs.text()),
            ("/requests", _) => self.notice(Level::Info, self.list_requests(None)),
            ("/approve", [id, paths @ ..]) => self.review_command(id, true, None, paths),
            ("/approve", _) => self.usage("/approve"),
            ("/reject", [id, reason @ ..]) => self.review_command(id, false, Some(reason.join(" ")), &[]),
            ("/reject", []) => self.usage("/reject"),
            ("/retry", _) => self.retry(),
            ("/quit" | "/exit", _) => self.leave("left", 0),
            (unknown, _) => {
                let nearest = nearest_command(unknown).map(|name| format!(" Did you mean {name}?")).unwrap_or_default();
                self.notice(Level::Warning, format!("there is no command {unknown}.{nearest} /help lists them"));
            }
        }
    }

    fn usage(&mut self, name: &str) {
        if let Some((name, arguments, what)) = COMMANDS.iter().find(|(command, ..)| *command == name) {
            self.notice(Level::Warning, format!("usage: {name} {arguments} ({what})"));
        }
    }

    fn stop_command(&mut self, text: &str) {
        let found =
            self.living().map(|teammate| teammate.name().clone()).find(|name| name.as_str().eq_ignore_ascii_case(text));
        match found {
            Some(name) => self.stop_by_user(&name),
            None => self.notice(Level::Warning, self.unknown_member(text)),
        }
    }

    fn review_command(&mut self, id: &str, approve: bool, feedback: Option<String>, paths: &[&str]) {
        let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        let narrowed = (!paths.is_empty()).then_some(paths.as_slice());
        let end = self.review_plan(&AgentName::user(), id, approve, feedback, narrowed);
        self.notice(if end.ok { Level::Info } else { Level::Warning }, end.text);
    }

    /// The lead's last turn failed: its model call is made again, with what was put in for it.
    fn retry(&mut self) {
        if self.outcome.lead_failed && !self.lead.busy {
            self.begin_turn(&AgentName::lead());
        } else {
            self.notice(Level::Info, "there is nothing to try again: the lead's last turn didn't fail");
        }
    }

    /// Changes the open proposal without a model turn.
    fn edit_proposal(&mut self, words: &[&str]) {
        let edited = match words {
            ["drop", name] => self.edit(name, Proposal::drop_member),
            ["plan", name, "on"] => self.edit(name, |proposal, name| proposal.set_plan(name, true)),
            ["plan", name, "off"] => self.edit(name, |proposal, name| proposal.set_plan(name, false)),
            ["model", name, model] => {
                self.edit(name, |proposal, name| proposal.set_model(name, Some((*model).to_owned())))
            }
            _ => return self.usage("/team"),
        };
        if let Err(why) = edited {
            self.notice(Level::Warning, why);
        }
    }

    fn edit(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut Proposal, &AgentName) -> Result<(), String>,
    ) -> Result<(), String> {
        let name = AgentName::parse(name).map_err(|error| error.to_string())?;
        let proposal = self.confirmation.edit(|proposal| change(proposal, &name))?.clone();
        let seq = self.emit(Event::ProposalChanged { proposal });
        self.confirmation.shown(seq);
        Ok(())
    }
}

fn help() -> String {
    let mut text = "Plain text goes to the lead. 开始吧 / yes confirms a proposed team.".to_owned();
    for (name, arguments, what) in COMMANDS {
        text.push_str(&format!("\n  {:<14}{what}", format!("{name} {arguments}").trim_end()));
    }
    text.push_str("\n  Ctrl-C breaks off what the lead does; Ctrl-D leaves");
    text
}

/// The command that a mistyped word is nearest to.
fn nearest_command(word: &str) -> Option<&'static str> {
    let (name, distance) = COMMANDS
        .iter()
        .map(|(name, ..)| (*name, strsim::levenshtein(word, name)))
        .min_by_key(|(_, distance)| *distance)?;
    (distance <= 3).then_some(name)
}
