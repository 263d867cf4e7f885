//! I6: every work ends with exactly one result or error, then an idle notification or the teammate's end. A task that replaces one
//! whose plan waits ends that one without a word, and a turn outside any work that fails says so as an error.

use std::collections::BTreeMap;

use crate::event::{Event, Status};
use crate::protocol::{Message, MessageType, RequestStatus, RequestType};

use super::super::log::{Entry, Seen};

pub(super) fn every_work_has_one_last_word(log: &[Entry]) -> Vec<String> {
    let mut works = Works::default();
    for entry in log {
        match &entry.what {
            Seen::Item(item) => works.see(&item.event),
            Seen::Quiet => works.quiet(),
            _ => {}
        }
    }
    works.faults
}

/// One teammate's work.
#[derive(Default)]
struct Work {
    open: bool,
    plan_waits: bool,
    failed: bool,
    /// A last word was said, and the idle notification must be next.
    owes_notice: bool,
}

#[derive(Default)]
struct Works {
    of: BTreeMap<String, Work>,
    faults: Vec<String>,
}

impl Works {
    fn see(&mut self, event: &Event) {
        match event {
            Event::MailSent { message } => self.mailed(message),
            Event::RequestOpened { request } if request.kind == RequestType::Plan => {
                let work = self.of.entry(request.from.to_string()).or_default();
                (work.open, work.plan_waits) = (true, true);
            }
            Event::RequestEnded { request, .. } if request.kind == RequestType::Plan => {
                self.of.entry(request.from.to_string()).or_default().plan_waits =
                    request.status == RequestStatus::Pending;
            }
            Event::Teammate { name, status, .. } => {
                let work = self.of.entry(name.to_string()).or_default();
                work.failed = *status == Status::Failed;
                if status.has_ended() {
                    (work.open, work.owes_notice) = (false, false);
                }
            }
            _ => {}
        }
    }

    fn mailed(&mut self, message: &Message) {
        let (from, to) = (message.from.to_string(), message.to.to_string());
        match message.kind {
            MessageType::TaskAssignment => {
                let work = self.of.entry(to.clone()).or_default();
                // Expired right before, if it waited.
                if work.open && work.owes_notice {
                    self.faults.push(format!("{to} has a new task before it has said that it is idle"));
                }
                work.open = true;
            }
            MessageType::PlanRequest => self.of.entry(to).or_default().open = true,
            MessageType::Result | MessageType::Error => {
                let work = self.of.entry(from.clone()).or_default();
                if !work.open && message.kind == MessageType::Result {
                    self.faults.push(format!("{from} has said its last word twice"));
                }
                work.open = false;
                work.owes_notice = !work.failed;
            }
            MessageType::IdleNotification => self.of.entry(from).or_default().owes_notice = false,
            _ => {
                let owes = self.of.get_mut(&from).map(|work| std::mem::take(&mut work.owes_notice));
                if owes == Some(true) {
                    self.faults.push(format!("{from} has said its last word and not that it is idle"));
                }
            }
        }
    }

    fn quiet(&mut self) {
        for (name, work) in &self.of {
            if work.open && !work.plan_waits {
                self.faults.push(format!("{name}'s work has no end"));
            }
            if work.owes_notice {
                self.faults.push(format!("{name} has never said that it is idle"));
            }
        }
    }
}
