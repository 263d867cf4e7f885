//! A session goes on after it was left or killed: what each agent knows, what it may do, and what it was about to do.

use std::path::PathBuf;
use std::process::Stdio;

use crate::harness::{Bench, Finished, finish, last_text, results, user_texts, wait_for};
use crate::pty::Terminal;

/// A lead that proposes alice, spawns her after a yes, and answers everything else with `ok`.
const TEAM: &str = r#"
[fallback]
lead = "ok"
"*" = "done"

[[rule]]
agent = "lead"
user = "team"
lacks_call = "propose_team"
calls = [{ tool = "propose_team", arguments = { members = [{ name = "alice", role = "dev", prompt = "WORK-alice", require_plan = true }], reason = "r" } }]

[[rule]]
agent = "lead"
user_is = "yes"
lacks_call = "spawn_teammate"
calls = [{ tool = "spawn_teammate", arguments = { name = "alice" } }]

[[rule]]
agent = "alice"
lacks_call = "submit_plan"
calls = [{ tool = "submit_plan", arguments = { plan = "THE PLAN" } }]

[[rule]]
agent = "lead"
event = "plan_approval_request request_id=${id}]"
has = "go on"
until_call = "review_plan"
lacks_call = "review_plan"
calls = [{ tool = "list_teammates" }]
"#;

/// One agent that makes a call and then says what came of it.
fn one_call(calls: &str) -> String {
    format!("[fallback]\nlead = \"that was it\"\n[[rule]]\nagent = \"lead\"\nlacks_call = \"*\"\ncalls = [{calls}]\n")
}

/// Runs until the program kills itself at this point.
fn run_until_killed(bench: &Bench, point: &str, arguments: &[&str], input: &str) -> Finished {
    let mut command = bench.command(arguments);
    command.env("S15_TEST_KILL", point).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = finish(command.spawn().expect("the program starts"), input);
    assert_eq!(run.code, None, "killed at {point}: {run:?}");
    run
}

/// The journal of one agent in the only session there is.
fn journal(bench: &Bench, agent: &str) -> PathBuf {
    let mut folders = vec![bench.state()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("the state folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().is_some_and(|name| name == format!("{agent}.jsonl").as_str()) {
                return path;
            }
        }
    }
    panic!("{agent} has no journal");
}

#[test]
fn a_killed_command_is_not_run_again_and_its_result_says_so() {
    let bench = Bench::new(&one_call(
        r#"{ tool = "bash", arguments = { command = "echo x >> ran; sleep 60" } }, { tool = "bash", arguments = { command = "echo second" } }"#,
    ));
    let mut child = bench
        .command(&["-p", "run it"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    wait_for("the command", || bench.read("ran"));
    child.kill().expect("a kill");
    child.wait().expect("its end");

    let run = bench.run(&["-c", "-p", "go on"], "");
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "that was it\n"), "{run:?}");
    let last = bench.requests().pop().expect("a request");
    assert_eq!(user_texts(&last), ["run it", "go on"]);
    let results = results(&last);
    assert!(results[0].contains("may have run in part"), "{results:?}");
    assert!(results[1].contains("not run: the program ended before this command began"), "{results:?}");
    assert_eq!(bench.read("ran").as_deref(), Some("x\n"));
    bench.assert_no_faults();
}

#[test]
fn a_file_is_changed_once_wherever_the_program_was_killed() {
    for points in [
        &["tool_started:1"][..],
        &["write_intended:1"],
        &["tool_done:1"],
        &["journal_after:7"],
        &["journal_torn:6"],
        // The run that comes to look whether it was done is killed, too.
        &["tool_done:1", "tool_started:1"],
        &["tool_done:1", "tool_done:1", "tool_started:1"],
        &["write_intended:1", "tool_started:1", "tool_done:1"],
    ] {
        let bench = Bench::new(&one_call(
            r#"{ tool = "edit_file", arguments = { path = "a.txt", old_text = "a", new_text = "ab" } }"#,
        ))
        .file("a.txt", "a\n");
        run_until_killed(&bench, points[0], &["-p", "edit"], "");
        for point in &points[1..] {
            run_until_killed(&bench, point, &["-c", "--yes"], "");
        }
        let run = bench.run(&["-c", "--yes"], "");
        assert_eq!(run.code, Some(0), "{points:?}: {run:?}");
        assert_eq!(bench.read("a.txt").as_deref(), Some("ab\n"), "{points:?}");
        let results = results(&bench.requests().pop().expect("a request"));
        assert_eq!(results.len(), 1, "{points:?}: {results:?}");
        assert!(!results[0].starts_with("error"), "{points:?}: {results:?}");
        bench.assert_no_faults();
    }
}

#[test]
fn nothing_is_asked_of_a_model_before_a_line_or_yes() {
    let bench = Bench::new(TEAM);
    bench.run(&[], "team\nyes\n");
    let before = bench.requests().len();
    let run = bench.run(&["--continue"], "");
    assert!(run.stdout.contains("alice: idle (waiting_approval), gate pending"), "{}", run.stdout);
    assert!(run.stdout.contains("pending plan request"), "{}", run.stdout);
    assert!(run.stdout.contains("nothing goes on before you say something"), "{}", run.stdout);
    assert_eq!(bench.requests().len(), before);
    let run = bench.run(&["-c", "-p", "and now?"], "");
    assert_eq!(run.stdout, "ok\n", "{run:?}");
    let last = bench.requests_of("lead").pop().expect("a request");
    let texts = user_texts(&last);
    assert_eq!((texts[0].as_str(), texts.iter().filter(|text| *text == "and now?").count()), ("team", 1), "{texts:?}");
    bench.assert_no_faults();
}

#[test]
fn i3_a_gate_and_its_request_survive_a_kill() {
    let bench = Bench::new(&format!(
        "{TEAM}\n[[rule]]\nagent = \"alice\"\nhas = \"Plan approved\"\nlacks_call = \"write_file\"\ncalls = [{{ tool = \"write_file\", arguments = {{ path = \"x\", content = \"y\" }} }}]\n"
    ));
    // Killed when the lead's call that carries the plan is answered.
    let mut child = bench
        .command(&[])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    std::io::Write::write_all(child.stdin.as_mut().expect("piped"), b"team\nyes\n").expect("the program reads");
    let id = wait_for("the plan", || {
        let last = bench.requests_of("lead").pop()?;
        let text = last_text(&last);
        let at = text.find("request_id=")? + "request_id=".len();
        Some(text[at..at + 36].to_owned())
    });
    child.kill().expect("a kill");
    child.wait().expect("its end");
    assert!(bench.read("x").is_none());

    let run = bench.run(&["-c"], &format!("/approve {id}\nwhat now\n"));
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(bench.read("x").as_deref(), Some("y"), "the approved work went on: {}", run.stdout);
    let alice = bench.requests_of("alice").pop().expect("a request");
    let texts = user_texts(&alice);
    assert!(texts[0].contains("WORK-alice") && texts.iter().any(|text| text.contains("Plan approved")), "{texts:?}");
    bench.assert_no_faults();
}

#[test]
fn i1_mail_that_was_sent_and_not_read_comes_once_after_a_kill() {
    for point in ["journal_before:14", "journal_after:14", "journal_torn:16", "took_in:2", "took_in:3", "acknowledge:1"]
    {
        let bench = Bench::new(TEAM);
        run_until_killed(&bench, point, &[], "team\nyes\n");
        bench.run(&["-c", "--yes"], "yes\n");
        let alice = bench.requests_of("alice").pop().expect("alice was asked");
        let tasks = user_texts(&alice).iter().filter(|text| text.contains("WORK-alice")).count();
        assert_eq!(tasks, 1, "{point}: {:?}", user_texts(&alice));
        bench.assert_no_faults();
    }
}

#[test]
fn a_session_that_is_left_in_the_middle_goes_on_with_the_same_call() {
    let bench = Bench::new(
        "[fallback]\nlead = \"there\"\n[[rule]]\nagent = \"lead\"\nonce = true\ntext = \"late\"\ndelay_ms = 60000\n",
    );
    let child = bench
        .command(&["-p", "hello"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    wait_for("the first request", || bench.requests().pop());
    let pid = i32::try_from(child.id()).expect("a pid");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGTERM).expect("a signal");
    let run = finish(child, "");
    assert_eq!(run.code, Some(130), "{run:?}");

    let run = bench.run(&["--continue", "--yes"], "");
    assert_eq!(run.code, Some(0), "{run:?}");
    let calls: Vec<u64> = bench.requests().iter().map(|request| request.call).collect();
    assert_eq!(calls, [1, 1], "the call was never answered, so it is made again");
    assert_eq!(user_texts(&bench.requests()[1]), ["hello"]);
    bench.assert_no_faults();
}

#[test]
fn a_torn_end_is_cut_and_said_and_what_comes_later_stands_on_lines_of_its_own() {
    let bench = Bench::new("[fallback]\nlead = \"ok\"\n");
    bench.run(&[], "one\ntwo\n");
    let path = journal(&bench, "lead");
    let text = std::fs::read_to_string(&path).expect("the journal");
    std::fs::write(&path, &text[..text.len() - 15]).expect("a torn journal");
    let run = bench.run(&["-c"], "three\n");
    assert!(run.stdout.contains("was cut off in the middle of a write"), "{}", run.stdout);
    bench.run(&["-c"], "four\n");
    assert_eq!(user_texts(&bench.requests().pop().expect("a request")), ["one", "two", "three", "four"]);
    let lines = std::fs::read_to_string(&path).expect("the journal");
    assert!(lines.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()), "{lines}");
}

#[test]
fn i8_a_damaged_line_harms_nothing_but_itself_and_stays_as_it_is() {
    let bench = Bench::new("[fallback]\nlead = \"ok\"\n");
    bench.run(&[], "one\ntwo\n");
    let path = journal(&bench, "lead");
    let mut lines: Vec<String> =
        std::fs::read_to_string(&path).expect("the journal").lines().map(str::to_owned).collect();
    let at = lines.iter().position(|line| line.contains("turn_started")).expect("a turn");
    lines[at] = "{\"seq\":4,\"time\":\"gar\u{fffd}bage".to_owned();
    lines.push("{\"seq\":100,\"time\":\"2030-01-01T00:00:00.000Z\",\"event\":\"from_a_later_day\",\"x\":1}".to_owned());
    std::fs::write(&path, lines.join("\n") + "\n").expect("a damaged journal");
    let run = bench.run(&["-c"], "three\n");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("2 lines of lead.jsonl can't be read"), "{}", run.stdout);
    assert_eq!(user_texts(&bench.requests().pop().expect("a request")), ["one", "two", "three"]);
    let after = std::fs::read_to_string(&path).expect("the journal");
    assert!(after.starts_with(&lines.join("\n")), "nothing is overwritten");
    bench.assert_no_faults();
}

#[test]
fn a_journal_of_a_later_version_and_half_a_session_are_refused_in_words() {
    let bench = Bench::new("[fallback]\nlead = \"ok\"\n");
    bench.run(&[], "one\n");
    let path = journal(&bench, "lead");
    let text = std::fs::read_to_string(&path).expect("the journal");
    let later = text.replacen("\"journal\":2", "\"journal\":99", 1);
    std::fs::write(&path, &later).expect("a later journal");
    let run = bench.run(&["-c"], "two\n");
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("form 99") && run.stderr.contains("version that wrote it"), "{}", run.stderr);
    assert_eq!(std::fs::read_to_string(&path).expect("the journal"), later, "untouched");

    let id = path.parent().and_then(|folder| folder.file_name()).expect("a folder").to_string_lossy().into_owned();
    std::fs::remove_file(&path).expect("half a session");
    let run = bench.run(&["-r", &id], "two\n");
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("s15 sessions"), "{}", run.stderr);
    assert_eq!(bench.requests().len(), 1);
}

#[test]
fn sessions_are_listed_named_and_pointed_out() {
    let bench = Bench::new("[fallback]\nlead = \"ok\"\n");
    assert!(bench.run(&["sessions"], "").stdout.contains("no sessions yet"));
    let run = bench.run(&["-c"], "");
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("no session to go on with"), "{}", run.stderr);
    bench.run(&["-p", "the first request\nof two lines"], "");
    run_until_killed(&bench, "took_in:1", &["-p", "the second request"], "");
    let list = bench.run(&["sessions"], "").stdout;
    let lines: Vec<&str> = list.lines().collect();
    assert!(lines[0].contains("the second request  [no team]  cut off"), "{list}");
    assert!(lines[2].contains("the first request of two lines  [no team]  done"), "{list}");
    let run = bench.run(&[], "");
    assert!(
        run.stdout.contains("the last session here (the second request) was cut off; s15 --continue"),
        "{}",
        run.stdout
    );

    let run = bench.run(&["--resume"], "");
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("the first request") && run.stderr.contains("s15 --resume ID"), "{}", run.stderr);
    let first = lines[2].split_whitespace().next().expect("an id");
    let run = bench.run(&["-r", first, "-p", "more"], "");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(user_texts(&bench.requests().pop().expect("a request")), ["the first request\nof two lines", "more"]);
    let run = bench.run(&["-r", "0000nothing"], "");
    assert!(run.stderr.contains("there is no session"), "{}", run.stderr);
}

#[test]
fn a_running_session_is_listed_and_not_resumed_a_second_time() {
    let bench = Bench::new(
        "[fallback]\nlead = \"ok\"\n[[rule]]\nagent = \"lead\"\nuser = \"wait\"\ntext = \"late\"\ndelay_ms = 60000\n",
    );
    let mut child = bench
        .command(&["-p", "wait"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    wait_for("the request", || bench.requests().pop());
    assert!(bench.run(&["sessions"], "").stdout.contains("running"));
    let run = bench.run(&["-c"], "x\n");
    assert_eq!(run.code, Some(2));
    child.kill().expect("a kill");
    child.wait().expect("its end");
}

#[test]
fn a_teammate_whose_task_was_aborted_returns_with_what_the_journal_has() {
    let bench = Bench::new(
        r#"
[fallback]
lead = "ok"
"*" = "done"
[[rule]]
agent = "lead"
user = "team"
lacks_call = "propose_team"
calls = [{ tool = "propose_team", arguments = { members = [{ name = "alice", role = "dev", prompt = "WORK-alice" }], reason = "r" } }]
[[rule]]
agent = "lead"
user_is = "yes"
lacks_call = "spawn_teammate"
calls = [{ tool = "spawn_teammate", arguments = { name = "alice" } }]
[[rule]]
agent = "lead"
user = "more"
lacks_call = "assign_task"
calls = [{ tool = "assign_task", arguments = { to = "alice", task = "HANG" } }]
[[rule]]
agent = "lead"
user = "again"
once = true
calls = [{ tool = "propose_team", arguments = { members = [{ name = "alice", role = "dev", prompt = "WORK-alice" }], reason = "r" } }]
[[rule]]
agent = "lead"
user_is = "开始吧"
once = true
calls = [{ tool = "spawn_teammate", arguments = { name = "alice" } }]
"#,
    )
    .env("S15_TEST_HANG", "alice");
    let mut terminal = Terminal::start(&bench, 80, 40);
    for (line, answer) in [
        ("team", "[team] proposal"),
        ("yes", "(idle_notification)"),
        ("more", "assign_task"),
        ("/stop alice", "alice shutdown"),
    ] {
        terminal.line(line);
        terminal.see(answer);
    }
    // Let go of after five seconds; until then the journal has all that there is.
    terminal.line("again");
    terminal.wait("the second proposal", |terminal| terminal.text().matches("[team] proposal").count() == 2);
    terminal.line("开始吧");
    wait_for("the second life's first request", || {
        let texts = user_texts(&bench.requests_of("alice").pop()?);
        (texts.iter().filter(|text| text.contains("WORK-alice")).count() == 2).then_some(())
    });
    bench.assert_no_faults();
}

#[test]
fn i10_a_full_disk_is_said_once_and_what_was_journaled_before_still_resumes() {
    let long = "x".repeat(3000);
    let bench = Bench::new(&format!("[fallback]\nlead = \"{long}\"\n"));
    bench.run(&[], "one\ntwo\n");
    let kept = std::fs::read_to_string(journal(&bench, "lead")).expect("the journal");
    // The journal may grow by some kilobytes, and a reply has three.
    let blocks = kept.len() / 1024 + 2;
    let limited = format!("ulimit -f {blocks}; exec {} -c", env!("CARGO_BIN_EXE_s15"));
    let mut command = bench.shell(&limited);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = finish(command.spawn().expect("the program starts"), "three\nfour\nfive\n");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(run.stdout.matches("can't write the journal").count(), 1, "{}", run.stdout);
    assert_eq!(user_texts(&bench.requests().pop().expect("a request")), ["one", "two", "three", "four", "five"]);
    let after = std::fs::read_to_string(journal(&bench, "lead")).expect("the journal");
    assert!(after.starts_with(&kept), "what was there is there");
    bench.assert_no_faults();

    bench.run(&["-c"], "six\n");
    let texts = user_texts(&bench.requests().pop().expect("a request"));
    assert_eq!(
        (&texts[..2], texts.last().map(String::as_str)),
        (&["one".to_owned(), "two".to_owned()][..], Some("six"))
    );
}

#[test]
fn folders_that_are_removed_while_it_runs_cost_nothing_inside() {
    let bench = Bench::new(TEAM);
    let mut terminal = Terminal::start(&bench, 80, 40);
    terminal.line("team");
    terminal.see("[team] proposal");
    terminal.line("yes");
    terminal.see("[plan] alice");
    for folder in [".mailboxes", ".team"] {
        // The program may write into it at that moment; whoever removes it tries again.
        wait_for("a clean folder", || std::fs::remove_dir_all(bench.path(folder)).ok());
    }
    let id = wait_for("the plan", || {
        let text = last_text(&bench.requests_of("lead").pop()?);
        let at = text.find("request_id=")? + "request_id=".len();
        Some(text[at..at + 36].to_owned())
    });
    terminal.line(&format!("/reject {id} not yet"));
    wait_for("the answer", || {
        let texts = user_texts(&bench.requests_of("alice").pop()?);
        texts.iter().any(|text| text.contains("Plan rejected")).then_some(())
    });
    wait_for("the folders", || (bench.path(".mailboxes").is_dir() && bench.path(".team").is_dir()).then_some(()));
    bench.assert_no_faults();
}

#[test]
fn a_failed_turn_is_tried_again_with_what_it_had() {
    let bench = Bench::new(
        "[fallback]\nlead = \"there\"\n[[rule]]\nagent = \"lead\"\nonce = true\nstatus = 400\nbody = \"no\"\n",
    );
    let run = bench.run(&[], "hello\n/retry\n/retry\n");
    assert!(run.stdout.contains("there"), "{}", run.stdout);
    assert!(run.stdout.contains("there is nothing to try again"), "{}", run.stdout);
    let texts: Vec<_> = bench.requests().iter().map(user_texts).collect();
    assert_eq!(texts, [["hello"], ["hello"]]);
    bench.assert_no_faults();
}

/// In a mount namespace of its own, where the kernel lets us have one.
#[test]
fn a_state_folder_that_cannot_be_written_is_said_and_changes_nothing() {
    let bench = Bench::new("[fallback]\nlead = \"ok\"\n");
    bench.run(&[], "one\n");
    let kept = std::fs::read_to_string(journal(&bench, "lead")).expect("the journal");
    let state = bench.state().display().to_string();
    let read_only = format!("mount --bind {state} {state} && mount -o remount,ro,bind {state}");
    let probe = std::process::Command::new("unshare").args(["-rm", "bash", "-c", &read_only]).output();
    if !probe.is_ok_and(|probe| probe.status.success()) {
        println!("skipped: no read-only mount can be had here");
        return;
    }
    for arguments in ["", "-c"] {
        let line = format!("unshare -rm bash -c '{read_only} && exec {} {arguments}'", env!("CARGO_BIN_EXE_s15"));
        let mut command = bench.shell(&line);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let run = finish(command.spawn().expect("the program starts"), "two\n");
        assert_eq!(run.code, Some(0), "{run:?}");
        assert!(run.stdout.contains("keeps no journal") && run.stdout.contains("ok"), "{run:?}");
    }
    assert_eq!(user_texts(&bench.requests().pop().expect("a request")), ["one", "two"]);
    assert_eq!(std::fs::read_to_string(journal(&bench, "lead")).expect("the journal"), kept);
}
