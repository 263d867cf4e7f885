//! From what a model sent to a call: mended where it can be meant in one way only, else refused with what would be right.

use serde_json::{Value, json};

use super::super::*;
use super::fields;
use crate::protocol::Effect;

fn parsed(role: Role, tool: &str, arguments: Value) -> Result<Call, String> {
    parse(role, tool, fields(arguments))
}

fn refused(role: Role, tool: &str, arguments: Value) -> String {
    parsed(role, tool, arguments).unwrap_err()
}

#[test]
fn i8_a_tool_that_the_role_has_not_is_refused_with_those_it_has() {
    let common = "bash, bash_output, bash_stop, read_file, write_file, edit_file, glob, grep, send_message, withdraw_message, list_teammates";
    for (role, tool, own) in [
        (
            Role::Lead,
            "todo_write",
            "propose_team, spawn_teammate, assign_task, broadcast, request_plan, review_plan, request_shutdown, stop_teammate, request_status, list_requests",
        ),
        (
            Role::Lead,
            "submit_plan",
            "propose_team, spawn_teammate, assign_task, broadcast, request_plan, review_plan, request_shutdown, stop_teammate, request_status, list_requests",
        ),
        (Role::Teammate, "spawn_teammate", "report_status, submit_plan, shutdown_response"),
        (Role::Teammate, "review_plan", "report_status, submit_plan, shutdown_response"),
        (Role::Teammate, "", "report_status, submit_plan, shutdown_response"),
    ] {
        let text = refused(role, tool, json!({"name": "x"}));
        assert_eq!(text, format!("error: there is no tool `{tool}`; the tools are: {common}, {own}"));
    }
    let text = refused(Role::Lead, &"\u{1b}[2J\n汉".repeat(1_000), json!({}));
    assert!(!text.contains('\u{1b}') && text.len() < 1_500, "{text}");
}

#[test]
fn i8_what_is_missing_or_wrong_is_named_with_what_is_expected() {
    for (tool, arguments, why) in [
        ("bash", json!({}), "`command` is missing: it must be a string"),
        ("bash", json!({"command": null}), "`command` is missing"),
        ("bash", json!({"command": ["ls"]}), "`command` must be a string, not a list"),
        ("bash", json!({"command": "ls", "timeout": "soon"}), "`timeout` must be a whole number from 0, not \"soon\""),
        ("bash", json!({"command": "ls", "timeout": -1}), "`timeout` must be a whole number from 0, not -1"),
        ("bash", json!({"command": "ls", "timeout": "inf"}), "`timeout` must be a whole number from 0"),
        ("write_file", json!({"path": "a.json", "content": {"a": 1}}), "`content` must be a string, not an object"),
        ("edit_file", json!({"path": "a", "old_text": "b"}), "`new_text` is missing"),
        (
            "edit_file",
            json!({"path": "a", "old_text": "b", "new_text": "c", "replace_all": "all"}),
            "`replace_all` must be true or false",
        ),
        ("review_plan", json!({"request_id": "x"}), "`approve` is missing: it must be true or false"),
        ("propose_team", json!({"members": []  , "reason": {}}), "`reason` must be a string, not an object"),
        (
            "propose_team",
            json!({"members": "three"}),
            "`members` must be a list of objects with name, role, prompt, require_plan, model, not \"three\"",
        ),
        ("propose_team", json!({"members": ["a"]}), "`members[0]` must be an object with name, role"),
        (
            "propose_team",
            json!({"members": [{"name": "a", "prompt": "p"}, {"name": "b"}]}),
            "`members[1].prompt` is missing",
        ),
    ] {
        let text = refused(Role::Lead, tool, arguments.clone());
        assert!(text.starts_with(&format!("error: {tool}: {why}")), "{arguments}: {text}");
        assert!(text.contains(&format!("; {tool} takes ")), "{text}");
    }
    let text = refused(Role::Lead, "bash", json!({}));
    assert!(text.ends_with("bash takes command (a string), timeout (a whole number from 0, optional), run_in_background (true or false, optional)"), "{text}");
}

#[test]
fn i8_small_mistakes_are_mended() {
    let bash = |command: &str, timeout| {
        Call::Local(LocalCall::Bash(BashArgs { command: command.to_owned(), timeout, run_in_background: None }))
    };
    let review = |approve, feedback: Option<&str>| {
        let (request_id, feedback) = ("7".to_owned(), feedback.map(str::to_owned));
        Call::Team(TeamCall::ReviewPlan { request_id, approve, feedback, paths: None })
    };
    let everything = |path: Option<&str>| {
        Call::Local(LocalCall::Grep(GrepArgs { pattern: "x".to_owned(), path: path.map(str::to_owned), glob: None }))
    };
    for (tool, arguments, call) in [
        ("bash", json!({"command": "ls", "timeout": "5"}), bash("ls", Some(5))),
        ("bash", json!({"command": "ls", "timeout": 5.0, "explanation": "x"}), bash("ls", Some(5))),
        ("bash", json!({"command": "ls", "timeout": " 1.5 "}), bash("ls", Some(2))),
        ("bash", json!({"command": "ls", "timeout": null}), bash("ls", None)),
        ("bash", json!({"command": "ls", "timeout": ""}), bash("ls", None)),
        ("bash", json!({"command": "ls", "timeout": "None"}), bash("ls", None)),
        ("bash", json!({"command": "ls", "tool": "write_file"}), bash("ls", None)),
        ("bash", json!({"command": ""}), bash("", None)),
        ("grep", json!({"pattern": "x", "path": "", "glob": ""}), everything(None)),
        ("grep", json!({"pattern": "x", "path": "null"}), everything(Some("null"))),
        ("review_plan", json!({"request_id": 7, "approve": "true", "feedback": null}), review(true, None)),
        ("review_plan", json!({"request_id": "7", "approve": "No", "feedback": "tests"}), review(false, Some("tests"))),
        ("review_plan", json!({"request_id": "7", "approve": 1}), review(true, None)),
        ("list_teammates", json!({"random": true}), Call::Team(TeamCall::ListTeammates {})),
    ] {
        assert_eq!(parsed(Role::Lead, tool, arguments.clone()), Ok(call), "{arguments}");
    }
}

#[test]
fn a_proposal_comes_as_a_list_or_as_a_text_that_holds_one() {
    let member = MemberArgs { name: "a".to_owned(), prompt: "p".to_owned(), ..MemberArgs::default() };
    let planned = MemberArgs { role: "r".to_owned(), require_plan: Some(true), ..member.clone() };
    let whole = r#"[{"name": "a", "prompt": "p"}, {"name": "a", "prompt": "p", "role": "r", "require_plan": "true"}]"#;
    let list: Value = serde_json::from_str(whole).unwrap();
    for (arguments, reason) in [
        (json!({"members": list, "reason": "why"}), "why"),
        (json!({"members": whole, "reason": "why"}), "why"),
        (json!({"members": [whole.split_once(", {").unwrap().0.trim_start_matches('['), list[1]]}), ""),
    ] {
        let expected =
            TeamCall::ProposeTeam { members: vec![member.clone(), planned.clone()], reason: reason.to_owned() };
        assert_eq!(parsed(Role::Lead, PROPOSE_TEAM, arguments.clone()), Ok(Call::Team(expected)), "{arguments}");
    }
    let one = json!({"members": {"name": "a", "prompt": "p"}});
    let expected = TeamCall::ProposeTeam { members: vec![member], reason: String::new() };
    assert_eq!(parsed(Role::Lead, PROPOSE_TEAM, one), Ok(Call::Team(expected)));
}

#[test]
fn every_tool_parses_to_its_own_call_with_a_summary() {
    for (role, tool, arguments, effect, summary) in [
        (
            Role::Lead,
            "bash",
            json!({"command": "cargo test\n\t--all \u{1b}[2J"}),
            Effect::Execute,
            "cargo test --all [2J",
        ),
        (Role::Lead, "read_file", json!({"path": "a.rs", "offset": 7}), Effect::Read, "a.rs from line 7"),
        (Role::Lead, "write_file", json!({"path": "a.rs", "content": ""}), Effect::Write, "a.rs"),
        (Role::Lead, "edit_file", json!({"path": "a.rs", "old_text": "", "new_text": ""}), Effect::Write, "a.rs"),
        (Role::Lead, "glob", json!({"pattern": "*.rs", "path": "src"}), Effect::Read, "*.rs in src"),
        (Role::Lead, "grep", json!({"pattern": "fn", "glob": "*.rs"}), Effect::Read, "fn in *.rs"),
        (Role::Lead, "send_message", json!({"to": "a", "content": "c"}), Effect::Team, "a"),
        (Role::Lead, "list_teammates", json!({}), Effect::Team, ""),
        (
            Role::Lead,
            "propose_team",
            json!({"members": [{"name": "a", "prompt": ""}, {"name": "b", "prompt": ""}]}),
            Effect::Team,
            "a, b",
        ),
        (Role::Lead, "spawn_teammate", json!({"name": "a"}), Effect::Team, "a"),
        (Role::Lead, "assign_task", json!({"to": "a", "task": "t"}), Effect::Team, "a"),
        (Role::Lead, "broadcast", json!({"content": "c"}), Effect::Team, ""),
        (Role::Lead, "request_plan", json!({"teammate": "a", "task": "t"}), Effect::Team, "a"),
        (Role::Lead, "review_plan", json!({"request_id": "1", "approve": false}), Effect::Team, "reject 1"),
        (Role::Lead, "request_shutdown", json!({"teammate": "a"}), Effect::Team, "a"),
        (Role::Lead, "request_status", json!({"request_id": "1"}), Effect::Team, "1"),
        (Role::Lead, "list_requests", json!({"status": "pending"}), Effect::Team, "pending"),
        (Role::Teammate, "report_status", json!({"text": "half\ndone"}), Effect::Team, "half done"),
        (Role::Teammate, "submit_plan", json!({"plan": "p"}), Effect::Team, ""),
        (Role::Teammate, "shutdown_response", json!({"request_id": "1", "approve": true}), Effect::Team, "approve 1"),
    ] {
        let call = parsed(role, tool, arguments).unwrap();
        assert_eq!((call.tool(), call.effect(), call.summary().as_str()), (tool, effect, summary));
    }
    let long = parsed(Role::Lead, "bash", json!({"command": "汉".repeat(10_000)})).unwrap().summary();
    assert_eq!(long.chars().count(), 200);
}
