//! The one place that runs tool calls: after the gate, in order, exactly one result a call, whatever happens.

use std::sync::Arc;

use tokio::time::Instant;

use crate::event::{Event, Record};
use crate::journal::Events;
use crate::killpoint;
use crate::model::{CallSlot, History};
use crate::protocol::AgentName;
use crate::seam::{self, Defect};
use crate::tools::{self, Call, Intent, LocalCall, Role, Workshop};

use super::open::{Before, OpenCall};
use super::{CallEnd, Halt, Port, Reins};

/// The result of a command that an earlier run began.
const RAN_IN_PART: &str =
    "error: interrupted: the program ended while it ran. It may have run in part; check before you repeat it.";
/// The result of a command that an earlier run did not begin.
const NEVER_RAN: &str = "error: not run: the program ended before this command began. Run it if it is still needed.";
/// The result of a change of a file that an earlier run began, and that is there.
const IS_DONE: &str = "done; the program ended right then, and the file was checked afterwards: it holds the change";

/// Why calls after one that ended the turn are not run.
pub(crate) const TURN_ENDED: &str = "the turn ended with the call before it";

/// What follows a reply's calls.
pub(super) enum Flow {
    /// The next model call.
    GoOn,
    /// The turn ends, as the call wanted.
    Yield,
    /// The turn was broken off.
    Cancelled,
    /// The session is left; calls without a result get theirs when it is resumed.
    Suspended,
}

/// Runs calls for one agent.
pub(crate) struct Hands {
    pub(crate) name: AgentName,
    pub(crate) role: Role,
    pub(crate) workshop: Arc<Workshop>,
    pub(crate) events: Events,
}

impl Hands {
    /// Runs a reply's calls one after the other and puts each one's result into the history.
    pub(super) async fn run(&self, calls: Vec<OpenCall>, history: &mut History, port: &Port, reins: &Reins) -> Flow {
        let alone = calls.iter().position(|call| call.slot.name == tools::PROPOSE_TEAM);
        let mut skip = None;
        let mut yielded = false;
        for (index, OpenCall { slot, before }) in calls.into_iter().enumerate() {
            if reins.halted() == Halt::Suspend {
                return Flow::Suspended;
            }
            let beside = alone.filter(|&alone| alone != index).map(|_| "propose_team stands alone in a reply");
            let end = match beside.or(skip).or(held(reins)) {
                Some(why) => self.skip(&slot, why),
                None => match self.run_one(&slot, before, port, reins).await {
                    Some(end) => end,
                    None => return Flow::Suspended,
                },
            };
            if end.ok || !seam::broken(Defect::ResultForgotten) {
                history.push_result(&slot.id, &end.text);
            }
            if end.ends_turn {
                yielded = true;
                skip = Some(TURN_ENDED);
            }
        }
        match (reins.halted(), yielded) {
            (Halt::EndTurn(_), _) => Flow::Cancelled,
            (_, true) => Flow::Yield,
            (Halt::Suspend, false) => Flow::Suspended,
            (Halt::Free | Halt::NoFurtherCall(_) | Halt::EndCall(_), false) => Flow::GoOn,
        }
    }

    fn skip(&self, slot: &CallSlot, why: &str) -> CallEnd {
        let text = not_run(why);
        let skipped = Record::CallSkipped { agent: self.name.clone(), call_id: slot.id.clone(), result: text.clone() };
        self.events.emit(Event::Record(skipped));
        CallEnd { ok: false, text, ends_turn: false }
    }

    /// Prepares one call, passes it through the gate and carries it out, with its two events around it. `None` when the session
    /// is left before there is a result.
    async fn run_one(&self, slot: &CallSlot, before: Before, port: &Port, reins: &Reins) -> Option<CallEnd> {
        let parsed = match &slot.arguments {
            Ok(arguments) => tools::parse(self.role, &slot.name, arguments.clone()),
            Err(why) => Err(why.clone()),
        };
        self.events.emit(Event::ToolStarted {
            agent: self.name.clone(),
            call_id: slot.id.clone(),
            tool: slot.name.clone(),
            summary: parsed.as_ref().map(Call::summary).unwrap_or_default(),
        });
        killpoint::pass("tool_started");
        let started = Instant::now();
        let end = match parsed {
            Ok(call) => match self.known_end(&call, before).await {
                Some(end) => end,
                None => self.carry_out(&slot.id, call, port, reins).await?,
            },
            Err(_) if seam::broken(Defect::BadCallDone) => CallEnd::done("done"),
            Err(text) => CallEnd { ok: false, text, ends_turn: false },
        };
        killpoint::pass("tool_done");
        self.events.emit(Event::ToolEnded {
            agent: self.name.clone(),
            call_id: slot.id.clone(),
            tool: slot.name.clone(),
            ok: end.ok,
            millis: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            result: end.text.clone(),
        });
        Some(end)
    }

    /// How a call ended that an earlier run began, where it must not be run again. A team call that has not settled had no
    /// effect, and reading has none: those are run.
    async fn known_end(&self, call: &Call, before: Before) -> Option<CallEnd> {
        let text = match (before, call) {
            (Before::Settled(end), _) => return Some(end),
            (Before::Unstarted, Call::Local(LocalCall::Bash(_))) => NEVER_RAN,
            (Before::Started { .. }, Call::Local(LocalCall::Bash(_))) => RAN_IN_PART,
            (Before::Started { after: Some(after) }, Call::Local(call)) => {
                return self.workshop.holds(call, &after).await.then(|| CallEnd::done(IS_DONE));
            }
            (Before::Fresh | Before::Unstarted | Before::Started { .. }, _) => return None,
        };
        Some(CallEnd { ok: false, text: text.to_owned(), ends_turn: false })
    }

    async fn carry_out(&self, call_id: &str, call: Call, port: &Port, reins: &Reins) -> Option<CallEnd> {
        let effect = call.effect();
        if let Err(blocked) = reins.gate().check(effect) {
            return Some(CallEnd { ok: false, text: blocked.to_string(), ends_turn: false });
        }
        match call {
            Call::Local(call) => {
                let stop = Box::pin(reins.clone().call_must_end(effect));
                let intent = self.intent(call_id);
                let output = match reins.scope() {
                    Some(scope) => self.workshop.run_within(&scope, call, stop, intent).await,
                    None => self.workshop.run_recorded(call, stop, intent).await,
                };
                Some(CallEnd { ok: output.ok, text: output.text, ends_turn: false })
            }
            Call::Team(call) => port.call(call_id, call).await,
        }
    }

    /// Records what a file is to hold, so that a later run can tell whether it does.
    fn intent(&self, call_id: &str) -> Intent {
        let (events, agent, call_id) = (self.events.clone(), self.name.clone(), call_id.to_owned());
        Box::new(move |after| {
            events.emit(Event::Record(Record::WriteIntended { agent, call_id, after: after.to_owned() }));
            killpoint::pass("write_intended");
        })
    }
}

/// The result of a call that was not run.
pub(crate) fn not_run(why: &str) -> String {
    format!("not run: {why}")
}

/// Why no further call of this reply may run, if so.
fn held(reins: &Reins) -> Option<&'static str> {
    match reins.halted() {
        Halt::Free | Halt::Suspend => None,
        Halt::NoFurtherCall(why) | Halt::EndCall(why) | Halt::EndTurn(why) => Some(why),
    }
}
