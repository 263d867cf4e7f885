//! Each dialect of tool calls, text and ends that servers are known to speak, from the bytes to the reply.
//!
//! Knows nothing of the names of servers' versions; a case stands for all servers that do the same.

use serde_json::{Value, json};

use crate::model::Reply;
use crate::model::mock::{answered, chunks, delta, finish};

/// Name and arguments of each call.
pub(super) fn called(reply: &Reply) -> Vec<(String, Value)> {
    let arguments = |slot: &crate::model::CallSlot| slot.arguments.clone().map_or_else(Value::String, Value::Object);
    reply.calls.iter().map(|slot| (slot.name.clone(), arguments(slot))).collect()
}

pub(super) async fn replied(pieces: &[Value]) -> Reply {
    answered(chunks(pieces)).await.reply()
}

pub(super) fn call(id: &str, name: &str, arguments: &Value) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

#[tokio::test]
async fn calls_without_an_index_stay_apart() {
    let reply = replied(&[
        delta(json!({"role": "assistant", "content": null, "tool_calls": [call("one", "glob", &json!("{\"p\":1}"))]})),
        delta(json!({"tool_calls": [call("two", "grep", &json!("{\"p\":2}"))]})),
        finish("tool_calls"),
    ])
    .await;
    assert_eq!(called(&reply), [("glob".into(), json!({"p": 1})), ("grep".into(), json!({"p": 2}))]);
    assert_eq!(reply.message["tool_calls"][1]["id"], "two");
    assert_eq!(reply.message["content"], Value::Null);
}

#[tokio::test]
async fn calls_without_index_and_id_in_one_list_stay_apart() {
    let bare = |name: &str, arguments: Value| json!({"function": {"name": name, "arguments": arguments}});
    let list = [bare("glob", json!("")), bare("glob", json!("")), bare("grep", json!("{\"p\":2}"))];
    let reply = replied(&[delta(json!({"tool_calls": list})), finish("stop")]).await;
    assert_eq!(
        called(&reply),
        [("glob".into(), json!({})), ("glob".into(), json!({})), ("grep".into(), json!({"p": 2}))]
    );
    let ids: std::collections::HashSet<_> = reply.calls.iter().map(|slot| slot.id.clone()).collect();
    assert_eq!(ids.len(), 3);
    assert!(ids.iter().all(|id| id.len() == 9 && id.bytes().all(|b| b.is_ascii_alphanumeric())));
}

#[tokio::test]
async fn a_nameless_piece_goes_on_with_the_last_call() {
    let reply = replied(&[
        delta(json!({"tool_calls": [{"id": "a", "function": {"name": "glob", "arguments": "{\"p\":"}}]})),
        delta(json!({"tool_calls": [{"function": {"arguments": "\"x\"}"}}]})),
        finish("tool_calls"),
    ])
    .await;
    assert_eq!(called(&reply), [("glob".into(), json!({"p": "x"}))]);
}

#[tokio::test]
async fn two_whole_calls_with_the_same_index_stay_two() {
    for ids in [["a", "b"], ["", ""]] {
        let whole = |at: usize| json!({"index": 0, "id": ids[at], "function": {"name": "glob", "arguments": format!("{{\"p\":{at}}}")}});
        let reply = replied(&[
            delta(json!({"tool_calls": [whole(0)]})),
            delta(json!({"tool_calls": [whole(1)]})),
            finish("stop"),
        ])
        .await;
        assert_eq!(called(&reply), [("glob".into(), json!({"p": 0})), ("glob".into(), json!({"p": 1}))], "{ids:?}");
    }
}

#[tokio::test]
async fn interleaved_pieces_find_their_calls() {
    let piece = |index: u64, id: &str, name: &str, arguments: &str| {
        delta(
            json!({"tool_calls": [{"index": index, "id": id, "type": "", "function": {"name": name, "arguments": arguments}}]}),
        )
    };
    let reply = replied(&[
        piece(0, "a", "glob", ""),
        piece(1, "b", "grep", "{\"q\""),
        piece(0, "", "", "{\"p\":"),
        piece(1, "", "", ":2}"),
        piece(0, "", "", "1}"),
        finish("tool_calls"),
    ])
    .await;
    assert_eq!(called(&reply), [("glob".into(), json!({"p": 1})), ("grep".into(), json!({"q": 2}))]);
}

#[tokio::test]
async fn what_is_repeated_in_every_piece_is_taken_once() {
    let piece = |arguments: &str| {
        delta(
            json!({"tool_calls": [{"index": 0, "id": "n", "type": "function", "function": {"name": "grep", "arguments": arguments}}]}),
        )
    };
    let reply = replied(&[piece("{\"q\":"), piece("\"a {b\""), piece(", \"n\": 1}"), finish("tool_calls")]).await;
    assert_eq!(called(&reply), [("grep".into(), json!({"q": "a {b", "n": 1}))]);
    assert_eq!(reply.message["tool_calls"][0]["function"]["name"], "grep");
    assert_eq!(reply.message["tool_calls"][0]["id"], "n");
    // The whole call said once more at the end is no second call.
    let whole = piece("{\"q\":1}");
    assert_eq!(replied(&[whole.clone(), whole, finish("tool_calls")]).await.calls.len(), 1);
}

#[tokio::test]
async fn arguments_come_in_every_form_and_go_back_as_text() {
    for (arguments, read) in [
        (json!({"path": "a", "content": "B\n"}), json!({"path": "a", "content": "B\n"})),
        (json!("{\"path\":\"a\"}"), json!({"path": "a"})),
        (json!("\"{\\\"path\\\":\\\"a\\\"}\""), json!({"path": "a"})),
        (json!(""), json!({})),
        (json!("null"), json!({})),
        (json!(null), json!({})),
        (json!({}), json!({})),
    ] {
        let reply =
            replied(&[delta(json!({"tool_calls": [call("o", "write_file", &arguments)]})), finish("tool_calls")]).await;
        assert_eq!(called(&reply), [("write_file".into(), read.clone())], "{arguments}");
        let text = reply.message["tool_calls"][0]["function"]["arguments"].as_str().expect("a text");
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), read);
    }
}

#[tokio::test]
async fn an_object_placeholder_before_streamed_text_is_no_argument() {
    let piece = |arguments: Value| {
        delta(json!({"tool_calls": [{"index": 0, "id": "e", "function": {"name": "glob", "arguments": arguments}}]}))
    };
    let reply = replied(&[piece(json!({})), piece(json!("{\"p\":1}")), finish("tool_calls")]).await;
    assert_eq!(called(&reply), [("glob".into(), json!({"p": 1}))]);
}

#[tokio::test]
async fn contents_come_in_every_form() {
    let pieces = [
        delta(json!({"role": "assistant", "content": null})),
        json!({"choices": [], "prompt_filter_results": []}),
        delta(json!({"content": ""})),
        delta(
            json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "one "}]}),
        ),
        json!({"choices": [{"delta": {"content": "two"}}]}),
        json!({"choices": [{"index": 0, "finish_reason": null}]}),
        json!({"choices": [{"index": 1, "delta": {"content": "another answer"}}]}),
        finish("eos"),
        json!({"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 8}}}),
        json!({"choices": [], "usage": {}}),
    ];
    let outcome = answered(chunks(&pieces)).await;
    assert_eq!(outcome.progress, ["accepted", "reasoning hm", "text one ", "text two"]);
    let reply = outcome.reply();
    assert_eq!(reply.text, "one two");
    assert_eq!(reply.message, json!({"role": "assistant", "content": "one two"}));
    let usage = reply.usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.cached_tokens), (11, 2, 8));
}

#[tokio::test]
async fn thinking_is_shown_and_goes_back_with_calls_only() {
    for key in ["reasoning_content", "reasoning"] {
        let thought = [delta(json!({key: "first "})), delta(json!({key: "then", "content": null}))];
        let mut pieces = thought.to_vec();
        pieces.extend([delta(json!({"content": "said"})), finish("stop")]);
        let outcome = answered(chunks(&pieces)).await;
        assert_eq!(outcome.progress, ["accepted", "reasoning first ", "reasoning then", "text said"]);
        assert_eq!(outcome.reply().message, json!({"role": "assistant", "content": "said"}));

        let mut pieces = thought.to_vec();
        pieces.extend([delta(json!({"tool_calls": [call("t", "glob", &json!("{}"))]})), finish("tool_calls")]);
        assert_eq!(replied(&pieces).await.message[key], "first then");
    }
}

#[tokio::test]
async fn thinking_within_the_text_is_shown_and_not_kept() {
    let outcome = answered(chunks(&[
        delta(json!({"content": "<thi"})),
        delta(json!({"content": "nk>hm</think>\n\n"})),
        delta(json!({"content": "yes"})),
        finish("stop"),
    ]))
    .await;
    assert_eq!(outcome.progress, ["accepted", "reasoning hm", "text yes"]);
    assert_eq!(outcome.reply().message, json!({"role": "assistant", "content": "yes"}));
}

#[tokio::test]
async fn what_a_server_puts_into_a_call_goes_back() {
    let mut signed = call("g", "glob", &json!("{}"));
    signed["extra_content"] = json!({"google": {"thought_signature": "c2ln"}});
    signed["function"]["strict"] = json!(true);
    let reply = replied(&[delta(json!({"tool_calls": [signed]})), finish("tool_calls")]).await;
    let back = &reply.message["tool_calls"][0];
    assert_eq!(back["extra_content"]["google"]["thought_signature"], "c2ln");
    assert_eq!(back["function"]["strict"], true);
}

#[tokio::test]
async fn old_function_calls_are_taken_as_tool_calls() {
    let reply = replied(&[
        delta(json!({"function_call": {"name": "glob", "arguments": "{\"p\""}})),
        delta(json!({"function_call": {"arguments": ":1}"}})),
        finish("function_call"),
    ])
    .await;
    assert_eq!(called(&reply), [("glob".into(), json!({"p": 1}))]);
}
