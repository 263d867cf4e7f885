//! Which messages there were, between whom: what an agent may refer to by an id. Keeps no text.

use std::collections::{HashSet, VecDeque};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::message::{Message, MessageType};
use super::name::AgentName;

/// Messages that can be referred to; older ones are forgotten.
pub const LETTERS_MAX: usize = 4096;
/// What names the newest message of the agent that is written to. Ids of received mail are shown nowhere: that would cost tokens
/// with every message, for the few that are answered by name.
pub const LAST: &str = "last";
/// Fewest characters of an id that name a message.
const ID_CHARS_MIN: usize = 4;

/// A message without its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Letter {
    /// Its id.
    pub id: Uuid,
    /// Who sent it.
    pub from: AgentName,
    /// To whom.
    pub to: AgentName,
    /// What it is about.
    pub kind: MessageType,
    /// Was it put before its reader?
    pub given: bool,
}

impl Letter {
    /// Can its sender take it back while it is on its way? What began or ended something besides can't be unsaid.
    #[must_use]
    pub fn is_mere_talk(&self) -> bool {
        match self.kind {
            MessageType::Message | MessageType::Broadcast | MessageType::StatusUpdate => true,
            MessageType::TaskAssignment
            | MessageType::Result
            | MessageType::IdleNotification
            | MessageType::Error
            | MessageType::PlanRequest
            | MessageType::PlanApprovalRequest
            | MessageType::PlanApprovalResponse
            | MessageType::ShutdownRequest
            | MessageType::ShutdownResponse
            | MessageType::Undelivered
            | MessageType::RequestExpired
            | MessageType::JobFinished
            | MessageType::TeamQuiet => false,
        }
    }
}

/// The messages of a session, oldest first, at most [`LETTERS_MAX`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Letters {
    letters: VecDeque<Letter>,
}

impl Letters {
    /// A message was sent.
    pub fn sent(&mut self, message: &Message) {
        if self.letters.len() >= LETTERS_MAX {
            self.letters.pop_front();
        }
        let (id, kind) = (message.id, message.kind);
        self.letters.push_back(Letter { id, from: message.from.clone(), to: message.to.clone(), kind, given: false });
    }

    /// These were put before their reader.
    pub fn given(&mut self, ids: &HashSet<Uuid>) {
        if !ids.is_empty() {
            self.letters.iter_mut().filter(|letter| ids.contains(&letter.id)).for_each(|letter| letter.given = true);
        }
    }

    /// The message that `by` answers with one to `to`: an id, a part of one, or [`LAST`].
    ///
    /// # Errors
    /// `by` knows no such message, or several; the text says what to write instead.
    pub fn answered(&self, by: &AgentName, to: &AgentName, text: &str) -> Result<Uuid, String> {
        let text = text.trim();
        let got = |letter: &&Letter| letter.given && letter.to == *by;
        if text.eq_ignore_ascii_case(LAST) {
            let newest = self.letters.iter().rev().filter(got).find(|letter| letter.from == *to);
            let none = || format!("you have got no message from {to} yet; leave reply_to out");
            return newest.map(|letter| letter.id).ok_or_else(none);
        }
        let found = self.find(text, |letter| letter.from == *by || got(&letter))?;
        let none = || {
            format!(
                "no message that you sent or got has the id {:?}; write \"{LAST}\" for the newest from {to}, take an id from \
                 the result of an earlier send_message, or leave reply_to out",
                cut(text)
            )
        };
        found.map(|letter| letter.id).ok_or_else(none)
    }

    /// A message that `by` sent.
    ///
    /// # Errors
    /// There is no such message, or there are several; the text says what to write instead.
    pub fn own(&self, by: &AgentName, text: &str) -> Result<&Letter, String> {
        let found = self.find(text.trim(), |letter| letter.from == *by)?;
        let none = || {
            format!("you sent no message with the id {:?}; take it from the result of the call that sent it", cut(text))
        };
        found.ok_or_else(none)
    }

    /// The one message among those that `may` allows whose id is `text` or has it as a part.
    fn find(&self, text: &str, may: impl Fn(&Letter) -> bool) -> Result<Option<&Letter>, String> {
        let part = text.trim_matches(['…', '.']).to_ascii_lowercase();
        if part.len() < ID_CHARS_MIN {
            return Ok(None);
        }
        let has = |id: Uuid| id.hyphenated().to_string().contains(&part) || id.simple().to_string().contains(&part);
        let mut hits = self.letters.iter().rev().filter(|letter| may(letter) && has(letter.id));
        let hit = hits.next();
        match hits.count() {
            0 => Ok(hit),
            more => Err(format!("{} messages have {:?} in their id; give more of it", more + 1, cut(text))),
        }
    }
}

fn cut(text: &str) -> String {
    text.chars().take(80).collect()
}
