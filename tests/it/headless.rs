//! `-p` and pipes: what comes out, in which form, with which exit code.

use crate::harness::{Bench, last_text, results, user_texts};

const ECHO: &str = r#"
[fallback]
"*" = "完成。"
[[rule]]
agent = "lead"
user = "run"
lacks_call = "bash"
text = "running"
calls = [{ tool = "bash", arguments = { command = "echo hi; echo oops >&2; exit 3" } }]
"#;

const TEAM: &str = r#"
[fallback]
"*" = "done"
[[rule]]
agent = "lead"
user = "team"
lacks_call = "propose_team"
calls = [{ tool = "propose_team", arguments = { members = [{ name = "alice", role = "dev", prompt = "WORK" }], reason = "r" } }]
[[rule]]
agent = "lead"
user_is = ["yes", "开始吧"]
lacks_call = "spawn_teammate"
calls = [{ tool = "spawn_teammate", arguments = { name = "alice" } }]
"#;

#[test]
fn one_agent_runs_a_tool_and_answers() {
    let bench = Bench::new(ECHO);
    let run = bench.run(&["-p", "run it"], "");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(run.stdout, "完成。\n");
    let requests = bench.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(user_texts(&requests[0]), ["run it"]);
    assert_eq!(results(&requests[1]), ["hi\noops\nexit code: 3"]);
    bench.assert_no_faults();
}

#[test]
fn stream_json_is_the_journals_own_events() {
    let bench = Bench::new(ECHO);
    let run = bench.run(&["-p", "run it", "--output-format", "stream-json"], "");
    let items: Vec<s15::event::Item> =
        run.stdout.lines().map(|line| serde_json::from_str(line).expect("each line is an item")).collect();
    assert!(items.is_sorted_by(|a, b| a.seq < b.seq), "numbers rise");
    for word in
        ["session_started", "user_line", "turn_started", "replied", "tool_started", "tool_ended", "session_ended"]
    {
        assert!(run.stdout.contains(&format!("\"event\":\"{word}\"")), "{word} in {}", run.stdout);
    }
    let journals: Vec<s15::event::Item> =
        journal_lines(&bench).iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let stored = items.iter().filter(|item| !matches!(item.event, s15::event::Event::Text { .. }));
    for item in stored {
        let stands =
            |line: &&s15::event::Item| (line.seq, &line.time) == (item.seq, &item.time) && line.event == item.event;
        assert!(journals.iter().any(|line| stands(&line)), "{item:?} is not in the journal");
    }
    assert!(!run.stderr.contains('{'), "only stdout holds data");
}

fn journal_lines(bench: &Bench) -> Vec<String> {
    let mut lines = Vec::new();
    let mut folders = vec![bench.state()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "jsonl") {
                lines.extend(std::fs::read_to_string(&path).unwrap_or_default().lines().map(str::to_owned));
            }
        }
    }
    lines
}

#[test]
fn json_is_one_object() {
    let bench = Bench::new(ECHO);
    let run = bench.run(&["-p", "hello", "--output-format", "json"], "");
    let result: serde_json::Value = serde_json::from_str(&run.stdout).expect("one object");
    assert_eq!((result["text"].as_str(), result["exit_code"].as_u64()), (Some("完成。"), Some(0)));
    assert!(result["usage"]["input_tokens"].as_u64().is_some_and(|tokens| tokens > 0));
}

#[test]
fn i2_headless_proposes_and_stops_without_yes() {
    let bench = Bench::new(TEAM);
    let run = bench.run(&["-p", "make a team"], "");
    assert_eq!(run.code, Some(4), "{run:?}");
    assert!(run.stderr.contains("[team] proposal: 1 teammate"), "{}", run.stderr);
    assert!(bench.requests_of("alice").is_empty());
}

#[test]
fn headless_with_yes_runs_the_team_to_its_end() {
    let scenario = TEAM.replace("[fallback]", "[fallback]\nlead = \"all done\"")
        + "[[rule]]\nagent = \"lead\"\nlacks_call = \"spawn_teammate\"\nafter_result = \"propose_team\"\ncalls = [{ tool = \"spawn_teammate\", arguments = { name = \"alice\" } }]\n";
    let bench = Bench::new(&scenario);
    let run = bench.run(&["-p", "make a team", "--yes"], "");
    assert_eq!(run.code, Some(0), "{run:?}");
    let alice = bench.requests_of("alice");
    assert_eq!(user_texts(&alice[0]), ["[Task] WORK"]);
    let lead = bench.requests_of("lead");
    assert!(
        lead.iter().any(|request| last_text(request).contains("[result] alice: done")),
        "the result reached the lead"
    );
    bench.assert_no_faults();
}

#[test]
fn a_pipe_is_read_line_by_line_when_the_team_is_quiet() {
    let bench = Bench::new(TEAM);
    let run = bench.run(&[], "make a team\n\n开始吧\nthanks\n");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(!run.stdout.contains('\x1b') && !run.stderr.contains('\x1b'), "no escape codes in a pipe");
    let lines: Vec<String> = [
        "[team] proposal: 1 teammate",
        "[teammate] alice spawned",
        "[bus] alice → lead (result)",
        "[wake: 2 team events → new turn]",
    ]
    .map(str::to_owned)
    .into();
    let mut rest = run.stdout.as_str();
    for line in &lines {
        let at = rest.find(line).unwrap_or_else(|| panic!("{line} in order in {}", run.stdout));
        rest = &rest[at..];
    }
    let thanks =
        bench.requests_of("lead").into_iter().find(|request| last_text(request) == "thanks").expect("the last line");
    assert!(
        user_texts(&thanks).iter().any(|text| text.contains("[result] alice: done")),
        "read only after the team was quiet"
    );
}

#[test]
fn an_unconfirmed_proposal_at_the_end_of_a_pipe_needs_a_person() {
    let bench = Bench::new(TEAM);
    assert_eq!(bench.run(&[], "make a team\n").code, Some(4));
}

#[test]
fn a_pipe_without_a_line_is_done() {
    let bench = Bench::new(TEAM);
    let run = bench.run(&[], "");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(bench.requests().is_empty());
}

#[test]
fn a_teammate_whose_work_failed_makes_the_run_fail() {
    let scenario = TEAM.to_owned() + "[[rule]]\nagent = \"alice\"\nstatus = 401\nbody = \"no\"\n";
    let bench = Bench::new(&scenario);
    let run = bench.run(&[], "make a team\nyes\n");
    assert_eq!(run.code, Some(1), "{run:?}");
    let told = bench.requests_of("lead").iter().filter(|request| last_text(request).contains("[error] alice:")).count();
    assert_eq!(told, 1, "I6: the lead hears of it once");
}
