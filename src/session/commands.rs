//! The commands typed at the prompt. They work without the model.

use crate::event::{Event, Level};
use crate::protocol::{AgentName, Proposal};

use super::Session;
use super::stopping::How;

/// Name, arguments, and what it does.
const COMMANDS: [(&str, &str, &str); 11] = [
    ("/help", "", "what can be typed"),
    ("/team", "[drop NAME | plan NAME on|off | model NAME MODEL]", "who is there; or change the proposal"),
    ("/stop", "NAME [ask|cancel|abort]", "end a teammate now; or ask it, or only cancel what it does"),
    ("/pause", "NAME|all", "hold a teammate before its next model call"),
    ("/unpause", "NAME|all", "let it go on"),
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
            ("/stop", [name]) => self.stop_command(name, How::Abort),
            ("/stop", [name, how]) if How::parse(how).is_ok() => {
                self.stop_command(name, How::parse(how).unwrap_or(How::Abort));
            }
            ("/pause", [name]) => self.for_living(name, Self::pause),
            ("/unpause", [name]) => self.for_living(name, Self::unpause),
            ("/pause", _) => self.usage("/pause"),
            ("/unpause", _) => self.usage("/unpause"),
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

    fn stop_command(&mut self, text: &str, how: How) {
        self.for_living(text, |session, name| match how {
            How::Abort => session.stop_by_user(name),
            How::Ask => {
                let end = session.request_shutdown(name, Some("the user asks for it".to_owned()));
                session.notice(if end.ok { Level::Info } else { Level::Warning }, end.text);
            }
            How::Cancel => match session.cancel(name, "the user", None) {
                Ok(done) => session.notice(Level::Info, done),
                Err(why) => session.notice(Level::Warning, why),
            },
        });
    }

    /// Does something with a living teammate, or with all of them.
    fn for_living(&mut self, text: &str, mut act: impl FnMut(&mut Self, &AgentName)) {
        let all = text.eq_ignore_ascii_case("all");
        let named = |name: &AgentName| all || name.as_str().eq_ignore_ascii_case(text);
        let found: Vec<AgentName> =
            self.living().map(|teammate| teammate.name().clone()).filter(|name| named(name)).collect();
        if found.is_empty() {
            return self.notice(Level::Warning, self.unknown_member(text));
        }
        found.iter().for_each(|name| act(self, name));
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
