//! Scenarios as they are read, and which rule takes which conversation.

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::{Value, json};

use super::clerk::{Clerk, ServeOptions};
use super::*;

fn fault(text: &str) -> String {
    Scenario::parse(text).unwrap_err()
}

fn headers(agent: &str, purpose: &str) -> BTreeMap<String, String> {
    [("x-s15-agent", agent), ("x-s15-session", "s"), ("x-s15-call", "1"), ("x-s15-purpose", purpose)]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// What a scenario says to a conversation of `[role, text]` after the system prompt; calls are written as text.
struct Asked(Clerk);

impl Asked {
    fn new(scenario: &str) -> Self {
        Self(Clerk::new(Scenario::parse(scenario).unwrap(), ServeOptions::default()))
    }

    fn say(&mut self, agent: &str, messages: &[Value]) -> Value {
        self.say_for(agent, "turn", messages)
    }

    fn say_for(&mut self, agent: &str, purpose: &str, messages: &[Value]) -> Value {
        let mut all = vec![json!({"role": "system", "content": "You help. 你好"})];
        all.extend_from_slice(messages);
        let headers = headers(agent, purpose);
        let body = json!({"model": "m", "stream": true, "messages": all});
        let admitted = self.0.admit(&headers, body.to_string().as_bytes(), Instant::now());
        self.0.choose(&headers, &admitted).message("id")
    }

    fn text(&mut self, agent: &str, messages: &[Value]) -> String {
        self.say(agent, messages)["content"].as_str().unwrap().to_owned()
    }
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn said(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

/// An assistant message with one call, and its result.
fn called(tool: &str, arguments: &Value, result: &str) -> [Value; 2] {
    let function = json!({"name": tool, "arguments": arguments.to_string()});
    let call = json!({"id": "c1", "type": "function", "function": function});
    [
        json!({"role": "assistant", "content": null, "tool_calls": [call]}),
        json!({"role": "tool", "tool_call_id": "c1", "content": result}),
    ]
}

#[test]
fn a_bad_file_is_refused_with_the_rule_that_is_wrong() {
    let good = "[[rule]]\nagent = \"lead\"\ntext = \"a\"\n";
    let second = |rule: &str| fault(&format!("{good}[[rule]]\n{rule}"));
    assert!(fault("rule = [").starts_with("the scenario is no valid TOML"));
    assert!(fault("{\"rule\": [}").starts_with("the scenario is no valid JSON"));
    assert!(fault("").contains("neither a rule nor a fallback"));
    assert!(fault("rules = []").contains("unknown key \"rules\""));
    assert!(fault("fallback = 3").contains("`fallback` is no table"));
    let cases = [
        ("text = \"a\"", "rule 2: `agent` is missing"),
        ("name = \"x\"\nagent = \"lead\"", "rule 2 (x): it has no reply"),
        ("agent = \"lead\"\ntext = \"a\"\nusr = \"b\"", "rule 2: unknown field `usr`"),
        ("agent = 3\ntext = \"a\"", "rule 2: `agent` is neither a text nor"),
        ("agent = \"lead\"\ntext = \"${who}\"", "rule 2: ${who} is captured by no condition"),
        ("agent = \"lead\"\nuntil_call = \"x\"\ntext = \"a\"", "rule 2: `until_call` needs an `event`"),
        ("agent = \"lead\"\nevent = \"{x} y\"\ntext = \"a\"", "must begin with text"),
        ("agent = \"lead\"\ntext = \"${file:gone}\"", "there is no file \"gone\""),
        ("agent = \"lead\"\nchunk = 0\ntext = \"a\"", "`chunk` must be at least 1"),
        ("agent = \"lead\"\ncalls = [{ tool = \"x\", arguments = 3 }]", "the arguments of x are no table"),
        ("agent = \"lead\"\ncalls = [{ tol = \"x\" }]", "unknown field `tol`"),
    ];
    for (rule, error) in cases {
        assert!(second(rule).contains(error), "{rule}: {}", second(rule));
    }
}

#[test]
fn json_reads_like_toml() {
    let mut asked = Asked::new(r#"{"rule": [{"agent": "lead", "text": "hi"}]}"#);
    assert_eq!(asked.text("lead", &[user("a")]), "hi");
}

#[test]
fn the_first_rule_for_the_agent_answers_and_the_fallback_the_rest() {
    let mut asked = Asked::new(
        "[fallback]\nlead = \"lost\"\n\"*\" = \"others\"\n\
         [[rule]]\nagent = [\"a\", \"b\"]\nuser = [\"Red\", \"blue\"]\ntext = \"colour\"\n\
         [[rule]]\nagent = \"a\"\nuser_is = \"go ahead\"\ntext = \"going\"\n",
    );
    assert_eq!(asked.text("a", &[user("the RED one")]), "colour");
    assert_eq!(asked.text("b", &[user("blue")]), "colour");
    assert_eq!(asked.text("lead", &[user("blue")]), "lost");
    assert_eq!(asked.text("a", &[user("Go ahead! ")]), "going");
    assert_eq!(asked.text("b", &[user("go ahead")]), "others");
    assert_eq!(asked.0.unmatched(), ["lead request 1: blue", "b request 2: go ahead"]);
}

#[test]
fn typed_lines_and_blocks_are_told_apart() {
    let rule = "[[rule]]\nagent = \"lead\"\nline_open = true\nuser = \"x\"\ntext = \"line\"\n[[rule]]\nagent = \"lead\"\ntext = \"none\"";
    let mut asked = Asked::new(rule);
    assert_eq!(asked.text("lead", &[user("[Team events]\n[result] x: x")]), "none");
    assert_eq!(asked.text("lead", &[user("x"), user("[Team events]\n[result] a: b")]), "line");
    assert_eq!(asked.text("lead", &[user("x"), user("y")]), "line");
    assert_eq!(asked.text("lead", &[user("x"), said("spoken")]), "none");
    let [call, result] = called("bash", &json!({}), "ok");
    assert_eq!(asked.text("lead", &[user("x"), call, result]), "line");
    assert_eq!(asked.text("lead", &[user("[x] is a list")]), "line");
}

#[test]
fn an_event_is_open_until_it_is_answered() {
    let mut asked = Asked::new(
        "[[rule]]\nagent = \"lead\"\nevent = \"[plan id={id}] {who}:\"\nuntil_call = \"review ${id}\"\n\
         text = \"${who} ${id}\"\ncalls = [{ tool = \"review\", arguments = { id = \"${id}\" } }]\n\
         [[rule]]\nagent = \"lead\"\nevent = \"[result] {who}:\"\ntext = \"thanks ${who}\"\n\
         [[rule]]\nagent = \"lead\"\nno_event = \"[error]\"\ntext = \"nothing\"\n[fallback]\nlead = \"trouble\"",
    );
    let events = user("[Team events]\n[plan id=1] a: p\n[plan id=2] b: p\n[result] c: r");
    assert_eq!(asked.text("lead", std::slice::from_ref(&events)), "a 1");
    let [call, result] = called("review", &json!({"id": "1"}), "ok");
    assert_eq!(asked.text("lead", &[events.clone(), call.clone(), result.clone()]), "b 2");
    // Words alone don't answer a plan, but they answer a result.
    assert_eq!(asked.text("lead", &[events.clone(), said("well")]), "a 1");
    let [second, end] = called("review", &json!({"id": "2"}), "ok");
    let both = [events, call, result, second, end];
    assert_eq!(asked.text("lead", &both), "nothing");
    assert_eq!(asked.text("lead", &[user("[Team events]\n[result] c: r")]), "thanks c");
    assert_eq!(asked.text("lead", &[user("[Team events]\n[error] c: r")]), "trouble");
}

#[test]
fn results_are_looked_at_by_tool_arguments_and_text() {
    let mut asked = Asked::new(
        "[[rule]]\nagent = \"a\"\nafter_result = \"bash\"\nresult_has = \"ok. {passed} passed\"\ntext = \"${passed}\"\n\
         [[rule]]\nagent = \"a\"\nafter_result = 'review \"approve\":false'\ntext = \"sent back\"\n\
         [[rule]]\nagent = \"a\"\nafter_result = \"*\"\ntext = \"got ${result}\"\n[fallback]\na = \"no\"",
    );
    let mut after = |tool: &str, arguments: &Value, result: &str| {
        let [call, result] = called(tool, arguments, result);
        asked.text("a", &[user("x"), call, result])
    };
    assert_eq!(after("bash", &json!({}), "test result: ok. 12 passed; 0 failed"), "12");
    assert_eq!(after("bash", &json!({}), "FAILED"), "got FAILED");
    assert_eq!(after("review", &json!({"id": "1", "approve": false}), "done"), "sent back");
    assert_eq!(after("review", &json!({"id": "1", "approve": true}), "done"), "got done");
    assert_eq!(asked.text("a", &[user("x")]), "no");
}

#[test]
fn what_is_to_do_is_tried_again_but_not_for_ever() {
    let mut asked = Asked::new(
        "[[rule]]\nagent = \"a\"\ntodo = { call = \"bash\", ok = \"passed\", tries = 2 }\ncalls = [{ tool = \"bash\" }]\n\
         [[rule]]\nagent = \"a\"\nhas_result = { call = \"bash\", has = \"passed\" }\ntext = \"done\"\n\
         [[rule]]\nagent = \"a\"\ntext = \"given up\"",
    );
    let mut history = vec![user("[Task] x")];
    assert!(asked.say("a", &history)["tool_calls"].is_array());
    history.extend(called("bash", &json!({}), "failed"));
    assert!(asked.say("a", &history)["tool_calls"].is_array());
    let mut well = history.clone();
    well.extend(called("bash", &json!({}), "passed"));
    assert_eq!(asked.text("a", &well), "done");
    history.extend(called("bash", &json!({}), "error: passed away"));
    assert_eq!(asked.say("a", &history)["tool_calls"], Value::Null);
    // A new task begins anew.
    history.push(user("[Message from lead] hm\n\n[Task] y"));
    assert!(asked.say("a", &history)["tool_calls"].is_array());
}

#[test]
fn linear_rules_count_and_limited_ones_end() {
    let mut asked = Asked::new(
        "[[rule]]\nagent = \"*\"\nn = 2\ntext = \"second\"\n[[rule]]\nagent = \"*\"\nonce = true\ntext = \"once\"\n\
         [[rule]]\nagent = \"*\"\ntimes = 2\ntext = \"twice\"\n[[rule]]\nagent = \"*\"\npurpose = \"compact\"\ntext = \"short\"\n\
         [fallback]\n\"*\" = \"end\"",
    );
    let mut say = || asked.text("a", &[user("x")]);
    assert_eq!([say(), say(), say(), say(), say()], ["once", "second", "twice", "twice", "end"]);
    assert_eq!(asked.say_for("a", "compact", &[user("x")])["content"], "short");
}

#[test]
fn the_language_is_that_of_the_typed_lines() {
    let mut asked = Asked::new("[[rule]]\nagent = \"*\"\ntext = { zh = \"你好\", en = \"hello\" }");
    assert_eq!(asked.text("lead", &[user("hi"), user("[Team events]\n[result] a: 完成")]), "hello");
    assert_eq!(asked.text("lead", &[user("重构"), said("x"), user("ok")]), "你好");
    assert_eq!(asked.text("a", &[user("[Task] 整理")]), "你好");
}

#[test]
fn the_team_is_read_from_the_calls_and_events() {
    let mut asked = Asked::new(
        "[[rule]]\nagent = \"lead\"\nany_spawned = true\nall_reported = true\n\
         calls = [{ tool = \"request_shutdown\", for_each_spawned = true, arguments = { teammate = \"${name}\" } }]\n\
         [[rule]]\nagent = \"lead\"\ntext = \"wait\"",
    );
    let mut history = vec![user("x")];
    history.extend(called("spawn_teammate", &json!({"name": "a"}), "spawned"));
    history.extend(called("spawn_teammate", &json!({"name": "b"}), "spawned"));
    history.extend(called("spawn_teammate", &json!({"name": "c"}), "error: not confirmed"));
    history.push(user(
        "[Team events]\n[result] a: done\n[result] bb: done\n[result] b (outside mail): done\n  [result] b: quoted",
    ));
    assert_eq!(asked.text("lead", &history), "wait");
    history.push(user("[Team events]\n[error] b: no"));
    let reply = asked.say("lead", &history);
    let names: Vec<_> = reply["tool_calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| call["function"]["arguments"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, [r#"{"teammate":"a"}"#, r#"{"teammate":"b"}"#]);
}
