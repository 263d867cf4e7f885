//! The one place that runs tool calls: after the gate, in order, exactly one result a call, whatever happens.

use std::sync::Arc;
use std::time::Instant;

use crate::event::Event;
use crate::journal::Events;
use crate::model::{CallSlot, History};
use crate::protocol::AgentName;
use crate::tools::{self, Call, Role, Workshop};

use super::{CallEnd, Halt, Port, Reins};

/// What follows a reply's calls.
pub(super) enum Flow {
    /// The next model call.
    GoOn,
    /// The turn ends, as the call wanted.
    Yield,
    /// The turn was broken off.
    Cancelled,
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
    pub(super) async fn run(&self, slots: &[CallSlot], history: &mut History, port: &Port, reins: &Reins) -> Flow {
        let alone = slots.iter().position(|slot| slot.name == tools::PROPOSE_TEAM);
        let mut skip = None;
        let mut yielded = false;
        for (index, slot) in slots.iter().enumerate() {
            let beside = alone.filter(|&alone| alone != index).map(|_| "propose_team stands alone in a reply");
            let end = match beside.or(skip).or(held(reins)) {
                Some(why) => CallEnd { ok: false, text: format!("not run: {why}"), ends_turn: false },
                None => self.run_one(slot, port, reins).await,
            };
            history.push_result(&slot.id, &end.text);
            if end.ends_turn {
                yielded = true;
                skip = Some("the turn ended with the call before it");
            }
        }
        match (reins.halted(), yielded) {
            (Halt::EndTurn(_), _) => Flow::Cancelled,
            (_, true) => Flow::Yield,
            (Halt::Free | Halt::NoFurtherCall(_) | Halt::EndCall(_), false) => Flow::GoOn,
        }
    }

    /// Prepares one call, passes it through the gate and carries it out, with its two events around it.
    async fn run_one(&self, slot: &CallSlot, port: &Port, reins: &Reins) -> CallEnd {
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
        let started = Instant::now();
        let end = match parsed {
            Ok(call) => self.carry_out(call, port, reins).await,
            Err(text) => CallEnd { ok: false, text, ends_turn: false },
        };
        self.events.emit(Event::ToolEnded {
            agent: self.name.clone(),
            call_id: slot.id.clone(),
            tool: slot.name.clone(),
            ok: end.ok,
            millis: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            result: end.text.clone(),
        });
        end
    }

    async fn carry_out(&self, call: Call, port: &Port, reins: &Reins) -> CallEnd {
        let effect = call.effect();
        if let Err(blocked) = reins.gate().check(effect) {
            return CallEnd { ok: false, text: blocked.to_string(), ends_turn: false };
        }
        match call {
            Call::Local(call) => {
                let output = self.workshop.run(call, Box::pin(reins.clone().call_must_end(effect))).await;
                CallEnd { ok: output.ok, text: output.text, ends_turn: false }
            }
            Call::Team(call) => port.call(call).await,
        }
    }
}

/// Why no further call of this reply may run, if so.
fn held(reins: &Reins) -> Option<&'static str> {
    match reins.halted() {
        Halt::Free => None,
        Halt::NoFurtherCall(why) | Halt::EndCall(why) | Halt::EndTurn(why) => Some(why),
    }
}
