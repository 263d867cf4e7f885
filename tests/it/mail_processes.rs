//! Mailboxes between processes: many writers beside a reader that drains all the while, writers that are killed, disks that are full.
//!
//! The writers are shells, and this very test binary, started again for [`writer`] alone. `S15_TEST_MAIL_MESSAGES` sets how many
//! messages each of eight writers sends.
#![allow(clippy::print_stdout, reason = "a writing process tells its parent what it has sent")]

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use s15::mail::{MailError, Post, Watch, mailbox_path};
use s15::protocol::{AgentName, Mail, MailKey, MessageType, Metadata};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::harness::PATIENCE;

/// What a writer is told: how to write, where, as whom, how many lines, for which session.
const ORDER: &str = "S15_TEST_MAIL_WRITER";

/// Messages of each of the eight writers, unless the environment says otherwise.
const MESSAGES: usize = 2_000;

/// A line each, as a shell appends them: the mailbox is opened for each, or once for all. `$1` is the name, `$2` the count.
const SHELL_OPENS: &str = "i=0; while [ $i -lt $2 ]; do printf '{\"from\":\"%s\",\"content\":\"%s\"}\\n' $1 $i >> .mailboxes/lead.jsonl; i=$((i+1)); done";
const SHELL_HOLDS: &str = "i=0; while [ $i -lt $2 ]; do printf '{\"from\":\"%s\",\"content\":\"%s\"}\\n' $1 $i; i=$((i+1)); done >> .mailboxes/lead.jsonl";

/// Not a test by itself: a writing process, when one was ordered.
#[test]
fn writer() {
    let Ok(order) = std::env::var(ORDER) else { return };
    let mut parts = order.split('|');
    let mut next = || parts.next().expect("a part of the order").to_owned();
    let (how, workspace, name) = (next(), next(), next());
    let count: usize = next().parse().unwrap();
    let session = Uuid::parse_str(&next()).unwrap();
    let path = mailbox_path(Path::new(&workspace), &AgentName::lead());
    let line = |number| format!("{{\"from\":\"{name}\",\"content\":\"{number}\"}}\n");
    let open = || OpenOptions::new().append(true).create(true).open(&path).unwrap();
    match how.as_str() {
        // Opens and closes for each line, and knows nothing of locks.
        "opener" => (0..count).for_each(|number| open().write_all(line(number).as_bytes()).unwrap()),
        "holder" => {
            let mut file = open();
            (0..count).for_each(|number| file.write_all(line(number).as_bytes()).unwrap());
        }
        "post" => {
            let mut post = Post::new(Path::new(&workspace), session);
            for number in 0..count {
                say_sent(number, send(&mut post, &name, number, 0));
            }
        }
        // Long lines, which a kill can tear.
        "endless" => {
            let mut post = Post::new(Path::new(&workspace), session);
            for number in 0.. {
                say_sent(number, send(&mut post, &name, number, 64 * 1024));
            }
        }
        "until it fails" => {
            let mut post = Post::new(Path::new(&workspace), session);
            let error = (0..).find_map(|number| {
                let sent = send(&mut post, &name, number, 100);
                if sent.is_ok() {
                    println!("sent {number}");
                }
                sent.err()
            });
            println!("failed {}", error.expect("it ends with an error"));
        }
        other => panic!("no such writer: {other}"),
    }
}

fn send(post: &mut Post, from: &str, number: usize, padding: usize) -> Result<(), MailError> {
    let from = AgentName::parse(from).unwrap();
    let content = format!("{number}{}", " ".repeat(padding));
    let message = post.compose(&from, &AgentName::lead(), MessageType::Message, content, Metadata::default());
    post.send(vec![message])
}

fn say_sent(number: usize, sent: Result<(), MailError>) {
    sent.unwrap();
    println!("sent {number}");
}

/// The workspace and its one reader.
struct Reader {
    workspace: tempfile::TempDir,
    session: Uuid,
    post: Post,
    hint: Arc<Notify>,
    watch: Watch,
    runtime: tokio::runtime::Runtime,
    /// Numbers as they came, by sender.
    got: BTreeMap<String, Vec<usize>>,
    keys: HashMap<MailKey, usize>,
    set_aside: Vec<String>,
}

impl Reader {
    fn new() -> Self {
        let workspace = tempfile::tempdir().unwrap();
        let session = Uuid::now_v7();
        let mut post = Post::new(workspace.path(), session);
        post.prepare().unwrap();
        let hint = Arc::new(Notify::new());
        let (watch, _) = Watch::start(post.folder(), hint.clone());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let (got, keys, set_aside) = (BTreeMap::new(), HashMap::new(), Vec::new());
        Self { workspace, session, post, hint, watch, runtime, got, keys, set_aside }
    }

    fn order(&self, how: &str, name: &str, count: usize) -> String {
        format!("{how}|{}|{name}|{count}|{}", self.workspace.path().display(), self.session)
    }

    fn start(&self, how: &str, name: &str, count: usize) -> Child {
        let shell = |script: &str| {
            let mut shell = Command::new("bash");
            shell.args(["-c", script, "bash", name, &count.to_string()]).current_dir(self.workspace.path());
            shell
        };
        let mut command = match how {
            "shell opens" => shell(SHELL_OPENS),
            "shell holds" => shell(SHELL_HOLDS),
            _ => {
                let mut command = myself();
                command.env(ORDER, self.order(how, name, count));
                command
            }
        };
        command.stdout(Stdio::piped()).spawn().unwrap()
    }

    /// Drains once, and acknowledges; gives the number of messages.
    fn drain(&mut self) -> usize {
        let drain = self.post.drain(&AgentName::lead());
        assert_eq!(drain.trouble, None);
        for mail in &drain.mail {
            let from = match mail {
                Mail::Inside(message) => message.from.to_string(),
                Mail::Outside(outside) => outside.from.clone().unwrap(),
            };
            self.got.entry(from).or_default().push(mail.content().trim().parse().unwrap());
            *self.keys.entry(mail.key()).or_default() += 1;
        }
        self.set_aside.extend(drain.set_aside.into_iter().map(|aside| aside.reason));
        let keys: Vec<MailKey> = drain.mail.iter().map(Mail::key).collect();
        self.post.acknowledge(&AgentName::lead(), &keys).unwrap();
        keys.len()
    }

    fn has_mail(&self) -> bool {
        !self.post.with_mail([AgentName::lead()].iter()).is_empty()
    }

    /// Waits for a hint as a session does, with its safety look.
    fn wait(&mut self) {
        let (hint, longest) = (&self.hint, self.watch.look_every());
        drop(self.runtime.block_on(async { tokio::time::timeout(longest, hint.notified()).await }));
        self.watch.renew();
    }

    fn count(&self) -> usize {
        self.got.values().map(Vec::len).sum()
    }

    /// Reads until `count` messages have come.
    fn read_until(&mut self, count: usize) {
        let mut since = Instant::now();
        while self.count() < count {
            assert!(since.elapsed() < PATIENCE, "{} of {count} came: {}", self.count(), self.summary());
            if !self.has_mail() {
                self.wait();
            }
            if self.drain() > 0 {
                since = Instant::now();
            }
        }
    }

    fn summary(&self) -> String {
        let counts = self.got.iter().map(|(from, numbers)| format!("{from} {}", numbers.len()));
        counts.collect::<Vec<_>>().join(", ")
    }

    /// Nothing more comes, nothing unread is left, and nothing came twice.
    fn finish(&mut self) {
        while self.has_mail() {
            self.drain();
        }
        assert!(self.keys.values().all(|count| *count == 1), "a key stands for one message");
        let left = fs::read(mailbox_path(self.workspace.path(), &AgentName::lead())).unwrap_or_default();
        assert!(left.is_empty(), "{} bytes are left", left.len());
    }
}

fn myself() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "mail_processes::writer", "--nocapture"]);
    command
}

/// The numbers after `sent` in what a writer said.
fn sent(lines: impl BufRead) -> Vec<usize> {
    // The test harness writes into the first line, too.
    let number = |line: String| line.split("sent ").nth(1)?.trim().parse().ok();
    lines.lines().map_while(Result::ok).filter_map(number).collect()
}

/// Eight processes write, some in each of these ways, beside a reader whose own runtime sends, too.
fn eight_write(ways: &[(&str, usize)]) {
    let messages = std::env::var("S15_TEST_MAIL_MESSAGES").map_or(MESSAGES, |count| count.parse().unwrap());
    let mut reader = Reader::new();
    let writers: Vec<(&str, String)> = ways
        .iter()
        .flat_map(|(way, count)| (0..*count).map(move |n| (*way, format!("{}{n}", way.replace(' ', "-")))))
        .collect();
    assert_eq!(writers.len(), 8);
    let began = Instant::now();
    let mut children: Vec<Child> = writers.iter().map(|(way, name)| reader.start(way, name, messages)).collect();
    // What they say must not stop them.
    let listeners: Vec<_> = children
        .iter_mut()
        .map(|child| BufReader::new(child.stdout.take().unwrap()))
        .map(|stdout| std::thread::spawn(move || sent(stdout).len()))
        .collect();
    // The runtime's own mail goes between theirs.
    for number in 0..messages {
        send(&mut reader.post, "inside", number, 0).unwrap();
        reader.drain();
    }
    reader.read_until(messages * (writers.len() + 1));
    let took = began.elapsed().as_secs_f64();
    println!("{ways:?}: {} messages in {took:.1} s, {:.0} a second", reader.count(), reader.count() as f64 / took);
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    for listener in listeners {
        assert!([0, messages].contains(&listener.join().unwrap()));
    }
    reader.finish();
    assert_eq!(reader.set_aside, Vec::<String>::new());
    assert_eq!(reader.got.len(), writers.len() + 1);
    for (from, numbers) in &reader.got {
        assert!(numbers.iter().copied().eq(0..messages), "{from}: {} numbers", numbers.len());
    }
}

#[test]
fn i1_eight_processes_that_take_our_lock_lose_double_and_mix_up_nothing() {
    eight_write(&[("post", 8)]);
}

#[test]
fn i1_eight_processes_that_know_of_no_lock_lose_double_and_mix_up_nothing() {
    eight_write(&[("shell opens", 2), ("shell holds", 3), ("opener", 1), ("holder", 2)]);
}

#[test]
fn i1_eight_processes_of_all_kinds_lose_double_and_mix_up_nothing() {
    eight_write(&[("post", 3), ("shell opens", 2), ("shell holds", 1), ("opener", 1), ("holder", 1)]);
}

#[test]
fn i1_shells_that_are_killed_harm_no_other() {
    let mut reader = Reader::new();
    let mut killed = ["shell opens", "shell holds"].map(|way| reader.start(way, &way.replace(' ', "-"), 20_000));
    let mut others = ["one", "other"].map(|name| reader.start("shell opens", name, 300));
    reader.read_until(100);
    for child in &mut killed {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    for child in &mut others {
        assert!(child.wait().unwrap().success());
    }
    reader.finish();
    for (from, numbers) in &reader.got {
        assert!(numbers.iter().copied().eq(0..numbers.len()), "{from}: {numbers:?}");
    }
    assert!(["one", "other"].iter().all(|name| reader.got[*name].len() == 300), "{}", reader.summary());
}

#[test]
fn i1_two_equal_lines_from_outside_are_two_messages() {
    let mut reader = Reader::new();
    let twice = "for i in 1 2; do echo '{\"from\":\"ci\",\"content\":\"0\"}' >> .mailboxes/lead.jsonl; done";
    let status = Command::new("bash").args(["-c", twice]).current_dir(reader.workspace.path()).status();
    assert!(status.unwrap().success());
    reader.finish();
    assert_eq!(reader.got["ci"], [0, 0]);
}

#[test]
fn i1_a_killed_writer_leaves_at_most_one_stump_and_takes_nothing_else_along() {
    let mut reader = Reader::new();
    let mut said = BTreeMap::new();
    for round in 0..8 {
        let name = format!("endless{round}");
        let mut child = reader.start("endless", &name, 0);
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        for _ in 0..10 + round * 7 {
            line.clear();
            while !line.contains("sent ") {
                line.clear();
                stdout.read_line(&mut line).unwrap();
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let last = sent(stdout).last().copied().unwrap_or_else(|| sent(line.as_bytes())[0]);
        said.insert(name, last + 1);
        // Others go on, whatever it left.
        send(&mut reader.post, "inside", round, 0).unwrap();
    }
    reader.read_until(said.values().sum::<usize>() + 8);
    while reader.has_mail() {
        reader.drain();
    }
    assert!(reader.got["inside"].iter().copied().eq(0..8));
    for (name, said) in &said {
        let numbers = &reader.got[name];
        // The last one may have been written and not yet said.
        assert!(
            numbers.iter().copied().eq(0..numbers.len()) && (numbers.len() - said) <= 1,
            "{name}: {said} {numbers:?}"
        );
    }
    assert!(reader.set_aside.is_empty(), "a stump is set aside only when it is old: {:?}", reader.set_aside);
    let left = fs::read_to_string(mailbox_path(reader.workspace.path(), &AgentName::lead())).unwrap_or_default();
    assert!(!left.contains('\n'), "at most a stump is left in place");
}

#[test]
fn i1_a_full_disk_is_said_and_leaves_no_half_message() {
    let mut reader = Reader::new();
    let order = reader.order("until it fails", "full", 0);
    // A limit on the size of files stands for a full disk: the last write comes short. Blocks of 1024 bytes.
    let limited = "trap '' XFSZ; ulimit -S -f 4; exec \"$@\"";
    let exe = myself();
    let output = Command::new("bash")
        .args(["-c", limited, "bash"])
        .arg(exe.get_program())
        .args(exe.get_args())
        .env(ORDER, order)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    let failed = said.lines().find_map(|line| line.strip_prefix("failed ")).unwrap();
    assert!(failed.contains("lead.jsonl") && failed.contains("ulimit"), "{failed}");
    let sent = sent(said.as_bytes());
    assert!(!sent.is_empty());
    reader.read_until(sent.len());
    reader.finish();
    assert_eq!(reader.got["full"], sent);
    assert!(reader.set_aside.is_empty());
    // The runtime's own mail is not held up by what happened.
    send(&mut reader.post, "inside", 0, 0).unwrap();
    assert_eq!(reader.drain(), 1);
}

#[test]
fn i1_a_watch_on_a_folder_that_is_removed_and_made_again_still_wakes() {
    let mut reader = Reader::new();
    for round in 0..3 {
        fs::remove_dir_all(reader.workspace.path().join(".mailboxes")).unwrap();
        let since = Instant::now();
        // As a session does: hinted or not, it renews the watch and looks, which makes the folder anew.
        while !(reader.post.folder().is_dir() && reader.watch.is_live()) {
            assert!(since.elapsed() < PATIENCE);
            reader.has_mail();
            reader.watch.renew();
            std::thread::sleep(Duration::from_millis(1));
            if reader.watch.look_every() < Duration::from_secs(1) && since.elapsed() > Duration::from_secs(1) {
                // No watch can be had here: the frequent look is all there is.
                break;
            }
        }
        let path = mailbox_path(reader.workspace.path(), &AgentName::lead());
        fs::write(path, format!("{{\"from\":\"ci\",\"content\":\"{round}\"}}\n")).unwrap();
        reader.wait();
        assert!(reader.has_mail());
        assert_eq!(reader.drain(), 1);
    }
}
