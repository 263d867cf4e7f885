//! One run of a seed: the lives of a session, each but the last cut off or left in the middle.

use std::future::{Future, poll_fn};
use std::path::Path;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

use crate::event::{EVENT_VERSION, Event};
use crate::journal::{Events, Journal, Mask, Views, read_session};
use crate::mail::Post;
use crate::model::{Client, ClientSettings};
use crate::seam::{self, Defect};
use crate::session::{Means, Recalled, Session, Settings, Source, UserInput};
use crate::tools::Workshop;

use super::faults::{Counts, Fault};
use super::log::{Entry, Seen};
use super::models::Cast;
use super::stage::{KEY, Stage};
use super::system::System;
use super::{outside, user};

/// The session's id.
const SESSION: Uuid = Uuid::from_u128(0x0199_0000_0000_7000_8000_0000_0000_0001);
/// When nothing has happened for so long, nothing will: all waits of a call are shorter.
const SILENCE: Duration = Duration::from_secs(15 * 60);
/// How long a plan waits for its review: not so long that none is ever too late.
const PLAN_WAITS_MAX: Duration = Duration::from_secs(4 * 60);
/// How long a rest is.
const HOUR: Duration = Duration::from_secs(60 * 60);
/// Nothing may hang for longer.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What a run left.
pub(super) struct Run {
    pub(super) log: Vec<Entry>,
    pub(super) counts: Counts,
}

/// How a life ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Killed,
    Left,
    Over,
}

/// Runs a seed from its beginning to its end.
pub(super) fn run(seed: u64, defect: Option<Defect>) -> Run {
    let stage = Arc::new(Stage::new(seed, defect));
    let _taken = seam::put_in(Rc::new(System(Arc::clone(&stage))));
    let shm = Path::new("/dev/shm");
    let folder = if shm.is_dir() { tempfile::tempdir_in(shm) } else { tempfile::tempdir() };
    let folder = folder.unwrap();
    let lives = 1 + stage.chance.below(3);
    stage.scene().actions_left = 30 + stage.chance.below(60);
    for life in 1..=lives {
        let lines = 4 + stage.chance.below(10);
        {
            let mut scene = stage.scene();
            scene.life += 1;
            (scene.lines_left, scene.killed, scene.kill_at_step, scene.hint) = (lines, false, None, None);
            scene.screen.busy.clear();
            scene.screen.question = false;
        }
        live(&stage, folder.path(), life == lives);
    }
    look_at_disk(&stage, folder.path());
    let counts = stage.scene().counts.clone();
    Run { log: stage.take_log(), counts }
}

/// What is left on the disk.
fn look_at_disk(stage: &Stage, folder: &Path) {
    let files = |folder: &Path| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
        let mut files: Vec<_> = entries.filter(|path| path.is_file()).collect();
        files.sort();
        files.into_iter().map(|path| (path.file_stem().unwrap().to_string_lossy().into_owned(), path))
    };
    for (_, path) in files(&folder.join("work")) {
        let (content, path) =
            (std::fs::read_to_string(&path).unwrap(), path.file_name().unwrap().to_string_lossy().into());
        stage.saw(Seen::File { path, content });
    }
    for (mailbox, path) in files(&folder.join("work/.mailboxes/.quarantine")) {
        let lines = std::fs::read_to_string(path).unwrap().lines().count();
        stage.saw(Seen::Kept { mailbox, lines });
    }
    // What could not be put into quarantine, for want of room, stays where it was claimed.
    for (claim, path) in files(&folder.join("work/.mailboxes/.claimed")) {
        let mailbox = claim.split('.').next().unwrap_or_default().to_owned();
        let says =
            |line: &str| serde_json::from_str::<serde_json::Map<_, _>>(line).is_ok_and(|it| it.contains_key("content"));
        let lines = std::fs::read_to_string(path).unwrap().lines().filter(|line| !says(line)).count();
        stage.saw(Seen::Kept { mailbox, lines });
    }
    for (_, path) in files(&folder.join("session")) {
        if std::fs::read_to_string(&path).unwrap().contains(KEY) {
            stage.saw(Seen::KeyIn { path: path.display().to_string() });
        }
    }
}

fn live(stage: &Arc<Stage>, folder: &Path, last: bool) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        stage.scene().begun = Some(Instant::now());
        let (to_session, user) = mpsc::unbounded_channel();
        let (settings, means, past) = prepare(stage, folder, user);
        tokio::spawn(user::types(Arc::clone(stage), to_session.clone()));
        tokio::spawn(outside::writes(Arc::clone(stage), folder.join("work/.mailboxes")));
        tokio::spawn(outside::weather(Arc::clone(stage)));
        let session = Session::run(settings, means, past);
        let ending = lived(stage, session, director(stage, &to_session, last)).await;
        if ending == Ending::Killed {
            stage.scene().killed = true;
            stage.saw(Seen::Killed);
        }
        // Outside the runtime there is no virtual time.
        let now = stage.elapsed();
        let mut scene = stage.scene();
        scene.unrecorded = scene.events.as_ref().is_some_and(|events| !events.all_recorded());
        (scene.before, scene.begun, scene.events) = (now, None, None);
    });
}

/// Runs the session beside its director, until it ends or the plug is pulled.
async fn lived(stage: &Stage, session: impl Future<Output = u8>, director: impl Future<Output = Ending>) -> Ending {
    let (mut session, mut director) = (pin!(session), pin!(director));
    poll_fn(|context| {
        if let Poll::Ready(ending) = director.as_mut().poll(context) {
            return Poll::Ready(ending);
        }
        let over = session.as_mut().poll(context);
        if stage.scene().killed {
            return Poll::Ready(Ending::Killed);
        }
        over.map(|code| {
            stage.saw(Seen::Over { code });
            Ending::Over
        })
    })
    .await
}

/// Decides when it is over, and how.
async fn director(stage: &Arc<Stage>, to_session: &UnboundedSender<UserInput>, last: bool) -> Ending {
    if !last {
        return interrupts(stage, to_session).await;
    }
    let quiet = async {
        loop {
            sleep(Duration::from_secs(60)).await;
            let scene = stage.scene();
            let done = scene.lines_left == 0 && !scene.screen.question;
            let at = scene.screen.at;
            drop(scene);
            if done {
                stage.scene().actions_left = 0;
                outside::clears_up(stage);
            }
            if done && stage.elapsed().saturating_sub(at) >= SILENCE {
                return;
            }
        }
    };
    if timeout(DAY, quiet).await.is_ok() {
        stage.saw(Seen::Quiet);
        if stage.weather.watch && stage.chance.percent(30) {
            rests(stage).await;
        }
    }
    user::say(stage, to_session, "/quit".to_owned());
    sleep(DAY).await;
    Ending::Left
}

/// Counts what happens in an hour in which nobody wants anything.
async fn rests(stage: &Stage) {
    let (steps, entries) = (stage.scene().steps, stage.entries());
    sleep(HOUR).await;
    let (steps, entries) = (stage.scene().steps - steps, stage.entries() - entries);
    stage.saw(Seen::Rested { time: HOUR, steps, entries });
}

/// Pulls the plug, or leaves, at some moment.
async fn interrupts(stage: &Arc<Stage>, to_session: &UnboundedSender<UserInput>) -> Ending {
    match stage.chance.below(5) {
        0 | 1 => {
            let step = stage.scene().steps + 5 + stage.chance.below(250) as u64;
            stage.scene().kill_at_step = Some(step);
            sleep(DAY).await;
            Ending::Left
        }
        2 | 3 => {
            sleep(stage.chance.millis(1_000, 400_000)).await;
            stage.fault(Fault::KilledAtTime);
            Ending::Killed
        }
        _ => {
            sleep(stage.chance.millis(1_000, 400_000)).await;
            stage.fault(Fault::Left);
            user::say(stage, to_session, "/quit".to_owned());
            sleep(DAY).await;
            Ending::Left
        }
    }
}

fn prepare(
    stage: &Arc<Stage>,
    folder: &Path,
    user: mpsc::UnboundedReceiver<UserInput>,
) -> (Settings, Means, Option<Recalled>) {
    let (workspace, journal) = (folder.join("work"), folder.join("session"));
    std::fs::create_dir_all(&workspace).unwrap();
    let past = (stage.scene().life > 1).then(|| Recalled::of(read_session(&journal, SESSION).unwrap()));
    let lost = stage.scene().unrecorded;
    if lost {
        stage.fault(Fault::Unrecorded);
    }
    stage.saw(Seen::Begun { lost, yes: stage.weather.yes });
    let events = Events::new(Mask::new(stage.weather.key.then_some(KEY)));
    let seeing = Arc::clone(stage);
    events.observe(move |item| seeing.saw_item(item));
    let out_dir = journal.join("out");
    events.journal_to(Journal::new(journal, SESSION).unwrap(), past.as_ref().map_or(0, Recalled::last_seq));
    stage.scene().events = Some(events.clone());
    if past.is_none() {
        events.emit(Event::SessionStarted {
            version: EVENT_VERSION,
            session: SESSION,
            workspace: workspace.display().to_string(),
            model: "m".to_owned(),
            server: "simulated".to_owned(),
        });
    }
    let means = Means {
        client: Client::simulated(client_settings(), Arc::new(Cast(Arc::clone(stage)))),
        post: Post::new(&workspace, SESSION),
        workshop: Arc::new(Workshop::new(&workspace, out_dir.clone(), Duration::from_secs(120)).unwrap()),
        events,
        views: Views::new(&workspace),
        user,
        next_line: Box::new(|| {}),
    };
    (Settings { yes: stage.weather.yes, ..settings(workspace, out_dir) }, means, past)
}

fn settings(workspace: std::path::PathBuf, out_dir: std::path::PathBuf) -> Settings {
    Settings {
        id: SESSION,
        workspace,
        journals: out_dir.parent().map(Path::to_owned),
        out_dir,
        model: "m".to_owned(),
        teammate_model: "m".to_owned(),
        teammates_max: 8,
        job_timeout: Duration::from_secs(60),
        turn_calls_max: 50,
        request_timeout: PLAN_WAITS_MAX,
        yes: false,
        source: Source::Terminal,
        surroundings: String::new(),
    }
}

fn client_settings() -> ClientSettings {
    ClientSettings {
        base_url: "http://simulated/v1".to_owned(),
        api_key: None,
        session: SESSION,
        retries_max: 3,
        retry_base: Duration::from_millis(500),
        retry_wait_max: Duration::from_secs(60),
        connect_timeout: Duration::from_secs(10),
        first_byte_timeout: Duration::from_secs(300),
        idle_timeout: Duration::from_secs(120),
    }
}
