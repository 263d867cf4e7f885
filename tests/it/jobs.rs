//! Commands in the background: their ids, what is seen of them, who may end them, and that each one's end is told once.
#![cfg(target_os = "linux")]

use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::harness::{Bench, finish, last_text, results, user_texts, wait_for};
use crate::open::{rule, scenario};
use crate::pty::Terminal;

/// Writes its number into `pid`, says so, and stays.
const STAYS: &str = "echo $$ > pid.part; mv pid.part pid; echo begun; exec sleep 1000";

/// A scenario of the lead alone: its replies, in order, then `ok`.
fn lead(replies: &[&str]) -> String {
    let rules = replies
        .iter()
        .enumerate()
        .map(|(at, calls)| format!("[[rule]]\nagent = \"lead\"\nn = {}\ncalls = [{calls}]\n", at + 1));
    format!("[fallback]\nlead = \"ok\"\n\"*\" = \"done\"\n{}", rules.collect::<String>())
}

fn job(command: &str) -> String {
    assert!(!command.contains("'''"));
    format!("{{ tool = \"bash\", arguments = {{ run_in_background = true, command = '''{command}''' }} }}")
}

fn on(tool: &str, id: &str) -> String {
    format!("{{ tool = \"{tool}\", arguments = {{ id = \"{id}\" }} }}")
}

fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

fn pid(bench: &Bench) -> i32 {
    wait_for("the command's number", || bench.read("pid")?.trim().parse().ok())
}

/// The texts in which an agent was told of a job's end, in its last request.
fn told(bench: &Bench, agent: &str) -> Vec<String> {
    let last = bench.requests_of(agent).pop().expect("a request");
    user_texts(&last).into_iter().filter(|text| text.contains("job_finished")).collect()
}

#[test]
fn an_idle_owner_is_woken_by_the_end_of_its_job_and_headless_waits_for_it() {
    let bench = Bench::new(&lead(&[&job("until [ -e go ]; do sleep 0.01; done; echo one; echo two; exit 3")]));
    let program =
        bench.command(&["-p", "start"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let idle = wait_for("the second request", || bench.requests_of("lead").get(1).cloned());
    let result = &results(&idle)[0];
    assert!(
        result.starts_with("job-1 runs in the background, for 3600 s at most. You are told when it ends;"),
        "{result}"
    );
    std::fs::write(bench.path("go"), "").unwrap();
    let run = finish(program.unwrap(), "");
    assert_eq!((run.code, bench.requests().len()), (Some(0), 3), "{run:?}");
    let event = last_text(&bench.requests()[2]);
    let expected = "[Team events]\n[job_finished] system: job-1 (until [ -e go ]; do sleep 0.01; done; echo one; echo two; exit 3 &): exit code: 3\n  Its last lines (all of it: ";
    assert!(event.starts_with(expected), "{event}");
    let (path, rest) = event[expected.len()..].split_once("):\n").unwrap();
    assert!(rest.starts_with("  one\n  two\n[Team state]"), "{event}");
    assert_eq!(std::fs::read_to_string(path).unwrap(), "one\ntwo\n");
    bench.assert_no_faults();
}

#[test]
fn what_came_since_the_last_look_is_shown_once_and_a_stop_is_answered_by_the_end() {
    let looks = "echo one; until [ -e go ]; do sleep 0.01; done; echo two; touch said; exec sleep 1000";
    let wait = "{ tool = \"bash\", arguments = { command = \"touch go; until [ -e said ]; do sleep 0.01; done; sleep 0.1\" } }";
    let begun = "{ tool = \"bash\", arguments = { command = \"sleep 0.3\" } }";
    let bench = Bench::new(&lead(&[
        &[&*job(looks), begun].join(", "),
        &[&*on("bash_output", "job-1"), &on("bash_output", "JOB-1"), wait, &on("bash_output", "job-1")].join(", "),
        &[
            &*on("bash_stop", "job-1"),
            &on("bash_output", "job-1"),
            &on("bash_stop", "job-1"),
            &on("bash_stop", "job-7"),
        ]
        .join(", "),
    ]));
    let run = bench.run(&["-p", "start"], "");
    assert_eq!((run.code, bench.requests().len()), (Some(0), 4), "its owner needs no message: {run:?}");
    let results = results(&bench.requests()[3]);
    assert!(results[2].starts_with("one\njob-1 runs for "), "{results:#?}");
    assert!(results[3].starts_with("(no new output)\njob-1 runs for "), "{results:#?}");
    assert!(results[5].starts_with("two\njob-1 runs for "), "{results:#?}");
    let end = "(no new output)\njob-1 has ended. stopped: by its owner";
    assert_eq!(results[6..9], [end, end, end].map(str::to_owned));
    assert_eq!(results[9], "error: \"job-7\" is no background command of yours; known: job-1");
    assert!(told(&bench, "lead").is_empty());
}

#[test]
fn i11_a_job_has_a_limit_and_so_has_their_number() {
    let many = vec![job("exec sleep 1000"); 9].join(", ");
    let bench = Bench::new(&lead(&[&many])).env("S15_JOB_TIMEOUT", "1");
    let run = bench.run(&["-p", "start"], "");
    assert_eq!(run.code, Some(0), "{run:?}");
    let started = results(&bench.requests()[1]);
    assert!(started[..8].iter().all(|text| text.contains("for 1 s at most")), "{started:#?}");
    let expected = "error: 8 commands run in the background, the most at once; wait until one has ended, or end one with bash_stop: job-1, ";
    assert!(started[8].starts_with(expected), "{}", started[8]);
    let ends: String = told(&bench, "lead").concat();
    for number in 1..=8 {
        assert_eq!(
            ends.matches(&format!("job-{number} (exec sleep 1000 &): timed out after 1 s")).count(),
            1,
            "{ends}"
        );
    }
}

#[test]
fn i9_a_job_ends_with_the_program_however_it_ends_and_its_end_is_told_once_after_a_resume() {
    for signal in [Signal::SIGKILL, Signal::SIGTERM] {
        let bench = Bench::new(&lead(&[&job(STAYS)]));
        let mut program =
            bench.command(&[]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut stdin = program.stdin.take().unwrap();
        std::io::Write::write_all(&mut stdin, b"start\n").unwrap();
        let job = pid(&bench);
        wait_for("an idle lead", || bench.requests().get(1).cloned());
        kill(Pid::from_raw(i32::try_from(program.id()).unwrap()), signal).unwrap();
        wait_for("the job's end", || (!is_alive(job)).then_some(()));
        program.wait().unwrap();
        for line in ["more", "and more"] {
            let run = bench.run(&["--continue", "-p", line], "");
            assert_eq!(run.code, Some(0), "{run:?}");
            let told = told(&bench, "lead");
            assert_eq!(told.len(), 1, "{signal} {line}: {told:#?}");
            let why = if signal == Signal::SIGKILL {
                "the program was ended while it ran"
            } else {
                "the session was left while it ran"
            };
            assert!(told[0].contains("[job_finished] system: job-1 (") && told[0].contains(why), "{told:#?}");
        }
        bench.assert_no_faults();
    }
}

/// Waits until the command that stays is there.
const UNTIL: &str =
    "{ tool = \"bash\", arguments = { command = \"until [ -e pid ]; do sleep 0.01; done; sleep 0.2\" } }";

/// alice begins a job in her first turn.
fn alice(more: &str) -> String {
    rule(&format!("agent = \"alice\"\nn = 1\ncalls = [{}, {UNTIL}]", job(STAYS))) + more
}

/// The event with which the lead hears that alice idles while her job runs.
const WAITS: &str = "[idle_notification] alice: waiting_job";

fn on_event(agent: &str, event: &str, calls: &[&str]) -> String {
    let last = calls.last().unwrap().split('"').nth(1).unwrap();
    rule(&format!(
        "agent = \"{agent}\"\nevent = \"{event}\"\nuntil_call = \"{last}\"\nlacks_call = \"{last}\"\ncalls = [{}]",
        calls.join(", ")
    ))
}

#[test]
fn i3_a_gate_that_closes_ends_the_jobs_behind_it() {
    let plan = "{ tool = \"request_plan\", arguments = { teammate = \"alice\", task = \"plan\" } }";
    let more = on_event("lead", WAITS, &[plan])
        + &on_event("alice", "[Plan required]", &[&job("touch late"), &on("bash_stop", "job-1")]);
    let bench = Bench::new(&scenario(&[("alice", false)], &alice(&more)));
    let run = bench.run(&[], "team\n开始吧\n");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(!is_alive(pid(&bench)));
    let heard =
        bench.requests_of("lead").into_iter().map(|request| last_text(&request)).find(|text| text.contains(WAITS));
    let event = heard.expect("an idle alice");
    assert!(event.contains("[message] alice: done") && !event.contains("[result]"), "{event}");
    assert!(event.contains("alice: idle (waiting_job)\njob-1 of alice runs for "), "{event}");
    let results = results(bench.requests_of("alice").last().unwrap());
    assert!(results[2].starts_with("Blocked: plan status is required"), "{results:#?}");
    // Her own can be ended all the same; whether the call or the mail tells of it first is not said.
    let why = "stopped: the plan gate was closed: a plan must be approved first";
    assert!(results[3].contains(&format!("job-1 has ended. {why}")), "{results:#?}");
    assert!(told(&bench, "alice").iter().all(|text| text.contains(why)), "{:#?}", told(&bench, "alice"));
    assert!(!bench.path("late").exists());
    let last: Vec<String> = bench
        .requests_of("lead")
        .iter()
        .flat_map(user_texts)
        .filter(|text| text.contains("[result] alice: done"))
        .collect();
    assert!(!last.is_empty(), "the work goes on and ends once: {run:?}");
    bench.assert_no_faults();
}

#[test]
fn i9_a_job_ends_with_its_owner_and_belongs_to_it_alone() {
    let (look, stop) = (on("bash_output", "job-1"), on("bash_stop", "job-1"));
    let end = "{ tool = \"request_shutdown\", arguments = { teammate = \"alice\" } }";
    let more = rule(&format!("agent = \"bob\"\nn = 1\ncalls = [{UNTIL}, {look}, {stop}]"))
        + &rule(&format!(
            "agent = \"lead\"\nevent = \"[result] bob\"\nuntil_call = \"request_shutdown\"\nlacks_call = \"request_shutdown\"\ncalls = [{look}, {end}]"
        ))
        + &alice("");
    let bench = Bench::new(&scenario(&[("alice", false), ("bob", false)], &more));
    let run = bench.run(&[], "team\n开始吧\nand now\n");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(!is_alive(pid(&bench)));
    let refused = results(bench.requests_of("bob").last().unwrap());
    for refusal in &refused[1..] {
        assert_eq!(refusal, "error: \"job-1\" is no background command of yours; there are none");
    }
    let last = bench.requests_of("lead").pop().unwrap();
    let seen = results(&last).into_iter().find(|text| text.starts_with("begun\n")).expect("what the lead sees");
    assert!(seen.starts_with("begun\njob-1 runs for "), "{seen}");
    let told = told(&bench, "lead");
    assert_eq!(told.len(), 1, "{told:#?}");
    assert!(
        told[0].contains("[job_finished] system: of alice, who has ended: job-1 (")
            && told[0].contains("stopped: its owner has ended"),
        "{told:#?}"
    );
    bench.assert_no_faults();
}

#[test]
fn the_user_sees_what_runs() {
    let bench = Bench::new(&lead(&[&job(STAYS)]));
    let mut terminal = Terminal::start(&bench, 100, 24);
    terminal.line("go");
    terminal.see("ok");
    terminal.line("/jobs");
    terminal.see("job-1 of lead runs for ");
}

#[test]
fn i1_a_kill_at_any_moment_of_its_beginning_leaves_one_end_to_be_told() {
    for (point, why) in [
        ("tool_started:1", "exit code: 0"),
        ("call_done:1", "the program was ended while it ran"),
        ("tool_done:1", "the program was ended while it ran"),
    ] {
        let bench = Bench::new(&lead(&[&job("echo x >> ran; until [ -e go ]; do sleep 0.01; done")]));
        let mut command = bench.command(&["-p", "start"]);
        command.env("S15_TEST_KILL", point).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let run = finish(command.spawn().unwrap(), "");
        assert_eq!(run.code, None, "killed at {point}: {run:?}");
        std::fs::write(bench.path("go"), "").unwrap();
        for line in ["go on", "and on"] {
            let run = bench.run(&["--continue", "-p", line], "");
            assert_eq!(run.code, Some(0), "{run:?}");
            let told = told(&bench, "lead");
            assert!(
                told.len() == 1 && told[0].matches("job-1 (").count() == 1 && told[0].contains(why),
                "{point} {line}: {told:#?}"
            );
            assert!(
                results(bench.requests().last().unwrap())[0].starts_with("job-1 runs in the background"),
                "{point}"
            );
        }
        assert!(bench.read("ran").unwrap_or_default().lines().count() <= 1, "{point}");
        bench.assert_no_faults();
    }
}
