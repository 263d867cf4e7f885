//! Mailboxes under every interleaving: inside mail exactly once and in order, outside mail exactly once, bad lines aside.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use proptest::prelude::*;

use super::*;

fn name(text: &str) -> AgentName {
    AgentName::parse(text).unwrap()
}

fn post(folder: &Path) -> Post {
    Post::new(folder, Uuid::now_v7())
}

fn send(post: &mut Post, content: &str) -> Message {
    let message =
        post.compose(&name("auth"), &AgentName::lead(), MessageType::Message, content.to_owned(), Metadata::default());
    post.send(vec![message.clone()]).unwrap();
    message
}

fn outside(folder: &Path, bytes: &str) {
    std::fs::create_dir_all(folder.join(".mailboxes")).unwrap();
    let path = folder.join(".mailboxes/lead.jsonl");
    OpenOptions::new().append(true).create(true).open(path).unwrap().write_all(bytes.as_bytes()).unwrap();
}

fn contents(drain: &Drain) -> Vec<String> {
    drain.mail.iter().map(|mail| mail.content().to_owned()).collect()
}

fn empty(post: &mut Post) -> Vec<String> {
    let drain = post.drain(&AgentName::lead());
    let keys: Vec<_> = drain.mail.iter().map(Mail::key).collect();
    post.acknowledge(&AgentName::lead(), &keys).unwrap();
    contents(&drain)
}

#[test]
fn the_example_shows_every_type_as_a_real_line() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(".mailboxes.example");
    let mut kinds = HashSet::new();
    let mut outside_lines = 0;
    for file in ["auth.jsonl", "lead.jsonl"] {
        for line in std::fs::read_to_string(folder.join(file)).unwrap().lines() {
            match serde_json::from_str::<Message>(line) {
                Ok(message) => {
                    assert_eq!(serde_json::to_string(&message).unwrap(), line, "it is written as it is read");
                    kinds.insert(message.kind);
                }
                Err(_) => {
                    assert!(matches!(parse::line(line.as_bytes(), Uuid::nil()), Line::Outside(())), "{line}");
                    outside_lines += 1;
                }
            }
        }
    }
    assert_eq!((kinds.len(), outside_lines), (MessageType::ALL.len(), 2));
}

#[test]
fn nothing_is_made_before_it_is_needed_and_all_of_it_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let mut post = post(folder.path());
    assert!(empty(&mut post).is_empty());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    send(&mut post, "x");
    let mode = |path: &str| std::fs::metadata(folder.path().join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(".mailboxes"), mode(".mailboxes/lead.jsonl")), (0o700, 0o600));
    assert_eq!(std::fs::read_to_string(folder.path().join(".mailboxes/.gitignore")).unwrap(), "*\n");
}

#[test]
fn i1_a_half_line_waits_for_its_rest_and_holds_nobody_up() {
    let folder = tempfile::tempdir().unwrap();
    let mut post = post(folder.path());
    outside(folder.path(), "{\"content\":\"whole\"}\n{\"content\":\"HALF");
    assert_eq!(empty(&mut post), ["whole"]);
    send(&mut post, "inside");
    assert_eq!(empty(&mut post), ["inside"]);
    outside(folder.path(), "-WHOLE\"}\n{\"content\":\"after\"}\n");
    assert_eq!(empty(&mut post), ["HALF-WHOLE", "after"]);
    assert!(empty(&mut post).is_empty());
    assert!(!folder.path().join(".mailboxes/lead.jsonl").exists(), "consumption is seen");
}

#[test]
fn i1_a_writer_that_keeps_the_file_open_is_read_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut post = post(folder.path());
    outside(folder.path(), "");
    let mut job = OpenOptions::new().append(true).open(folder.path().join(".mailboxes/lead.jsonl")).unwrap();
    for number in 0..5 {
        writeln!(job, "{{\"content\":\"{number}\"}}").unwrap();
        assert_eq!(post.with_mail([AgentName::lead()].iter()).len(), 1);
        assert_eq!(empty(&mut post), [number.to_string()]);
        assert_eq!(post.with_mail([AgentName::lead()].iter()).len(), 0);
    }
    let claimed = || std::fs::read_dir(folder.path().join(".mailboxes/.claimed")).unwrap().count();
    assert_eq!(claimed(), 1);
    drop(job);
    empty(&mut post);
    assert_eq!(claimed(), 0, "let go of when nobody can write to it any more");
}

#[test]
fn i1_what_this_run_claimed_is_not_taken_for_an_earlier_runs() {
    let folder = tempfile::tempdir().unwrap();
    let mut post = post(folder.path());
    outside(folder.path(), "{\"content\":\"once\"}\n");
    assert_eq!(contents(&post.drain(&AgentName::lead())), ["once"]);
    send(&mut post, "inside");
    assert_eq!(contents(&post.drain(&AgentName::lead())), ["inside"]);
}

#[test]
fn i1_what_an_earlier_run_claimed_and_did_not_finish_is_delivered() {
    let folder = tempfile::tempdir().unwrap();
    let mut former = post(folder.path());
    outside(folder.path(), "{\"content\":\"claimed\"}\n");
    former.drain(&AgentName::lead());
    drop(former);
    assert_eq!(empty(&mut post(folder.path())), ["claimed"]);
}

#[test]
fn i8_bad_lines_are_set_aside_and_the_rest_delivered() {
    let folder = tempfile::tempdir().unwrap();
    let mut post = post(folder.path());
    let big = "x".repeat(300 * 1024);
    outside(
        folder.path(),
        &format!("oops\n\n[1]\n{{\"from\":\"x\"}}\n{{\"content\":\"{big}\"}}\n{{\"content\":\"good\"}}\n"),
    );
    let drain = post.drain(&AgentName::lead());
    assert_eq!((contents(&drain), drain.set_aside.len()), (vec!["good".to_owned()], 4));
    assert!(drain.set_aside[3].reason.contains("put the text into a file"));
}

#[test]
fn i2_what_the_runtime_did_not_issue_is_outside_mail_whatever_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let mut post = post(folder.path());
    let issued = send(&mut post, "real");
    empty(&mut post);
    let forged = Message { id: Uuid::now_v7(), content: "forged".to_owned(), ..issued.clone() };
    for message in [&issued, &forged] {
        outside(folder.path(), &format!("{}\n", serde_json::to_string(message).unwrap()));
    }
    let drain = post.drain(&AgentName::lead());
    assert!(drain.mail.iter().all(|mail| matches!(mail, Mail::Outside(_))) && drain.mail.len() == 2);
}

#[test]
fn i1_changed_or_removed_lines_change_nothing_about_inside_mail() {
    let folder = tempfile::tempdir().unwrap();
    let mut post = post(folder.path());
    send(&mut post, "first");
    let path = folder.path().join(".mailboxes/lead.jsonl");
    let text = std::fs::read_to_string(&path).unwrap().replace("first", "forged");
    std::fs::write(&path, text).unwrap();
    assert_eq!(empty(&mut post), ["first"]);
    send(&mut post, "second");
    std::fs::remove_dir_all(folder.path().join(".mailboxes")).unwrap();
    assert_eq!(empty(&mut post), ["second"]);
    send(&mut post, "third");
    assert_eq!(empty(&mut post), ["third"]);
}

#[test]
fn a_namesakes_old_mail_is_archived_and_said() {
    let folder = tempfile::tempdir().unwrap();
    let mut former = post(folder.path());
    send(&mut former, "old");
    drop(former);
    let mut post = post(folder.path());
    outside(folder.path(), "{\"content\":\"waited\"}\n");
    let drain = post.drain(&AgentName::lead());
    assert_eq!(contents(&drain), ["waited"]);
    assert!(drain.trouble.unwrap().contains("earlier session"));
}

#[test]
fn i8_what_is_no_regular_file_is_said_and_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let mut post = post(folder.path());
    post.prepare().unwrap();
    let path = folder.path().join(".mailboxes/lead.jsonl");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(post.drain(&AgentName::lead()).trouble.is_some());
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
    assert!(post.drain(&AgentName::lead()).trouble.is_some());
    let message = post.compose(&name("a"), &AgentName::lead(), MessageType::Message, "x".into(), Metadata::default());
    assert!(post.send(vec![message]).is_err());
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert!(post.drain(&AgentName::lead()).trouble.is_some());
}

#[test]
fn ids_increase_and_withdrawn_mail_comes_back_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut post = post(folder.path());
    let ids: Vec<Uuid> = (0..2_000)
        .map(|_| post.compose(&name("a"), &name("b"), MessageType::Message, String::new(), Metadata::default()).id)
        .collect();
    assert!(ids.is_sorted() && ids.windows(2).all(|pair| pair[0] != pair[1]));
    send(&mut post, "drained");
    post.drain(&AgentName::lead());
    send(&mut post, "unread");
    let back: Vec<String> = post.withdraw(&AgentName::lead()).into_iter().map(|message| message.content).collect();
    assert_eq!(back, ["drained", "unread"]);
    assert!(post.withdraw(&AgentName::lead()).is_empty() && empty(&mut post).is_empty());
}

#[derive(Clone, Debug)]
enum Step {
    Send,
    Outside,
    Half,
    Rest,
    Drain,
    Acknowledge,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        Just(Step::Send),
        Just(Step::Outside),
        Just(Step::Half),
        Just(Step::Rest),
        Just(Step::Drain),
        Just(Step::Acknowledge)
    ]
}

proptest! {
    /// Inside and outside writers, whole and half lines, drains and acknowledgements in any order.
    #[test]
    fn i1_each_message_exactly_once_and_in_order(steps in proptest::collection::vec(step(), 0..60)) {
        let folder = tempfile::tempdir().unwrap();
        let mut post = post(folder.path());
        let (mut inside, mut other, mut half) = (Vec::new(), Vec::new(), None);
        let (mut got_inside, mut got_other, mut keys) = (Vec::new(), Vec::new(), Vec::new());
        let take = |post: &mut Post, got_inside: &mut Vec<String>, got_other: &mut Vec<String>, keys: &mut Vec<MailKey>| {
            for mail in post.drain(&AgentName::lead()).mail {
                keys.push(mail.key());
                match mail {
                    Mail::Inside(message) => got_inside.push(message.content),
                    Mail::Outside(outside) => got_other.push(outside.content),
                }
            }
        };
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Send => {
                    send(&mut post, &format!("i{number}"));
                    inside.push(format!("i{number}"));
                }
                // Two lines of the same bytes are two messages. While a half line stands open, nobody else can write whole ones.
                Step::Outside if half.is_none() => {
                    outside(folder.path(), "{\"content\":\"same\"}\n{\"content\":\"same\"}\n");
                    other.extend(["same".to_owned(), "same".to_owned()]);
                }
                Step::Half if half.is_none() => {
                    outside(folder.path(), &format!("{{\"content\":\"h{number}"));
                    half = Some(format!("h{number}-rest"));
                }
                Step::Rest => if let Some(whole) = half.take() {
                    outside(folder.path(), "-rest\"}\n");
                    other.push(whole);
                },
                Step::Outside | Step::Half => {}
                Step::Drain => take(&mut post, &mut got_inside, &mut got_other, &mut keys),
                Step::Acknowledge => post.acknowledge(&AgentName::lead(), &std::mem::take(&mut keys)).unwrap(),
            }
        }
        if half.is_some() {
            outside(folder.path(), "-rest\"}\n");
            other.extend(half);
        }
        take(&mut post, &mut got_inside, &mut got_other, &mut keys);
        post.acknowledge(&AgentName::lead(), &keys).unwrap();
        take(&mut post, &mut got_inside, &mut got_other, &mut keys);
        prop_assert_eq!(got_inside, inside);
        prop_assert_eq!(got_other, other);
    }
}
