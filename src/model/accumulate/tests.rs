//! The accumulator alone: the same reply whatever the chunks look like, and no panic at any of them.
//!
//! Knows nothing of servers; the dialects' tests go through the whole client.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn fed(chunks: &[Value]) -> Result<Option<Draft>, Value> {
    let mut reply = Accumulator::default();
    for chunk in chunks {
        reply.feed(chunk, &mut |_| {})?;
    }
    Ok(reply.complete(Ending::Unmarked, &mut |_| {}))
}

fn chunk(delta: &Value) -> Value {
    json!({"choices": [{"delta": delta}]})
}

#[test]
fn without_a_word_about_its_end_a_reply_is_cut() {
    assert!(fed(&[chunk(&json!({"content": "a"}))]).unwrap().is_none());
    assert!(fed(&[]).unwrap().is_none());
    assert!(Accumulator::default().complete(Ending::Marked, &mut |_| {}).is_some());
}

#[test]
fn what_is_no_piece_of_a_reply_is_foreign() {
    let mut reply = Accumulator::default();
    for value in [
        json!({}),
        json!({"type": "ping"}),
        json!([]),
        json!("x"),
        json!(null),
        json!({"error": null}),
        json!({"choices": null}),
    ] {
        assert_eq!(reply.feed(&value, &mut |_| {}), Ok(Fed::Foreign), "{value}");
    }
    assert_eq!(reply.feed(&json!({"choices": []}), &mut |_| {}), Ok(Fed::Good));
}

#[test]
fn a_piece_that_says_nothing_is_no_call() {
    let end = json!({"choices": [{"delta": {"tool_calls": [{"index": 0}, {}, null, 3]}, "finish_reason": "stop"}]});
    assert_eq!(fed(&[end]).unwrap().unwrap().calls.len(), 0);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        prop_oneof!["\\PC{0,5}", Just("{}".to_owned()), Just("{\"a\":".to_owned())].prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let key = prop::sample::select(vec![
            "choices",
            "delta",
            "message",
            "content",
            "tool_calls",
            "function",
            "arguments",
            "name",
            "id",
            "index",
            "text",
            "thinking",
            "usage",
            "finish_reason",
            "x",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..5).prop_map(|fields| Value::Object(
                fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
            )),
        ]
    })
}

/// The text split into pieces of these sizes, in characters.
fn split(text: &str, sizes: &[usize]) -> Vec<String> {
    let mut rest: Vec<char> = text.chars().collect();
    let mut pieces = Vec::new();
    let mut sizes = sizes.iter().cycle();
    while !rest.is_empty() {
        let size = sizes.next().map_or(1, |size| (*size).max(1)).min(rest.len());
        pieces.push(rest.drain(..size).collect());
    }
    pieces
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn i8_no_chunk_does_harm(choices in prop::collection::vec(any_json(), 0..6), deltas in prop::collection::vec(any_json(), 0..6)) {
        let mut reply = Accumulator::default();
        for value in &choices {
            let _ = reply.feed(value, &mut |_| {});
        }
        for value in &deltas {
            let _ = reply.feed(&chunk(value), &mut |_| {});
            let _ = reply.feed(&chunk(&json!({"tool_calls": [value]})), &mut |_| {});
            let _ = reply.feed(&chunk(&json!({"tool_calls": [{"function": value}]})), &mut |_| {});
        }
        let _ = reply.complete(Ending::Marked, &mut |_| {});
    }

    #[test]
    fn calls_in_any_pieces_and_with_any_repetition_are_the_same_calls(
        texts in prop::collection::vec("[a-z{}\"\\\\你 ]{0,12}", 1..4),
        sizes in prop::collection::vec(1_usize..5, 1..6),
        repeats_name in any::<bool>(),
        repeats_id in any::<bool>(),
        has_index in any::<bool>(),
        is_interleaved in any::<bool>(),
    ) {
        let whole: Vec<String> = texts.iter().map(|text| json!({"q": text}).to_string()).collect();
        let mut pieces: Vec<Vec<Value>> = Vec::new();
        for (at, arguments) in whole.iter().enumerate() {
            let mut of_call = Vec::new();
            for (nth, piece) in split(arguments, &sizes).into_iter().enumerate() {
                let mut value = json!({"function": {"arguments": piece}});
                if nth == 0 || repeats_name {
                    value["function"]["name"] = json!("grep");
                }
                if nth == 0 || repeats_id || (is_interleaved && !has_index) {
                    value["id"] = json!(format!("call{at}"));
                }
                if has_index {
                    value["index"] = json!(at);
                }
                of_call.push(value);
            }
            pieces.push(of_call);
        }
        let mut chunks: Vec<Value> = Vec::new();
        if is_interleaved {
            let longest = pieces.iter().map(Vec::len).max().unwrap_or(0);
            for nth in 0..longest {
                chunks.extend(pieces.iter().filter_map(|of_call| of_call.get(nth)).map(|piece| chunk(&json!({"tool_calls": [piece]}))));
            }
        } else {
            chunks.extend(pieces.iter().flatten().map(|piece| chunk(&json!({"tool_calls": [piece]}))));
        }
        chunks.push(json!({"choices": [{"finish_reason": "tool_calls"}]}));
        let calls = fed(&chunks).unwrap().unwrap().calls;
        let got: Vec<(String, String)> = calls.into_iter().map(|call| (call.name, call.arguments)).collect();
        let expected: Vec<(String, String)> = whole.into_iter().map(|arguments| ("grep".to_owned(), arguments)).collect();
        prop_assert_eq!(got, expected);
    }
}
