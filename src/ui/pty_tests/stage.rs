//! The stage of the terminal tests: a pseudo-terminal, an emulator that reads it, and a child that plays the session.
//!
//! Knows nothing of what is tested.
#![allow(
    unsafe_code,
    clippy::exit,
    clippy::unwrap_used,
    reason = "tests that end their own processes and look at a raw terminal"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::termios::{LocalFlags, tcgetattr};
use portable_pty::{CommandBuilder, MasterPty, PtySize, SlavePty, native_pty_system};

use crate::event::{Event, Item, Level, TurnEnd};
use crate::protocol::{AgentName, Member, Proposal};
use crate::ui::{Front, Typed, Ui, UiOptions, restore_terminal};

const SOCKET: &str = "S15_TEST_UI_SOCKET";
/// A condition that doesn't hold by then never will.
const LIMIT: Duration = Duration::from_secs(20);

/// What the terminal got so far.
#[derive(Default)]
struct Got {
    raw: Mutex<Vec<u8>>,
    changed: Condvar,
}

pub(super) struct Stage {
    child: Box<dyn portable_pty::Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    _slave: Box<dyn SlavePty + Send>,
    keyboard: Mutex<Box<dyn Write + Send>>,
    orders: UnixStream,
    got: Arc<Got>,
    _folder: tempfile::TempDir,
}

impl Stage {
    pub(super) fn new() -> Self {
        let stage = Self::with("xterm-256color", "");
        stage.until("the prompt", |screen| screen.row() == "s15 >>" && screen.text().contains("ready"));
        stage
    }

    /// `early`: typed before the child starts.
    pub(super) fn with(term: &str, early: &str) -> Self {
        let size = PtySize { rows: 24, cols: 80, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let listener = UnixListener::bind(&socket).unwrap();
        let mut keyboard = pair.master.take_writer().unwrap();
        keyboard.write_all(early.as_bytes()).unwrap();
        let mut command = CommandBuilder::new(std::env::current_exe().unwrap());
        command.args(["--exact", "ui::pty_tests::child", "--nocapture", "--test-threads=1"]);
        command.env(SOCKET, &socket);
        command.env("TERM", term);
        let child = pair.slave.spawn_command(command).unwrap();
        let got = Arc::new(Got::default());
        let (reader, sink) = (pair.master.try_clone_reader().unwrap(), Arc::clone(&got));
        thread::spawn(move || collect(reader, &sink));
        let (orders, _) = listener.accept().unwrap();
        let keyboard = Mutex::new(keyboard);
        Self { child, master: pair.master, _slave: pair.slave, keyboard, orders, got, _folder: folder }
    }

    /// Types, in one piece.
    pub(super) fn send(&self, keys: &str) {
        self.keyboard.lock().unwrap().write_all(keys.as_bytes()).unwrap();
    }

    /// Tells the child to do something; comes back when it's done.
    pub(super) fn tell(&self, order: &str) {
        (&self.orders).write_all(format!("{order}\n").as_bytes()).unwrap();
        let mut done = [0];
        let _ = (&self.orders).read(&mut done);
    }

    pub(super) fn raw(&self) -> String {
        String::from_utf8_lossy(&self.got.raw.lock().unwrap()).into_owned()
    }

    pub(super) fn screen(&self) -> Screen {
        Screen::of(&self.got.raw.lock().unwrap())
    }

    /// Waits until the screen is so.
    pub(super) fn until(&self, what: &str, holds: impl Fn(&Screen) -> bool) {
        self.wait(what, |raw| holds(&Screen::of(raw)));
    }

    /// Waits until all that was written is so; for what may have left the screen.
    pub(super) fn until_raw(&self, what: &str, holds: impl Fn(&str) -> bool) {
        self.wait(what, |raw| holds(&String::from_utf8_lossy(raw)));
    }

    fn wait(&self, what: &str, holds: impl Fn(&[u8]) -> bool) {
        let end = Instant::now() + LIMIT;
        let mut raw = self.got.raw.lock().unwrap();
        while !holds(&raw) {
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{what} never came:\n{}", Screen::of(&raw).text());
            raw = self.got.changed.wait_timeout(raw, left).unwrap().0;
        }
    }

    pub(super) fn until_shown(&self, text: &str) {
        self.until(text, |screen| screen.text().contains(text));
    }

    pub(super) fn wait_exit(&mut self) {
        let end = Instant::now() + LIMIT;
        while self.child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < end, "the child does not end:\n{}", self.screen().text());
            thread::yield_now();
        }
    }

    /// Does the terminal echo and gather lines, as a shell expects it?
    pub(super) fn is_cooked(&self) -> bool {
        let fd = self.master.as_raw_fd().unwrap();
        // SAFETY: the master lives as long as `self`.
        let settings = tcgetattr(unsafe { BorrowedFd::borrow_raw(fd) }).unwrap();
        settings.local_flags.contains(LocalFlags::ECHO | LocalFlags::ICANON | LocalFlags::ISIG)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn collect(mut reader: Box<dyn Read + Send>, got: &Got) {
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = reader.read(&mut bytes) {
        got.raw.lock().unwrap().extend_from_slice(&bytes[..count]);
        got.changed.notify_all();
    }
}

/// The screen after some bytes.
pub(super) struct Screen(vt100::Parser);

impl Screen {
    fn of(raw: &[u8]) -> Self {
        let mut parser = vt100::Parser::new(24.try_into().unwrap(), 80.try_into().unwrap(), 0);
        parser.process(raw);
        Self(parser)
    }

    pub(super) fn text(&self) -> String {
        self.0.screen().contents()
    }

    /// The cursor's row.
    pub(super) fn row(&self) -> String {
        let (row, _) = self.0.screen().cursor_position();
        self.0.screen().rows(0, 80).nth(row.into()).unwrap_or_default().trim_end().to_owned()
    }

    pub(super) fn column(&self) -> u16 {
        self.0.screen().cursor_position().1
    }

    pub(super) fn pastes(&self) -> bool {
        self.0.screen().bracketed_paste()
    }
}

/// The other side: does nothing when it's run as an ordinary test.
pub(super) fn child() {
    let Some(socket) = std::env::var_os(SOCKET) else {
        return;
    };
    let (typed, mut typed_rx) = tokio::sync::mpsc::unbounded_channel();
    let commands = ["/help", "/team", "/requests", "/reject"];
    let options = UiOptions { commands: commands.map(str::to_owned).to_vec(), ..UiOptions::default() };
    let ui = Ui::start(Front::Terminal, options, typed).unwrap();
    let items = ui.items();
    let seq = Arc::new(Mutex::new(0));
    let emit = move |event: Event| {
        let mut seq = seq.lock().unwrap();
        *seq += 1;
        items.send(Item { seq: *seq, time: String::new(), event }).unwrap();
    };
    emit(notice("ready"));
    let answer = emit.clone();
    thread::spawn(move || {
        let mut ends = 0;
        while let Some(typed) = typed_rx.blocking_recv() {
            answer(notice(&match typed {
                Typed::Line { text, seen } => format!("line {text:?} seen {seen}"),
                Typed::Interrupt => "interrupt".to_owned(),
                Typed::Leave => "leave".to_owned(),
                Typed::Eof => {
                    ends += 1;
                    format!("eof {ends}")
                }
            }));
        }
    });
    let orders = UnixStream::connect(socket).unwrap();
    for order in BufReader::new(&orders).lines() {
        let order = order.unwrap();
        let lead = AgentName::lead();
        match order.split_once(' ').unwrap_or((&order, "")) {
            ("notice", text) => emit(notice(text)),
            ("work", _) => emit(Event::TurnStarted { agent: lead }),
            ("rest", _) => emit(Event::TurnEnded { agent: lead, end: TurnEnd::Yielded }),
            ("propose", _) => emit(Event::Proposed { proposal: proposal() }),
            ("exit", _) => {
                restore_terminal();
                std::process::exit(0);
            }
            (other, _) => {
                assert_eq!(other, "close");
                emit(notice("the last words"));
                let started = Instant::now();
                ui.close();
                assert!(started.elapsed() < Duration::from_secs(1));
                std::process::exit(0);
            }
        }
        (&orders).write_all(b".").unwrap();
    }
}

fn notice(text: &str) -> Event {
    Event::Notice { level: Level::Info, text: text.to_owned() }
}

fn proposal() -> Proposal {
    let name = AgentName::parse("config").unwrap();
    let member = Member { name, role: "整理".into(), prompt: String::new(), require_plan: false, model: None };
    Proposal { members: vec![member], reason: String::new() }
}
