//! Mail on its way: sent, drained, put before its reader, acknowledged. A reader that is idle is woken by what deserves it.

use std::path::Path;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::agent::Intake;
use crate::event::{Event, Level, Record, Status};
use crate::killpoint;
use crate::mail::{Drain, Watch};
use crate::protocol::shown::{self, Showing};
use crate::protocol::{AgentName, Mail, MailKey, Message, MessageType, Metadata};
use crate::seam::{self, Defect};

use super::Session;
use super::chatting::talker;
use super::letters::inside;

/// The safety look while there is nothing to watch yet.
pub(super) const LOOK_EVERY_UNWATCHED: Duration = Duration::from_secs(8);

impl Session {
    /// Makes the mail folders and the watch over them, once; says what goes wrong.
    pub(super) fn open_mail(&mut self) -> Result<(), String> {
        self.post.prepare().map_err(|error| error.to_string())?;
        self.watch_mail();
        Ok(())
    }

    fn watch_mail(&mut self) {
        if self.watch.is_some() {
            return;
        }
        let (watch, warning) = Watch::start(self.post.folder(), self.hint.clone());
        self.watch = Some(watch);
        if let Some(warning) = warning {
            self.notice(Level::Warning, warning);
        }
    }

    /// A message of the runtime's own making.
    pub(super) fn compose(
        &mut self,
        from: &AgentName,
        to: &AgentName,
        kind: MessageType,
        content: impl Into<String>,
        metadata: Metadata,
    ) -> Message {
        self.post.compose(from, to, kind, content.into(), metadata)
    }

    /// Sends messages to one reader in one write, and lets the reader look.
    ///
    /// Their lines are written once it is recorded that they were sent; a mailbox that can't be written loses nothing, since the
    /// runtime's own copy is what the reader gets.
    pub(super) fn send(&mut self, to: &AgentName, batch: Vec<Message>) {
        for message in &batch {
            self.letters.sent(message);
            self.emit(Event::MailSent { message: message.clone() });
        }
        let talkers: Vec<AgentName> = batch.iter().filter_map(talker).cloned().collect();
        self.post.issue(batch);
        self.unit.letter_to(to);
        self.unit.look_at(to);
        talkers.iter().for_each(|from| self.count_talk(from, to));
    }

    /// Looks into every mailbox of a living agent, and renews the watch if its folder went.
    pub(super) fn look_everywhere(&mut self) {
        if self.watch.is_none() && self.post.folder().is_dir() {
            self.watch_mail();
        }
        if let Some(watch) = &mut self.watch {
            watch.renew();
        }
        let living: Vec<AgentName> = std::iter::once(self.lead.name.clone())
            .chain(self.living().map(|teammate| teammate.name().clone()))
            .collect();
        for name in self.post.with_mail(living.iter()) {
            self.look(&name);
        }
    }

    /// Lets an idle reader take in its mail; a busy one does so before its next model call.
    pub(super) fn look(&mut self, name: &AgentName) {
        if self.leaving.is_some()
            || self.asleep
            || self.desk(name).is_none_or(|desk| desk.busy || !desk.is_alive())
            || self.is_held(name)
        {
            return;
        }
        self.drain(name);
        let wakes =
            |desk: &super::Desk| desk.deserves_turn() || !desk.inbox.is_empty() && seam::broken(Defect::TurnForNothing);
        if self.desk(name).is_some_and(wakes) {
            self.begin_turn(name);
        } else if self.desk(name).is_some_and(|desk| desk.more_in_files) {
            self.hint.notify_one();
        }
    }

    /// Moves what lies in a mailbox to its reader's desk, and says what is wrong with the rest.
    fn drain(&mut self, name: &AgentName) {
        if self.desk(name).is_some_and(super::Desk::has_backlog) {
            return;
        }
        let Drain { mail, set_aside, trouble, more } = self.post.drain(name);
        for mail in &mail {
            if let Mail::Outside(outside) = mail {
                self.emit(Event::MailFromOutside {
                    to: name.clone(),
                    from: outside.from.clone().unwrap_or_else(|| "somebody".to_owned()),
                    kind: outside.kind.word().to_owned(),
                    content: outside.content.clone(),
                });
            }
        }
        if let Some(first) = set_aside.first() {
            self.emit(Event::MailSetAside {
                mailbox: first.mailbox.clone(),
                lines: set_aside.len(),
                reason: first.reason.clone(),
            });
        }
        if let Some(trouble) = trouble {
            self.notice(Level::Warning, trouble);
        }
        if let Some(desk) = self.desk_mut(name) {
            desk.inbox.extend(mail);
            desk.more_in_files = more;
        }
    }

    /// Gives an idle agent a turn.
    pub(super) fn begin_turn(&mut self, name: &AgentName) {
        if let Some(desk) = self.desk_mut(name) {
            desk.begin_turn();
        }
        if name.is_lead() {
            self.lead_turn_has_line = false;
        } else {
            self.set_status(name, Status::Working, "");
        }
        self.emit(Event::TurnStarted { agent: name.clone() });
    }

    pub(super) fn answer_intake(&mut self, name: &AgentName, answer: oneshot::Sender<Intake>) {
        let intake = self.intake(name);
        self.unit.answer(move || drop(answer.send(intake)));
    }

    /// What an agent puts in before a model call: events first, the user's lines last.
    pub(super) fn intake(&mut self, name: &AgentName) -> Intake {
        if self.leaving.is_some() {
            return Intake::Suspend;
        }
        if self.ends_at_intake(name) {
            return Intake::End;
        }
        if !seam::broken(Defect::DeliverLate) || self.desk(name).is_some_and(|desk| desk.turn_intakes == 0) {
            self.drain(name);
        }
        let (mail, rest) = self.take_portion(name);
        let Some(desk) = self.desk_mut(name) else { return Intake::End };
        let keys: Vec<MailKey> = mail.iter().map(Mail::key).collect();
        desk.shown.extend(keys.iter().cloned());
        desk.turn_intakes += 1;
        let first = desk.turn_intakes == 1;
        let mut entries = Vec::new();
        if !mail.is_empty() {
            let out_dir = self.settings.out_dir.clone();
            let showing = Showing { mail: &mail, whole_at: &|mail| keep_whole(&out_dir, mail), rest };
            if name.is_lead() {
                if first && self.lines.is_empty() {
                    self.emit(Event::Wake { events: mail.len() });
                }
                entries.push(shown::for_lead(&showing, &self.state_text()));
            } else {
                self.request_put_in(name, &mail);
                entries.push(shown::for_teammate(&showing));
            }
        }
        self.letters.given(&inside(&keys));
        let lines = if name.is_lead() { self.lines.len() } else { 0 };
        if lines > 0 {
            self.lead_turn_has_line = true;
            self.chatter.acted(name);
            entries.extend(self.lines.drain(..));
        }
        if !entries.is_empty() {
            self.record(Record::TookIn { agent: name.clone(), entries: entries.clone(), mail: keys, lines });
            self.unit.answer(|| killpoint::pass("took_in"));
        }
        Intake::GoOn(entries)
    }

    /// The call that carries the last intake was accepted: its mail has arrived.
    pub(super) fn accepted(&mut self, name: &AgentName) {
        let Some(desk) = self.desk_mut(name) else { return };
        let keys = std::mem::take(&mut desk.shown);
        if keys.is_empty() {
            return;
        }
        self.emit(Event::Delivered { agent: name.clone(), count: keys.len() });
        self.unit.arrived(name, keys);
    }
}

/// Puts a text that is too long to be shown whole where its reader can read it; gives the path.
fn keep_whole(out_dir: &Path, mail: &Mail) -> Option<String> {
    let name = match mail {
        Mail::Inside(message) => format!("mail-{}.txt", message.id),
        Mail::Outside(_) => format!("mail-{}.txt", seam::new_id()),
    };
    let path = out_dir.join(name);
    let written = std::fs::create_dir_all(out_dir).and_then(|()| std::fs::write(&path, mail.content()));
    written.ok().map(|()| path.display().to_string())
}
