//! The program as a whole against the scripted server: start, overhead a tool turn, memory, idling, mail latency. Prints a table.
#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark that can't go on just ends")]

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use s15::scenario::{Running, Scenario, ServeOptions, serve};

struct Stage {
    root: tempfile::TempDir,
    server: Running,
    _runtime: tokio::runtime::Runtime,
}

impl Stage {
    fn new(scenario: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let scenario = Scenario::parse(scenario).unwrap();
        let server = runtime.block_on(serve(scenario, ServeOptions::default())).unwrap();
        Self { root: tempfile::tempdir().unwrap(), server, _runtime: runtime }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_s15"));
        let workspace = self.root.path().join("ws");
        std::fs::create_dir_all(&workspace).unwrap();
        command
            .args(arguments)
            .current_dir(workspace)
            .env_clear()
            .envs([("PATH", std::env::var("PATH").unwrap()), ("OPENAI_BASE_URL", self.server.url())])
            .envs([
                ("OPENAI_API_KEY", "sk-bench"),
                ("OPENAI_MODEL", "scripted"),
                ("S15_MAX_TEAMMATES", "64"),
                ("TERM", "xterm"),
            ])
            .env("HOME", self.root.path())
            .env("S15_STATE_DIR", self.root.path().join("state"));
        command
    }

    /// A run whose input stays open, after the team has come to rest.
    fn resting_team(&self, teammates: usize) -> Child {
        let mut child =
            self.command(&[]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        child.stdin.as_mut().unwrap().write_all(b"team\nyes\n").unwrap();
        self.until(|| {
            let requests = self.server.requests();
            let told =
                requests.iter().filter(|request| request.agent == "lead").map(|request| request.body.to_string());
            let told = told.max_by_key(String::len).unwrap_or_default();
            (1..=teammates).all(|number| told.contains(&format!("[result] m{number}:")))
        });
        std::thread::sleep(Duration::from_millis(300));
        child
    }

    fn until(&self, mut holds: impl FnMut() -> bool) {
        let limit = Instant::now() + Duration::from_secs(60);
        while !holds() {
            assert!(Instant::now() < limit, "never came; faults: {:?}", self.server.faults());
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

fn team(teammates: usize) -> String {
    let members: Vec<String> =
        (1..=teammates).map(|number| format!("{{ name = \"m{number}\", role = \"r\", prompt = \"p\" }}")).collect();
    format!(
        "[fallback]\n\"*\" = \"done\"\n[[rule]]\nagent = \"lead\"\nuser = \"team\"\nlacks_call = \"propose_team\"\ncalls = [{{ tool = \"propose_team\", arguments = {{ members = [{}], reason = \"r\" }} }}]\n\
         [[rule]]\nagent = \"lead\"\nuser_is = \"yes\"\nlacks_call = \"spawn_teammate\"\ncalls = [{}]\n",
        members.join(", "),
        (1..=teammates)
            .map(|number| format!("{{ tool = \"spawn_teammate\", arguments = {{ name = \"m{number}\" }} }}"))
            .collect::<Vec<_>>()
            .join(", ")
    )
}

fn row(what: &str, value: &str, limit: &str) {
    let mut out = std::io::stdout();
    writeln!(out, "{what:<58} {value:>22}   ({limit})").unwrap();
}

fn at(sorted: &[Duration], share: f64) -> Duration {
    sorted[((sorted.len() - 1) as f64 * share) as usize]
}

fn millis(duration: Duration) -> String {
    format!("{:.2} ms", duration.as_secs_f64() * 1000.0)
}

fn spread(mut values: Vec<Duration>) -> String {
    values.sort();
    format!("{} / {}", millis(at(&values, 0.5)), millis(at(&values, 0.99)))
}

fn start_to_first_request() {
    let mut times = Vec::new();
    for _ in 0..20 {
        let stage = Stage::new("[fallback]\n\"*\" = \"hi\"\n");
        let started = Instant::now();
        stage
            .command(&["-p", "hello"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        times.push(stage.server.requests()[0].at - started);
    }
    row("start to first request of -p, p50 / p99", &spread(times), "<= 30 ms");
}

fn start_to_prompt() {
    use portable_pty::{CommandBuilder, PtySize, native_pty_system};
    let stage = Stage::new("[fallback]\n\"*\" = \"hi\"\n");
    let mut times = Vec::new();
    for _ in 0..20 {
        let pty = native_pty_system().openpty(PtySize::default()).unwrap();
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_s15"));
        command.cwd(stage.root.path());
        for (name, value) in
            [("OPENAI_BASE_URL", stage.server.url()), ("OPENAI_MODEL", "m".into()), ("TERM", "xterm".into())]
        {
            command.env(name, value);
        }
        command.env("S15_STATE_DIR", stage.root.path().join("state"));
        let started = Instant::now();
        let mut child = pty.slave.spawn_command(command).unwrap();
        let mut reader = pty.master.try_clone_reader().unwrap();
        let mut screen = Vec::new();
        let mut buffer = [0; 4096];
        while !String::from_utf8_lossy(&screen).contains("s15 >> ") {
            let count = reader.read(&mut buffer).unwrap();
            screen.extend_from_slice(&buffer[..count]);
        }
        times.push(started.elapsed());
        child.kill().unwrap();
        child.wait().unwrap();
    }
    row("start to prompt, p50 / p99", &spread(times), "<= 60 ms");
}

fn overhead_of_a_tool_turn() {
    let scenario = "[fallback]\n\"*\" = \"done\"\n[[rule]]\nagent = \"lead\"\nn = 1\ncalls = [{ tool = \"bash\", arguments = { command = \"echo hi\" } }]\n\
         [[rule]]\nagent = \"lead\"\nafter_result = \"bash\"\ntimes = 150\ncalls = [{ tool = \"bash\", arguments = { command = \"echo hi\" } }]\n";
    let stage = Stage::new(scenario);
    stage.command(&["-p", "go"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    let requests = stage.server.requests();
    let times: Vec<Duration> =
        requests.windows(2).filter_map(|pair| Some(pair[1].at.saturating_duration_since(pair[0].answered?))).collect();
    row(&format!("overhead a tool turn ({} turns), p50 / p99", times.len()), &spread(times), "<= 4 ms");
    row("first request body, lead", &format!("{} bytes", requests[0].raw_len), "<= 10000");
}

fn status(pid: u32, key: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find(|line| line.starts_with(key)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn memory() {
    let peak = |teammates: usize| {
        let stage = Stage::new(&team(teammates));
        let mut child = stage.resting_team(teammates);
        let peak = status(child.id(), "VmHWM");
        let requests = stage.server.requests();
        let works = (1..=teammates)
            .filter(|number| requests.iter().any(|request| request.agent == format!("m{number}")))
            .count();
        let body = requests.iter().find(|request| request.agent == "m1").unwrap().raw_len;
        child.kill().unwrap();
        child.wait().unwrap();
        (peak, works, body)
    };
    let (three, _, body) = peak(3);
    let (many, works, _) = peak(64);
    row("first request body, teammate", &format!("{body} bytes"), "<= 6000");
    row("peak memory with three teammates", &format!("{:.1} MiB", three as f64 / 1024.0), "<= 20 MiB");
    row(
        "each further idle teammate",
        &format!("{:.2} MiB", (many.saturating_sub(three)) as f64 / 1024.0 / 61.0),
        "<= 0.3 MiB",
    );
    row("of 64 teammates spawned together, at work", &works.to_string(), "64");
}

fn idling() {
    let stage = Stage::new(&team(4));
    let mut child = stage.resting_team(4);
    let look = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
        let tasks = std::fs::read_dir(Path::new("/proc").join(pid.to_string()).join("task")).unwrap();
        let switches: u64 = tasks
            .map(|task| std::fs::read_to_string(task.unwrap().path().join("status")).unwrap())
            .map(|text| {
                text.lines()
                    .find(|line| line.starts_with("voluntary"))
                    .unwrap()
                    .split_whitespace()
                    .nth(1)
                    .unwrap()
                    .parse::<u64>()
                    .unwrap()
            })
            .sum();
        (ticks, switches)
    };
    let before = look(child.id());
    std::thread::sleep(Duration::from_secs(20));
    let after = look(child.id());
    row("CPU of 20 s idle with four teammates", &format!("{:.2} s", (after.0 - before.0) as f64 / 100.0), "<= 0.01 s");
    row("voluntary context switches in that time", &(after.1 - before.1).to_string(), "<= 40");
    child.kill().unwrap();
    child.wait().unwrap();
}

fn mail_latency() {
    let stage = Stage::new(&team(1));
    let mut child = stage.resting_team(1);
    let mailbox = stage.root.path().join("ws/.mailboxes/lead.jsonl");
    let mut times = Vec::new();
    for number in 0..200 {
        let mark = format!("LATENCY-{number}.");
        let line = format!("{{\"from\":\"m1\",\"content\":\"{mark}\"}}\n");
        let before = stage.server.requests().len();
        let appended = Instant::now();
        std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(&mailbox)
            .unwrap()
            .write_all(line.as_bytes())
            .unwrap();
        let mut arrived = None;
        // Looking costs time on the machine that is being measured; the server notes when the request came.
        std::thread::sleep(Duration::from_millis(40));
        stage.until(|| {
            let requests = stage.server.requests();
            arrived = requests
                .iter()
                .skip(before)
                .find(|request| request.body.to_string().contains(&mark))
                .map(|request| request.at);
            arrived.is_some()
        });
        times.push(arrived.unwrap() - appended);
    }
    row("append by another process to model request, p50 / p99", &spread(times), "<= 5 / 20 ms");
    child.kill().unwrap();
    child.wait().unwrap();
}

fn main() {
    start_to_first_request();
    start_to_prompt();
    overhead_of_a_tool_turn();
    memory();
    mail_latency();
    idling();
}
