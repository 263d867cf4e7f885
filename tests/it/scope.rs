//! What an approved plan opens: its places and its commands, for file tools and commands alike, and nothing beside them.

use crate::harness::{Bench, results, user_texts};
use crate::open::{rule, scenario};

/// The lead approves each plan, with these further arguments.
fn approves(more: &str) -> String {
    rule(&format!(
        "agent = \"lead\"\nevent = \"[plan_approval_request request_id={{request_id}}] alice:\"\nuntil_call = \"review_plan ${{request_id}}\"\ncalls = [{{ tool = \"review_plan\", arguments = {{ request_id = \"${{request_id}}\", approve = true{more} }} }}]"
    ))
}

fn submits(when: &str, arguments: &str) -> String {
    rule(&format!(
        "agent = \"alice\"\n{when}\ncalls = [{{ tool = \"submit_plan\", arguments = {{ plan = \"PLAN\", {arguments} }} }}]"
    ))
}

/// The results of the calls that alice makes once her plan is approved.
fn after_approval(plan: &str, review: &str, calls: &str) -> (Bench, Vec<String>) {
    let more = submits("n = 1", plan)
        + &approves(review)
        + &rule(&format!("agent = \"alice\"\nevent = \"[Plan approved]\"\ncalls = [{calls}]"));
    let bench =
        Bench::new(&scenario(&[("alice", true)], &more)).file("src/old.rs", "old\n").file("other.rs", "other\n");
    bench.run(&[], "team\nyes\n");
    bench.assert_no_faults();
    let alice = bench.requests_of("alice").pop().expect("she was asked");
    let results = results(&alice);
    (bench, results)
}

fn bash(command: &str) -> String {
    format!("{{ tool = \"bash\", arguments = {{ command = \"{command}\" }} }}")
}

fn write(path: &str) -> String {
    format!("{{ tool = \"write_file\", arguments = {{ path = \"{path}\", content = \"new\" }} }}")
}

#[test]
fn i3_an_approved_plan_opens_its_places_to_file_tools_and_nothing_else() {
    let calls =
        [write("src/deep/new.rs"), write("./src/../src/old2.rs"), write("other2.rs"), write("src/../other3.rs")];
    let (bench, results) = after_approval("paths = [\"src/**\"]", "", &calls.join(", "));
    assert!(bench.read("src/deep/new.rs").is_some() && bench.read("src/old2.rs").is_some(), "{results:?}");
    assert!(bench.read("other2.rs").is_none() && bench.read("other3.rs").is_none(), "{results:?}");
    let refused =
        "error: `other2.rs` is outside your approved plan, which opens src. To go on there, submit_plan again";
    assert!(results.iter().any(|text| text.starts_with(refused)), "{results:?}");
    let lead: Vec<String> = bench.requests_of("lead").iter().flat_map(user_texts).collect();
    assert!(lead.iter().any(|text| text.contains("alice: PLAN\n  opens: src\n")), "the reviewer sees what it opens");
}

#[test]
fn i3_commands_write_in_the_places_of_the_plan_alone() {
    let calls = [bash("echo x >> src/old.rs; echo x > src/made.rs"), bash("echo x >> other.rs"), bash("cat other.rs")];
    let (bench, results) = after_approval("paths = [\"src/\"]", "", &calls.join(", "));
    if results.iter().any(|text| text.contains("without a sandbox nothing holds a command")) {
        println!("skipped: this machine has no sandbox");
        return;
    }
    assert_eq!(bench.read("src/old.rs").as_deref(), Some("old\nx\n"), "{results:?}");
    assert_eq!(bench.read("src/made.rs").as_deref(), Some("x\n"));
    assert_eq!(bench.read("other.rs").as_deref(), Some("other\n"), "{results:?}");
    assert!(results.iter().any(|text| text.starts_with("other")), "reading is free: {results:?}");
}

#[test]
fn i3_a_plan_that_names_commands_opens_no_others() {
    let calls = [bash("touch src/yes"), bash("touch src/no; true"), bash("rm src/old.rs")];
    let (bench, results) = after_approval("paths = [\"src/\"], commands = [\"touch\"]", "", &calls.join(", "));
    assert!(bench.read("src/yes").is_some() && bench.read("src/no").is_none(), "{results:?}");
    assert!(bench.read("src/old.rs").is_some());
    assert_eq!(
        results.iter().filter(|text| text.starts_with("error: this command is outside your approved plan")).count(),
        2
    );
}

#[test]
fn i3_without_a_sandbox_only_named_commands_are_open_to_a_bounded_plan() {
    let more = submits("n = 1", "paths = [\"src/\"], commands = [\"touch src/yes\"]")
        + &approves("")
        + &rule(&format!("agent = \"alice\"\nevent = \"[Plan approved]\"\ncalls = [{}]", bash("touch src/yes")));
    let bench = Bench::new(&scenario(&[("alice", true)], &more)).file("src/old.rs", "old\n").env("S15_SANDBOX", "off");
    bench.run(&[], "team\nyes\n");
    assert!(bench.read("src/yes").is_some());
    let more = submits("n = 1", "paths = [\"src/\"]")
        + &approves("")
        + &rule(&format!("agent = \"alice\"\nevent = \"[Plan approved]\"\ncalls = [{}]", bash("touch src/no")));
    let bench = Bench::new(&scenario(&[("alice", true)], &more)).file("src/old.rs", "old\n").env("S15_SANDBOX", "off");
    bench.run(&[], "team\nyes\n");
    assert!(bench.read("src/no").is_none());
}

#[test]
fn the_reviewer_opens_fewer_places_and_never_more() {
    let calls = [write("src/new.rs"), write("docs/new.md")];
    let (bench, results) =
        after_approval("paths = [\"src/\", \"docs/\"]", ", paths = [\"docs/new.md\"]", &calls.join(", "));
    assert!(bench.read("docs/new.md").is_some() && bench.read("src/new.rs").is_none(), "{results:?}");
    let (bench, _) = after_approval("paths = [\"src/\"]", ", paths = [\"docs/\"]", &write("docs/new.md"));
    assert!(bench.read("docs/new.md").is_none());
    let lead = bench.requests_of("lead").pop().expect("asked");
    assert!(results_have(&lead, "docs is more than the plan asks for, which is src"));
}

fn results_have(request: &s15::scenario::Recorded, text: &str) -> bool {
    results(request).iter().any(|result| result.contains(text))
}

#[test]
fn a_plan_is_widened_by_another_and_a_pattern_is_refused_with_advice() {
    let more = submits("n = 1", "paths = [\"src/*.rs\"]")
        + &submits("n = 2", "paths = [\"src/\"]")
        + &approves("")
        + &rule(&format!(
            "agent = \"alice\"\nevent = \"[Plan approved]\"\nlacks_call = \"write_file\"\ncalls = [{}]",
            write("docs/a.md")
        ))
        + &submits("after_result = \"write_file\"\nresult_has = \"outside your approved plan\"", "paths = [\"docs/\"]")
        + &rule(&format!(
            "agent = \"alice\"\nevent = \"[Plan approved]\"\ncalls = [{}, {}]",
            write("docs/b.md"),
            write("src/b.rs")
        ));
    let bench = Bench::new(&scenario(&[("alice", true)], &more)).file("src/old.rs", "old\n");
    bench.run(&[], "team\nyes\n");
    let alice = bench.requests_of("alice").pop().expect("she was asked");
    assert!(results_have(&alice, "\"src/*.rs\" can't be held as a pattern"), "{:?}", results(&alice));
    assert!(bench.read("docs/a.md").is_none() && bench.read("docs/b.md").is_some() && bench.read("src/b.rs").is_some());
    let lead: Vec<String> = bench.requests_of("lead").iter().flat_map(user_texts).collect();
    assert!(lead.iter().any(|text| text.contains("opens: docs, besides src")), "{lead:?}");
}
