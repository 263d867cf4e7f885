//! From a session's journal to the session as it stood: every conversation, every request, every member, every message.
//!
//! Pure: items in, state out. What the live session does with an event and what is done with it here must come to the same.

use std::collections::{HashMap, HashSet, VecDeque};

use uuid::Uuid;

use crate::agent::{Before, CallEnd, GoingOn, Remains, TURN_ENDED, not_run};
use crate::event::{Event, Item, MemberState, Record, TurnEnd};
use crate::journal::Past;
use crate::mail::Issued;
use crate::model::History;
use crate::protocol::{AgentName, Confirmation, Letters, MailKey, Member, Message, Request};
use crate::seam::{self, Defect};

use super::jobs::LostJobs;
use super::letters::inside;

/// A session as its journal has it.
#[derive(Default)]
pub struct Recalled {
    pub(super) lead: RecalledAgent,
    /// In the order in which they were first spawned.
    pub(super) members: Vec<RecalledMember>,
    pub(super) requests: Vec<Request>,
    pub(super) confirmation: Confirmation,
    pub(super) letters: Letters,
    /// Commands in the background that have not ended.
    pub(super) jobs: LostJobs,
    /// The user's lines that no model call has carried.
    pub(super) lines: VecDeque<String>,
    /// Did a line of the user's start the lead's open turn, or join it?
    pub(super) lead_turn_has_line: bool,
    /// RFC 3339: when the session began; empty if its first item is lost.
    pub(super) begun: String,
    /// What could not be read, a sentence each.
    pub(super) damage: Vec<String>,
    ids: Vec<(AgentName, Uuid)>,
    outstanding: Vec<(Message, bool)>,
    taken: HashSet<(AgentName, MailKey)>,
    last_seq: u64,
}

/// A teammate, living or ended.
pub(super) struct RecalledMember {
    pub(super) member: Member,
    /// `None` only where the journal is damaged.
    pub(super) state: Option<MemberState>,
    pub(super) agent: RecalledAgent,
}

/// An agent's conversation, and how far it had come.
#[derive(Default)]
pub(super) struct RecalledAgent {
    /// The lives it has had.
    pub(super) lives: u32,
    /// Was a turn under way?
    pub(super) in_turn: bool,
    /// Put into the history by a call that was not accepted.
    pub(super) shown: Vec<MailKey>,
    history: Option<History>,
    calls: u64,
    known: HashMap<String, Before>,
    said: Option<String>,
    yielded: bool,
}

impl Recalled {
    /// Builds the session from what its journal says.
    #[must_use]
    pub fn of(past: Past) -> Self {
        let mut recalled = Self { damage: past.damage, ..Self::default() };
        for item in past.items {
            recalled.apply(item);
        }
        recalled
    }

    /// The number of the last item.
    #[must_use]
    pub fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// What a teammate's next life begins with; what was open in its last one is over.
    pub(super) fn remains_of(mut self, name: &AgentName) -> Option<Remains> {
        self.with(name, RecalledAgent::turn_ended);
        self.members.iter_mut().find(|member| member.member.name == *name)?.agent.remains()
    }

    pub(super) fn issued(&mut self) -> Issued {
        Issued {
            ids: std::mem::take(&mut self.ids),
            outstanding: std::mem::take(&mut self.outstanding),
            taken: self.taken.drain().collect(),
        }
    }

    fn apply(&mut self, Item { seq, time, event }: Item) {
        self.last_seq = seq;
        match event {
            Event::SessionStarted { .. } if self.begun.is_empty() => self.begun = time,
            Event::UserLine { .. } if seam::broken(Defect::ForgetLines) => {}
            Event::UserLine { text, .. } => self.lines.push_back(text),
            Event::Replied { agent, call, message, .. } => self.with(&agent, |agent| agent.replied(call, &message)),
            Event::ToolStarted { agent, call_id, .. } => self.with(&agent, |agent| agent.started(call_id, None)),
            Event::ToolEnded { agent, call_id, result, .. } => {
                self.with(&agent, |agent| agent.result(&call_id, &result));
            }
            Event::MailSent { message } => {
                self.ids.push((message.to.clone(), message.id));
                self.letters.sent(&message);
                self.outstanding.push((message, false));
            }
            Event::Delivered { agent, .. } => self.delivered(&agent),
            Event::RequestOpened { request } => self.requests.push(request),
            Event::RequestEnded { request, .. } => {
                self.requests
                    .iter_mut()
                    .filter(|known| known.id == request.id)
                    .for_each(|known| *known = request.clone());
            }
            Event::TurnStarted { agent } => {
                self.lead_turn_has_line &= !agent.is_lead();
                self.with(&agent, RecalledAgent::turn_started);
            }
            Event::TurnEnded { end: TurnEnd::Suspended, .. } => {}
            Event::TurnEnded { agent, .. } => self.with(&agent, RecalledAgent::turn_ended),
            Event::Record(record) => self.apply_record(record),
            // Shown to people; whatever of it counts is recorded besides.
            Event::SessionStarted { .. }
            | Event::SessionResumed { .. }
            | Event::Text { .. }
            | Event::TextVoid { .. }
            | Event::Proposed { .. }
            | Event::ProposalChanged { .. }
            | Event::Confirmed { .. }
            | Event::ProposalVoided { .. }
            | Event::Teammate { .. }
            | Event::MailFromOutside { .. }
            | Event::MailSetAside { .. }
            | Event::GateChanged { .. }
            | Event::Wake { .. }
            | Event::Question { .. }
            | Event::Answered { .. }
            | Event::Retry { .. }
            | Event::AllShutDown
            | Event::Notice { .. }
            | Event::SessionEnded { .. } => {}
        }
    }

    fn apply_record(&mut self, record: Record) {
        match record {
            Record::AgentStarted { agent, system, member, model: _ } => self.agent_started(&agent, &system, member),
            Record::TookIn { agent, entries, mail, lines } => self.took_in(&agent, &entries, mail, lines),
            Record::ReplyCut { agent, call, partial } => {
                let is_lead = agent.is_lead();
                self.with(&agent, |agent| agent.cut(call, &partial, is_lead));
            }
            Record::CallSkipped { agent, call_id, result } => {
                self.with(&agent, |agent| agent.result(&call_id, &result));
            }
            Record::CallSettled { agent, call_id, ok, result, ends_turn } => {
                let end = CallEnd { ok, text: result, ends_turn };
                self.with(&agent, |agent| agent.settled(call_id, end));
            }
            Record::WriteIntended { agent, call_id, after } => {
                self.with(&agent, |agent| agent.started(call_id, Some(after)));
            }
            Record::MailTakenBack { ids } => self.outstanding.retain(|(message, _)| !ids.contains(&message.id)),
            Record::JobStarted { job, agent, command } => self.jobs.started(job, agent, command),
            Record::JobEnded { job } => self.jobs.ended(&job),
            Record::Member { state } => {
                if let Some(member) = self.members.iter_mut().find(|member| member.member.name == state.name) {
                    member.state = Some(state);
                }
            }
            Record::Confirmation { state } => self.confirmation = state,
        }
    }

    fn agent_started(&mut self, name: &AgentName, system: &str, member: Option<Member>) {
        if let Some(member) = member {
            match self.members.iter_mut().find(|known| known.member.name == *name) {
                Some(known) => known.member = member,
                None => self.members.push(RecalledMember { member, state: None, agent: RecalledAgent::default() }),
            }
        }
        self.with(name, |agent| {
            agent.turn_ended();
            agent.lives += 1;
            agent.history.get_or_insert_with(|| History::new(system));
        });
    }

    fn took_in(&mut self, name: &AgentName, entries: &[String], mail: Vec<MailKey>, lines: usize) {
        self.lines.drain(..lines.min(self.lines.len()));
        self.lead_turn_has_line |= name.is_lead() && lines > 0;
        for (message, drained) in &mut self.outstanding {
            *drained |= message.to == *name && mail.contains(&MailKey::Inside(message.id));
        }
        self.letters.given(&inside(&mail));
        let outside = mail.iter().filter(|key| matches!(key, MailKey::Outside { .. }));
        self.taken.extend(outside.map(|key| (name.clone(), key.clone())));
        self.with(name, |agent| agent.took_in(entries, mail));
    }

    fn delivered(&mut self, name: &AgentName) {
        let mut arrived = Vec::new();
        self.with(name, |agent| arrived = std::mem::take(&mut agent.shown));
        let arrived: HashSet<MailKey> = arrived.into_iter().collect();
        let forgets = seam::broken(Defect::ForgetDelivered);
        self.outstanding.retain(|(message, _)| forgets || !arrived.contains(&MailKey::Inside(message.id)));
    }

    /// Changes an agent that was started; of one whose start is lost nothing is known.
    fn with(&mut self, name: &AgentName, change: impl FnOnce(&mut RecalledAgent)) {
        if name.is_lead() {
            change(&mut self.lead);
        } else if let Some(member) = self.members.iter_mut().find(|member| member.member.name == *name) {
            change(&mut member.agent);
        }
    }
}

impl RecalledAgent {
    /// What the agent's next life begins with; `None` if it never had one.
    pub(super) fn remains(&mut self) -> Option<Remains> {
        let going_on = self.going_on();
        let history = self.history.take()?;
        Some(Remains { history, calls: self.calls, going_on })
    }

    fn going_on(&mut self) -> GoingOn {
        self.answer_after_yield();
        let open = self.history.as_ref().is_some_and(|history| !history.open_calls().is_empty());
        match (self.in_turn, self.said.take()) {
            (false, _) => GoingOn::Afresh,
            (true, _) if self.yielded => GoingOn::Yielded,
            (true, _) if open => GoingOn::Calls(std::mem::take(&mut self.known)),
            (true, Some(text)) => GoingOn::Said(text),
            (true, None) => GoingOn::Afresh,
        }
    }

    fn history(&mut self) -> &mut History {
        // An agent whose start is lost has no system prompt either.
        self.history.get_or_insert_with(|| History::new(""))
    }

    fn turn_started(&mut self) {
        self.in_turn = true;
        self.said = None;
        self.yielded = false;
    }

    fn turn_ended(&mut self) {
        self.answer_after_yield();
        self.in_turn = false;
        self.said = None;
        self.yielded = false;
        self.known.clear();
    }

    fn took_in(&mut self, entries: &[String], mail: Vec<MailKey>) {
        self.said = None;
        entries.iter().for_each(|entry| self.history().push_user(entry));
        self.shown.extend(mail);
    }

    fn replied(&mut self, call: u64, message: &serde_json::Value) {
        self.calls = call;
        self.known.clear();
        self.history().push_assistant(message);
        let speaks_only = self.history().open_calls().is_empty();
        self.said = speaks_only.then(|| message["content"].as_str().unwrap_or_default().to_owned());
    }

    /// A lead's call is cut only by the user, who ends the turn with it, or by a failure that ends it.
    fn cut(&mut self, call: u64, partial: &str, ends_turn: bool) {
        self.calls = call;
        if !seam::broken(Defect::CutForgotten) {
            self.history().push_cut_reply(partial);
        }
        if ends_turn {
            self.turn_ended();
        }
    }

    /// A call that is begun again may have been done the first time: what its file was to hold stays known.
    fn started(&mut self, call_id: String, after: Option<String>) {
        match self.known.entry(call_id).or_default() {
            Before::Settled(_) => {}
            Before::Started { after: known } => *known = after.or(known.take()),
            before @ (Before::Fresh | Before::Unstarted) => *before = Before::Started { after },
        }
    }

    fn settled(&mut self, call_id: String, end: CallEnd) {
        if seam::broken(Defect::ForgetSettled) {
            return;
        }
        self.known.insert(call_id, Before::Settled(end));
    }

    fn result(&mut self, call_id: &str, text: &str) {
        let ends_turn = matches!(self.known.remove(call_id), Some(Before::Settled(end)) if end.ends_turn);
        self.history().push_result(call_id, text);
        self.yielded |= ends_turn;
    }

    /// Nothing after a call that ended the turn was run, whether or not that was still recorded.
    fn answer_after_yield(&mut self) {
        if self.yielded {
            for id in self.history().open_calls() {
                self.history().push_result(&id, &not_run(TURN_ENDED));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(events: Vec<Event>) -> Recalled {
        let items = (1..).zip(events).map(|(seq, event)| Item { seq, time: String::new(), event });
        Recalled::of(Past { items: items.collect(), damage: Vec::new() })
    }

    #[test]
    fn i5_a_call_that_was_skipped_keeps_its_own_words_after_one_that_ended_the_turn() {
        let agent = AgentName::lead();
        let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "x", "arguments": "{}"}});
        let (yes, beside) = ("shown".to_owned(), "not run: it stands alone".to_owned());
        let begun = |system: &str| Record::AgentStarted {
            agent: agent.clone(),
            model: String::new(),
            system: system.to_owned(),
            member: None,
        };
        let skipped =
            |id: &str| Record::CallSkipped { agent: agent.clone(), call_id: id.to_owned(), result: beside.clone() };
        let mut events = vec![
            Event::Record(begun("be good")),
            Event::TurnStarted { agent: agent.clone() },
            Event::Replied {
                agent: agent.clone(),
                call: 1,
                message: json!({"role": "assistant", "content": null, "tool_calls": [call("a"), call("b"), call("c")]}),
                usage: None,
            },
            Event::Record(Record::CallSettled {
                agent: agent.clone(),
                call_id: "a".to_owned(),
                ok: true,
                result: yes.clone(),
                ends_turn: true,
            }),
            Event::ToolEnded {
                agent: agent.clone(),
                call_id: "a".to_owned(),
                tool: "x".to_owned(),
                ok: true,
                millis: 0,
                result: yes.clone(),
            },
            Event::Record(skipped("b")),
        ];
        let results = |mut recalled: Recalled| {
            let remains = recalled.lead.remains().unwrap();
            let results = remains.history.messages()[2..].iter().map(|message| message["content"].clone());
            (results.collect::<Vec<_>>(), remains.going_on)
        };
        let never = not_run(TURN_ENDED);
        // The program ended before it could say that the third was skipped, too.
        assert_eq!(results(told(events.clone())), (vec![json!(yes), json!(beside), json!(never)], GoingOn::Yielded));
        events.push(Event::Record(skipped("c")));
        events.push(Event::TurnEnded { agent, end: TurnEnd::Yielded });
        assert_eq!(results(told(events)), (vec![json!(yes), json!(beside), json!(beside)], GoingOn::Afresh));
    }
}
