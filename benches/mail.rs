//! What a mailbox costs: append, drain with acknowledge, and a backlog that outsiders left.
#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark that can't go on just ends")]

use std::fmt::Write;

use divan::Bencher;
use s15::mail::Post;
use s15::protocol::{AgentName, Mail, MessageType, Metadata};
use uuid::Uuid;

fn main() {
    divan::main();
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
    bencher
        .with_inputs(|| {
            let folder = tempfile::tempdir().unwrap();
            let post = Post::new(folder.path(), Uuid::now_v7());
            (folder, post)
        })
        .bench_local_refs(|(_, post)| send(post, count));
}

#[divan::bench(args = [1, 100])]
fn append_drain_acknowledge(bencher: Bencher<'_, '_>, count: usize) {
    bencher
        .with_inputs(|| {
            let folder = tempfile::tempdir().unwrap();
            let post = Post::new(folder.path(), Uuid::now_v7());
            (folder, post)
        })
        .bench_local_refs(|(_, post)| {
            send(post, count);
            assert_eq!(empty(post), count);
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

#[divan::bench(sample_count = 5)]
fn backlog_of_100_000_outside_lines(bencher: Bencher<'_, '_>) {
    let mut lines = String::new();
    for number in 0..100_000 {
        writeln!(lines, "{{\"from\":\"job\",\"content\":\"line {number}\"}}").unwrap();
    }
    bencher
        .with_inputs(|| {
            let folder = tempfile::tempdir().unwrap();
            let mut post = Post::new(folder.path(), Uuid::now_v7());
            post.prepare().unwrap();
            std::fs::write(post.folder().join("lead.jsonl"), &lines).unwrap();
            (folder, post)
        })
        .bench_local_refs(|(_, post)| assert_eq!(empty(post), 100_000));
}
