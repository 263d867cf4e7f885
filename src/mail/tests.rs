//! Mailboxes: inside mail exactly once and in order, outside mail exactly once, bad lines aside, files gone when they are done with.

mod files;
mod interleavings;

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use super::parse::Line;
use super::*;

/// Longer than anything here takes; only a failing test waits for it.
const LONG: Duration = Duration::from_secs(30);

fn name(text: &str) -> AgentName {
    AgentName::parse(text).unwrap()
}

fn lead() -> AgentName {
    AgentName::lead()
}

/// Lets go of a file as soon as nobody has it open; an unfinished line never dies of age.
fn post(folder: &Path) -> Post {
    let mut post = Post::new(folder, Uuid::now_v7());
    post.patience = Patience { torn: LONG, rest: Duration::ZERO, open: Duration::ZERO };
    post
}

fn message(post: &mut Post, content: &str) -> Message {
    post.compose(&name("auth"), &lead(), MessageType::Message, content.to_owned(), Metadata::default())
}

fn send(post: &mut Post, content: &str) -> Message {
    let message = message(post, content);
    post.send(vec![message.clone()]).unwrap();
    message
}

/// Somebody who opens the mailbox, writes and closes it.
fn outside(folder: &Path, bytes: &str) {
    open_mailbox(folder).write_all(bytes.as_bytes()).unwrap();
}

fn open_mailbox(folder: &Path) -> File {
    fs::create_dir_all(folder.join(".mailboxes")).unwrap();
    OpenOptions::new().append(true).create(true).open(mailbox_path(folder, &lead())).unwrap()
}

fn contents(drain: &Drain) -> Vec<String> {
    drain.mail.iter().map(|mail| mail.content().to_owned()).collect()
}

fn keys(drain: &Drain) -> Vec<MailKey> {
    drain.mail.iter().map(Mail::key).collect()
}

/// Drains and acknowledges.
fn empty(post: &mut Post) -> Vec<String> {
    let drain = post.drain(&lead());
    post.acknowledge(&lead(), &keys(&drain)).unwrap();
    contents(&drain)
}

fn has_mail(post: &Post) -> bool {
    !post.with_mail([lead()].iter()).is_empty()
}

fn claimed(folder: &Path) -> usize {
    fs::read_dir(folder.join(".mailboxes/.claimed")).map_or(0, Iterator::count)
}

/// Looks again until all is let go of: a child that another test just starts may hold a copy of a descriptor for a moment.
fn let_go(post: &mut Post, folder: &Path) {
    let since = Instant::now();
    while claimed(folder) > 0 {
        assert!(since.elapsed() < LONG, "the claimed files stay");
        assert!(empty(post).is_empty());
    }
}

#[test]
fn the_example_shows_every_type_as_a_real_line() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(".mailboxes.example");
    let mut kinds = HashSet::new();
    let mut outside_lines = 0;
    for entry in fs::read_dir(folder).unwrap() {
        for line in fs::read_to_string(entry.unwrap().path()).unwrap().lines() {
            match serde_json::from_str::<Message>(line) {
                Ok(message) => {
                    assert_eq!(serde_json::to_string(&message).unwrap(), line, "it is written as it is read");
                    assert_eq!(parse::issued_id(line.as_bytes()), Some(message.id));
                    kinds.insert(message.kind);
                }
                Err(_) => {
                    assert!(matches!(parse::line(line.as_bytes(), Uuid::nil()), Line::Outside(_)), "{line}");
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
    assert!(empty(&mut post).is_empty() && !has_mail(&post) && post.withdraw(&lead()).is_empty());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    send(&mut post, "x");
    let mode = |path: &str| fs::metadata(folder.path().join(path)).unwrap().permissions().mode() & 0o777;
    for (path, expected) in [("", 0o700), (".claimed", 0o700), (".quarantine", 0o700), ("lead.jsonl", 0o600)] {
        assert_eq!(mode(&format!(".mailboxes/{path}")), expected, "{path}");
    }
    assert_eq!(fs::read_to_string(folder.path().join(".mailboxes/.gitignore")).unwrap(), "*\n");
}

#[test]
fn i1_a_batch_comes_whole_and_in_order_and_its_record_goes_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut post = post(folder.path());
    let batch: Vec<Message> = ["a", "b", "c"].map(|content| message(&mut post, content)).into();
    post.send(batch.clone()).unwrap();
    let lines = fs::read_to_string(mailbox_path(folder.path(), &lead())).unwrap();
    let written: Vec<Message> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(written, batch);
    assert_eq!((post.waiting(&lead()), has_mail(&post)), (3, true));
    let drain = post.drain(&lead());
    assert_eq!(drain.mail, batch.into_iter().map(Mail::Inside).collect::<Vec<_>>());
    assert_eq!((post.waiting(&lead()), has_mail(&post)), (0, false));
    assert!(!mailbox_path(folder.path(), &lead()).exists(), "consumption is seen");
    assert!(post.drain(&lead()).mail.is_empty() && claimed(folder.path()) == 1, "kept until it is acknowledged");
    post.acknowledge(&lead(), &keys(&drain)).unwrap();
    let_go(&mut post, folder.path());
}

#[test]
fn i1_what_is_taken_back_comes_no_more_and_the_rest_comes_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let mut post = post(folder.path());
    let [first, drained] = ["first", "drained"].map(|content| send(&mut post, content));
    let given = post.drain(&lead());
    let [undrained, last] = ["undrained", "last"].map(|content| send(&mut post, content));
    assert_eq!(post.withdraw_one(&lead(), drained.id).unwrap(), drained);
    assert_eq!(post.withdraw_one(&lead(), undrained.id).unwrap(), undrained);
    assert!(post.withdraw_one(&lead(), undrained.id).is_none() && post.withdraw_one(&name("auth"), first.id).is_none());
    assert_eq!((post.waiting(&lead()), post.is_outstanding(&lead(), drained.id)), (1, false));
    assert_eq!(empty(&mut post), ["last"], "the line of what was taken back is nobody's");
    post.acknowledge(&lead(), &keys(&given)).unwrap();
    assert!(post.withdraw_one(&lead(), first.id).is_none() && post.withdraw_one(&lead(), last.id).is_none());
    let_go(&mut post, folder.path());
}

#[test]
fn i1_changed_lost_or_copied_lines_change_nothing_about_inside_mail() {
    let folder = tempfile::tempdir().unwrap();
    let mut post = post(folder.path());
    let path = mailbox_path(folder.path(), &lead());
    send(&mut post, "first");
    let line = fs::read_to_string(&path).unwrap();
    fs::write(&path, line.replace("first", "forged")).unwrap();
    assert_eq!(empty(&mut post), ["first"]);
    send(&mut post, "second");
    File::create(&path).unwrap();
    assert_eq!(empty(&mut post), ["second"]);
    send(&mut post, "third");
    fs::remove_dir_all(folder.path().join(".mailboxes")).unwrap();
    assert_eq!(empty(&mut post), ["third"]);
    assert!(post.folder().is_dir(), "made anew");
    send(&mut post, "fourth");
    assert_eq!(empty(&mut post), ["fourth"]);
    outside(folder.path(), &line);
    let drain = post.drain(&lead());
    assert!(matches!(drain.mail.as_slice(), [Mail::Outside(copy)] if copy.content == "first"), "{drain:?}");
}

#[test]
fn i2_what_the_runtime_did_not_issue_to_this_reader_is_outside_mail_whatever_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let mut post = post(folder.path());
    let issued = send(&mut post, "real");
    empty(&mut post);
    let forged = Message { id: Uuid::now_v7(), content: "forged".to_owned(), ..issued.clone() };
    let others =
        post.compose(&lead(), &name("auth"), MessageType::PlanRequest, "other".to_owned(), Metadata::default());
    post.send(vec![others.clone()]).unwrap();
    for message in [&issued, &forged, &others] {
        outside(folder.path(), &format!("{}\n", serde_json::to_string(message).unwrap()));
    }
    let drain = post.drain(&lead());
    assert_eq!(contents(&drain), ["real", "forged", "other"]);
    assert!(drain.mail.iter().all(|mail| matches!(mail, Mail::Outside(_))));
    assert_eq!(contents(&post.drain(&name("auth"))), ["other"]);
}

#[test]
fn i1_two_equal_outside_lines_are_two_messages() {
    let folder = tempfile::tempdir().unwrap();
    let mut post = post(folder.path());
    outside(folder.path(), "{\"content\":\"same\"}\n{\"content\":\"same\"}\n");
    let drain = post.drain(&lead());
    let keys = keys(&drain);
    assert!(keys.len() == 2 && keys[0] != keys[1]);
    post.acknowledge(&lead(), &keys[..1]).unwrap();
    assert_eq!(claimed(folder.path()), 1);
    post.acknowledge(&lead(), &keys).unwrap();
    let_go(&mut post, folder.path());
}

#[test]
fn i8_bad_lines_are_set_aside_and_the_rest_delivered() {
    let folder = tempfile::tempdir().unwrap();
    let mut post = post(folder.path());
    let big = "x".repeat(300 * 1024);
    let lines = format!("oops\n\n \n[1]\n{{\"from\":\"x\"}}\n{{\"content\":\"{big}\"}}\n{{\"content\":\"good\"}}\n");
    let mut mailbox = open_mailbox(folder.path());
    mailbox.write_all(b"\xff\xfe\n").unwrap();
    mailbox.write_all(lines.as_bytes()).unwrap();
    drop(mailbox);
    let drain = post.drain(&lead());
    assert_eq!((contents(&drain), drain.set_aside.len()), (vec!["good".to_owned()], 5));
    assert!(drain.set_aside.iter().all(|aside| aside.mailbox == "lead.jsonl"));
    assert!(drain.set_aside[4].reason.contains("put the text into a file"));
    let kept = fs::read_to_string(folder.path().join(".mailboxes/.quarantine/lead.jsonl")).unwrap();
    let kept: Vec<serde_json::Value> = kept.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((kept.len(), &kept[1]["line"]), (5, &"oops".into()));
    assert!(
        kept[4]["line"].as_str().unwrap().len() > big.len() && kept[0]["at"].is_string(),
        "kept whole, with the time"
    );
}

#[test]
fn inside_mail_has_no_limit_and_its_line_is_known_again_whatever_its_length() {
    let folder = tempfile::tempdir().unwrap();
    let mut post = post(folder.path());
    for length in [0, 300 * 1024, 5 * 1024 * 1024] {
        let content = "\n".repeat(length);
        send(&mut post, &content);
        let drain = post.drain(&lead());
        assert!(contents(&drain) == [content] && drain.set_aside.is_empty(), "{length}");
        post.acknowledge(&lead(), &keys(&drain)).unwrap();
        let again = post.drain(&lead());
        assert!(again.mail.is_empty() && again.set_aside.is_empty(), "{length}");
    }
}

#[test]
fn i1_a_backlog_comes_in_portions_and_whole() {
    let folder = tempfile::tempdir().unwrap();
    let mut post = post(folder.path());
    let lines: String = (0..5_000).map(|number| format!("{{\"content\":\"{number}\"}}\n")).collect();
    outside(folder.path(), &lines);
    let mut got = Vec::new();
    while has_mail(&post) {
        let portion = empty(&mut post);
        assert!(portion.len() <= DRAIN_LINES_MAX);
        got.extend(portion);
    }
    assert_eq!(got, (0..5_000).map(|number| number.to_string()).collect::<Vec<_>>());
}

#[test]
fn withdrawn_mail_comes_back_once_and_no_namesake_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut post = post(folder.path());
    send(&mut post, "drained");
    post.drain(&lead());
    send(&mut post, "unread");
    let back: Vec<String> = post.withdraw(&lead()).into_iter().map(|message| message.content).collect();
    assert_eq!(back, ["drained", "unread"]);
    assert!(post.withdraw(&lead()).is_empty() && empty(&mut post).is_empty() && post.waiting(&lead()) == 0);
    let_go(&mut post, folder.path());
}

#[test]
fn names_that_differ_in_case_share_one_mailbox() {
    let folder = tempfile::tempdir().unwrap();
    let mut post = post(folder.path());
    for to in ["Alice", "alice"] {
        let message = post.compose(&lead(), &name(to), MessageType::Message, to.to_owned(), Metadata::default());
        post.send(vec![message]).unwrap();
    }
    assert!(!folder.path().join(".mailboxes/alice.jsonl").exists());
    assert_eq!(contents(&post.drain(&name("ALICE"))), ["Alice", "alice"]);
}

#[test]
fn ids_increase_also_when_the_clock_jumps_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut post = post(folder.path());
    let ids: Vec<Uuid> = (0..2_000).map(|_| message(&mut post, "").id).collect();
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
    let last = ids[1_999];
    let next = id_after(last, ids[0]);
    assert!(next > last && next.get_version_num() == 7);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "composing touches nothing");
}
