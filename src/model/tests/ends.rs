//! The ends of replies: the words for it, none at all, the length limit, and answers that come whole.
//!
//! Knows nothing of how calls are put together.

use serde_json::json;

use crate::model::mock::{Mock, answered, ask, chunks, delta, events, finish, head, says, send, stream};
use crate::model::tests::dialects::{call, called, replied};

#[tokio::test]
async fn the_reply_is_over_whatever_word_says_so() {
    let text = delta(json!({"content": "ok"}));
    for end in [finish("stop"), finish("end_turn"), finish("STOP")] {
        let outcome = answered(stream(&events(&[text.clone(), end]))).await;
        assert_eq!(outcome.reply().text, "ok", "without [DONE]");
    }
    for end in [finish(""), json!({"choices": []}), json!({"choices": [{"delta": {}}]})] {
        assert_eq!(answered(chunks(&[text.clone(), end])).await.reply().text, "ok", "with [DONE]");
    }
    let spaced = events(&[text]) + "data: [DONE] \n\n";
    assert_eq!(answered(stream(&spaced)).await.reply().text, "ok");
}

#[tokio::test]
async fn a_whole_answer_to_a_streaming_request_is_taken() {
    let message = json!({"role": "assistant", "content": "whole", "tool_calls": [call("w", "glob", &json!({"p": 1}))]});
    let answer = json!({"object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}], "usage": {"prompt_tokens": 3, "completion_tokens": 4}});
    for (kind, text) in
        [("application/json", format!("{answer:#}")), ("text/event-stream", format!("data: {answer}\n\n"))]
    {
        let outcome = answered(vec![head(kind), send(&text)]).await;
        assert_eq!(outcome.progress, ["accepted", "text whole"]);
        let reply = outcome.reply();
        assert_eq!(called(&reply), [("glob".into(), json!({"p": 1}))]);
        assert_eq!(reply.usage.unwrap().output_tokens, 4);
    }
    let lines = format!("{}\n{}\n", delta(json!({"content": "li"})), finish("stop"));
    assert_eq!(answered(vec![head("application/x-ndjson"), send(&lines)]).await.reply().text, "li");
}

#[tokio::test]
async fn lines_of_json_need_an_end_as_events_do() {
    let began = format!("{}\n", delta(json!({"content": "li"})));
    let mock = Mock::start(vec![vec![head("application/x-ndjson"), send(&began)], says("well")]).await;
    assert_eq!(ask(&mock.client()).await.reply().text, "well");
}

#[tokio::test]
async fn a_reply_of_nothing_is_a_reply() {
    let mock = Mock::start(vec![chunks(&[delta(json!({"role": "assistant"})), finish("stop")]), says("x")]).await;
    let reply = ask(&mock.client()).await.reply();
    assert_eq!((reply.text.as_str(), reply.calls.len()), ("", 0));
    assert_eq!(mock.requests().len(), 1);
}

#[tokio::test]
async fn a_call_cut_at_the_length_limit_is_not_run() {
    let half = delta(
        json!({"tool_calls": [call("a", "glob", &json!("{}")), {"index": 1, "id": "h", "function": {"name": "bash", "arguments": "{\"command\":\"rm"}}]}),
    );
    let reply = replied(&[half, finish("length")]).await;
    assert!(reply.cut_off);
    assert!(reply.calls[0].arguments.is_ok());
    assert!(reply.calls[1].arguments.as_ref().unwrap_err().contains("cut off"));
    assert_eq!(reply.message["tool_calls"][1]["function"]["arguments"], "{}");
    let unbegun = delta(json!({"tool_calls": [call("u", "list_teammates", &json!(""))]}));
    assert!(replied(&[unbegun, finish("max_tokens")]).await.calls[0].arguments.is_err());
}
