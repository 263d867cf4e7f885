//! Mail whose reader ended before it was read: it comes back, with its text, and nobody is left believing that it arrived.

use crate::harness::{Bench, last_text, results, user_texts, wait_for};
use crate::open::{rule, scenario};
use crate::pty::Terminal;

#[test]
fn unread_mail_of_an_ended_teammate_goes_back_to_who_is_there() {
    let more = rule(
        "agent = \"alice\"\nn = 1\ncalls = [{ tool = \"bash\", arguments = { command = \"touch begun; until [ -e go ]; do sleep 0.01; done\" } }]",
    ) + &rule(
        "agent = \"bob\"\nn = 1\ncalls = [{ tool = \"bash\", arguments = { command = \"until [ -e begun ]; do sleep 0.01; done\" } }, { tool = \"send_message\", arguments = { to = \"alice\", content = \"FROM-BOB\" } }]",
    ) + &rule(
        "agent = \"carl\"\nhas = \"FROM-LEAD\"\nlacks_call = \"send_message\"\ncalls = [{ tool = \"send_message\", arguments = { to = \"alice\", content = \"FROM-CARL\\nsecond line\" } }]",
    ) + &rule(
        "agent = \"carl\"\nevent = \"[undelivered\"\nuntil_call = \"send_message\"\ncalls = [{ tool = \"send_message\", arguments = { to = \"Alice\", content = \"again\" } }]",
    ) + &rule(
        "agent = \"lead\"\nevent = \"[result] bob:\"\nuntil_call = \"request_shutdown\"\ncalls = [{ tool = \"send_message\", arguments = { to = \"alice\", content = \"FROM-LEAD\" } }, { tool = \"send_message\", arguments = { to = \"carl\", content = \"FROM-LEAD\" } }, { tool = \"request_shutdown\", arguments = { teammate = \"bob\" } }, { tool = \"request_shutdown\", arguments = { teammate = \"alice\" } }]",
    );
    let bench = Bench::new(&scenario(&[("alice", false), ("bob", false), ("carl", false)], &more));
    let mut terminal = Terminal::start(&bench, 120, 60);
    terminal.line("team");
    terminal.see("[team] proposal");
    terminal.line("yes");
    wait_for("carl's message", || {
        let carl = bench.requests_of("carl").pop()?;
        results(&carl).iter().any(|text| text.starts_with("sent to alice")).then_some(())
    });
    terminal.line("/stop alice");
    let back = "from bob to alice (message), who have both ended: FROM-BOB";
    let event = wait_for("what alice did not read", || {
        let texts: Vec<String> = bench.requests_of("lead").iter().map(last_text).collect();
        texts.into_iter().find(|text| text.contains(back))
    });
    let own = event.lines().find(|line| line.contains("who has ended: FROM-LEAD")).expect("the lead's own message");
    assert!(own.starts_with("[undelivered reply_to=") && own.contains("] system: to alice (message)"), "{event}");
    assert_eq!(event.matches("[undelivered").count(), 2, "neither the shutdown request nor carl's: {event}");
    let refused = wait_for("carl's second try", || {
        let carl = bench.requests_of("carl").pop()?;
        results(&carl).into_iter().find(|text| text.contains("only the lead can bring it back"))
    });
    assert!(refused.starts_with("error: \"Alice\" can't be written to (it has ended: shutdown;"), "{refused}");
    let carl = bench.requests_of("carl").pop().expect("he was asked");
    let texts = user_texts(&carl);
    let told = texts.iter().filter(|text| text.starts_with("[undelivered from system, in reply to "));
    let text = "] to alice (message), who has ended: FROM-CARL\n  second line";
    assert_eq!(told.filter(|told| told.ends_with(text)).count(), 1, "{texts:?}");
    bench.assert_no_faults();
}

#[test]
fn a_task_that_was_never_read_comes_back_when_its_reader_fails() {
    if !cfg!(debug_assertions) {
        return;
    }
    let bench = Bench::new(&scenario(&[("alice", false)], "")).env("S15_TEST_PANIC", "alice");
    bench.run(&[], "team\nyes\n");
    let texts: Vec<String> = bench.requests_of("lead").iter().flat_map(user_texts).collect();
    let back = "] system: to alice (task_assignment), who has ended: WORK-alice\n";
    assert!(texts.iter().any(|text| text.contains("[undelivered reply_to=") && text.contains(back)), "{texts:?}");
}
