//! The history's promises, also under any order of what is done to it.
//!
//! Knows nothing of servers; `assert_accepted` is what the strictest of them check.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::model::CallSlot;

fn reply(text: &str, ids: &[&str]) -> Reply {
    let call = |id: &&str| json!({"id": id, "type": "function", "function": {"name": "glob", "arguments": "{}"}});
    let mut message = json!({"role": "assistant", "content": if text.is_empty() { Value::Null } else { json!(text) }});
    if !ids.is_empty() {
        message["tool_calls"] = ids.iter().map(call).collect();
    }
    let slot = |id: &&str| CallSlot { id: (*id).to_owned(), name: "glob".to_owned(), arguments: Ok(Map::new()) };
    Reply { message, text: text.to_owned(), calls: ids.iter().map(slot).collect(), usage: None, cut_off: false }
}

/// What strict servers refuse: an orphan, a missing or double result, an empty message.
fn assert_accepted(body: &Value) {
    let messages = body["messages"].as_array().unwrap();
    assert_eq!(messages[0]["role"], "system");
    let mut waiting: Vec<&str> = Vec::new();
    for message in messages {
        let role = message["role"].as_str().unwrap();
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap();
            let at = waiting.iter().position(|open| *open == id).expect("a result of an open call");
            waiting.remove(at);
        } else {
            assert!(waiting.is_empty(), "{role} before the results of {waiting:?}");
        }
        let says = message["content"].as_str().is_some_and(|text| !text.trim().is_empty());
        assert!(says || message.get("tool_calls").is_some(), "an empty message: {message}");
        waiting.extend(call_ids(message));
    }
    assert!(waiting.is_empty(), "no results of {waiting:?}");
}

fn body_of(history: &History) -> Value {
    serde_json::to_value(history.body("m", &Value::Null, Omit::default())).unwrap()
}

fn roles(history: &History) -> Vec<&str> {
    history.messages().iter().map(|message| message["role"].as_str().unwrap()).collect()
}

#[test]
fn i5_a_line_after_open_calls_comes_after_their_results() {
    let mut history = History::new("s");
    history.push_user("go");
    history.push_reply(&reply("", &["a", "b", "c"]));
    history.push_result("b", "");
    assert_eq!(history.open_calls(), ["a", "c"]);
    assert_accepted(&body_of(&history));
    history.push_user("stop");
    assert_eq!(roles(&history), ["system", "user", "assistant", "tool", "tool", "tool", "user"]);
    assert_eq!(history.messages()[3]["content"], NO_OUTPUT);
    assert!(history.messages()[4]["content"].as_str().unwrap().contains("interrupted"));
    history.push_result("a", "too late");
    history.push_result("z", "never asked for");
    assert_eq!(history.messages().len(), 7);
    assert!(history.has_call("c") && !history.has_call("z"));
}

#[test]
fn i5_nothing_empty_is_kept() {
    let mut history = History::new("s");
    history.push_user(" \n");
    history.push_cut_reply("  ");
    assert_eq!(roles(&history), ["system"]);
    history.push_reply(&reply("", &[]));
    assert_eq!(history.messages()[1], json!({"role": "assistant", "content": "(no reply)"}));
    assert_eq!(body_of(&History::new(" "))["messages"], json!([]));
    history.push_cut_reply("half a ");
    assert_eq!(history.messages()[2]["content"], "half a\n[cancelled here]");
}

#[test]
fn the_system_prompt_can_be_replaced() {
    let mut history = History::new("one");
    history.push_user("x");
    history.set_system("two");
    assert_eq!((history.system(), history.messages().len()), ("two", 2));
}

#[test]
fn thinking_can_be_left_out() {
    let mut history = History::new("s");
    let mut thought = reply("", &["a"]);
    thought.message["reasoning_content"] = json!("hm");
    history.push_reply(&thought);
    let omit = Omit { reasoning: true, stream_options: true };
    let body = serde_json::to_value(history.body("m", &json!([]), omit)).unwrap();
    assert!(body["messages"][1].get("reasoning_content").is_none());
    assert!(body.get("stream_options").is_none() && body.get("tools").is_none());
    assert_eq!(body["messages"][1]["tool_calls"][0]["id"], "a");
}

/// One thing done to a history.
#[derive(Clone, Debug)]
enum Step {
    User(String),
    Reply(String, Vec<u8>),
    Result(u8, String),
    Cut(String),
}

fn step() -> impl Strategy<Value = Step> {
    let text = || prop_oneof![Just(String::new()), Just(" \n".to_owned()), "[a-z你\"\\\\]{1,6}"];
    prop_oneof![
        text().prop_map(Step::User),
        (text(), prop::collection::btree_set(0_u8..6, 0..4))
            .prop_map(|(text, ids)| Step::Reply(text, ids.into_iter().collect())),
        (0_u8..8, text()).prop_map(|(id, text)| Step::Result(id, text)),
        text().prop_map(Step::Cut),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn i5_whatever_is_done_every_call_has_one_result(steps in prop::collection::vec(step(), 0..40)) {
        let mut history = History::new("s");
        let mut sent: Vec<String> = Vec::new();
        for step in steps {
            match step {
                Step::User(text) => history.push_user(&text),
                Step::Reply(text, ids) => {
                    let ids: Vec<String> = ids.iter().map(|id| format!("c{id}")).collect();
                    history.push_reply(&reply(&text, &ids.iter().map(String::as_str).collect::<Vec<_>>()));
                }
                Step::Result(id, text) => history.push_result(&format!("c{id}"), &text),
                Step::Cut(text) => history.push_cut_reply(&text),
            }
            assert_accepted(&body_of(&history));
            if history.open_calls().is_empty() {
                sent.push(serde_json::to_string(&history.body("m", &json!([{"x": 1}]), Omit::default())).unwrap());
            }
        }
        // A longer conversation begins with the very bytes of the shorter one.
        for pair in sent.windows(2) {
            let end = pair[0].find("],\"tools\":").unwrap();
            prop_assert!(pair[1].starts_with(&pair[0][..end]), "{} / {}", pair[0], pair[1]);
        }
    }
}
