//! The program in a real pseudo-terminal, read through a terminal emulator.

use std::io::{Read, Write};
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use crate::harness::{Bench, PATIENCE};

pub(crate) const PROMPT: &str = "s15 >>";

pub(crate) struct Terminal {
    screen: Arc<Mutex<vt100::Parser>>,
    keys: Box<dyn Write + Send>,
    master: Box<dyn MasterPty + Send>,
    child: Box<dyn Child + Send + Sync>,
}

impl Terminal {
    /// Starts the program on a screen of this size and waits for its prompt.
    pub(crate) fn start(bench: &Bench, columns: u16, rows: u16) -> Self {
        let size = PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 };
        let pty = native_pty_system().openpty(size).expect("a pseudo-terminal");
        let program = bench.command(&[]);
        let mut command = CommandBuilder::new(program.get_program());
        command.env_clear();
        for (name, value) in program.get_envs() {
            command.env(name, value.expect("set, not removed"));
        }
        command.env("TERM", "xterm-256color");
        command.cwd(bench.workspace());
        let child = pty.slave.spawn_command(command).expect("the program starts");
        let mut output = pty.master.try_clone_reader().expect("its output");
        let lines_kept = 2_000;
        let screen = Arc::new(Mutex::new(vt100::Parser::new(cells(rows), cells(columns), lines_kept)));
        let fed = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut buffer) {
                fed.lock().expect("a screen").process(&buffer[..count]);
            }
        });
        let keys = pty.master.take_writer().expect("its input");
        let mut terminal = Self { screen, keys, master: pty.master, child };
        terminal.wait("the prompt", |terminal| terminal.cursor_line().starts_with(PROMPT));
        terminal
    }

    /// Sends bytes in one write.
    pub(crate) fn keys(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("the program reads");
        self.keys.flush().expect("the program reads");
    }

    /// Types a line; waits until it is echoed before Enter, as a person would.
    pub(crate) fn line(&mut self, text: &str) {
        self.keys(text);
        let tail = text.to_owned();
        self.wait("the echo", |terminal| terminal.cursor_line().contains(&tail));
        self.keys("\r");
    }

    pub(crate) fn text(&self) -> String {
        self.screen.lock().expect("a screen").screen().contents()
    }

    /// The text of the row in which the cursor stands, and the cursor's column.
    pub(crate) fn cursor(&self) -> (String, u16) {
        let parser = self.screen.lock().expect("a screen");
        let screen = parser.screen();
        let (row, column) = screen.cursor_position();
        let (_, columns) = screen.size();
        (screen.contents_between(row, 0, row, columns.get()).trim_end().to_owned(), column)
    }

    pub(crate) fn cursor_line(&self) -> String {
        self.cursor().0
    }

    /// Waits for a condition of the screen.
    pub(crate) fn wait(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !holds(self) {
            let ended = self.child.try_wait().expect("the child can be asked");
            assert!(Instant::now() < until, "never came: {what}\n{}", self.text());
            assert!(ended.is_none(), "ended before {what}: {ended:?}\n{}", self.text());
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    pub(crate) fn see(&mut self, text: &str) {
        self.wait(text, |terminal| terminal.text().contains(text));
    }

    /// Waits for the end; gives the exit code.
    pub(crate) fn exit_code(&mut self) -> u32 {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("the child can be asked") {
                return status.exit_code();
            }
            assert!(Instant::now() < until, "does not end:\n{}", self.text());
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    /// Is the terminal as a shell needs it: lines are edited and echoed by the system?
    pub(crate) fn is_sane(&self) -> bool {
        let descriptor: RawFd = self.master.as_raw_fd().expect("a unix terminal");
        let state = {
            use std::os::fd::BorrowedFd;
            // SAFETY: `master` keeps the descriptor open during the call.
            #[allow(unsafe_code)]
            let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
            nix::sys::termios::tcgetattr(borrowed).expect("a terminal")
        };
        use nix::sys::termios::LocalFlags;
        state.local_flags.contains(LocalFlags::ICANON | LocalFlags::ECHO | LocalFlags::ISIG)
    }

    pub(crate) fn pid(&self) -> nix::unistd::Pid {
        nix::unistd::Pid::from_raw(i32::try_from(self.child.process_id().expect("it runs")).expect("a pid"))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // One that has ended already can't be ended again.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn cells(count: u16) -> std::num::NonZero<u16> {
    std::num::NonZero::new(count).expect("a screen has cells")
}
