//! One run of the real program against the scripted server: a workspace, a server on 127.0.0.1, and what came out.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use s15::scenario::{Recorded, Running, Scenario, ServeOptions, serve};

/// How long anything may take before a test gives up. Only a hang takes this long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A workspace, a server, and how to start the program in them.
pub(crate) struct Bench {
    root: tempfile::TempDir,
    server: Running,
    /// The server's tasks run here.
    _runtime: tokio::runtime::Runtime,
    env: Vec<(String, String)>,
}

/// What a finished run left.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Bench {
    /// A server that answers by `scenario` (TOML).
    pub(crate) fn new(scenario: &str) -> Self {
        Self::with(scenario, ServeOptions::default())
    }

    pub(crate) fn with(scenario: &str, options: ServeOptions) -> Self {
        let scenario: Scenario = Scenario::parse(scenario).expect("the scenario of a test is well-formed");
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let server = runtime.block_on(serve(scenario, options)).expect("a port on 127.0.0.1");
        let root = tempfile::tempdir().expect("a temporary folder");
        for folder in ["ws", "home"] {
            std::fs::create_dir(root.path().join(folder)).expect("a folder");
        }
        Self { root, server, _runtime: runtime, env: Vec::new() }
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Puts a file into the workspace.
    pub(crate) fn file(self, path: &str, content: &str) -> Self {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(path, content).expect("a file");
        self
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.root.path().join("ws")
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.workspace().join(path)
    }

    pub(crate) fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.path(path)).ok()
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.root.path().join("home/state")
    }

    /// The program with this bench's environment and nothing of the tester's own.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_s15"));
        command.args(arguments);
        self.at_home(command)
    }

    /// A shell command in the same place.
    pub(crate) fn shell(&self, line: &str) -> Command {
        let mut command = Command::new("bash");
        command.args(["-c", line]);
        self.at_home(command)
    }

    fn at_home(&self, mut command: Command) -> Command {
        command
            .current_dir(self.workspace())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.root.path().join("home"))
            .env("S15_STATE_DIR", self.state())
            .env("LANG", "C.UTF-8")
            .env("OPENAI_BASE_URL", self.server.url())
            .env("OPENAI_API_KEY", "sk-test-0000")
            .env("OPENAI_MODEL", "scripted")
            .envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs to the end with `input` on standard input.
    pub(crate) fn run(&self, arguments: &[&str], input: &str) -> Finished {
        let child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        finish(child, input)
    }

    /// Every model request so far, oldest first.
    pub(crate) fn requests(&self) -> Vec<Recorded> {
        self.server.requests()
    }

    /// The requests of one agent.
    pub(crate) fn requests_of(&self, agent: &str) -> Vec<Recorded> {
        self.requests().into_iter().filter(|request| request.agent == agent).collect()
    }

    /// What was wrong with requests by the rules that strict servers hold.
    pub(crate) fn faults(&self) -> Vec<String> {
        self.server.faults()
    }

    /// Fails if any request broke such a rule.
    pub(crate) fn assert_no_faults(&self) {
        let faults = self.faults();
        assert!(faults.is_empty(), "malformed requests: {faults:#?}");
    }
}

/// Waits until `look` gives something.
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "never came: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Feeds a child its input, closes it, and collects what it says.
pub(crate) fn finish(mut child: Child, input: &str) -> Finished {
    use std::io::Write;
    let mut stdin = child.stdin.take().expect("piped");
    let input = input.to_owned();
    let writer = std::thread::spawn(move || {
        // A program that ended early closes its end; its exit code tells.
        let _ = stdin.write_all(input.as_bytes());
    });
    let output = child.wait_with_output().expect("the program ends");
    writer.join().expect("the writer ends");
    Finished {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
    }
}

/// The text of a request's newest message.
pub(crate) fn last_text(request: &Recorded) -> String {
    let messages = request.body["messages"].as_array().cloned().unwrap_or_default();
    messages.last().and_then(|message| message["content"].as_str()).unwrap_or_default().to_owned()
}

/// All user-role texts of a request.
pub(crate) fn user_texts(request: &Recorded) -> Vec<String> {
    let messages = request.body["messages"].as_array().cloned().unwrap_or_default();
    let of_user = messages.iter().filter(|message| message["role"] == "user");
    of_user.filter_map(|message| message["content"].as_str().map(str::to_owned)).collect()
}

/// All tool results of a request, in order.
pub(crate) fn results(request: &Recorded) -> Vec<String> {
    let messages = request.body["messages"].as_array().cloned().unwrap_or_default();
    let of_tools = messages.iter().filter(|message| message["role"] == "tool");
    of_tools.filter_map(|message| message["content"].as_str().map(str::to_owned)).collect()
}
