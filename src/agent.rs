//! The one loop that lead and teammates share: put in what arrived, ask the model, run its calls, go on or stop.
//!
//! Roles differ by data (prompt, tools, gate) and by what the session puts in. The loop knows nothing of mailboxes,
//! proposals, requests or terminals: it asks through its [`Port`] and obeys its [`Reins`].

mod hands;
mod lines;
mod open;
mod port;
mod reins;

use std::panic::AssertUnwindSafe;
#[cfg(debug_assertions)]
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::event::{Event, Record, TurnEnd};
use crate::journal::Events;
use crate::killpoint;
use crate::model::{Ask, AskError, Client, History, Progress, Purpose, Reply};
use crate::protocol::AgentName;
use crate::seam::{self, Defect};
use crate::tools::{self, Role};

use hands::Flow;
pub(crate) use hands::{Hands, TURN_ENDED, not_run};
use lines::Lines;
use open::OpenCall;
pub(crate) use open::{Before, GoingOn};
pub(crate) use port::{CallEnd, Caller, Intake, Port, Report, ToSession};
pub(crate) use reins::{Halt, Reins};

/// How long an unfinished line of a streaming reply waits before it is shown as it is.
const UNFINISHED_LINE_AFTER: Duration = Duration::from_secs(1);

/// What the session tells an agent to do; dropping the sender ends the agent.
#[derive(Debug)]
pub(crate) struct TakeTurn;

/// One agent: its conversation with a model, and the means to act on what the model says.
pub(crate) struct Agent {
    pub(crate) name: AgentName,
    pub(crate) role: Role,
    /// The model's name at the server.
    pub(crate) model: String,
    pub(crate) client: Client,
    pub(crate) hands: Hands,
    pub(crate) events: Events,
    pub(crate) port: Port,
    pub(crate) reins: Reins,
    pub(crate) history: History,
    /// Logical calls made so far; the number of the last one.
    pub(crate) calls: u64,
    /// Where the first turn goes on, if an earlier run began it.
    pub(crate) going_on: GoingOn,
    /// Has it run a tool that is no team tool, and not said so yet?
    pub(crate) acted: bool,
    /// Model calls that one turn may take.
    pub(crate) turn_calls_max: u32,
}

/// What is left of an agent that ended: it can return with it.
pub(crate) struct Remains {
    pub(crate) history: History,
    pub(crate) calls: u64,
    pub(crate) going_on: GoingOn,
}

impl Agent {
    /// Takes turns until the session drops the other end. A panic ends the agent, with its history whole.
    pub(crate) async fn live(mut self, mut turns: mpsc::UnboundedReceiver<TakeTurn>) {
        let mut panicked = None;
        while turns.recv().await.is_some() {
            match AssertUnwindSafe(self.turn()).catch_unwind().await {
                Ok(end) => self.port.send(ToSession::TurnEnded { end }),
                Err(panic) => {
                    panicked = Some(panic_text(panic.as_ref()));
                    break;
                }
            }
        }
        let remains = Remains { history: self.history, calls: self.calls, going_on: GoingOn::Afresh };
        if panicked.is_none() || !seam::broken(Defect::PanicUnheard) {
            self.port.send(ToSession::Exited { remains: Box::new(remains), panicked });
        }
    }

    /// The loop.
    async fn turn(&mut self) -> TurnEnd {
        #[cfg(debug_assertions)]
        fail_on_purpose(&self.name, self.calls).await;
        for _ in 0..self.turn_calls_max {
            let calls = match std::mem::take(&mut self.going_on) {
                GoingOn::Said(text) => return TurnEnd::Done { text },
                GoingOn::Yielded => return TurnEnd::Yielded,
                GoingOn::Calls(known) => OpenCall::left_in(&self.history, known),
                GoingOn::Afresh => match self.next_reply().await {
                    Ok(reply) if reply.calls.is_empty() => return TurnEnd::Done { text: reply.text },
                    Ok(reply) => OpenCall::fresh(reply.calls),
                    Err(end) => return end,
                },
            };
            self.acted |= calls.iter().any(|call| tools::is_work(&call.slot.name));
            match self.hands.run(calls, &mut self.history, &self.port, &self.reins).await {
                Flow::GoOn => {}
                Flow::Yield => return TurnEnd::Yielded,
                Flow::Cancelled => return TurnEnd::Cancelled,
                Flow::Suspended => return TurnEnd::Suspended,
            }
        }
        TurnEnd::Failed {
            cause: format!(
                "the turn reached its limit of {} model calls; give a narrower task, or raise it with S15_TURN_CALLS_MAX",
                self.turn_calls_max
            ),
        }
    }

    /// Puts what has arrived into the history and asks the model.
    async fn next_reply(&mut self) -> Result<Reply, TurnEnd> {
        match self.port.intake(std::mem::take(&mut self.acted)).await {
            Some(Intake::GoOn(entries)) => entries.iter().for_each(|entry| self.history.push_user(entry)),
            Some(Intake::Suspend) => return Err(TurnEnd::Suspended),
            Some(Intake::Cancel) => return Err(TurnEnd::Cancelled),
            Some(Intake::End) | None => return Err(TurnEnd::Ended),
        }
        self.ask().await
    }

    /// One logical model call. Its text streams by whole lines, its reply goes into the history.
    async fn ask(&mut self) -> Result<Reply, TurnEnd> {
        self.calls += 1;
        let cancel = self.reins.turn_token();
        let ask = Ask {
            agent: &self.name,
            call: self.calls,
            purpose: Purpose::Turn,
            model: &self.model,
            history: &self.history,
            tools: self.tools(),
        };
        let lines = Mutex::new(Lines::new(self.name.clone(), self.events.clone()));
        let with_lines = |f: &mut dyn FnMut(&mut Lines)| f(&mut lines.lock().unwrap_or_else(PoisonError::into_inner));
        let mut progress = |progress: Progress<'_>| match progress {
            Progress::Accepted => self.port.send(ToSession::Accepted),
            Progress::Text(text) => with_lines(&mut |lines| lines.push(text)),
            Progress::Reasoning(_) => {}
            Progress::Void => with_lines(&mut Lines::void),
            Progress::Retry { .. } if seam::broken(Defect::RetryUntold) => {}
            Progress::Retry { cause, wait, attempt, attempts_max } => {
                self.events.emit(Event::Retry {
                    agent: self.name.clone(),
                    cause: cause.to_owned(),
                    wait_millis: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
                    attempt,
                    attempts_max,
                });
            }
        };
        let answer = {
            let asking = self.client.ask(&ask, &mut progress, &cancel);
            tokio::pin!(asking);
            loop {
                tokio::select! {
                    biased;
                    answer = &mut asking => break answer,
                    () = tokio::time::sleep(UNFINISHED_LINE_AFTER) => with_lines(&mut Lines::flush_waiting),
                }
            }
        };
        with_lines(&mut Lines::finish);
        self.keep(answer)
    }

    /// Puts a reply, or what came of one, into the history.
    fn keep(&mut self, answer: Result<Reply, AskError>) -> Result<Reply, TurnEnd> {
        match answer {
            Ok(reply) => {
                self.history.push_reply(&reply);
                self.events.emit(Event::Replied {
                    agent: self.name.clone(),
                    call: self.calls,
                    message: reply.message.clone(),
                    usage: reply.usage,
                });
                killpoint::pass("replied");
                Ok(reply)
            }
            // The call is made again when the session goes on, under the same number.
            Err(AskError::Cancelled { .. }) if self.reins.halted() == Halt::Suspend => {
                self.calls -= 1;
                Err(TurnEnd::Suspended)
            }
            Err(AskError::Cancelled { partial }) => {
                self.history.push_cut_reply(&partial);
                self.record_cut(partial);
                Err(TurnEnd::Cancelled)
            }
            Err(AskError::Failed { text, .. }) => {
                self.record_cut(String::new());
                Err(TurnEnd::Failed { cause: text })
            }
        }
    }

    fn record_cut(&self, partial: String) {
        let cut = Record::ReplyCut { agent: self.name.clone(), call: self.calls, partial };
        self.events.emit(Event::Record(cut));
    }

    fn tools(&self) -> &'static Value {
        tools::definitions(self.role)
    }
}

/// For tests of what follows: development builds have a panic where this variable names the agent, and one turn that never ends
/// where that one does and the agent has made a call before.
#[cfg(debug_assertions)]
async fn fail_on_purpose(name: &AgentName, calls: u64) {
    let is_named = |variable| std::env::var(variable).is_ok_and(|named| named == name.as_str());
    if is_named("S15_TEST_PANIC") {
        panic!("a fault on purpose");
    }
    static HUNG: AtomicBool = AtomicBool::new(false);
    if calls > 0 && is_named("S15_TEST_HANG") && !HUNG.swap(true, Ordering::SeqCst) {
        std::future::pending::<()>().await;
    }
}

/// The words of a panic.
fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let words = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("internal fault: {}", words.unwrap_or("no message"))
}
