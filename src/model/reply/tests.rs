//! What becomes of names, ids and arguments that no server would take back.
//!
//! Knows nothing of streams: the drafts are made by hand.

use proptest::prelude::*;

use super::*;

fn draft(calls: Vec<DraftCall>) -> Draft {
    Draft { text: String::new(), reasoning: None, details: Vec::new(), calls, finish: Finish::Done, usage: None }
}

fn call(id: &str, name: &str, arguments: &str) -> DraftCall {
    DraftCall { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_owned(), ..DraftCall::default() }
}

fn built(calls: Vec<DraftCall>) -> Reply {
    from_draft(draft(calls), &History::new("s"))
}

fn is_legal_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

#[test]
fn names_that_no_server_takes_back_are_replaced_and_still_told() {
    for (written, told, kept) in [
        ("bash", "bash", "bash"),
        (" bash\n", "bash", "bash"),
        ("functions.bash", "bash", "bash"),
        ("bash<|channel|>commentary", "bash", "bash"),
        ("todo_write", "todo_write", "todo_write"),
        ("", "invalid_tool", "invalid_tool"),
        ("工具", "工具", "invalid_tool"),
        ("rm -rf\u{1b}[2J", "rm -rf [2J", "invalid_tool"),
    ] {
        let reply = built(vec![call("a", written, "{}")]);
        assert_eq!(reply.calls[0].name, told, "{written:?}");
        assert_eq!(reply.message["tool_calls"][0]["function"]["name"], kept, "{written:?}");
    }
    let long = built(vec![call("a", &"x".repeat(65), "{}")]);
    assert_eq!(long.message["tool_calls"][0]["function"]["name"], INVALID_TOOL);
}

#[test]
fn ids_are_kept_unless_empty_or_double() {
    let reply = built(vec![call("a", "x", ""), call("a", "y", ""), call("", "z", ""), call("b", "v", "")]);
    let ids: Vec<&str> = reply.calls.iter().map(|slot| slot.id.as_str()).collect();
    assert_eq!((ids[0], ids[3]), ("a", "b"));
    let mut unique = ids.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), 4, "{ids:?}");
    let replayed: Vec<&str> = crate::model::history::call_ids(&reply.message).collect();
    assert_eq!(replayed, ids);
}

#[test]
fn ids_made_up_are_new_to_the_conversation() {
    let mut history = History::new("s");
    let mut seen = std::collections::HashSet::new();
    for _ in 0..50 {
        let reply = from_draft(draft(vec![call("", "x", ""), call("", "x", "")]), &history);
        history.push_reply(&reply);
        for slot in &reply.calls {
            assert!(seen.insert(slot.id.clone()), "{} twice", slot.id);
        }
    }
}

#[test]
fn broken_arguments_are_told_with_their_place_and_go_back_empty() {
    let reply = built(vec![call("j", "bash", "{\"command\": \"echo \"hi\"\"}")]);
    let told = reply.calls[0].arguments.as_ref().unwrap_err();
    assert!(
        told.starts_with("error: ")
            && told.contains("not valid JSON")
            && told.contains("line 1 column 20")
            && told.contains("echo"),
        "{told}"
    );
    assert_eq!(reply.message["tool_calls"][0]["function"]["arguments"], "{}");
    for (written, named) in [("[1]", "an array"), ("3", "a number"), ("true", "true or false"), ("\"x\"", "a string")] {
        let told = built(vec![call("a", "x", written)]).calls[0].arguments.clone().unwrap_err();
        assert!(told.starts_with("error: ") && told.contains(named), "{told}");
    }
}

#[test]
fn valid_arguments_go_back_as_they_were_written() {
    let written = "{ \"b\": 1.0, \"a\": \"\\u4f60\" }";
    let reply = built(vec![call("a", "x", written)]);
    assert_eq!(reply.message["tool_calls"][0]["function"]["arguments"], written);
}

#[test]
fn details_of_thinking_are_put_together() {
    let mut with_details = draft(vec![call("a", "x", "{}")]);
    with_details.details = vec![
        json!({"type": "reasoning.text", "index": 0, "text": "one "}),
        json!({"type": "reasoning.text", "index": 0, "text": "two", "signature": "sig"}),
        json!({"type": "reasoning.encrypted", "index": 1, "data": "xx"}),
    ];
    let reply = from_draft(with_details, &History::new("s"));
    assert_eq!(
        reply.message["reasoning_details"],
        json!([{"type": "reasoning.text", "index": 0, "text": "one two", "signature": "sig"}, {"type": "reasoning.encrypted", "index": 1, "data": "xx"}])
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn i5_whatever_came_the_message_is_one_a_strict_server_takes(
        calls in prop::collection::vec(("[ab]{0,1}", any::<String>(), prop_oneof![any::<String>(), "[{}\\[\\]\":a,\\\\\n你]{0,12}"]), 0..5),
        is_half in any::<bool>(),
    ) {
        let mut whole = draft(calls.iter().map(|(id, name, arguments)| call(id, name, arguments)).collect());
        whole.finish = if is_half { Finish::Length } else { Finish::Done };
        let reply = from_draft(whole, &History::new("s"));
        prop_assert_eq!(reply.calls.len(), calls.len());
        let replayed = reply.message["tool_calls"].as_array().cloned().unwrap_or_default();
        let mut ids = std::collections::HashSet::new();
        for (slot, back) in reply.calls.iter().zip(&replayed) {
            prop_assert!(!slot.id.is_empty() && ids.insert(slot.id.clone()));
            prop_assert_eq!(&back["id"], &slot.id);
            prop_assert!(is_legal_name(back["function"]["name"].as_str().unwrap()));
            let text = back["function"]["arguments"].as_str().unwrap();
            let read = serde_json::from_str::<Map<String, Value>>(text).unwrap();
            match &slot.arguments {
                Ok(arguments) => prop_assert_eq!(arguments, &read),
                Err(told) => prop_assert!(told.starts_with("error: ") && read.is_empty()),
            }
        }
    }
}
