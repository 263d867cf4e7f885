//! The one owner of the team's state. Every input, whoever it comes from, ends in one loop here and is handled whole before the next.
//!
//! Agents are tasks that ask and report; the session decides who gets a turn, what is put in, who may be spawned, and when it
//! is all over. It knows nothing of model servers' dialects, of how tools work, or of how events are shown.

mod backlog;
mod calls;
mod chatting;
mod commands;
mod delivery;
mod desk;
mod ending;
mod expiring;
mod finish;
mod jobs;
mod last_words;
mod letters;
mod members;
mod prompts;
mod proposing;
mod protocols;
mod recall;
mod resuming;
mod returning;
#[cfg(test)]
mod sim;
mod state_text;
mod stopping;
mod unit;
mod user;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use uuid::Uuid;

use crate::agent::{Report, ToSession};
use crate::journal::{Events, Views};
use crate::mail::{Post, Watch};
use crate::model::Client;
use crate::protocol::chatter::Chatter;
use crate::protocol::{AgentName, Confirmation, Letters, MailKey, RequestTable};
use crate::seam::{self, Defect};
use crate::tools::Workshop;

use desk::Desk;
use finish::Leaving;
use jobs::{JobOver, Jobs};
use members::Teammate;

pub use commands::names as command_names;
pub use recall::Recalled;
use unit::Unit;
use user::Question;

/// What the session was started with.
pub struct Settings {
    /// UUIDv7.
    pub id: Uuid,
    /// Absolute.
    pub workspace: PathBuf,
    /// Where long texts go; readable by agents.
    pub out_dir: PathBuf,
    /// Where this session's journals lie, if there are any.
    pub journals: Option<PathBuf>,
    /// The lead's model.
    pub model: String,
    /// The teammates', where the proposal names none.
    pub teammate_model: String,
    /// Living teammates at once.
    pub teammates_max: usize,
    /// Longest run of a command in the background.
    pub job_timeout: Duration,
    /// Model calls a turn.
    pub turn_calls_max: u32,
    /// How long a plan may wait for the lead's review.
    pub request_timeout: Duration,
    /// The user's own settings confirm every proposal.
    pub yes: bool,
    /// Where lines come from.
    pub source: Source,
    /// What the agents are told besides their prompts, such as the platform.
    pub surroundings: String,
}

/// Where the user's lines come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Somebody types; the session lasts until they leave.
    Terminal,
    /// A pipe: a line is read when the team is quiet; its end is the session's end.
    Pipe,
    /// One request and no more (`-p`).
    Once,
}

/// What the user's side says. The front end's words, free of the front end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserInput {
    /// A line; `seen` is the seq of the last event that was on screen when Enter was pressed.
    Line {
        /// Exactly as typed.
        text: String,
        /// An event's seq.
        seen: u64,
    },
    /// Break off what the lead does.
    Interrupt,
    /// Leave: typed, or no more lines will come.
    Leave,
    /// The end of a pipe's input.
    EndOfInput,
    /// The system asks the process to end; the text says how.
    Signal(&'static str),
}

/// The session's own end of everything it talks to.
pub struct Means {
    /// The way to the model.
    pub client: Client,
    /// The mailboxes.
    pub post: Post,
    /// The tools.
    pub workshop: Arc<Workshop>,
    /// Where everything that happens is told.
    pub events: Events,
    /// `.team/`.
    pub views: Views,
    /// The user's side.
    pub user: mpsc::UnboundedReceiver<UserInput>,
    /// Asks the user's side for the next line, where it only comes when asked for.
    pub next_line: Box<dyn Fn() + Send>,
}

/// A session while it runs.
pub struct Session {
    settings: Settings,
    client: Client,
    workshop: Arc<Workshop>,
    events: Events,
    views: Views,
    next_line: Box<dyn Fn() + Send>,
    /// Was the next line asked for and hasn't come yet?
    line_awaited: bool,
    post: Post,
    watch: Option<Watch>,
    hint: Arc<Notify>,
    to_session: mpsc::UnboundedSender<Report>,
    lead: Desk,
    /// The user lines that wait for the lead's next model call.
    lines: VecDeque<String>,
    /// Did a line of the user's start the lead's present turn, or join it?
    lead_turn_has_line: bool,
    team: Vec<Teammate>,
    requests: RequestTable,
    jobs: Jobs,
    /// When the time of each pending plan is up.
    plan_deadlines: Vec<(Uuid, Instant)>,
    letters: Letters,
    chatter: Chatter,
    /// Calls whose end is told after a pause.
    slowed: Vec<chatting::Slowed>,
    confirmation: Confirmation,
    question: Option<Question>,
    leaving: Option<Leaving>,
    outcome: finish::Outcome,
    /// What the present step did and is not yet let out.
    unit: Unit,
    /// Mail that has arrived and is still held, since the journal doesn't have that yet.
    unacknowledged: Vec<(AgentName, Vec<MailKey>)>,
    /// The user's word on teams as it was last recorded.
    recorded_confirmation: Confirmation,
    /// Resumed, and nothing was said yet: nobody calls a model.
    asleep: bool,
}

/// What can wake the loop.
enum Input {
    Agent(Report),
    Job(JobOver),
    User(UserInput),
    Look,
    Clock,
}

impl Session {
    /// Runs until the session is over; gives the process' exit code. `past`: the session is resumed from there.
    pub async fn run(settings: Settings, means: Means, past: Option<Recalled>) -> u8 {
        let (to_session, mut reports) = mpsc::unbounded_channel();
        let (jobs, mut jobs_over) = Jobs::new();
        let mut user = means.user;
        let mut session = Self {
            post: means.post,
            lead: Desk::new(AgentName::lead()),
            client: means.client,
            workshop: means.workshop,
            events: means.events,
            views: means.views,
            next_line: means.next_line,
            line_awaited: false,
            watch: None,
            hint: Arc::new(Notify::new()),
            to_session,
            lines: VecDeque::new(),
            lead_turn_has_line: false,
            team: Vec::new(),
            requests: RequestTable::default(),
            jobs,
            plan_deadlines: Vec::new(),
            letters: Letters::default(),
            chatter: Chatter::default(),
            slowed: Vec::new(),
            confirmation: Confirmation::default(),
            question: None,
            leaving: None,
            outcome: finish::Outcome::default(),
            unit: Unit::default(),
            unacknowledged: Vec::new(),
            recorded_confirmation: Confirmation::default(),
            asleep: false,
            settings,
        };
        match past {
            Some(past) => session.resume(past),
            None => session.begin(),
        }
        session.commit();
        loop {
            let over = session.settle();
            session.commit();
            if let Some(code) = over {
                return code;
            }
            let next_look = Instant::now() + session.look_every();
            let clock = session.next_deadline().map_or(next_look, |deadline| deadline.min(next_look));
            let hint = Arc::clone(&session.hint);
            let input = tokio::select! {
                biased;
                Some(report) = reports.recv() => Input::Agent(report),
                Some(over) = jobs_over.recv() => Input::Job(over),
                Some(input) = user.recv() => Input::User(input),
                () = hint.notified() => Input::Look,
                () = tokio::time::sleep_until(clock) => Input::Clock,
            };
            session.handle(input);
            session.commit();
            seam::step().await;
        }
    }

    fn handle(&mut self, input: Input) {
        match input {
            Input::Agent(report) => self.hear_agent(report),
            Input::Job(over) => self.job_over(over),
            Input::User(input) => self.hear_user(input),
            Input::Look => self.look_everywhere(),
            Input::Clock => {
                self.look_everywhere();
                self.enforce_deadlines();
            }
        }
    }

    /// What an agent says. Words from an earlier life of the same name are stale and dropped with their answer channel.
    fn hear_agent(&mut self, Report { agent, life, what }: Report) {
        if self.desk(&agent).is_none_or(|desk| desk.life != life) {
            return;
        }
        match what {
            ToSession::Intake { acted, answer } => {
                if acted {
                    self.chatter.acted(&agent);
                }
                if self.is_held(&agent) {
                    self.hold(&agent, answer);
                } else {
                    self.answer_intake(&agent, answer);
                }
            }
            ToSession::Accepted => self.accepted(&agent),
            ToSession::Call { call, caller } => self.call(call, caller),
            ToSession::TurnEnded { end } => self.turn_ended(&agent, end),
            ToSession::Exited { remains, panicked } => self.exited(&agent, *remains, panicked),
        }
    }

    /// The desk of a living or ended agent.
    fn desk(&self, name: &AgentName) -> Option<&Desk> {
        if name.is_lead() {
            return Some(&self.lead);
        }
        self.teammate(name).map(|teammate| &teammate.desk)
    }

    fn desk_mut(&mut self, name: &AgentName) -> Option<&mut Desk> {
        if name.is_lead() {
            return Some(&mut self.lead);
        }
        self.teammate_mut(name).map(|teammate| &mut teammate.desk)
    }

    fn teammate(&self, name: &AgentName) -> Option<&Teammate> {
        self.team.iter().find(|teammate| teammate.name() == name)
    }

    fn teammate_mut(&mut self, name: &AgentName) -> Option<&mut Teammate> {
        self.team.iter_mut().find(|teammate| teammate.name() == name)
    }

    fn look_every(&self) -> Duration {
        if seam::broken(Defect::LookOften) {
            return Duration::from_secs(1);
        }
        self.watch.as_ref().map_or(delivery::LOOK_EVERY_UNWATCHED, Watch::look_every)
    }
}

/// The present time in a message's form: RFC 3339, UTC, milliseconds.
fn now() -> String {
    crate::journal::timestamp()
}
