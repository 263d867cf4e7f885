//! What a mailbox costs: append, claim with acknowledge, what syncing would add, and a backlog that outsiders left.
#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark that can't go on just ends")]

use std::fmt::Write;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use divan::Bencher;
use s15::mail::Post;
use s15::protocol::{AgentName, Mail, MessageType, Metadata};
use uuid::Uuid;

/// Set for the process that empties a backlog while its memory is measured.
const MEASURED: &str = "S15_BENCH_MEASURED";
/// Lines of a backlog.
const BACKLOG: usize = 100_000;

fn main() {
    if std::env::var_os(MEASURED).is_some() {
        return empty_while_measured();
    }
    divan::main();
    // As a test it only shows that the benchmarks can run.
    if std::env::args().any(|argument| argument == "--bench") {
        memory_of_a_backlog();
    }
}

/// The program syncs no mailbox: whatever a killed process has written stays. This is what it would cost to outlive the machine.
#[derive(Clone, Copy, Debug)]
enum Sync {
    No,
    Fdatasync,
}

impl Sync {
    fn file(self, path: &Path) {
        match self {
            Self::No => {}
            Self::Fdatasync => File::open(path).unwrap().sync_data().unwrap(),
        }
    }
}

/// A workspace in which nothing was made yet.
fn new_post() -> (tempfile::TempDir, Post) {
    let folder = tempfile::tempdir().unwrap();
    let post = Post::new(folder.path(), Uuid::now_v7());
    (folder, post)
}

/// One with its folders.
fn post() -> (tempfile::TempDir, Post) {
    let (folder, mut post) = new_post();
    post.prepare().unwrap();
    (folder, post)
}

fn send(post: &mut Post, count: usize) {
    let (from, to) = (AgentName::parse("auth").unwrap(), AgentName::lead());
    for number in 0..count {
        let content = format!(
            "message {number}: a line of the usual length, about a hundred and twenty bytes with all that is around it"
        );
        let message = post.compose(&from, &to, MessageType::Message, content, Metadata::default());
        post.send(vec![message]).unwrap();
    }
}

/// Drains until nothing is left, acknowledging as it goes; gives the number of messages.
fn empty(post: &mut Post) -> usize {
    let lead = AgentName::lead();
    let mut count = 0;
    loop {
        let drain = post.drain(&lead);
        if drain.mail.is_empty() {
            return count;
        }
        count += drain.mail.len();
        let keys: Vec<_> = drain.mail.iter().map(Mail::key).collect();
        post.acknowledge(&lead, &keys).unwrap();
    }
}

#[divan::bench(args = [1, 100])]
fn append(bencher: Bencher<'_, '_>, count: usize) {
    bencher.with_inputs(new_post).bench_local_refs(|(_, post)| send(post, count));
}

#[divan::bench(args = [1, 100])]
fn append_drain_acknowledge(bencher: Bencher<'_, '_>, count: usize) {
    bencher.with_inputs(new_post).bench_local_refs(|(_, post)| {
        send(post, count);
        assert_eq!(empty(post), count);
    });
}

#[divan::bench(args = [Sync::No, Sync::Fdatasync])]
fn append_one(bencher: Bencher<'_, '_>, sync: Sync) {
    bencher.with_inputs(post).bench_local_refs(|(_, post)| {
        send(post, 1);
        sync.file(&post.folder().join("lead.jsonl"));
    });
}

/// Of one message; to be sure of a claim and of an acknowledgement their folder would have to be synced each time.
#[divan::bench(args = [Sync::No, Sync::Fdatasync])]
fn claim_and_acknowledge_one(bencher: Bencher<'_, '_>, sync: Sync) {
    let with_mail = || {
        let (folder, mut post) = post();
        send(&mut post, 1);
        sync.file(&post.folder().join("lead.jsonl"));
        (folder, post)
    };
    bencher.with_inputs(with_mail).bench_local_refs(|(_, post)| {
        let lead = AgentName::lead();
        let claimed = post.folder().join(".claimed");
        let keys: Vec<_> = post.drain(&lead).mail.iter().map(Mail::key).collect();
        sync.file(&claimed);
        post.acknowledge(&lead, &keys).unwrap();
        sync.file(&claimed);
        assert_eq!(keys.len(), 1);
    });
}

/// As in a long session: each message is drained and acknowledged before the next is sent.
#[divan::bench]
fn one_message_after_another(bencher: Bencher<'_, '_>) {
    let folder = tempfile::tempdir().unwrap();
    let mut post = Post::new(folder.path(), Uuid::now_v7());
    bencher.bench_local(|| {
        send(&mut post, 1);
        assert_eq!(empty(&mut post), 1);
    });
}

/// The look of an idle session, at nine mailboxes in which nothing lies.
#[divan::bench]
fn look_at_nine_empty_mailboxes(bencher: Bencher<'_, '_>) {
    let folder = tempfile::tempdir().unwrap();
    let mut post = Post::new(folder.path(), Uuid::now_v7());
    let names: Vec<_> = (0..9).map(|number| AgentName::parse(&format!("agent{number}")).unwrap()).collect();
    post.prepare().unwrap();
    for name in &names {
        post.drain(name);
    }
    bencher.bench_local(|| assert!(post.with_mail(names.iter()).is_empty()));
}

fn backlog() -> String {
    let mut lines = String::new();
    for number in 0..BACKLOG {
        writeln!(lines, "{{\"from\":\"job\",\"content\":\"line {number}\"}}").unwrap();
    }
    lines
}

fn post_with(backlog: &str) -> (tempfile::TempDir, Post) {
    let (folder, post) = post();
    std::fs::write(post.folder().join("lead.jsonl"), backlog).unwrap();
    (folder, post)
}

#[divan::bench(sample_count = 5)]
fn backlog_of_100_000_outside_lines(bencher: Bencher<'_, '_>) {
    let lines = backlog();
    bencher.with_inputs(|| post_with(&lines)).bench_local_refs(|(_, post)| assert_eq!(empty(post), BACKLOG));
}

/// How long such a backlog keeps its reader from the first of it.
#[divan::bench(sample_count = 5)]
fn first_drain_of_that_backlog(bencher: Bencher<'_, '_>) {
    let lines = backlog();
    let first = |post: &mut Post| post.drain(&AgentName::lead()).mail.len();
    bencher.with_inputs(|| post_with(&lines)).bench_local_refs(|(_, post)| assert!(first(post) > 0));
}

/// In a process of its own, since memory that others have used before would hide it.
fn memory_of_a_backlog() {
    let (folder, post) = post_with(&backlog());
    drop(post);
    let myself = Command::new(std::env::current_exe().unwrap()).env(MEASURED, folder.path()).output().unwrap();
    assert!(myself.status.success(), "{myself:?}");
    let grown: f64 = String::from_utf8(myself.stdout).unwrap().trim().parse().unwrap();
    let mut out = std::io::stdout();
    writeln!(out, "{:<58} {:>22}", "memory to empty that backlog", format!("{:.1} MiB", grown / 1024.0)).unwrap();
}

/// Says by how much the peak of memory grew, in KiB.
fn empty_while_measured() {
    let peak = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse().ok());
        line.unwrap_or(0_u64)
    };
    let workspace = std::env::var_os(MEASURED).unwrap();
    let mut post = Post::new(Path::new(&workspace), Uuid::now_v7());
    let before = peak();
    assert_eq!(empty(&mut post), BACKLOG);
    let mut out = std::io::stdout();
    writeln!(out, "{}", peak() - before).unwrap();
}
