//! A teammate is asked, cancelled, ended, held, whatever it does at that moment; its calls have results and its work one last word.

use crate::harness::{Bench, results, user_texts, wait_for};
use crate::open::{rule, scenario};
use crate::pty::Terminal;

/// Alice's command ends when a file `go` appears.
const WAITS: &str = "agent = \"alice\"\nn = 1\ncalls = [{ tool = \"bash\", arguments = { command = \"touch begun; until [ -e go ]; do sleep 0.01; done; touch ended\" } }]";
/// Alice's first call is answered after longer than any test takes.
const HANGS: &str = "agent = \"alice\"\nn = 1\ndelay_ms = 600000\ntext = \"late\"";

fn started(bench: &Bench, rows: u16) -> Terminal {
    let mut terminal = Terminal::start(bench, 120, rows);
    terminal.line("team");
    terminal.see("[team] proposal");
    terminal.line("yes");
    terminal.see("alice spawned");
    terminal
}

fn lead_stops(how: &str) -> String {
    rule(&format!(
        "agent = \"lead\"\nuser = \"stop her\"\nlacks_call = \"stop_teammate\"\ncalls = [{{ tool = \"stop_teammate\", arguments = {{ teammate = \"alice\", how = \"{how}\", reason = \"stuck\" }} }}]"
    )) + &rule(
        "agent = \"lead\"\nuser = \"again\"\nlacks_call = \"assign_task\"\ncalls = [{ tool = \"assign_task\", arguments = { to = \"alice\", task = \"SECOND\" } }]",
    )
}

fn lead_reads(bench: &Bench, text: &str) {
    wait_for(text, || {
        bench.requests_of("lead").iter().flat_map(user_texts).any(|said| said.contains(text)).then_some(())
    });
}

#[test]
fn i5_i6_a_running_command_is_cancelled_and_its_teammate_takes_another_task() {
    let more = rule(WAITS) + &lead_stops("cancel");
    let bench = Bench::new(&scenario(&[("alice", false)], &more));
    let mut terminal = started(&bench, 40);
    wait_for("the command", || bench.read("begun"));
    terminal.line("stop her");
    lead_reads(&bench, "[error] alice: cancelled by the lead: stuck");
    terminal.line("again");
    lead_reads(&bench, "[result] alice: done");
    let alice = bench.requests_of("alice").pop().expect("asked");
    assert!(results(&alice)[0].starts_with("error: interrupted: the turn was cancelled"), "{:?}", results(&alice));
    assert!(bench.read("ended").is_none(), "I9: the command was ended");
    let errors = bench.requests_of("lead").pop().expect("asked");
    assert_eq!(user_texts(&errors).iter().map(|text| text.matches("[error] alice").count()).sum::<usize>(), 1);
    bench.assert_no_faults();
}

#[test]
fn i6_a_model_call_that_gets_no_answer_is_cancelled() {
    let bench = Bench::new(&scenario(&[("alice", false)], &rule(HANGS)));
    let mut terminal = started(&bench, 40);
    wait_for("the call", || bench.requests_of("alice").pop());
    terminal.line("/stop alice cancel");
    lead_reads(&bench, "[error] alice: cancelled by the user");
    terminal.line("/stop alice cancel");
    terminal.see("alice has no turn to cancel");
    terminal.line("/stop alice now");
    terminal.see("usage: /stop NAME [ask|cancel|abort]");
}

#[test]
fn i9_the_lead_ends_a_stuck_teammate_and_can_bring_it_back() {
    let more = rule(WAITS)
        + &lead_stops("abort")
        + &rule(
            "agent = \"lead\"\nuser = \"back\"\nlacks = \"BACK-AGAIN\"\ncalls = [{ tool = \"spawn_teammate\", arguments = { name = \"alice\", prompt = \"BACK-AGAIN\" } }]",
        );
    let bench = Bench::new(&scenario(&[("alice", false)], &more));
    let mut terminal = started(&bench, 40);
    wait_for("the command", || bench.read("begun"));
    terminal.line("stop her");
    terminal.see("[all teammates shut down]");
    terminal.line("back");
    wait_for("her return", || {
        let alice = bench.requests_of("alice");
        alice.iter().flat_map(user_texts).any(|text| text.contains("BACK-AGAIN")).then_some(())
    });
    assert!(bench.read("ended").is_none(), "the command was ended");
    bench.assert_no_faults();
}

#[test]
fn a_paused_teammate_finishes_its_call_and_makes_no_other_before_it_may() {
    let more = rule(WAITS);
    let bench = Bench::new(&scenario(&[("alice", false), ("bob", false)], &more));
    let mut terminal = started(&bench, 40);
    wait_for("the command", || bench.read("begun"));
    terminal.line("/pause alice");
    terminal.see("alice waits before its next model call");
    std::fs::write(bench.path("go"), "").expect("a file");
    terminal.see("alice paused");
    assert_eq!(bench.requests_of("alice").len(), 1);
    terminal.line("/team");
    terminal.see("alice: paused");
    terminal.line("/unpause bob");
    terminal.see("bob is not paused");
    terminal.line("/unpause all");
    lead_reads(&bench, "[result] alice: done");
    assert_eq!(bench.requests_of("alice").len(), 2);
    bench.assert_no_faults();
}

#[test]
fn i1_a_paused_teammate_is_resumed_paused_and_its_mail_waits_for_it() {
    let more = rule(
        "agent = \"lead\"\nuser = \"task\"\nlacks_call = \"assign_task\"\ncalls = [{ tool = \"assign_task\", arguments = { to = \"alice\", task = \"SECOND\" } }]",
    );
    let bench = Bench::new(&scenario(&[("alice", false)], &more));
    let mut terminal = started(&bench, 40);
    lead_reads(&bench, "[result] alice: done");
    terminal.line("/pause all");
    terminal.see("alice paused");
    terminal.line("task");
    wait_for("the assignment", || {
        let lead = bench.requests_of("lead").pop()?;
        results(&lead).iter().any(|text| text.starts_with("alice")).then_some(())
    });
    terminal.line("/quit");
    assert_eq!(terminal.exit_code(), 0);
    let run = bench.run(&["-c", "--yes"], "/team\n");
    assert!((run.stdout.clone() + &run.stderr).contains("alice: paused"), "{} {}", run.stdout, run.stderr);
    assert_eq!(bench.requests_of("alice").len(), 1, "{}", run.stderr);
    let run = bench.run(&["-c", "--yes"], "/unpause alice\n");
    let alice = bench.requests_of("alice").pop().expect("asked");
    assert!(user_texts(&alice).iter().any(|text| text.contains("[Task] SECOND")), "{}", run.stderr);
}

#[test]
fn a_paused_teammate_that_is_asked_to_end_ends_at_once() {
    let bench = Bench::new(&scenario(&[("alice", false)], &rule(WAITS)));
    let mut terminal = started(&bench, 40);
    wait_for("the command", || bench.read("begun"));
    terminal.line("/pause alice");
    std::fs::write(bench.path("go"), "").expect("a file");
    terminal.see("alice paused");
    terminal.line("/stop alice ask");
    terminal.see("[all teammates shut down]");
    assert_eq!(bench.requests_of("alice").len(), 1);
}
