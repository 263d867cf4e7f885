//! Requests that nobody answers end by themselves, and who waits for them goes on.

use crate::harness::{Bench, results, user_texts, wait_for};
use crate::open::{rule, scenario};
use crate::pty::Terminal;

#[test]
fn i11_a_plan_that_nobody_reviews_expires_and_its_author_goes_on() {
    let more = rule(
        "agent = \"alice\"\nn = 1\ncalls = [{ tool = \"submit_plan\", arguments = { plan = \"PLAN-ONE\" } }]",
    ) + &rule(
        "agent = \"alice\"\nevent = \"[request_expired from system]\"\nlacks = \"PLAN-TWO\"\ncalls = [{ tool = \"write_file\", arguments = { path = \"early\", content = \"x\" } }, { tool = \"submit_plan\", arguments = { plan = \"PLAN-TWO\" } }]",
    ) + &rule(
        "agent = \"alice\"\nevent = \"[Plan approved]\"\nuntil_call = \"write_file\"\ncalls = [{ tool = \"write_file\", arguments = { path = \"late\", content = \"x\" } }]",
    ) + &rule(
        "agent = \"lead\"\nevent = \"[plan_approval_request request_id={request_id}] alice: PLAN-TWO\"\nuntil_call = \"review_plan ${request_id}\"\ncalls = [{ tool = \"review_plan\", arguments = { request_id = \"${request_id}\", approve = true } }]",
    );
    let bench = Bench::new(&scenario(&[("alice", true)], &more)).env("S15_REQUEST_TIMEOUT", "1");
    let mut terminal = Terminal::start(&bench, 120, 60);
    terminal.line("team");
    terminal.see("[team] proposal");
    terminal.line("yes");
    terminal.see("expired");
    wait_for("the work after the second plan", || bench.read("late"));
    assert_eq!(bench.read("early"), None, "I3: the gate stays closed when a plan expires");
    let alice = bench.requests_of("alice").pop().expect("she was asked");
    let told = "[request_expired from system] lead did not answer your plan within 1 s; your gate stays closed.";
    assert_eq!(user_texts(&alice).iter().filter(|text| text.starts_with(told)).count(), 1);
    assert!(results(&alice).iter().any(|text| text.starts_with("Blocked: plan status is required")));
    let lead: Vec<String> = bench.requests_of("lead").iter().flat_map(user_texts).collect();
    let heard = "] system: alice's plan had no answer within 1 s and is void";
    assert!(lead.iter().any(|text| text.contains("[request_expired request_id=") && text.contains(heard)), "{lead:?}");
    bench.assert_no_faults();
}

#[test]
fn i4_a_request_of_somebody_who_has_ended_expires_and_the_other_side_hears_of_it() {
    let more = rule(
        "agent = \"alice\"\nn = 1\ncalls = [{ tool = \"submit_plan\", arguments = { plan = \"PLAN-ONE\" } }]",
    ) + &rule(
        "agent = \"lead\"\nhas = \"now review\"\nevent = \"[request_expired request_id={request_id}] system: alice has ended\"\nuntil_call = \"review_plan\"\ncalls = [{ tool = \"review_plan\", arguments = { request_id = \"${request_id}\", approve = true } }]",
    );
    let bench = Bench::new(&scenario(&[("alice", true)], &more));
    let mut terminal = Terminal::start(&bench, 120, 60);
    terminal.line("team");
    terminal.see("[team] proposal");
    terminal.line("yes");
    terminal.see("waiting_approval");
    terminal.line("/stop alice");
    terminal.see("expired");
    terminal.line("now review");
    let refused = wait_for("the lead's late answer", || {
        let lead = bench.requests_of("lead").pop()?;
        results(&lead).into_iter().find(|text| text.contains("already settled"))
    });
    assert!(refused.contains("expired; nothing changed"), "{refused}");
}
