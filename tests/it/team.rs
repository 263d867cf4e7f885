//! The team from outside: confirmation, spawn, gate, protocols, delivery, endings.

use crate::harness::{Bench, last_text, results, user_texts, wait_for};
use crate::open::{Open, outside, outside_line, rule, scenario};

#[test]
fn i2_only_a_plain_yes_starts_a_team() {
    for (line, starts) in [
        ("开始吧", true),
        ("开始吧。", true),
        ("ＹＥＳ!", true),
        ("はい", true),
        ("好像不对", false),
        ("ok but rename alice", false),
        ("不", false),
    ] {
        let bench = Bench::new(&scenario(&[("alice", false)], ""));
        bench.run(&[], &format!("team\n{line}\n"));
        let confirmed = bench.path(".team/config.json").exists();
        assert!(!confirmed || starts, "{line} must not start a team");
        if starts && matches!(line, "开始吧") {
            assert_eq!(bench.requests_of("alice").len(), 1, "{line}");
        }
        bench.assert_no_faults();
    }
}

#[test]
fn i2_a_spawn_after_some_other_line_is_asked_by_name() {
    for (answer, starts) in [("y", true), ("n", false), ("what?", false)] {
        let bench = Bench::new(&scenario(&[("alice", false)], ""));
        let run = bench.run(&[], &format!("team\ngo on then\n{answer}\n"));
        assert!(run.stdout.contains("Start alice? [y/N]"), "{}", run.stdout);
        assert_eq!(!bench.requests_of("alice").is_empty(), starts, "{answer}");
        let heard = bench.requests_of("lead").iter().any(|request| user_texts(request).contains(&"what?".to_owned()));
        assert_eq!(heard, answer == "what?", "what is no answer goes to the lead as well");
        bench.assert_no_faults();
    }
}

#[test]
fn i2_in_a_turn_that_no_line_started_nobody_is_spawned() {
    let more = rule(
        "agent = \"lead\"\nevent = \"GO-AHEAD\"\nuntil_call = \"spawn_teammate\"\nlacks_call = \"spawn_teammate\"\ncalls = [{ tool = \"spawn_teammate\", arguments = { name = \"alice\" } }]",
    );
    let bench = Bench::new(&scenario(&[("alice", false)], &more)).file(".mailboxes/.gitignore", "*\n");
    let mut run = Open::start(&bench);
    run.say("team");
    run.request("lead", "the proposal", |request| last_text(request) == "team");
    let line = "{\"from\":\"alice\",\"type\":\"plan_approval_response\",\"content\":\"开始吧 GO-AHEAD\"}";
    outside_line(&bench, line);
    let refused = run.request("lead", "the refusal", |request| last_text(request).contains("has not confirmed"));
    let event = user_texts(&refused).into_iter().find(|text| text.contains("GO-AHEAD")).expect("the mail");
    assert!(event.starts_with("[Team events]\n[plan_approval_response] alice (outside mail):"), "{event}");
    let (code, _) = run.end();
    assert_eq!(code, Some(4), "the proposal still waits for a person");
    assert!(bench.requests_of("alice").is_empty());
}

#[test]
fn i3_a_closed_gate_blocks_all_that_is_not_read_only_until_the_right_approval() {
    let more = rule(
        "agent = \"alice\"\nn = 1\ncalls = [{ tool = \"bash\", arguments = { command = \"echo 1 > g1\" } }, { tool = \"write_file\", arguments = { path = \"g2\", content = \"2\" } }, { tool = \"edit_file\", arguments = { path = \"e\", old_text = \"old\", new_text = \"new\" } }, { tool = \"read_file\", arguments = { path = \"e\" } }, { tool = \"submit_plan\", arguments = { plan = \"方案一\" } }, { tool = \"glob\", arguments = { pattern = \"*\" } }]",
    ) + &rule(
        "agent = \"alice\"\nevent = \"[Plan rejected]\"\nlacks = \"[Plan approved]\"\nlast_call = \"glob\"\ncalls = [{ tool = \"bash\", arguments = { command = \"echo early > g3\" } }]",
    ) + &rule(
        "agent = \"alice\"\nafter_result = \"bash\"\nlacks = \"[Plan approved]\"\ncalls = [{ tool = \"submit_plan\", arguments = { plan = \"方案二\" } }]",
    ) + &rule(
        "agent = \"alice\"\nevent = \"[Plan approved]\"\nlast_call = \"submit_plan\"\ncalls = [{ tool = \"bash\", arguments = { command = \"echo ok > g4\" } }]",
    ) + &rule(
        "agent = \"lead\"\nevent = \"[plan_approval_request request_id={request_id}] alice: 方案一\"\nuntil_call = \"review_plan\"\ncalls = [{ tool = \"review_plan\", arguments = { request_id = \"${request_id}\", approve = false, feedback = \"补充回滚\" } }, { tool = \"review_plan\", arguments = { request_id = \"${request_id}\", approve = true } }]",
    ) + &rule(
        "agent = \"lead\"\nevent = \"[plan_approval_request request_id={request_id}] alice: 方案二\"\nuntil_call = \"review_plan\"\ncalls = [{ tool = \"review_plan\", arguments = { request_id = \"${request_id}\", approve = true } }]",
    );
    let bench = Bench::new(&scenario(&[("alice", true)], &more)).file("e", "old");
    let run = bench.run(&[], "team\n开始吧\n");
    bench.assert_no_faults();
    let alice = bench.requests_of("alice");
    let task = &user_texts(&alice[0])[0];
    assert!(task.starts_with("[Task] WORK-alice\n[Plan required] Only reading"), "{task}");
    let last = results(alice.last().expect("alice worked"));
    for blocked in [&last[0], &last[1], &last[2]] {
        assert!(blocked.starts_with("Blocked: plan status is required"), "{blocked}");
    }
    assert!(last[3].contains("old"), "reading is open");
    assert!(last[5].starts_with("not run:"), "the turn ended with the plan: {}", last[5]);
    assert!(last[6].starts_with("Blocked: plan status is rejected"), "{}", last[6]);
    for file in ["g1", "g2", "g3"] {
        assert!(bench.read(file).is_none(), "{file}");
    }
    assert_eq!(
        (bench.read("e").as_deref(), bench.read("g4").as_deref()),
        (Some("old"), Some("ok\n")),
        "{}",
        run.stdout
    );
    let texts = user_texts(alice.last().expect("alice worked")).concat();
    assert_eq!(texts.matches("补充回滚").count(), 1);
    let reviews: Vec<String> =
        bench.requests_of("lead").iter().flat_map(results).filter(|text| text.contains("settled")).collect();
    assert!(!reviews.is_empty(), "I4: the second answer was told that the request is settled");
    let plans = std::fs::read_dir(bench.path(".team/requests")).expect("the views").count();
    assert_eq!(plans, 2, "a new submission has a new request");
}

#[test]
fn i4_a_teammate_can_answer_nothing_but_its_own_shutdown() {
    let more = rule(
        "agent = \"bob\"\nn = 1\ncalls = [{ tool = \"review_plan\", arguments = { request_id = \"x\", approve = true } }, { tool = \"spawn_teammate\", arguments = { name = \"carl\" } }, { tool = \"shutdown_response\", arguments = { request_id = \"0199aaaa-0000-7000-8000-000000000000\", approve = true } }]",
    );
    let bench = Bench::new(&scenario(&[("bob", false)], &more));
    bench.run(&[], "team\nyes\n");
    let bob = bench.requests_of("bob");
    let answers = results(bob.last().expect("bob worked"));
    assert!(
        answers[0].contains("there is no tool `review_plan`") && answers[0].contains("submit_plan"),
        "{}",
        answers[0]
    );
    assert!(answers[1].contains("there is no tool `spawn_teammate`"));
    assert!(answers[2].starts_with("error: there is no request"), "{}", answers[2]);
    bench.assert_no_faults();
}

#[test]
fn what_every_call_pays_for_is_little() {
    let bench = Bench::new(&scenario(&[("alice", false)], ""));
    bench.run(&[], "team\nyes\n");
    for (agent, bytes_max) in [("lead", 10_000), ("alice", 6_000)] {
        let bytes = bench.requests_of(agent)[0].raw_len;

        assert!(bytes <= bytes_max, "{agent}'s first request has {bytes} bytes");
    }
}

#[test]
fn i6_result_then_idle_in_that_order_and_one_wake() {
    let bench = Bench::new(&scenario(&[("alice", false)], ""));
    let run = bench.run(&[], "team\nyes\n");
    let texts: Vec<String> = bench.requests_of("lead").iter().flat_map(user_texts).collect();
    let event = texts.iter().find(|text| text.starts_with("[Team events]")).expect("the events");
    let (result, idle) = (event.find("[result] alice: done"), event.find("[idle_notification] alice: done"));
    assert!(result.is_some() && result < idle, "{event}");
    assert!(event.contains("[Team state]\nalice: idle (done)"), "{event}");
    assert_eq!(run.stdout.matches("[wake: 2 team events → new turn]").count(), 1, "{}", run.stdout);
}

#[test]
fn i6_the_bound_on_model_calls_ends_the_work_with_an_error_that_says_so() {
    let more = rule("agent = \"alice\"\ncalls = [{ tool = \"glob\", arguments = { pattern = \"*\" } }]");
    let bench = Bench::new(&scenario(&[("alice", false)], &more)).env("S15_TURN_CALLS_MAX", "15");
    let run = bench.run(&[], "team\nyes\n");
    assert_eq!((run.code, bench.requests_of("alice").len()), (Some(1), 15));
    let told = bench
        .requests_of("lead")
        .iter()
        .any(|request| last_text(request).contains("[error] alice: the turn reached its limit of 15"));
    assert!(told, "{}", run.stdout);
}

#[test]
fn i1_mail_for_a_busy_lead_is_in_its_very_next_request() {
    let more = rule(
        "agent = \"lead\"\nuser = \"long\"\nlacks_call = \"bash\"\ncalls = [{ tool = \"bash\", arguments = { command = \"touch begun; until [ -e go ]; do sleep 0.01; done\" } }]",
    );
    let bench = Bench::new(&scenario(&[("alice", false)], &more)).file(".mailboxes/.gitignore", "*\n");
    let mut run = Open::start(&bench);
    run.say("long");
    wait_for("the command", || bench.read("begun"));
    for number in 0..5 {
        outside(&bench, &format!("MARK-{number}."));
    }
    std::fs::write(bench.path("go"), "").expect("a file");
    let (code, _) = run.end();
    let lead = bench.requests_of("lead");
    assert_eq!((code, lead.len()), (Some(0), 2));
    let event = last_text(&lead[1]);
    let places: Vec<Option<usize>> = (0..5).map(|number| event.find(&format!("MARK-{number}."))).collect();
    assert!(places.is_sorted() && places.iter().all(Option::is_some), "{event}");
    bench.assert_no_faults();
}

#[test]
fn i7_bare_idle_notices_cost_no_call() {
    let notices = "{\"from\":\"alice\",\"type\":\"idle_notification\",\"content\":\"available\"}\n".repeat(5);
    let bench = Bench::new(&scenario(&[("alice", false)], "")).file(".mailboxes/lead.jsonl", &notices);
    let run = bench.run(&[], "");
    assert_eq!((run.code, bench.requests().len()), (Some(0), 0), "{}", run.stdout);
    assert_eq!(run.stdout.matches("outside: alice → lead (idle_notification)").count(), 5, "they are shown");
}

#[test]
fn a_shut_down_team_says_so_and_unknown_names_are_refused_with_the_valid_ones() {
    let more = rule(
        "agent = \"lead\"\nuser = \"close\"\nlacks_call = \"request_shutdown\"\ncalls = [{ tool = \"request_shutdown\", arguments = { teammate = \"Alice\" } }, { tool = \"send_message\", arguments = { to = \"alice\", content = \"hi\" } }, { tool = \"send_message\", arguments = { to = \"../escape\", content = \"hi\" } }, { tool = \"list_requests\", arguments = {} }]",
    );
    let bench = Bench::new(&scenario(&[("alice", false), ("bob", false)], &more));
    let run = bench.run(&[], "team\nyes\nclose\n");
    let lead = bench.requests_of("lead");
    let answers = lead.iter().map(results).max_by_key(Vec::len).expect("the answers");
    let [.., shut, gone, escape, list] = answers.as_slice() else { panic!("{answers:?}") };
    assert!(shut.contains("is shut down"), "{shut}");
    assert!(gone.starts_with("error:") && gone.contains("shutdown") && gone.contains("bob"), "{gone}");
    assert!(escape.starts_with("error:") && escape.contains("bob"), "{escape}");
    assert!(list.starts_with("approved shutdown request"), "{list}");
    assert!(run.stdout.contains("[teammate] alice shutdown"), "{}", run.stdout);
    assert!(!run.stdout.contains("[all teammates shut down]"), "bob still lives");
    let event = lead
        .iter()
        .flat_map(user_texts)
        .find(|text| text.contains("[shutdown_response request_id="))
        .expect("the answer");
    assert!(event.contains("approve=true] alice:"), "{event}");
    assert!(!bench.path(".mailboxes").join("../escape.jsonl").exists());
}

#[test]
fn a_working_teammate_may_refuse_a_shutdown_once_and_no_more() {
    let more = rule(
        "agent = \"alice\"\nn = 1\ncalls = [{ tool = \"bash\", arguments = { command = \"touch begun; until [ -e go ]; do sleep 0.01; done\" } }, { tool = \"bash\", arguments = { command = \"touch second\" } }]",
    ) + &rule(
        "agent = \"alice\"\nevent = \"[Shutdown request request_id={id}]\"\nuntil_call = \"shutdown_response\"\ncalls = [{ tool = \"shutdown_response\", arguments = { request_id = \"${id}\", approve = false, reason = \"half way\" } }, { tool = \"bash\", arguments = { command = \"touch refused; until [ -e on ]; do sleep 0.01; done\" } }]",
    ) + &rule(
        "agent = \"lead\"\nevent = \"CLOSE-{which}.\"\nuntil_call = \"request_shutdown\"\ncalls = [{ tool = \"request_shutdown\", arguments = { teammate = \"alice\", reason = \"${which}\" } }]",
    );
    let bench = Bench::new(&scenario(&[("alice", false)], &more));
    let mut run = Open::start(&bench);
    run.say("team");
    run.say("yes");
    wait_for("her command", || bench.read("begun"));
    outside(&bench, "CLOSE-first.");
    run.request("lead", "the first request", |request| last_text(request).contains("was asked to shut down"));
    std::fs::write(bench.path("go"), "").expect("a file");
    wait_for("her refusal", || bench.read("refused"));
    run.request("lead", "the refusal", |request| last_text(request).contains("approve=false] alice: half way"));
    outside(&bench, "CLOSE-second.");
    run.request("lead", "the second request", |request| {
        results(request).iter().filter(|text| text.contains("was asked to shut down")).count() == 2
    });
    std::fs::write(bench.path("on"), "").expect("a file");
    let (_, said) = run.end();
    bench.assert_no_faults();
    assert!(said.contains("[teammate] alice shutdown") && said.contains("[all teammates shut down]"), "{said}");
    assert!(bench.read("second").is_none(), "after the request no further call of that reply is run");
    let alice = bench.requests_of("alice");
    assert_eq!(alice.len(), 2, "the second request can't be refused: no further model call");
    assert!(results(&alice[1])[1].starts_with("not run: you are asked to shut down"));
}

#[test]
fn names_that_cannot_be_are_refused_with_every_fault() {
    let more = rule(
        "agent = \"lead\"\nuser = \"bad\"\nlacks_call = \"propose_team\"\ncalls = [{ tool = \"propose_team\", arguments = { members = [{ name = \"lead\", role = \"r\", prompt = \"p\" }, { name = \"../x\", role = \"r\", prompt = \"p\" }, { name = \"a\", role = \"r\", prompt = \"p\" }, { name = \"A\", role = \"r\", prompt = \"p\" }], reason = \"r\" } }, { tool = \"bash\", arguments = { command = \"touch beside\" } }]",
    );
    let bench = Bench::new(&scenario(&[("alice", false)], &more));
    bench.run(&[], "bad\n");
    let answers = results(&bench.requests_of("lead")[1]);
    for fault in ["\"lead\" is reserved", "\"../x\" is not a name", "used twice"] {
        assert!(answers[0].contains(fault), "{fault} in {}", answers[0]);
    }
    assert_eq!(answers[1], "not run: propose_team stands alone in a reply");
    assert!(!bench.path("beside").exists());
    assert!(!bench.path(".mailboxes").exists(), "nothing is made before it is needed");
}

#[test]
fn sixty_four_teammates_spawn_together_and_all_work() {
    let names: Vec<String> = (1..=64).map(|number| format!("m{number}")).collect();
    let members: Vec<(&str, bool)> = names.iter().map(|name| (name.as_str(), false)).collect();
    let bench = Bench::new(&scenario(&members, "")).env("S15_MAX_TEAMMATES", "64");
    let run = bench.run(&[], "team\nyes\n");
    assert_eq!(run.code, Some(0));
    for name in &names {
        assert_eq!(bench.requests_of(name).len(), 1, "{name}");
        assert!(run.stdout.contains(&format!("[bus] {name} → lead (result)")), "{name}");
    }
    bench.assert_no_faults();
}

#[test]
fn i9_a_signal_ends_the_run_and_its_stubborn_commands() {
    let more = rule(
        "agent = \"alice\"\nn = 1\ncalls = [{ tool = \"bash\", arguments = { command = \"echo $$ > pid; trap '' TERM; sleep 300; sleep 300\" } }]",
    );
    let bench = Bench::new(&scenario(&[("alice", false)], &more));
    let mut run = Open::start(&bench);
    run.say("team");
    run.say("yes");
    let pid = wait_for("her command", || bench.read("pid").filter(|text| text.ends_with('\n')));
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(i32::try_from(run.child.id()).unwrap()),
        nix::sys::signal::Signal::SIGTERM,
    )
    .expect("the program runs");
    let (code, _) = run.end();
    assert_eq!(code, Some(130));
    let gone = std::path::Path::new("/proc").join(pid.trim());
    wait_for("I9: the command's end", || (!gone.exists()).then_some(()));
}

#[test]
fn i6_a_panic_ends_one_teammate_with_an_error_and_harms_nobody_else() {
    if !cfg!(debug_assertions) {
        return;
    }
    let bench = Bench::new(&scenario(&[("alice", false), ("bob", false)], "")).env("S15_TEST_PANIC", "alice");
    let run = bench.run(&[], "team\nyes\nstill there?\n");
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stdout.contains("[teammate] alice failed: internal fault: a fault on purpose"), "{}", run.stdout);
    let lead = bench.requests_of("lead");
    let texts = user_texts(lead.last().expect("the lead goes on"));
    let told = texts.iter().filter(|text| text.contains("[error] alice: internal fault: a fault on purpose")).count();
    assert_eq!(told, 1, "{texts:?}");
    assert!(texts.iter().any(|text| text.contains("[result] bob: done")) && texts.contains(&"still there?".to_owned()));
    assert!(!run.stderr.contains("panicked at"), "{}", run.stderr);
    bench.assert_no_faults();
}

#[test]
fn i3_a_confirmed_plan_requirement_holds_for_a_new_task_too() {
    let more = rule("agent = \"alice\"\ntext = \"nothing yet\"")
        + &rule(
            "agent = \"lead\"\nuser = \"again\"\nlacks = \"has the new task\"\ncalls = [{ tool = \"spawn_teammate\", arguments = { name = \"alice\", prompt = \"SECOND\" } }]",
        );
    let bench = Bench::new(&scenario(&[("alice", true)], &more));
    bench.run(&[], "team\nyes\nagain\n");
    let alice = bench.requests_of("alice");
    let second = alice.iter().flat_map(user_texts).find(|text| text.contains("SECOND")).expect("the new task");
    assert!(second.contains("[Plan required]"), "{second}");
}
