//! Writers in other processes, which know nothing of our locks, beside a reader that never stops draining.

use std::collections::BTreeMap;
use std::process::{Child, Command};

use super::*;

const WRITERS: usize = 8;
const LINES: usize = 300;

fn writer(folder: &Path, number: usize) -> Child {
    // Each line is opened, appended and closed by itself, as a shell's `>>` does.
    let script = "for i in $(seq 1 $2); do printf '{\"from\":\"job\",\"content\":\"W-%s-%s.\"}\\n' $1 $i >> .mailboxes/lead.jsonl; done";
    let mut command = Command::new("bash");
    command.args(["-c", script, "bash", &number.to_string(), &LINES.to_string()]).current_dir(folder);
    command.spawn().expect("bash starts")
}

/// Drains and acknowledges until every writer has ended and nothing is left; sends inside mail between.
fn drain_beside(post: &mut Post, writers: &mut [Child]) -> (Vec<String>, Vec<String>) {
    let lead = AgentName::lead();
    let (mut inside, mut outside) = (Vec::new(), Vec::new());
    let mut sent = 0;
    loop {
        let over = writers.iter_mut().all(|writer| writer.try_wait().expect("it can be asked").is_some());
        let from = AgentName::parse("auth").expect("a name");
        let message = post.compose(&from, &lead, MessageType::Message, format!("I-{sent}."), Metadata::default());
        post.send(vec![message]).expect("it is sent");
        sent += 1;
        let drain = post.drain(&lead);
        let keys: Vec<_> = drain.mail.iter().map(Mail::key).collect();
        for mail in drain.mail {
            match mail {
                Mail::Inside(message) => inside.push(message.content),
                Mail::Outside(mail) => outside.push(mail.content),
            }
        }
        post.acknowledge(&lead, &keys).expect("it is acknowledged");
        if over && post.with_mail([lead.clone()].iter()).is_empty() {
            assert_eq!(
                inside,
                (0..sent).map(|number| format!("I-{number}.")).collect::<Vec<_>>(),
                "inside mail in order, once"
            );
            return (inside, outside);
        }
    }
}

fn counts(outside: &[String]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for content in outside {
        *counts.entry(content.as_str()).or_default() += 1;
    }
    counts
}

#[test]
fn i1_writers_without_our_locks_lose_nothing_to_a_draining_reader() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut post = Post::new(folder.path(), Uuid::now_v7());
    post.prepare().expect("the folders");
    let mut writers: Vec<Child> = (0..WRITERS).map(|number| writer(folder.path(), number)).collect();
    let (_, outside) = drain_beside(&mut post, &mut writers);
    let counts = counts(&outside);
    assert_eq!(counts.len(), WRITERS * LINES);
    assert!(counts.values().all(|count| *count == 1), "none twice");
    for number in 0..WRITERS {
        let mine = outside.iter().filter(|content| content.starts_with(&format!("W-{number}-")));
        assert!(
            mine.eq((1..=LINES).map(|line| format!("W-{number}-{line}.")).collect::<Vec<_>>().iter()),
            "in order per writer"
        );
    }
}

#[test]
fn i1_a_writer_that_is_killed_harms_no_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut post = Post::new(folder.path(), Uuid::now_v7());
    post.prepare().expect("the folders");
    let mut writers: Vec<Child> = (0..4).map(|number| writer(folder.path(), number)).collect();
    let mailbox = post.folder().join("lead.jsonl");
    while mailbox.metadata().map_or(0, |metadata| metadata.len()) == 0 {
        std::thread::yield_now();
    }
    writers[0].kill().expect("it can be killed");
    let (_, outside) = drain_beside(&mut post, &mut writers);
    let counts = counts(&outside);
    assert!(counts.values().all(|count| *count == 1), "none twice");
    for number in 1..4 {
        assert_eq!(counts.keys().filter(|content| content.starts_with(&format!("W-{number}-"))).count(), LINES);
    }
}
