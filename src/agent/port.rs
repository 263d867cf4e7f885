//! What an agent and the session say to each other. The agent knows no more of the session than this.

use tokio::sync::{mpsc, oneshot};

use crate::event::TurnEnd;
use crate::protocol::AgentName;
use crate::tools::TeamCall;

use super::Remains;

/// What an agent tells or asks the session.
pub(crate) enum ToSession {
    /// Before a model call: what has arrived?
    Intake {
        /// Since the last one it has run a tool that is no team tool.
        acted: bool,
        /// Where the answer goes.
        answer: oneshot::Sender<Intake>,
    },
    /// The call was accepted: what the last intake gave has reached the model.
    Accepted,
    /// A team tool was called.
    Call {
        /// As parsed.
        call: TeamCall,
        /// Where the result goes; may take as long as a person takes to answer.
        caller: Caller,
    },
    /// The turn is over.
    TurnEnded {
        /// How.
        end: TurnEnd,
    },
    /// The agent is over; nothing comes from it any more.
    Exited {
        /// With what it can return.
        remains: Box<Remains>,
        /// The words of the panic that ended it, if one did.
        panicked: Option<String>,
    },
}

/// The answer to an intake.
pub(crate) enum Intake {
    /// User-role messages to put in, in order; may be empty.
    GoOn(Vec<String>),
    /// The agent ends: no further model call.
    End,
    /// The turn was cancelled before this call.
    Cancel,
    /// The session is left; the turn goes on when it is resumed.
    Suspend,
}

/// Who waits for the end of a team call.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) agent: AgentName,
    pub(crate) call_id: String,
    pub(crate) answer: oneshot::Sender<CallEnd>,
}

/// The result of a team tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallEnd {
    /// Did it do what was asked?
    pub(crate) ok: bool,
    /// For the model.
    pub(crate) text: String,
    /// Does the turn end with it?
    pub(crate) ends_turn: bool,
}

/// One thing that one agent said.
pub(crate) struct Report {
    pub(crate) agent: AgentName,
    /// The agent's life that said it: what comes from an earlier life of the same name is stale.
    pub(crate) life: u32,
    pub(crate) what: ToSession,
}

/// An agent's end of the line.
pub(crate) struct Port {
    pub(crate) agent: AgentName,
    pub(crate) life: u32,
    pub(crate) session: mpsc::UnboundedSender<Report>,
}

impl Port {
    /// Tells the session. A session that is gone hears nothing: the process is about to end.
    pub(crate) fn send(&self, what: ToSession) {
        let report = Report { agent: self.agent.clone(), life: self.life, what };
        drop(self.session.send(report));
    }

    /// Asks for what has arrived; `None` when the session is gone.
    pub(crate) async fn intake(&self, acted: bool) -> Option<Intake> {
        let (answer, answered) = oneshot::channel();
        self.send(ToSession::Intake { acted, answer });
        answered.await.ok()
    }

    /// Has the session carry out a team call; `None` when the session is left before that.
    pub(crate) async fn call(&self, call_id: &str, call: TeamCall) -> Option<CallEnd> {
        let (answer, answered) = oneshot::channel();
        let caller = Caller { agent: self.agent.clone(), call_id: call_id.to_owned(), answer };
        self.send(ToSession::Call { call, caller });
        answered.await.ok()
    }
}

impl CallEnd {
    /// A good end; the turn goes on.
    pub(crate) fn done(text: impl Into<String>) -> Self {
        Self { ok: true, text: text.into(), ends_turn: false }
    }

    /// A good end that ends the turn too.
    pub(crate) fn yielded(text: impl Into<String>) -> Self {
        Self { ok: true, text: text.into(), ends_turn: true }
    }

    /// A refusal; `text` says what to do next.
    pub(crate) fn error(text: impl std::fmt::Display) -> Self {
        Self { ok: false, text: format!("error: {text}"), ends_turn: false }
    }
}
