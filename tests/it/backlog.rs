//! Much mail at once, and old mail: all of it arrives once and in order, in model calls of bounded size, and nothing waits behind mere notices.

use std::fmt::Write;

use s15::scenario::Recorded;

use crate::harness::{Bench, last_text, results, user_texts, wait_for};
use crate::open::{Open, outside_line, rule, scenario};

/// Characters of events that one call carries at most, with what stands around them.
const EVENTS_CHARS_MAX: usize = 48_000 + 500;

/// The numbers in the marks `MARK-<number>.` of an agent's mail, as they came.
fn marks(texts: &[String]) -> Vec<usize> {
    let marks = texts.iter().flat_map(|text| text.split("MARK-").skip(1));
    marks.map(|rest| rest.split('.').next().unwrap_or_default().parse().expect("a number")).collect()
}

/// The mail in each of an agent's requests that was new there.
fn portions(requests: &[Recorded]) -> Vec<String> {
    requests.iter().map(last_text).filter(|text| text.contains("MARK-")).collect()
}

#[test]
fn i1_five_thousand_lines_arrive_once_in_order_and_in_bounded_calls() {
    let mut lines = String::new();
    for number in 0..5_000 {
        writeln!(lines, "{{\"from\":\"job\",\"content\":\"MARK-{number}.\"}}").expect("a String takes it");
    }
    let bench = Bench::new("[fallback]\nlead = \"ok\"\n").file(".mailboxes/lead.jsonl", &lines);
    let run = bench.run(&[], "");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let lead = bench.requests_of("lead");
    assert_eq!(marks(&user_texts(lead.last().expect("a request"))), (0..5_000).collect::<Vec<_>>());
    let portions = portions(&lead);
    assert!(portions.iter().all(|text| text.chars().count() <= EVENTS_CHARS_MAX));
    assert!((4..=10).contains(&portions.len()), "{} calls", portions.len());
    let told = portions.iter().filter(|text| text.contains("more messages wait for your next calls)\n[Team state]"));
    assert_eq!(told.count(), portions.len() - 1, "all but the last say that more waits");
    bench.assert_no_faults();
}

#[test]
fn i8_long_texts_count_as_they_are_shown() {
    let mut lines = String::new();
    for number in 0..20 {
        let text = "long ".repeat(10_000);
        writeln!(lines, "{{\"from\":\"job\",\"content\":\"MARK-{number}. {text}\"}}").expect("a String takes it");
    }
    let bench = Bench::new("[fallback]\nlead = \"ok\"\n").file(".mailboxes/lead.jsonl", &lines);
    bench.run(&[], "");
    let portions = portions(&bench.requests_of("lead"));
    assert_eq!(marks(&portions), (0..20).collect::<Vec<_>>());
    assert_eq!(portions.len(), 4, "five of them fit");
    assert!(portions.iter().all(|text| text.chars().count() <= EVENTS_CHARS_MAX));
    assert!(portions[0].contains("(15 more messages wait for your next calls)\n[Team state]"), "nothing lies in files");
}

#[test]
fn i11_nothing_waits_behind_notices_and_bad_lines() {
    let mut lines = "oops\n".repeat(1_200);
    for number in 0..2_500 {
        writeln!(lines, "{{\"from\":\"job\",\"type\":\"status_update\",\"content\":\"MARK-{number}.\"}}")
            .expect("a String");
    }
    lines.push_str("{\"from\":\"job\",\"content\":\"WAKE\"}\n");
    let bench = Bench::new("[fallback]\nlead = \"ok\"\n").file(".mailboxes/lead.jsonl", &lines);
    let run = bench.run(&[], "");
    let lead = bench.requests_of("lead");
    let texts = user_texts(lead.last().expect("a request"));
    assert_eq!(marks(&texts), (0..2_500).collect::<Vec<_>>(), "{}", run.stderr);
    assert!(texts.last().expect("events").contains("[message] job (outside mail): WAKE"));
    assert!(lead.len() <= 5, "{} calls", lead.len());
}

#[test]
fn i1_a_teammate_that_is_asked_to_end_is_asked_in_the_order_of_its_mail() {
    let text = "long ".repeat(1_000);
    let sends: Vec<String> = (0..12)
        .map(|number| {
            format!(
                "{{ tool = \"send_message\", arguments = {{ to = \"alice\", content = \"MARK-{number}. {text}\" }} }}"
            )
        })
        .collect();
    let more = rule(
        "agent = \"alice\"\nn = 1\ncalls = [{ tool = \"bash\", arguments = { command = \"touch begun; until [ -e go ]; do sleep 0.01; done\" } }]",
    ) + &rule(
        "agent = \"alice\"\nevent = \"[Shutdown request request_id={id}]\"\nuntil_call = \"shutdown_response\"\ncalls = [{ tool = \"shutdown_response\", arguments = { request_id = \"${id}\", approve = true } }]",
    ) + &rule(
        "agent = \"alice\"\nevent = \"MARK-0.\"\ncalls = [{ tool = \"list_teammates\", arguments = {} }]",
    ) + &rule(&format!(
        "agent = \"lead\"\nevent = \"FILL\"\nuntil_call = \"request_shutdown\"\ncalls = [{}, {{ tool = \"request_shutdown\", arguments = {{ teammate = \"alice\" }} }}]",
        sends.join(", ")
    ));
    let bench = Bench::new(&scenario(&[("alice", false)], &more));
    let mut run = Open::start(&bench);
    run.say("team");
    run.say("yes");
    wait_for("her command", || bench.read("begun"));
    outside_line(&bench, "{\"content\":\"FILL\"}");
    run.request("lead", "the request", |request| {
        results(request).iter().any(|text| text.contains("was asked to shut down"))
    });
    std::fs::write(bench.path("go"), "").expect("a file");
    let (_, said) = run.end();
    let alice = bench.requests_of("alice");
    assert_eq!(alice.len(), 3, "{said}");
    assert!(!last_text(&alice[1]).contains("[Shutdown request"));
    assert!(last_text(&alice[2]).contains("[Shutdown request"), "{}", last_text(&alice[2]));
    assert_eq!(marks(&user_texts(&alice[2])), (0..12).collect::<Vec<_>>());
    assert!(said.contains("[teammate] alice shutdown"), "{said}");
    bench.assert_no_faults();
}

#[test]
fn outside_mail_that_has_waited_is_given_with_its_age() {
    let line = "{\"from\":\"ci\",\"content\":\"the build is green\"}\n";
    let bench = Bench::new("[fallback]\nlead = \"ok\"\n").file(".mailboxes/lead.jsonl", line);
    let mailbox = std::fs::File::options().append(true).open(bench.path(".mailboxes/lead.jsonl")).expect("the mailbox");
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3 * 3_600 + 60);
    mailbox.set_modified(long_ago).expect("a file's time can be set");
    drop(mailbox);
    bench.run(&[], "");
    let lead = bench.requests_of("lead").pop().expect("mail from outside wakes the lead");
    let told = last_text(&lead);
    assert!(told.contains("[message] ci (outside mail, 3 h old): the build is green"), "{told}");
}
