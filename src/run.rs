//! Puts the parts together for one run: a configuration in, an exit code out. Decides nothing about the team.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, anyhow};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use uuid::Uuid;

use crate::config::{self, Config, FrontEnd};
use crate::event::{EVENT_VERSION, Event, Level};
use crate::fence::{Fence, THIS_PROGRAM};
use crate::journal::{Events, Journal, Mask, Views, read_session, session_folder};
use crate::lock::{LockError, WorkspaceLock, workspace_folder};
use crate::mail::Post;
use crate::model::{Client, ClientSettings, Secret};
use crate::session::{Means, Recalled, Session, Settings, Source, UserInput, command_names};
use crate::sessions::{self, End, Summary};
use crate::tools::{Environment, Workshop};
use crate::ui::{Color, Front, OutputFormat, Typed, Ui, UiOptions};

/// How a run begins, where it isn't the user who begins it.
#[derive(Clone, Debug, Default)]
pub struct Opening {
    /// Said before anything else.
    pub words: Option<String>,
    /// Lines that are said in the user's place, each when the team is quiet; nobody is listened to then.
    pub script: Option<Vec<String>>,
}

/// Runs a session from its beginning to its end; gives the process' exit code.
///
/// # Errors
/// One clear text for exit code 2: the run can't begin, and nothing was sent anywhere.
pub async fn run(config: Config, opening: Opening) -> anyhow::Result<u8> {
    let Ground { id, folder, post, lock, warning, past, unfinished } = Ground::take(&config)?;
    let client = Client::new(client_settings(&config, id)).map_err(anyhow::Error::msg)?;
    let workshop = Workshop::new(&config.workspace, folder.join("out"), config.limits.bash_timeout)
        .with_context(|| config.workspace.display().to_string())?;
    let key = config.api_key.as_ref().map(config::Key::expose);
    let workshop = workshop.with_environment(Environment::new(&config.env_pass, key));
    // This very program, whatever has become of its file since.
    #[cfg(target_os = "linux")]
    let workshop = workshop.guarded_by(Path::new(THIS_PROGRAM));
    let fence = Fence::around(&config, &folder.join("out"))?;
    let workshop = workshop.under(fence.policy.clone());
    let events = Events::new(Mask::new(config.api_key.as_ref().map(config::Key::expose)));

    // Before the terminal is changed: a signal from here on gives it back.
    let signals = Signals::listen().context("signals can't be listened to")?;
    let (typed, lines) = unbounded_channel();
    let front = if opening.script.is_some() { Front::Pipe } else { front(&config.front) };
    let ui = Arc::new(Ui::start(front, ui_options(&config), typed).context("the terminal can't be used")?);
    events.subscribe(ui.items());
    // Without a state folder there is no journal; the warning says so.
    if lock.is_some() {
        let last_seq = past.as_ref().map_or(0, Recalled::last_seq);
        events.journal_to(Journal::new(folder.clone(), id).context("no journal")?, last_seq);
    }
    if let Some(text) = opening.words {
        events.emit(Event::Notice { level: Level::Info, text });
    }
    begin(&config, id, &client, &events, warning.into_iter().chain(fence.warning.clone()));
    if let Some(session) = unfinished {
        events.emit(Event::Notice { level: Level::Info, text: how_to_go_on(&session) });
    }

    let (to_session, user) = unbounded_channel();
    first_lines(&config, &to_session);
    tokio::spawn(forward(lines, to_session.clone()));
    tokio::spawn(signals.forward(to_session.clone()));
    let scripted = opening.script.is_some();
    let next_line = match opening.script {
        Some(lines) => say_in_turn(lines, to_session, events.clone()),
        None => ask_front_end(Arc::clone(&ui)),
    };
    let means = Means {
        client,
        post,
        workshop: Arc::new(workshop),
        events: events.clone(),
        views: Views::new(&config.workspace),
        user,
        next_line,
    };
    let mut settings = settings(&config, id, &folder, lock.is_some(), scripted);
    settings.surroundings.push_str(fence.words());
    let code = Session::run(settings, means, past).await;
    events.close_journal();
    if let Some(ui) = Arc::into_inner(ui) {
        ui.close();
    }
    Ok(code)
}

/// What a run stands on: one session, held against every other run.
struct Ground {
    id: Uuid,
    /// Of the session's journals.
    folder: PathBuf,
    post: Post,
    /// `None` where the state folder can't be used; `warning` says so.
    lock: Option<WorkspaceLock>,
    warning: Option<String>,
    /// The session as it stood, if it is resumed.
    past: Option<Recalled>,
    /// Another session that didn't come to its end, if this is a new one.
    unfinished: Option<Summary>,
}

impl Ground {
    /// # Errors
    /// The session that is meant can't be had, or another run is here.
    fn take(config: &Config) -> anyhow::Result<Self> {
        let pick = |which| sessions::pick(&config.state_dir, &config.workspace, which);
        let earlier = config.resume.as_ref().map(pick).transpose()?;
        let id = earlier.as_ref().map_or_else(Uuid::now_v7, |earlier| earlier.id);
        let (lock, warning) = match WorkspaceLock::take(&config.state_dir, &config.workspace, id) {
            Ok(lock) => (Some(lock), None),
            Err(error @ LockError::Held { .. }) => return Err(anyhow!("{error}")),
            Err(error @ LockError::Unusable { .. }) => (None, Some(error.to_string())),
        };
        let post = Post::new(&config.workspace, id);
        // A workspace that can't be written is told of later; one that another run reads is refused.
        if let Err(error) = post.hold()
            && read_only(&config.workspace).is_none()
        {
            return Err(error.into());
        }
        let folder = session_folder(&workspace_folder(&config.state_dir, &config.workspace), id);
        let unfinished = match earlier {
            None => sessions::unfinished(&config.state_dir, &config.workspace),
            Some(_) => None,
        };
        let past = earlier.map(|_| read_session(&folder, id)).transpose()?.map(Recalled::of);
        Ok(Self { id, folder, post, lock, warning, past, unfinished })
    }
}

fn begin(config: &Config, id: Uuid, client: &Client, events: &Events, more: impl Iterator<Item = String>) {
    events.emit(Event::SessionStarted {
        version: EVENT_VERSION,
        session: id,
        workspace: config.workspace.display().to_string(),
        model: config.model.clone(),
        server: client.url().trim_end_matches("/chat/completions").to_owned(),
    });
    let read_only = read_only(&config.workspace);
    for text in config.warnings.iter().cloned().chain(more).chain(read_only) {
        events.emit(Event::Notice { level: Level::Warning, text });
    }
}

/// What to say of a session that didn't come to its end.
fn how_to_go_on(session: &Summary) -> String {
    let how = match &session.end {
        End::CutOff => "was cut off",
        End::Left(_) | End::Running => "was left with its team",
    };
    let request = session.first_request.as_deref().unwrap_or_default();
    format!("the last session here ({request}) {how}; s15 --continue goes on with it")
}

/// Why the workspace can't be written, if it can't.
fn read_only(workspace: &Path) -> Option<String> {
    let error = nix::unistd::access(workspace, nix::unistd::AccessFlags::W_OK).err()?;
    Some(format!(
        "{} can't be written ({error}): no file can be changed there, and no team can work",
        workspace.display()
    ))
}

fn settings(config: &Config, id: Uuid, folder: &Path, has_journal: bool, scripted: bool) -> Settings {
    Settings {
        id,
        workspace: config.workspace.clone(),
        out_dir: folder.join("out"),
        journals: has_journal.then(|| folder.to_owned()),
        model: config.model.clone(),
        teammate_model: config.teammate_model.clone(),
        teammates_max: config.limits.teammates_max,
        job_timeout: config.limits.job_timeout,
        turn_calls_max: config.limits.turn_calls_max,
        request_timeout: config.limits.request_timeout,
        yes: config.yes,
        source: match config.front {
            FrontEnd::Print { .. } => Source::Once,
            FrontEnd::Pipe => Source::Pipe,
            FrontEnd::Terminal if scripted => Source::Pipe,
            FrontEnd::Terminal => Source::Terminal,
        },
        surroundings: format!("Workspace: {} ({}).", config.workspace.display(), std::env::consts::OS),
    }
}

fn client_settings(config: &Config, session: Uuid) -> ClientSettings {
    let limits = &config.limits;
    ClientSettings {
        base_url: config.base_url.clone(),
        api_key: config.api_key.as_ref().map(|key| Secret::new(key.expose())),
        session,
        retries_max: limits.retries_max,
        retry_base: limits.retry_base,
        retry_wait_max: limits.retry_wait_max,
        connect_timeout: limits.connect_timeout,
        first_byte_timeout: limits.first_byte_timeout,
        idle_timeout: limits.idle_timeout,
    }
}

fn front(front: &FrontEnd) -> Front {
    match front {
        FrontEnd::Terminal => Front::Terminal,
        FrontEnd::Pipe => Front::Pipe,
        FrontEnd::Print { format, .. } => Front::Print(match format {
            config::OutputFormat::Text => OutputFormat::Text,
            config::OutputFormat::Json => OutputFormat::Json,
            config::OutputFormat::StreamJson => OutputFormat::StreamJson,
        }),
    }
}

fn ui_options(config: &Config) -> UiOptions {
    UiOptions {
        color: if config.color { Color::Always } else { Color::Never },
        width: None,
        history: Some(config.state_dir.join("history")),
        commands: command_names().map(str::to_owned).collect(),
    }
}

/// What was said on the command line is the first thing that is said.
fn first_lines(config: &Config, session: &UnboundedSender<UserInput>) {
    let (text, only) = match &config.front {
        FrontEnd::Print { prompt, .. } => (Some(prompt), true),
        FrontEnd::Terminal | FrontEnd::Pipe => (config.first_line.as_ref(), false),
    };
    let inputs = text.map(|text| UserInput::Line { text: text.clone(), seen: 0 }).into_iter();
    for input in inputs.chain(only.then_some(UserInput::EndOfInput)) {
        drop(session.send(input));
    }
}

fn ask_front_end(ui: Arc<Ui>) -> Box<dyn Fn() + Send> {
    Box::new(move || ui.ready_for_line())
}

/// Says the next line of a script each time a line is asked for, and shows it as if it had been typed.
fn say_in_turn(lines: Vec<String>, session: UnboundedSender<UserInput>, events: Events) -> Box<dyn Fn() + Send> {
    let lines = Mutex::new(lines.into_iter());
    Box::new(move || {
        let next = lines.lock().unwrap_or_else(PoisonError::into_inner).next();
        let input = match next {
            Some(text) => {
                events.emit(Event::Notice { level: Level::Info, text: format!("s15 >> {text}") });
                UserInput::Line { text, seen: u64::MAX }
            }
            None => UserInput::EndOfInput,
        };
        drop(session.send(input));
    })
}

/// The front end's words in the session's.
async fn forward(mut lines: UnboundedReceiver<Typed>, session: UnboundedSender<UserInput>) {
    while let Some(typed) = lines.recv().await {
        let input = match typed {
            Typed::Line { text, seen } => UserInput::Line { text, seen },
            Typed::Interrupt => UserInput::Interrupt,
            Typed::Leave => UserInput::Leave,
            Typed::Eof => UserInput::EndOfInput,
        };
        if session.send(input).is_err() {
            return;
        }
    }
}

/// What the system asks of the process.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
    /// A limit on the size of files is an error of the write then, and not the end of the process.
    _file_limit: Signal,
}

impl Signals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            _file_limit: signal(SignalKind::from_raw(nix::sys::signal::Signal::SIGXFSZ as i32))?,
        })
    }

    async fn forward(mut self, session: UnboundedSender<UserInput>) {
        loop {
            let name = tokio::select! {
                _ = self.interrupt.recv() => "SIGINT",
                _ = self.terminate.recv() => "SIGTERM",
                _ = self.hang_up.recv() => "SIGHUP",
            };
            if session.send(UserInput::Signal(name)).is_err() {
                return;
            }
        }
    }
}
