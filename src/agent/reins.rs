//! How the session holds an agent: its gate, and how far it may still go. The session writes, the agent reads.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::protocol::{Effect, Gate, Scope};
use crate::seam::{self, Defect};

/// Why a running call ends when the session does.
const SUSPENDED: &str = "the session was left; it may have run in part: check before you repeat it";

/// How far a running turn may still go, from free to ended. The text is the reason, as the model reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Halt {
    /// Freely.
    Free,
    /// The present call may finish, no further one of this reply is run.
    NoFurtherCall(&'static str),
    /// The present call ends now, no further one of this reply is run.
    EndCall(&'static str),
    /// The turn ends now; a team call in progress is finished first.
    EndTurn(&'static str),
    /// The turn ends now, and goes on where it stood when the session is resumed.
    Suspend,
}

/// Cheap to clone; all clones hold the same agent.
#[derive(Clone)]
pub(crate) struct Reins {
    gate: Arc<watch::Sender<Gate>>,
    scope: Arc<Mutex<Option<Scope>>>,
    halt: Arc<watch::Sender<Halt>>,
    turn: Arc<Mutex<CancellationToken>>,
}

impl Reins {
    pub(crate) fn new(gate: Gate) -> Self {
        Self {
            gate: Arc::new(watch::Sender::new(gate)),
            scope: Arc::default(),
            halt: Arc::new(watch::Sender::new(Halt::Free)),
            turn: Arc::new(Mutex::new(CancellationToken::new())),
        }
    }

    /// Session: a new turn begins, nothing holds it.
    pub(crate) fn free(&self) {
        *self.turn.lock().unwrap_or_else(PoisonError::into_inner) = CancellationToken::new();
        self.halt.send_replace(Halt::Free);
    }

    /// Session: go on after a held call; does not revive an ended turn.
    pub(crate) fn release(&self) {
        self.halt.send_if_modified(|halt| match halt {
            Halt::NoFurtherCall(_) | Halt::EndCall(_) => {
                *halt = Halt::Free;
                true
            }
            Halt::Free | Halt::EndTurn(_) | Halt::Suspend => false,
        });
    }

    /// Session: hold the turn in.
    pub(crate) fn halt(&self, halt: Halt) {
        self.halt.send_replace(halt);
        if let Halt::EndTurn(_) | Halt::Suspend = halt {
            self.turn_token().cancel();
        }
    }

    /// Session: the gate is now this; `scope`: as far as an approved plan opens it.
    pub(crate) fn set_gate(&self, gate: Gate, scope: Option<Scope>) {
        *self.scope.lock().unwrap_or_else(PoisonError::into_inner) = scope;
        self.gate.send_replace(gate);
    }

    /// Agent: ends when the turn must end.
    pub(crate) fn turn_token(&self) -> CancellationToken {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Agent: how far it may go.
    pub(crate) fn halted(&self) -> Halt {
        *self.halt.borrow()
    }

    /// Agent: the gate now.
    pub(crate) fn gate(&self) -> Gate {
        *self.gate.borrow()
    }

    /// Agent: how far an approved plan opens the gate; `None` where no plan bounds it.
    pub(crate) fn scope(&self) -> Option<Scope> {
        self.scope.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Agent: completes, with the reason, when a running call of this effect must end.
    pub(crate) async fn call_must_end(self, effect: Effect) -> &'static str {
        let mut gate = self.gate.subscribe();
        let mut halt = self.halt.subscribe();
        let closed = gate.wait_for(|gate| gate.check(effect).is_err() && !seam::broken(Defect::WriteGoesOn));
        let halted = halt.wait_for(|halt| matches!(halt, Halt::EndCall(_) | Halt::EndTurn(_) | Halt::Suspend));
        // The senders live in `self`, so neither wait can fail.
        tokio::select! {
            biased;
            _ = closed => "the plan gate was closed: a plan must be approved first",
            halt = halted => match halt.as_deref() {
                Ok(Halt::EndCall(why) | Halt::EndTurn(why)) => why,
                Ok(Halt::Suspend) => SUSPENDED,
                Ok(Halt::Free | Halt::NoFurtherCall(_)) | Err(_) => "interrupted",
            },
        }
    }
}
