//! What is sent: the address, the headers, the body, byte for byte where servers cache it.
//!
//! Knows nothing of what comes back.

use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::model::mock::{Mock, ask, ask_with, chunks, delta, finish, says, settings, status};
use crate::model::{Client, History, Secret};

#[tokio::test]
async fn requests_go_where_the_address_says_with_the_headers_of_the_call() {
    let mock = Mock::start(vec![says("a"), says("b"), says("c"), says("d")]).await;
    for (tail, path) in [("/v1", "/v1"), ("/v1/", "/v1"), ("", "/v1"), ("/wrong", "/wrong")] {
        let base = mock.base.trim_end_matches("/v1").to_owned() + tail;
        ask(&Client::new(settings(&base)).unwrap()).await.reply();
        let request = mock.requests().pop().unwrap();
        assert_eq!(request.line, format!("POST {path}/chat/completions HTTP/1.1"));
        assert_eq!(request.header("x-s15-agent"), Some("lead"));
        assert_eq!(request.header("x-s15-session"), Some("00000000-0000-0000-0000-000000000000"));
        assert_eq!(request.header("x-s15-call"), Some("7"));
        assert_eq!(request.header("x-s15-purpose"), Some("turn"));
        assert_eq!(request.header("x-s15-attempt"), None);
        assert_eq!(request.header("content-type"), Some("application/json"));
        assert_eq!(request.header("authorization"), Some("bearer sk-test-0123456789"));
        assert_eq!(request.headers.matches("openai-").count(), 0);
    }
}

#[tokio::test]
async fn without_a_key_nothing_stands_for_one() {
    for (key, base_user, sent) in [
        (None, "", None),
        (Some(" \n"), "", None),
        (Some("k-1\n"), "", Some("bearer k-1")),
        (None, "me:pw@", Some("basic bwu6chc=")),
    ] {
        let mock = Mock::start(vec![says("a")]).await;
        let mut keyless = settings(&mock.base.replace("http://", &format!("http://{base_user}")));
        keyless.api_key = key.map(Secret::new);
        ask(&Client::new(keyless).unwrap()).await.reply();
        assert_eq!(mock.requests()[0].header("authorization"), sent);
    }
}

#[tokio::test]
async fn the_body_is_standard_and_in_a_fixed_order() {
    let mock = Mock::start(vec![says("a"), says("b")]).await;
    let mut history = History::new("sys");
    history.push_user("hi");
    let tools = json!([{"type": "function", "function": {"name": "glob", "parameters": {"type": "object"}}}]);
    ask_with(&mock.client(), &history, &tools, &CancellationToken::new()).await.reply();
    assert_eq!(
        mock.requests()[0].raw,
        "{\"model\":\"tiny\",\"messages\":[{\"role\":\"system\",\"content\":\"sys\"},{\"role\":\"user\",\"content\":\"hi\"}],\
         \"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"glob\",\"parameters\":{\"type\":\"object\"}}}],\
         \"stream\":true,\"stream_options\":{\"include_usage\":true}}"
    );
    ask(&mock.client()).await.reply();
    assert!(mock.requests()[1].body.get("tools").is_none());
}

#[tokio::test]
async fn refused_stream_options_are_dropped_for_good() {
    for refusal in [
        status(400, "", r#"{"error":{"message":"Unrecognized request argument supplied: stream_options"}}"#),
        status(422, "", r#"{"detail":[{"loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}"#),
    ] {
        let mock = Mock::start(vec![vec![refusal], says("a"), says("b")]).await;
        let client = mock.client();
        let outcome = ask(&client).await;
        assert_eq!(outcome.progress, ["accepted", "text a"]);
        ask(&client.clone()).await.reply();
        let sent: Vec<bool> =
            mock.requests().iter().map(|request| request.body.get("stream_options").is_some()).collect();
        assert_eq!(sent, [true, false, false]);
        assert!(mock.requests().iter().all(|request| request.body["stream"] == true));
    }
}

#[tokio::test]
async fn refused_thinking_is_dropped_for_good() {
    let refusal = status(400, "", r#"{"error":{"message":"property 'reasoning_content' is unsupported"}}"#);
    let thought = chunks(&[
        delta(
            json!({"reasoning_content": "hm", "tool_calls": [{"index": 0, "id": "t", "function": {"name": "glob", "arguments": "{}"}}]}),
        ),
        finish("tool_calls"),
    ]);
    let mock = Mock::start(vec![thought, vec![refusal], says("a")]).await;
    let client = mock.client();
    let mut history = History::new("sys");
    history.push_user("hi");
    let reply = ask_with(&client, &history, &json!([]), &CancellationToken::new()).await.reply();
    history.push_reply(&reply);
    history.push_result("t", "none");
    ask_with(&client, &history, &json!([]), &CancellationToken::new()).await.reply();
    let sent: Vec<bool> =
        mock.requests().iter().skip(1).map(|request| request.raw.contains("reasoning_content")).collect();
    assert_eq!(sent, [true, false]);
}

#[tokio::test]
async fn a_refusal_of_something_else_is_not_sent_again() {
    let mock = Mock::start(vec![vec![status(400, "", "{\"error\":\"no\"}")], says("never")]).await;
    ask(&mock.client()).await.failure();
    assert_eq!(mock.requests().len(), 1);
}

#[tokio::test]
async fn a_call_can_be_made_from_any_task() {
    let mock = Mock::start(vec![says("a")]).await;
    let client = mock.client();
    let reply = tokio::spawn(async move { ask(&client).await.reply() });
    assert_eq!(reply.await.unwrap().text, "a");
}
