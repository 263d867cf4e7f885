//! What may happen to the files: half lines, held descriptors, removal, replacement, leftovers, things that are no files.

use super::super::claim::{Claim, Room, Taken};
use super::super::lines::Piece;
use super::*;

#[test]
fn i1_a_half_line_waits_for_its_rest_and_holds_nobody_up() {
    let folder = tempfile::tempdir().unwrap();
    let mut post = post(folder.path());
    outside(folder.path(), "{\"content\":\"whole\"}\n{\"content\":\"HALF");
    assert_eq!(empty(&mut post), ["whole"]);
    assert!(!has_mail(&post), "nothing to do until it grows");
    send(&mut post, "inside");
    assert_eq!(empty(&mut post), ["inside"]);
    outside(folder.path(), "-WHOLE\"}\n{\"content\":\"after\"}\n");
    assert!(has_mail(&post));
    assert_eq!(empty(&mut post), ["HALF-WHOLE", "after"]);
    assert!(!mailbox_path(folder.path(), &lead()).exists(), "consumption is seen");
    let_go(&mut post, folder.path());
}

#[test]
fn i1_a_strangers_line_behind_the_stump_of_a_killed_run_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut post = post(folder.path());
    let torn = message(&mut post, "torn");
    let stump = serde_json::to_string(&torn).unwrap();
    let line = "{\"content\":\"after\"}\n";
    outside(folder.path(), &format!("{}{line}{line}", &stump[..stump.len() / 2]));
    let drain = post.drain(&lead());
    assert_eq!((contents(&drain), drain.set_aside.len()), (vec!["after".to_owned(); 2], 1));
    post.acknowledge(&lead(), &keys(&drain)).unwrap();
    let_go(&mut post, folder.path());

    // A message that the runtime knows: it comes from memory, and its stump is no news.
    let sent = send(&mut post, "sent");
    let stump = serde_json::to_string(&sent).unwrap();
    fs::write(mailbox_path(folder.path(), &lead()), format!("{}{line}", &stump[..stump.len() / 2])).unwrap();
    let drain = post.drain(&lead());
    assert_eq!((contents(&drain), drain.set_aside.len()), (vec!["sent".to_owned(), "after".to_owned()], 0));
}

#[test]
fn i1_inside_mail_beside_a_half_line_is_written_down() {
    let folder = tempfile::tempdir().unwrap();
    let mut post = post(folder.path());
    outside(folder.path(), "{\"content\":\"HALF");
    let message = send(&mut post, "inside");
    let beside = fs::read_dir(folder.path().join(".mailboxes/.claimed")).unwrap().next().unwrap().unwrap().path();
    assert_eq!(serde_json::from_str::<Message>(&fs::read_to_string(beside).unwrap()).unwrap(), message);
    assert_eq!(fs::read_to_string(mailbox_path(folder.path(), &lead())).unwrap(), "{\"content\":\"HALF", "untouched");
}

#[test]
fn a_dead_half_line_is_set_aside_and_one_that_only_lacks_its_end_is_delivered() {
    let folder = tempfile::tempdir().unwrap();
    let mut post = post(folder.path());
    for (tail, delivered) in [("{\"content\":\"half", 0), ("{\"content\":\"whole\"}", 1)] {
        outside(folder.path(), &format!("{{\"content\":\"x\"}}\n{tail}"));
        assert_eq!(empty(&mut post), ["x"]);
        post.patience.torn = Duration::ZERO;
        assert!(has_mail(&post), "it deserves a look now");
        let (mut mail, mut aside) = (Vec::new(), Vec::new());
        let since = Instant::now();
        while mail.len() + aside.len() == 0 {
            assert!(since.elapsed() < LONG);
            let drain = post.drain(&lead());
            post.acknowledge(&lead(), &keys(&drain)).unwrap();
            mail.extend(contents(&drain));
            aside.extend(drain.set_aside);
        }
        assert_eq!((mail.len(), aside.len()), (delivered, 1 - delivered));
        assert!(aside.iter().all(|aside| aside.reason.contains("unfinished")));
        post.patience.torn = LONG;
        let_go(&mut post, folder.path());
        assert!(!mailbox_path(folder.path(), &lead()).exists());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn i1_a_half_line_lives_as_long_as_somebody_has_the_file_open() {
    let folder = tempfile::tempdir().unwrap();
    let mut post = post(folder.path());
    post.patience.torn = Duration::ZERO;
    let mut job = open_mailbox(folder.path());
    job.write_all(b"{\"content\":\"HA").unwrap();
    for _ in 0..5 {
        assert!(empty(&mut post).is_empty());
    }
    assert!(!mailbox_path(folder.path(), &lead()).exists(), "moved aside: the mail of others goes to a fresh file");
    outside(folder.path(), "{\"content\":\"other\"}\n");
    assert_eq!(empty(&mut post), ["other"]);
    job.write_all(b"LF\"}\n").unwrap();
    assert_eq!(empty(&mut post), ["HALF"]);
    drop(job);
    let_go(&mut post, folder.path());
}

#[cfg(target_os = "linux")]
#[test]
fn i1_a_writer_that_keeps_the_file_open_is_read_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut post = post(folder.path());
    let mut job = open_mailbox(folder.path());
    for number in 0..5 {
        writeln!(job, "{{\"content\":\"{number}\"}}").unwrap();
        assert!(has_mail(&post));
        assert_eq!(empty(&mut post), [number.to_string()]);
        assert_eq!(claimed(folder.path()), 1);
    }
    drop(job);
    let_go(&mut post, folder.path());
}

#[test]
fn i1_a_file_rests_before_it_is_let_go_of() {
    let folder = tempfile::tempdir().unwrap();
    let mut post = post(folder.path());
    post.patience.rest = LONG;
    outside(folder.path(), "{\"content\":\"x\"}\n");
    let late = mailbox_path(folder.path(), &lead());
    assert_eq!(empty(&mut post), ["x"]);
    assert!(!late.exists() && claimed(folder.path()) == 1 && !has_mail(&post));
    // Somebody who had looked the name up before the move writes only now.
    let path = fs::read_dir(folder.path().join(".mailboxes/.claimed")).unwrap().next().unwrap().unwrap().path();
    OpenOptions::new().append(true).open(path).unwrap().write_all(b"{\"content\":\"late\"}\n").unwrap();
    assert!(has_mail(&post));
    assert_eq!(empty(&mut post), ["late"]);
    drop(post);
    assert!(claimed(folder.path()) <= 1);
}

#[test]
fn i1_a_line_that_is_begun_just_as_its_file_is_moved_can_still_be_finished() {
    let folder = tempfile::tempdir().unwrap();
    let mut post = post(folder.path());
    post.prepare().unwrap();
    let path = mailbox_path(folder.path(), &lead());
    outside(folder.path(), "{\"content\":\"HALF");
    let mut claims = Vec::new();
    let claim = post.folder.move_aside(&path, &lead(), &mut claims).unwrap();
    assert!(!path.exists());
    mailbox::put_back_if_torn(claim, &path);
    outside(folder.path(), "-WHOLE\"}\n");
    assert_eq!(empty(&mut post), ["HALF-WHOLE"]);
    assert!(!path.exists());
    let_go(&mut post, folder.path());
}

#[test]
fn i10_a_piece_of_ours_that_could_not_be_taken_back_is_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lead.x.jsonl");
    fs::write(&path, "before\n{\"id\":\"0199after\n").unwrap();
    let mut claim = Claim::new(path, 0).unwrap();
    claim.pass_over(7..18);
    let (mut room, mut got) = (Room { lines: 9, bytes: 99 }, Vec::new());
    let mut take = |_: &str, offset: u64, bytes: &[u8], _: Piece| {
        got.push((offset, String::from_utf8_lossy(bytes).into_owned()));
        Taken::Counted
    };
    claim.read(&mut room, Patience::USUAL, &mut take).unwrap();
    assert_eq!(got, [(0, "before".to_owned()), (18, "after".to_owned())]);
}

#[test]
fn i1_what_this_run_claimed_is_not_taken_for_an_earlier_runs() {
    let folder = tempfile::tempdir().unwrap();
    let mut post = post(folder.path());
    outside(folder.path(), "{\"content\":\"once\"}\n");
    assert_eq!(contents(&post.drain(&lead())), ["once"]);
    send(&mut post, "inside");
    assert_eq!(contents(&post.drain(&lead())), ["inside"]);
}

#[test]
fn i1_an_earlier_runs_mail_is_given_again_from_where_it_was_done_with() {
    let folder = tempfile::tempdir().unwrap();
    let mut former = post(folder.path());
    former.patience.rest = LONG;
    outside(folder.path(), "{\"content\":\"done\"}\n");
    assert_eq!(empty(&mut former), ["done"]);
    outside(folder.path(), "{\"content\":\"given\"}\n{\"content\":\"too\"}\n");
    let given = former.drain(&lead());
    former.acknowledge(&lead(), &keys(&given)[..1]).unwrap();
    outside(folder.path(), "{\"content\":\"whole\"}\n{\"content\":\"HALF");
    assert_eq!(empty(&mut former), ["whole"]);
    // As if it were killed: nothing is tidied up.
    former.folder.lose_hold();
    std::mem::forget(former);
    let mut post = post(folder.path());
    assert_eq!(empty(&mut post), ["given", "too"], "what was not wholly acknowledged, and nothing that was");
    outside(folder.path(), "-WHOLE\"}\n");
    assert_eq!(empty(&mut post), ["HALF-WHOLE"]);
    let_go(&mut post, folder.path());
}

#[test]
fn mailboxes_have_one_consumer_and_any_number_of_senders() {
    let folder = tempfile::tempdir().unwrap();
    let mut post = post(folder.path());
    post.prepare().unwrap();
    let mut other = Post::new(folder.path(), post.session);
    assert!(other.hold().unwrap_err().to_string().contains("another s15"));
    assert!(other.prepare().is_err());
    send(&mut other, "from elsewhere");
    let drain = other.drain(&lead());
    assert!(drain.trouble.as_ref().unwrap().contains("another s15"));
    assert_eq!(contents(&drain), ["from elsewhere"], "what it issued itself needs no file");
    drop(other);
    assert_eq!(empty(&mut post), ["from elsewhere"]);
    fs::remove_dir_all(post.folder()).unwrap();
    assert!(empty(&mut post).is_empty());
    assert!(Post::new(folder.path(), Uuid::nil()).hold().is_err(), "held again, where it was made anew");
    drop(post);
    let since = Instant::now();
    while Post::new(folder.path(), Uuid::nil()).hold().is_err() {
        assert!(since.elapsed() < LONG);
    }
}

#[test]
fn a_namesakes_old_mail_is_archived_and_said() {
    let folder = tempfile::tempdir().unwrap();
    let mut former = post(folder.path());
    send(&mut former, "old");
    former.drain(&lead());
    send(&mut former, "old too");
    let session = former.session;
    drop(former);
    let mut post = post(folder.path());
    outside(folder.path(), "{\"content\":\"waited\"}\n");
    let drain = post.drain(&lead());
    assert_eq!(contents(&drain), ["waited"]);
    assert!(drain.trouble.unwrap().contains("2 messages of an earlier session"));
    let kept = folder.path().join(format!(".mailboxes/.archive/{session}.jsonl"));
    assert_eq!(fs::read_to_string(kept).unwrap().lines().count(), 2);
    assert_eq!(post.drain(&lead()).trouble, None);
}

#[test]
fn i8_what_is_no_regular_file_is_said_once_and_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let mut post = post(folder.path());
    post.prepare().unwrap();
    let path = mailbox_path(folder.path(), &lead());
    let secret = folder.path().join("secret");
    fs::write(&secret, "{\"content\":\"secret\"}\n").unwrap();
    let kinds: [&dyn Fn(); 4] = [
        &|| nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap(),
        &|| std::os::unix::fs::symlink(&secret, &path).unwrap(),
        &|| std::os::unix::fs::symlink("/nowhere", &path).unwrap(),
        &|| fs::create_dir(&path).unwrap(),
    ];
    for make in kinds {
        make();
        assert!(has_mail(&post), "somebody must look");
        let drain = post.drain(&lead());
        assert!(drain.mail.is_empty() && drain.trouble.unwrap().contains("lead.jsonl"));
        assert!(!has_mail(&post) && post.drain(&lead()).trouble.is_none(), "said once");
        let message = message(&mut post, "x");
        assert!(post.send(vec![message]).unwrap_err().to_string().contains("lead.jsonl"));
        assert!(post.drain(&lead()).mail.is_empty(), "what was not sent is not issued");
        fs::remove_file(&path).or_else(|_| fs::remove_dir(&path)).unwrap();
        assert!(post.drain(&lead()).trouble.is_none());
    }
    assert_eq!(fs::read_to_string(&secret).unwrap(), "{\"content\":\"secret\"}\n");
}

#[test]
fn a_link_in_place_of_the_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), folder.path().join(".mailboxes")).unwrap();
    let mut post = post(folder.path());
    assert!(post.prepare().unwrap_err().to_string().contains(".mailboxes"));
    let message = message(&mut post, "x");
    assert!(post.send(vec![message]).is_err());
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

#[test]
fn i11_a_lock_that_is_never_given_back_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut post = post(folder.path());
    send(&mut post, "first");
    let lock = File::open(folder.path().join(".mailboxes/.locks/lead.jsonl.lock")).unwrap();
    lock.lock().unwrap();
    post.folder.lock_wait_max = Duration::ZERO;
    let second = message(&mut post, "second");
    assert!(post.send(vec![second]).unwrap_err().to_string().contains("lead.jsonl.lock"));
    let drain = post.drain(&lead());
    assert_eq!(contents(&drain), ["first"], "inside mail needs no lock");
    assert!(drain.trouble.unwrap().contains("lead.jsonl.lock"));
    drop(lock);
    post.folder.lock_wait_max = LONG;
    send(&mut post, "third");
    assert_eq!(empty(&mut post), ["third"]);
}

#[test]
fn i1_a_mailbox_that_is_replaced_removed_or_emptied_while_it_is_read_in_place() {
    let folder = tempfile::tempdir().unwrap();
    let mut post = post(folder.path());
    let path = mailbox_path(folder.path(), &lead());
    outside(folder.path(), "{\"content\":\"1\"}\n{\"content\":\"half");
    assert_eq!(empty(&mut post), ["1"]);
    fs::write(path.with_extension("new"), "{\"content\":\"2\"}\n").unwrap();
    fs::rename(path.with_extension("new"), &path).unwrap();
    assert_eq!(empty(&mut post), ["2"], "another file, read from its beginning");
    outside(folder.path(), "{\"content\":\"3\"}\n{\"content\":\"half");
    assert_eq!(empty(&mut post), ["3"]);
    fs::remove_file(&path).unwrap();
    outside(folder.path(), "{\"content\":\"4, longer\"}\n{\"content\":\"half");
    assert_eq!(empty(&mut post), ["4, longer"], "a new file that may well have the old one's number");
    fs::write(&path, "{\"content\":\"5\"}\n").unwrap();
    assert_eq!(empty(&mut post), ["5"], "shorter than what was read of it");
}

#[test]
fn i8_a_line_without_end_costs_no_memory_and_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let mut post = post(folder.path());
    outside(folder.path(), "{\"content\":\"before\"}\n");
    let piece = "x".repeat(1024 * 1024);
    for _ in 0..10 {
        outside(folder.path(), &piece);
    }
    outside(folder.path(), "{\"content\":\"within\"}\n{\"content\":\"after\"}\n");
    let (mut got, mut aside) = (Vec::new(), 0);
    while has_mail(&post) {
        let drain = post.drain(&lead());
        post.acknowledge(&lead(), &keys(&drain)).unwrap();
        aside += drain.set_aside.len();
        got.extend(contents(&drain));
        if claimed(folder.path()) == 0 {
            break;
        }
    }
    assert_eq!((got, aside), (vec!["before".to_owned(), "after".to_owned()], 1));
    let_go(&mut post, folder.path());
    let kept = fs::read_dir(folder.path().join(".mailboxes/.quarantine")).unwrap();
    assert!(kept.map(|file| file.unwrap().metadata().unwrap().len()).any(|length| length > 10 * 1024 * 1024));
}
