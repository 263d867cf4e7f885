//! What agents write to each other: waking or not, in reply to something, taken back, too long.

use crate::harness::{Bench, results, user_texts, wait_for};
use crate::open::{rule, scenario};
use crate::pty::Terminal;

#[test]
fn i7_a_message_that_is_to_wake_nobody_waits_for_the_next_turn() {
    let more = rule(
        "agent = \"lead\"\nuser = \"note\"\nlacks_call = \"send_message\"\ncalls = [{ tool = \"send_message\", arguments = { to = \"alice\", content = \"QUIET\", wake = false } }, { tool = \"broadcast\", arguments = { content = \"ALL-QUIET\", wake = \"false\" } }]",
    ) + &rule(
        "agent = \"lead\"\nuser = \"task\"\nlacks_call = \"assign_task\"\ncalls = [{ tool = \"assign_task\", arguments = { to = \"alice\", task = \"SECOND\" } }]",
    );
    let bench = Bench::new(&scenario(&[("alice", false)], &more));
    bench.run(&[], "team\nyes\nnote\nhow is it\ntask\n");
    let answers: Vec<String> = bench.requests_of("lead").iter().map(results).max_by_key(Vec::len).expect("answers");
    assert!(answers.iter().any(|text| text.starts_with("sent to alice (id ") && text.ends_with(") without waking it")));
    assert!(answers.iter().any(|text| text.starts_with("sent to alice (id ") && text.ends_with("), waking nobody")));
    let alice = bench.requests_of("alice");
    assert_eq!(alice.len(), 2, "one for each task");
    let texts = user_texts(&alice[1]);
    assert_eq!(texts[1], "[Message from lead] QUIET\n\n[Broadcast from lead] ALL-QUIET\n\n[Task] SECOND");
    bench.assert_no_faults();
}

#[test]
fn an_answer_names_the_message_that_it_answers() {
    let more = rule(
        "agent = \"alice\"\nn = 1\ncalls = [{ tool = \"send_message\", arguments = { to = \"lead\", content = \"which port?\" } }, { tool = \"send_message\", arguments = { to = \"lead\", content = \"x\", reply_to = \"no such id\" } }]",
    ) + &rule(
        "agent = \"lead\"\nevent = \"[message] alice: which port?\"\nuntil_call = \"send_message\"\ncalls = [{ tool = \"send_message\", arguments = { to = \"alice\", content = \"8080\", reply_to = \"last\" } }]",
    ) + &rule(
        "agent = \"alice\"\nevent = \"[Message from lead, in reply to {id}] 8080\"\nuntil_call = \"send_message\"\ncalls = [{ tool = \"send_message\", arguments = { to = \"lead\", content = \"thanks\", reply_to = \"${id}\" } }]",
    );
    let bench = Bench::new(&scenario(&[("alice", false)], &more));
    bench.run(&[], "team\nyes\n");
    let alice = bench.requests_of("alice").pop().expect("alice was asked");
    let answers = results(&alice);
    let id = answers[0].strip_prefix("sent to lead (id ").expect("a receipt").trim_end_matches(')').to_owned();
    assert!(answers[1].starts_with("error: no message that you sent or got has the id \"no such id\""), "{answers:?}");
    let reply = format!("[Message from lead, in reply to {id}] 8080");
    assert!(user_texts(&alice).iter().any(|text| text.contains(&reply)), "{:?}", user_texts(&alice));
    let lead = bench.requests_of("lead");
    let thanks = format!("[message reply_to={id}] alice: thanks");
    assert!(lead.iter().flat_map(user_texts).any(|text| text.contains(&thanks)), "{id}");
    bench.assert_no_faults();
}

#[test]
fn a_message_is_taken_back_while_it_waits_and_not_after_it_has_arrived() {
    let more = rule(
        "agent = \"bob\"\nn = 1\ncalls = [{ tool = \"bash\", arguments = { command = \"touch begun; until [ -e go ]; do sleep 0.01; done\" } }]",
    ) + &rule(
        "agent = \"bob\"\nevent = \"KEPT\"\nuntil_call = \"bash seen\"\ncalls = [{ tool = \"bash\", arguments = { command = \"touch seen\" } }]",
    ) + &rule(
        "agent = \"alice\"\nn = 1\ncalls = [{ tool = \"bash\", arguments = { command = \"until [ -e begun ]; do sleep 0.01; done\" } }, { tool = \"send_message\", arguments = { to = \"bob\", content = \"WRONG\" } }]",
    ) + &rule(
        "agent = \"alice\"\nn = 2\nresult_has = \"sent to bob (id {id})\"\ncalls = [{ tool = \"withdraw_message\", arguments = { id = \"${id}\" } }, { tool = \"withdraw_message\", arguments = { id = \"${id}\" } }, { tool = \"withdraw_message\", arguments = { id = \"0199\" } }, { tool = \"send_message\", arguments = { to = \"bob\", content = \"KEPT\" } }]",
    ) + &rule(
        "agent = \"alice\"\nn = 3\nresult_has = \"sent to bob (id {id})\"\ncalls = [{ tool = \"bash\", arguments = { command = \"touch go; until [ -e seen ]; do sleep 0.01; done\" } }, { tool = \"withdraw_message\", arguments = { id = \"${id}\" } }]",
    );
    let bench = Bench::new(&scenario(&[("alice", false), ("bob", false)], &more));
    bench.run(&[], "team\nyes\n");
    let answers = results(&bench.requests_of("alice").pop().expect("alice was asked"));
    let [_, _, taken_back, again, unclear, _, _, arrived] = answers.as_slice() else { panic!("{answers:?}") };
    assert_eq!(taken_back, "taken back: bob will not see it");
    assert!(again.contains("is not on its way any more"), "{again}");
    assert!(unclear.starts_with("error: ") && unclear.contains("\"0199\""), "{unclear}");
    assert!(arrived.starts_with("error: ") && arrived.contains("has arrived already"), "{arrived}");
    let texts: Vec<String> = bench.requests_of("bob").iter().flat_map(user_texts).collect();
    assert!(texts.iter().any(|text| text == "[Message from alice] KEPT"), "{texts:?}");
    assert!(!texts.concat().contains("WRONG"), "{texts:?}");
    bench.assert_no_faults();
}

#[test]
fn a_message_that_lies_before_a_resting_reader_is_taken_back_too() {
    let more = rule(
        "agent = \"lead\"\nuser = \"note\"\nlacks_call = \"send_message\"\ncalls = [{ tool = \"send_message\", arguments = { to = \"alice\", content = \"KEPT\", wake = false } }, { tool = \"send_message\", arguments = { to = \"alice\", content = \"WRONG\", wake = false } }]",
    ) + &rule(
        "agent = \"lead\"\nresult_has = \"sent to alice (id {id})\"\ncalls = [{ tool = \"withdraw_message\", arguments = { id = \"${id}\" } }]",
    ) + &rule(
        "agent = \"lead\"\nuser = \"task\"\nlacks_call = \"assign_task\"\ncalls = [{ tool = \"assign_task\", arguments = { to = \"alice\", task = \"SECOND\" } }]",
    );
    let bench = Bench::new(&scenario(&[("alice", false)], &more));
    bench.run(&[], "team\nyes\nnote\ntask\n");
    let alice = bench.requests_of("alice");
    assert_eq!(user_texts(&alice[1])[1], "[Message from lead] KEPT\n\n[Task] SECOND");
    bench.assert_no_faults();
}

#[test]
fn i8_what_is_too_long_to_be_sent_is_refused_with_advice_and_last_words_go_into_a_file() {
    let long = "x".repeat(256 * 1024 + 1);
    let most = "m".repeat(256 * 1024);
    let more = rule(&format!(
        "agent = \"alice\"\nn = 1\ncalls = [{{ tool = \"send_message\", arguments = {{ to = \"lead\", content = \"{long}\" }} }}, {{ tool = \"report_status\", arguments = {{ text = \"{long}\" }} }}, {{ tool = \"submit_plan\", arguments = {{ plan = \"{long}\" }} }}, {{ tool = \"send_message\", arguments = {{ to = \"lead\", content = \"{most}\" }} }}]"
    )) + &rule(&format!("agent = \"alice\"\nn = 2\ntext = \"{long}END\""))
        + &rule(&format!(
            "agent = \"lead\"\nuser = \"more\"\nlacks_call = \"assign_task\"\ncalls = [{{ tool = \"assign_task\", arguments = {{ to = \"alice\", task = \"{long}\" }} }}, {{ tool = \"broadcast\", arguments = {{ content = \"{long}\" }} }}, {{ tool = \"request_plan\", arguments = {{ teammate = \"alice\", task = \"{long}\" }} }}, {{ tool = \"request_shutdown\", arguments = {{ teammate = \"alice\", reason = \"{long}\" }} }}]"
        ));
    let bench = Bench::new(&scenario(&[("alice", false)], &more));
    bench.run(&[], "team\nyes\nmore\n");
    let advice =
        "error: the text has 262145 bytes, and at most 262144 can be sent; write it to a file and send the path";
    let alice = results(&bench.requests_of("alice")[1]);
    assert!(alice[..3].iter().all(|text| text.starts_with(advice)), "{:?}", &alice[..3]);
    assert!(alice[3].starts_with("sent to lead"), "{}", alice[3]);
    assert_eq!(bench.requests_of("alice").len(), 2, "nothing came of the rest");
    let lead = bench.requests_of("lead").pop().expect("the lead was asked");
    assert_eq!(results(&lead).iter().filter(|text| text.starts_with(advice)).count(), 4);
    let texts = user_texts(&lead);
    let result = texts.iter().find(|text| text.contains("[result] alice: xxx")).expect("the result");
    let note = "  … (255148 more characters; the whole is in ";
    let path = result.split_once(note).expect("a note").1.split_once(')').expect("its end").0;
    assert!(path.contains("/out/result-alice-"), "{path}");
    assert_eq!(std::fs::read_to_string(path).expect("the whole"), format!("{long}END"));
    bench.assert_no_faults();
}

#[test]
fn two_that_only_talk_are_noticed_and_slowed_and_nothing_is_lost() {
    let talks = |agent: &str, other: &str, when: &str| {
        rule(&format!(
            "agent = \"{agent}\"\n{when}\ncalls = [{{ tool = \"send_message\", arguments = {{ to = \"{other}\", content = \"thank you\" }} }}]"
        ))
    };
    let more = talks("alice", "bob", "n = 1")
        + &talks("alice", "bob", "event = \"[Message from bob]\"")
        + &talks("bob", "alice", "event = \"[Message from alice]\"");
    let bench = Bench::new(&scenario(&[("alice", false), ("bob", false)], &more));
    let mut terminal = Terminal::start(&bench, 140, 60);
    terminal.line("team");
    terminal.see("[team] proposal");
    terminal.line("yes");
    terminal.see("alice and bob have sent each other 12 messages and done nothing else; they are slowed down");
    let slowed = wait_for("a slowed message", || {
        let everybody = bench.requests_of("alice").into_iter().chain(bench.requests_of("bob"));
        everybody.flat_map(|request| results(&request)).find(|text| text.contains("; slowed by "))
    });
    assert!(slowed.contains("do some work, or end your turn if there is none"), "{slowed}");
    let told = || bench.requests_of("lead").iter().flat_map(user_texts).collect::<Vec<_>>();
    let about = "[message] system: alice and bob have sent each other 12 messages";
    wait_for("what the lead is told", || told().iter().any(|text| text.contains(about)).then_some(()));
    // A pause is no obstacle to an end.
    terminal.line("/stop alice");
    terminal.line("/stop bob");
    terminal.see("[all teammates shut down]");
    let (alice, bob) = (bench.requests_of("alice"), bench.requests_of("bob"));
    let thanks = |requests: &[s15::scenario::Recorded]| {
        let texts = user_texts(requests.last().expect("asked"));
        texts.iter().map(|text| text.matches("thank you").count()).sum::<usize>()
    };
    assert!(thanks(&alice) + thanks(&bob) >= 12, "all that was sent while they lived has arrived");
    bench.assert_no_faults();
}
