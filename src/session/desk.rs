//! What the session keeps of one agent: its task, its reins, and the mail that is on its way into its history.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::agent::{Agent, GoingOn, Hands, Port, Reins, Remains, Report, TakeTurn};
use crate::journal::Events;
use crate::model::{Client, History};
use crate::protocol::{AgentName, Gate, Mail, MailKey};
use crate::tools::{Role, Workshop};

/// The session's side of one agent.
pub(super) struct Desk {
    pub(super) name: AgentName,
    /// Which life of this name: raised when an ended teammate returns.
    pub(super) life: u32,
    pub(super) reins: Reins,
    /// Drained and not yet put into the history.
    pub(super) inbox: Vec<Mail>,
    /// The last drain left lines in files, for want of room.
    pub(super) more_in_files: bool,
    /// Put into the history by a call that was not yet accepted.
    pub(super) shown: Vec<MailKey>,
    /// Is a turn under way?
    pub(super) busy: bool,
    /// Intakes of the present turn so far.
    pub(super) turn_intakes: u32,
    /// An earlier run left it in the middle of a turn, which goes on when the session does.
    pub(super) in_turn: bool,
    /// The present turn is one that an earlier run began.
    pub(super) goes_on: bool,
    /// What is left of a life that ended.
    pub(super) remains: Option<Remains>,
    turns: Option<mpsc::UnboundedSender<TakeTurn>>,
    task: Option<AbortHandle>,
}

/// What every agent is made with.
pub(super) struct Start {
    pub(super) role: Role,
    pub(super) model: String,
    pub(super) system: String,
    pub(super) turn_calls_max: u32,
    pub(super) client: Client,
    pub(super) workshop: Arc<Workshop>,
    pub(super) events: Events,
    pub(super) session: mpsc::UnboundedSender<Report>,
}

impl Desk {
    pub(super) fn new(name: AgentName) -> Self {
        Self {
            name,
            life: 0,
            reins: Reins::new(Gate::NotRequired),
            inbox: Vec::new(),
            more_in_files: false,
            shown: Vec::new(),
            busy: false,
            turn_intakes: 0,
            in_turn: false,
            goes_on: false,
            remains: None,
            turns: None,
            task: None,
        }
    }

    /// Starts the agent's task, with the history of its former life if it had one.
    pub(super) fn start(&mut self, start: Start) {
        self.life += 1;
        self.busy = false;
        let (turns, orders) = mpsc::unbounded_channel();
        let Remains { history, calls, going_on } = self.remains.take().unwrap_or_else(|| Remains {
            history: History::new(&start.system),
            calls: 0,
            going_on: GoingOn::Afresh,
        });
        let agent = Agent {
            name: self.name.clone(),
            role: start.role,
            model: start.model,
            client: start.client,
            hands: Hands {
                name: self.name.clone(),
                role: start.role,
                workshop: start.workshop,
                events: start.events.clone(),
            },
            events: start.events,
            port: Port { agent: self.name.clone(), life: self.life, session: start.session },
            reins: self.reins.clone(),
            history,
            calls,
            going_on,
            acted: false,
            turn_calls_max: start.turn_calls_max,
        };
        self.task = Some(tokio::spawn(agent.live(orders)).abort_handle());
        self.turns = Some(turns);
    }

    /// Is its task there to take a turn?
    pub(super) fn is_alive(&self) -> bool {
        self.turns.is_some()
    }

    /// Lets the agent take a turn. It must be idle.
    pub(super) fn begin_turn(&mut self) {
        debug_assert!(!self.busy, "one turn at a time");
        self.reins.free();
        self.goes_on = std::mem::take(&mut self.in_turn);
        self.turn_intakes = 0;
        if let Some(turns) = &self.turns {
            self.busy = turns.send(TakeTurn).is_ok();
        }
    }

    /// No turn comes after the present one; the task then reports what is left of it.
    pub(super) fn no_more_turns(&mut self) {
        self.turns = None;
    }

    /// Ends the task where it stands. What is left of it is only in the journal.
    pub(super) fn abort(&mut self) {
        self.turns = None;
        self.busy = false;
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}
