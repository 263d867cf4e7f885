//! One play on one stage: the real program is started, killed, started again, until it ends by itself. Then everything is looked at.
//!
//! Knows when to pull the plug and what a stranger appends to mailboxes meanwhile; knows nothing of how a session is resumed.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use s15::scenario::{Recorded, ServeOptions};

use super::dice::Dice;
use super::ledger::{self, Histories};
use super::play::{LINE, OUTSIDER, Play, TEAM, words};
use crate::harness::{Bench, PATIENCE};

/// The longest random pause of the server before a reply: it mixes up who comes when.
const REPLY_DELAY_MAX: Duration = Duration::from_millis(3);
/// How often a running program is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// When the plug is pulled.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kill {
    /// At the n-th pass of a kill point, from 1.
    At(&'static str, u64),
    /// So long after the start.
    After(Duration),
    /// Not at all.
    Never,
}

impl fmt::Display for Kill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(point, pass) => write!(f, "{point}:{pass}"),
            Self::After(delay) => write!(f, "after {} ms", delay.as_millis()),
            Self::Never => f.write_str("never"),
        }
    }
}

/// How a run of the program ended.
#[derive(Debug)]
pub(super) enum End {
    /// By the plug.
    Killed,
    /// By itself.
    Exited(i32),
}

/// A workspace with its server, and the plays' stranger.
pub(super) struct Stage {
    play: Play,
    bench: Bench,
    /// Did the server see a request? From then on there is something to resume.
    begun: bool,
    /// What was done so far, for a report.
    history: Vec<String>,
    /// How many lines the stranger has appended, by reader.
    appended: BTreeMap<&'static str, u32>,
}

impl Stage {
    pub(super) fn new(play: Play, seed: u64) -> Self {
        let options = ServeOptions { seed, delay_max: REPLY_DELAY_MAX, ..ServeOptions::default() };
        let bench = Bench::with(&play.script(), options).env("S15_TURN_CALLS_MAX", "5000");
        let appended = ["lead", TEAM[0]].map(|reader| (reader, 0)).into();
        Self { play, bench, begun: false, history: Vec::new(), appended }
    }

    /// Runs the program until it ends, one way or the other; lines are appended at these times after its start.
    pub(super) fn run(&mut self, kill: Kill, mut lines_at: Vec<Duration>) -> Result<End, String> {
        self.history.push(kill.to_string());
        let mut child = self.start(kill);
        let started = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
                break status;
            }
            let elapsed = started.elapsed();
            if lines_at.first().is_some_and(|at| *at <= elapsed) {
                lines_at.remove(0);
                self.append_one();
            }
            if matches!(kill, Kill::After(delay) if delay <= elapsed) || elapsed > PATIENCE {
                child.kill().map_err(|error| error.to_string())?;
                let status = child.wait().map_err(|error| error.to_string())?;
                if elapsed > PATIENCE {
                    return Err(format!("it hangs: it ran for {elapsed:?}"));
                }
                break status;
            }
            std::thread::sleep(LOOK_EVERY);
        };
        self.begun = self.begun || !self.bench.requests().is_empty();
        end(status)
    }

    fn start(&self, kill: Kill) -> Child {
        // Until something is there to go on with, it begins.
        let arguments: &[&str] = if self.begun { &["-c", "--yes"] } else { &["-p", LINE, "--yes"] };
        let mut command = self.bench.command(arguments);
        if let Kill::At(point, pass) = kill {
            command.env("S15_TEST_KILL", format!("{point}:{pass}")).env("S15_TEST_KILL_LOG", self.log());
        }
        let said = File::options().append(true).create(true).open(self.said()).unwrap();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said).spawn().unwrap()
    }

    /// Goes on to the end by itself, and says what is wrong then.
    pub(super) fn finish(&mut self) -> Result<(), String> {
        // Once all were spawned by a run that ended by itself, every mailbox has its reader.
        if !self.has_member() {
            self.run_to_its_end()?;
        }
        while self.append_one() {}
        self.run_to_its_end()?;
        let faults = self.faults();
        if faults.is_empty() { Ok(()) } else { Err(faults.join("\n  ")) }
    }

    fn run_to_its_end(&mut self) -> Result<(), String> {
        match self.run(Kill::Never, Vec::new())? {
            End::Exited(0) => Ok(()),
            other => Err(format!("the run that nobody killed ended so: {other:?}")),
        }
    }

    /// All that is wrong in the end.
    pub(super) fn faults(&self) -> Vec<String> {
        let requests = self.bench.requests();
        let mut faults = self.bench.faults();
        let mut histories = Histories::new();
        let mut calls: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for request in &requests {
            let messages = request.body["messages"].as_array().cloned().unwrap_or_default();
            histories.insert(request.agent.clone(), messages);
            calls.entry(&request.agent).or_default().push(request.call);
        }
        faults.extend(ledger::faults(self.play, &histories));
        faults.extend(
            calls.iter().filter_map(|(agent, calls)| Some(format!("{agent}: {}", ledger::fault_of_calls(calls)?))),
        );
        let session = |request: &Recorded| request.headers.get("x-s15-session").cloned();
        if requests.iter().any(|request| session(request) != session(&requests[0])) {
            faults.push("it went on in another session".to_owned());
        }
        for (path, expected) in Play::files() {
            let found = self.bench.read(&path);
            if found.as_ref() != Some(&expected) {
                faults.push(format!("{path} holds {found:?} instead of {expected:?}"));
            }
        }
        faults
    }

    /// The stranger appends its next line to the mailbox that is furthest behind, if its reader is there; false if there was nothing
    /// to append or nowhere to append it to.
    pub(super) fn append_one(&mut self) -> bool {
        let member_is_there = self.has_member();
        let open = self
            .appended
            .iter_mut()
            .filter(|(reader, count)| **count < self.play.outside && (**reader == "lead" || member_is_there));
        let Some((reader, count)) = open.min_by_key(|(_, count)| **count) else { return false };
        let folder = self.bench.path(".mailboxes");
        if !folder.is_dir() {
            return false;
        }
        *count += 1;
        let line = format!("{{\"from\":\"{OUTSIDER}\",\"content\":\"{}\"}}", words(OUTSIDER, reader, *count));
        self.history.push(format!("({OUTSIDER} → {reader} {count})"));
        let echo = Command::new("sh")
            .args(["-c", "echo \"$1\" >> \"$2\"", "sh", &line])
            .arg(folder.join(format!("{reader}.jsonl")))
            .status();
        assert!(echo.unwrap().success());
        true
    }

    /// Is the teammate there to whom the stranger writes?
    fn has_member(&self) -> bool {
        self.bench.read(".team/config.json").is_some_and(|view| view.contains(&format!("\"{}\"", TEAM[0])))
    }

    fn log(&self) -> PathBuf {
        self.bench.state().with_file_name("killed")
    }

    fn said(&self) -> PathBuf {
        self.bench.state().with_file_name("said")
    }

    /// The points at which it was killed so far.
    pub(super) fn killed_at(&self) -> Vec<String> {
        std::fs::read_to_string(self.log()).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// What was done, the end of what the program said, and where everything lies, which stays.
    pub(super) fn report(self, fault: &str) -> String {
        let said = std::fs::read_to_string(self.said()).unwrap_or_default();
        let from = said.char_indices().rev().nth(4_000).map_or(0, |(at, _)| at);
        let text = format!(
            "  {fault}\n{}\nkills: {}\nin {}",
            &said[from..],
            self.history.join(", "),
            self.bench.workspace().display()
        );
        std::mem::forget(self.bench);
        text
    }
}

fn end(status: ExitStatus) -> Result<End, String> {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ok(End::Exited(code)),
        (None, Some(libc::SIGKILL)) => Ok(End::Killed),
        (None, signal) => Err(format!("signal {signal:?} ended it")),
    }
}

/// One play with its kills, all from one seed; gives the points at which it was killed.
pub(super) fn perform(play: Play, points: &[&'static str], seed: u64) -> Result<Vec<String>, String> {
    let mut dice = Dice::new(seed);
    let mut stage = Stage::new(play, seed);
    let mut at_random = 0;
    let mut kill_it = |stage: &mut Stage| {
        for _ in 0..4 + dice.below(9) {
            let kill = chosen(&mut dice, points);
            let lines = (0..dice.below(3)).map(|_| Duration::from_millis(dice.below(300))).collect::<Vec<_>>();
            let mut lines_at = lines;
            lines_at.sort();
            match stage.run(kill, lines_at)? {
                End::Killed => at_random += usize::from(matches!(kill, Kill::After(_))),
                End::Exited(0) => break,
                End::Exited(code) => return Err(format!("it ended with {code}")),
            }
            if dice.below(2) == 0 {
                stage.append_one();
            }
        }
        stage.finish()
    };
    match kill_it(&mut stage) {
        Ok(()) => {
            let at_random = std::iter::repeat_n("at a random time".to_owned(), at_random);
            Ok(stage.killed_at().into_iter().chain(at_random).collect())
        }
        Err(fault) => Err(stage.report(&fault)),
    }
}

fn chosen(dice: &mut Dice, points: &[&'static str]) -> Kill {
    if dice.below(4) == 0 {
        return Kill::After(Duration::from_millis(dice.below(400)));
    }
    // Early passes most often: a later run has fewer of them.
    let bound = dice.one_of(&[3, 10, 40]);
    Kill::At(dice.one_of(points), 1 + dice.below(bound))
}
