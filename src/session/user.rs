//! What the user says: confirmations, answers, commands, and lines for the lead. Only a line pressed after a question or table
//! was on screen can answer it.

use crate::event::Event;
use crate::protocol::AgentName;
use crate::protocol::confirm::{Verdict, verdict};
use crate::protocol::proposal::Heard;
use crate::seam::{self, Defect};

use super::proposing::WaitingSpawn;
use super::{Session, Source, UserInput};

/// A question that only the user can answer.
pub(super) struct Question {
    /// The event with which it was shown.
    seq: u64,
    asked: Asked,
}

/// What hangs on the answer.
pub(super) enum Asked {
    /// The lead's call waits for it.
    Spawn(WaitingSpawn),
    /// A plain yes that may have meant something else; the line goes to the lead afterwards.
    Confirm(String),
}

impl Session {
    pub(super) fn hear_user(&mut self, input: UserInput) {
        match input {
            UserInput::Line { text, seen } => {
                self.line_awaited = false;
                self.hear_line(text, seen);
            }
            UserInput::Interrupt => self.interrupt(),
            UserInput::Leave => self.leave("left", 0),
            UserInput::EndOfInput => self.end_of_input(),
            UserInput::Signal("SIGINT") if self.settings.source == Source::Terminal => self.interrupt(),
            UserInput::Signal(signal) => self.leave(signal, 130),
        }
    }

    fn hear_line(&mut self, text: String, seen: u64) {
        self.outcome.quiet_told = false;
        let seen = if seam::broken(Defect::StaleYes) { u64::MAX } else { seen };
        if self.question.as_ref().is_some_and(|question| seen >= question.seq) {
            let verdict = verdict(&text);
            self.answer_question(verdict == Verdict::Yes);
            if verdict != Verdict::Other {
                return;
            }
        }
        if text.starts_with('/') {
            return self.command(&text);
        }
        match self.confirmation.hear(&text, seen) {
            Heard::Confirmed(members) => {
                self.emit(Event::Confirmed { members });
            }
            Heard::Ask => {
                let question = format!("Start {}? [y/N]", self.confirmation.open_names());
                return self.ask_user(question, Asked::Confirm(text));
            }
            Heard::Declined => {
                self.emit(Event::ProposalVoided { reason: "declined by the user".to_owned() });
            }
            Heard::Conversation => {}
        }
        self.line_for_lead(text);
    }

    /// A line joins the lead's conversation: at once if it is idle, before its next model call otherwise.
    pub(super) fn line_for_lead(&mut self, text: String) {
        if self.leaving.is_some() {
            return;
        }
        self.emit(Event::UserLine { text: text.clone(), queued: self.lead.busy });
        self.lines.push_back(text);
        if self.asleep {
            self.wake_all();
        } else if !self.lead.busy {
            self.begin_turn(&AgentName::lead());
        }
    }

    /// Asks the user; one question at a time, a later one refuses the earlier.
    pub(super) fn ask_user(&mut self, text: String, asked: Asked) {
        self.answer_question(false);
        let seq = self.emit(Event::Question { text });
        self.question = Some(Question { seq, asked });
        if !self.can_ask() {
            self.refuse_question();
        }
    }

    /// Is there somebody who can answer?
    fn can_ask(&self) -> bool {
        match self.settings.source {
            Source::Terminal | Source::Pipe => !self.outcome.input_ended,
            Source::Once => false,
        }
    }

    pub(super) fn refuse_question(&mut self) {
        if self.question.is_some() {
            self.outcome.needed_person = true;
            self.answer_question(false);
        }
    }

    pub(super) fn answer_question(&mut self, yes: bool) {
        let Some(question) = self.question.take() else { return };
        self.emit(Event::Answered { yes });
        match question.asked {
            Asked::Spawn(waiting) => self.spawn_answered(waiting, yes),
            Asked::Confirm(line) => {
                if yes {
                    self.confirm();
                }
                self.line_for_lead(line);
            }
        }
    }

    /// Ctrl-C for the lead: an open question is answered no, the present step ends.
    fn interrupt(&mut self) {
        self.answer_question(false);
        if self.lead.busy {
            self.lead.reins.halt(crate::agent::Halt::EndTurn("interrupted by the user"));
            self.end_pauses_of(Some(&AgentName::lead()));
        }
    }

    fn end_of_input(&mut self) {
        match self.settings.source {
            Source::Terminal => self.leave("left", 0),
            Source::Pipe | Source::Once => {
                self.outcome.input_ended = true;
                self.refuse_question();
            }
        }
    }
}
