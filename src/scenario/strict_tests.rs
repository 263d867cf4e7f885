//! Each rule of the strict check catches its fault, and a good history has none.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::strict::{Prefix, body_faults, header_faults, message_faults};

fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

fn asks(calls: &[Value]) -> Value {
    json!({"role": "assistant", "content": null, "tool_calls": calls})
}

fn result(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": "ok"})
}

fn user() -> Value {
    json!({"role": "user", "content": "x"})
}

/// The one fault of a history after its system prompt.
fn fault(messages: &[Value]) -> String {
    let mut all = vec![json!({"role": "system", "content": "s"})];
    all.extend_from_slice(messages);
    let faults = message_faults(&all);
    assert_eq!(faults.len(), 1, "{faults:?}");
    faults[0].clone()
}

#[test]
fn a_good_history_has_no_fault() {
    let history = [
        json!({"role": "system", "content": "s"}),
        user(),
        asks(&[call("1", "bash", "{}"), call("2", "a-b_C", "{\"x\": [1]}")]),
        result("2"),
        result("1"),
        json!({"role": "assistant", "content": "done"}),
        user(),
        asks(&[call("1", "bash", "{}")]), // ids may come again in a later message
        json!({"role": "tool", "tool_call_id": "1", "content": ""}),
    ];
    assert_eq!(message_faults(&history), Vec::<String>::new());
}

#[test]
fn i5_every_call_needs_its_result_right_after_it() {
    let bash = || asks(&[call("1", "bash", "{}")]);
    assert!(fault(&[user(), bash()]).contains("\"1\" has no result before the end"));
    assert!(fault(&[user(), bash(), user()]).contains("no result before message 3 (user)"));
    assert!(fault(&[user(), bash(), result("1"), result("1")]).contains("second or late result"));
    assert!(fault(&[user(), result("9")]).contains("orphan result for \"9\""));
    let late = message_faults(&[json!({"role": "system", "content": "s"}), bash(), user(), result("1")]);
    assert_eq!(late.len(), 2, "{late:?}");
}

#[test]
fn i5_arguments_are_a_json_object_in_a_string() {
    for arguments in ["", "{", "[]", "null", "\"x\""] {
        assert!(fault(&[asks(&[call("1", "bash", arguments)]), result("1")]).contains("no JSON object"));
    }
    let mut object = call("1", "bash", "");
    object["function"]["arguments"] = json!({});
    assert!(fault(&[asks(&[object]), result("1")]).contains("no JSON object"));
}

#[test]
fn i5_no_message_is_empty() {
    assert!(fault(&[json!({"role": "user", "content": " \n"})]).contains("an empty user message"));
    assert!(fault(&[user(), json!({"role": "assistant", "content": ""})]).contains("neither text nor calls"));
    let no_calls = message_faults(&[json!({"role": "system", "content": "s"}), asks(&[])]);
    assert!(no_calls[0].contains("no filled list"), "{no_calls:?}");
    let hollow = json!({"role": "tool", "tool_call_id": "1", "content": null});
    assert!(fault(&[asks(&[call("1", "bash", "{}")]), hollow]).contains("has no content"));
}

#[test]
fn ids_and_names_are_well_formed() {
    assert!(fault(&[asks(&[call("", "bash", "{}")])]).contains("a call without an id"));
    let twice = asks(&[call("1", "bash", "{}"), call("1", "bash", "{}")]);
    assert!(fault(&[twice, result("1")]).contains("twice in one message"));
    for name in ["", "a b", "ü", &"x".repeat(65)] {
        assert!(fault(&[asks(&[call("1", name, "{}")]), result("1")]).contains("is not allowed"), "{name}");
    }
    let mut typeless = call("1", "bash", "{}");
    typeless["type"] = json!("tool");
    assert!(fault(&[asks(&[typeless]), result("1")]).contains("not of type function"));
}

#[test]
fn roles_are_known_and_the_system_prompt_comes_first() {
    assert!(fault(&[json!({"role": "robot", "content": "x"})]).contains("\"robot\" is unknown"));
    assert!(message_faults(&[user()])[0].contains("not system"));
}

#[test]
fn the_body_streams_names_a_model_and_has_good_tools() {
    let messages = json!([{"role": "system", "content": "s"}, {"role": "user", "content": "x"}]);
    let good = json!({"model": "m", "stream": true, "messages": messages, "tools": [
        {"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}]});
    assert_eq!(body_faults(&good), Vec::<String>::new());
    let with = |key: &str, value: Value| {
        let mut body = good.clone();
        body[key] = value;
        body_faults(&body).join("; ")
    };
    assert!(with("stream", json!(false)).contains("`stream`"));
    assert!(with("model", json!("")).contains("`model`"));
    assert!(with("messages", json!([])).contains("`messages`"));
    assert!(with("tools", json!([])).contains("`tools`"));
    assert!(with("tools", json!([{"function": {"name": "a b", "parameters": {}}}])).contains("a b"));
    assert!(with("tools", json!([{"function": {"name": "a"}}])).contains("parameters"));
}

#[test]
fn the_headers_say_who_asks() {
    let with = |call: &str| -> Vec<String> {
        let headers = [("x-s15-agent", "lead"), ("x-s15-session", "s"), ("x-s15-call", call)];
        header_faults(&headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into())
    };
    assert_eq!(with("1"), Vec::<String>::new());
    assert!(with("0")[0].contains("no number from 1"));
    assert_eq!(header_faults(&BTreeMap::new()).len(), 3);
}

#[test]
fn the_prefix_is_compared_byte_by_byte() {
    let prefix = |messages: &str, tools: &str| {
        Prefix::of(format!(r#"{{"model":"m\"]}}","messages":[{messages}],"tools":{tools},"x":1}}"#).as_bytes())
    };
    let first = prefix(r#"{"a":"[\"]"}"#, "[1]");
    let grown = prefix(r#"{"a":"[\"]"},{"b":2}"#, "[1]");
    assert_eq!(first.faults_after(&first), Vec::<String>::new());
    assert_eq!(grown.faults_after(&first), Vec::<String>::new());
    assert!(first.faults_after(&grown)[0].contains("the prefix changed"));
    assert!(prefix(r#"{"a":"x"},{"b":2}"#, "[1]").faults_after(&first)[0].contains("the prefix changed"));
    assert!(prefix(r#"{"a":"[\"]"}"#, "[2]").faults_after(&first)[0].contains("`tools`"));
    // The same values in other bytes miss a server's cache.
    assert_eq!(prefix(r#"{"a": "[\"]"}"#, "[1]").faults_after(&first).len(), 1);
}
