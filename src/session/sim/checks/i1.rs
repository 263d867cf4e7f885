//! I1: a message that was accepted enters its reader's history exactly once, in order for its sender, at the latest before the
//! reader's next model call. So does every line of the user's, and every line that others put into a mailbox.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;

use crate::event::Event;
use crate::protocol::{Message, MessageType};

use super::super::log::{Ask, Entry, Seen};
use super::super::words::{sender, words};

pub(super) fn mail_arrives_once_in_order_and_in_time(log: &[Entry]) -> Vec<String> {
    let mut mail = Mail::default();
    for entry in log {
        mail.see(entry);
    }
    mail.faults
}

/// A word on its way.
#[derive(Clone, Debug)]
struct Sent {
    word: String,
    at: Duration,
    /// Does it wake an idle reader?
    wakes: bool,
}

/// One reader.
#[derive(Debug, Default)]
struct Reader {
    ended: bool,
    /// All that was ever sent to it, oldest first.
    sent: Vec<String>,
    waiting: Vec<Sent>,
    /// What stands in its history: the word and the message's place.
    shown: Vec<(String, usize)>,
    /// Of that, what a model has accepted.
    accepted: usize,
    length: usize,
}

#[derive(Debug, Default)]
struct Mail {
    readers: BTreeMap<String, Reader>,
    /// Words that the session took in, whether or not a request carried them.
    taken: BTreeSet<(String, String)>,
    faults: Vec<String>,
}

impl Mail {
    fn reader(&mut self, name: &str) -> &mut Reader {
        self.readers.entry(name.to_owned()).or_default()
    }

    fn see(&mut self, entry: &Entry) {
        match &entry.what {
            Seen::Ask(ask) => self.asked(ask, entry.at),
            Seen::Outside { to, text: Some(text) } => self.sent(to, text, entry.at, true),
            Seen::Item(item) => match &item.event {
                Event::MailSent { message } => self.mail_sent(message, entry.at),
                Event::UserLine { text, .. } => self.sent("lead", text, entry.at, true),
                Event::Record(crate::event::Record::TookIn { agent, entries, .. }) => {
                    let new = entries.iter().flat_map(|entry| words(entry));
                    self.taken.extend(new.map(|word| (agent.to_string(), word.to_owned())));
                }
                Event::Delivered { agent, .. } => {
                    let reader = self.reader(agent.as_str());
                    reader.accepted = reader.shown.len();
                }
                Event::Teammate { name, status, .. } => {
                    let ended = status.has_ended();
                    let reader = self.reader(name.as_str());
                    reader.ended = ended;
                    if ended {
                        // It goes back to its senders, or waits outside for a later life.
                        reader.waiting.clear();
                    }
                }
                _ => {}
            },
            Seen::Quiet => self.quiet(),
            _ => {}
        }
    }

    fn mail_sent(&mut self, message: &Message, at: Duration) {
        if message.kind == MessageType::Undelivered {
            return self.returned(message);
        }
        self.sent(message.to.as_str(), &message.content, at, message.wakes());
    }

    fn sent(&mut self, to: &str, text: &str, at: Duration, wakes: bool) {
        let mut faults = Vec::new();
        let reader = self.reader(to);
        for word in words(text) {
            if reader.sent.iter().any(|sent| sent == word) {
                faults.push(format!("{word} was sent to {to} twice"));
            }
            reader.sent.push(word.to_owned());
            reader.waiting.push(Sent { word: word.to_owned(), at, wakes });
        }
        self.faults.extend(faults);
    }

    /// `to auth (message), who has ended: …`
    fn returned(&mut self, message: &Message) {
        let to = message.content.strip_prefix("to ").and_then(|rest| rest.split(' ').next()).unwrap_or_default();
        let reader = self.reader(to);
        reader.waiting.retain(|sent| !words(&message.content).contains(&sent.word.as_str()));
        let had = |word: &&str| reader.shown[..reader.accepted].iter().any(|(shown, _)| shown == word);
        let read: Vec<String> = words(&message.content).into_iter().filter(had).map(str::to_owned).collect();
        self.faults.extend(read.into_iter().map(|word| format!("{word} was returned, and {to} has read it")));
    }

    fn asked(&mut self, ask: &Ask, at: Duration) {
        let mut faults = Vec::new();
        let name = &ask.agent;
        let reader = self.reader(name);
        let stays = reader.shown.iter().take_while(|(_, place)| *place < ask.kept).count();
        for (word, _) in reader.shown.split_off(stays) {
            faults.push(format!("{word} is gone from {name}'s history"));
        }
        reader.accepted = reader.accepted.min(stays);
        for (place, message) in (ask.kept..).zip(&ask.new) {
            for word in said_to(message, name) {
                if reader.shown.iter().any(|(shown, _)| *shown == word) {
                    faults.push(format!("{word} stands in {name}'s history twice"));
                }
                reader.shown.push((word, place));
            }
        }
        reader.length = ask.kept + ask.new.len();
        faults.extend(reader.out_of_order(stays).map(|word| format!("{word} came out of order to {name}")));
        let shown: BTreeSet<&String> = reader.shown[stays..].iter().map(|(word, _)| word).collect();
        reader.waiting.retain(|sent| !shown.contains(&sent.word));
        if ask.resend == 0 {
            let late = reader.waiting.iter().filter(|sent| sent.at < at);
            faults.extend(late.map(|sent| format!("{} is not there at {name}'s call {}", sent.word, ask.call)));
            reader.waiting.retain(|sent| sent.at >= at);
        }
        self.faults.extend(faults);
    }

    /// Nothing has happened for long: all that wakes somebody has arrived.
    fn quiet(&mut self) {
        for (name, reader) in &self.readers {
            let lives = name == "lead" || (reader.length > 0 && !reader.ended);
            let forgotten = reader.waiting.iter().filter(|sent| lives && sent.wakes);
            let forgotten = forgotten.filter(|sent| !self.taken.contains(&(name.clone(), sent.word.clone())));
            self.faults.extend(forgotten.map(|sent| format!("{} never came to {name}", sent.word)));
        }
    }
}

impl Reader {
    /// Those of the words shown last that were sent before something of the same sender that was shown earlier.
    fn out_of_order(&self, from: usize) -> impl Iterator<Item = String> {
        let place = |word: &str| self.sent.iter().position(|sent| sent == word);
        let late = move |at: &usize| {
            let (word, _) = &self.shown[*at];
            let earlier = self.shown[..*at].iter().filter(|(other, _)| sender(other) == sender(word));
            // What comes back undelivered was never sent to this reader: it has no place among what was.
            place(word).is_some() && earlier.into_iter().any(|(other, _)| place(other) > place(word))
        };
        (from..self.shown.len()).filter(late).map(|at| self.shown[at].0.clone())
    }
}

/// The words in what an agent was told. Its own come back to it only as what could not be delivered.
fn said_to(message: &Value, name: &str) -> Vec<String> {
    if message["role"] != "user" {
        return Vec::new();
    }
    let text = message["content"].as_str().unwrap_or_default();
    words(text).into_iter().filter(|word| sender(word) != name).map(str::to_owned).collect()
}
