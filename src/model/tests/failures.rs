//! Refusals and breakdowns: what is tried again, what the user reads, and that no key is ever in it.
//!
//! Knows nothing of how long waits are.

use std::time::Duration;

use serde_json::json;
use tokio::net::TcpListener;

use crate::model::mock::{
    Mock, Step, answered, ask, chunks, delta, events, finish, head, says, send, settings, status, stream,
};
use crate::model::{AskError, Client, Secret};

#[tokio::test]
async fn transient_refusals_are_tried_again_in_any_wording() {
    for (code, body) in [
        (408, ""),
        (409, "{}"),
        (425, "x"),
        (429, "slow down"),
        (429, "{\"error\":\"busy\"}"),
        (500, "<html><title>oops</title></html>"),
        (503, "[{\"error\":{\"message\":\"full\"}}]"),
        (529, "overloaded"),
    ] {
        let mock = Mock::start(vec![vec![status(code, "", body)], says("done")]).await;
        let outcome = ask(&mock.client()).await;
        assert!(outcome.progress[0].starts_with("retry 1/2 server "), "{code}: {:?}", outcome.progress);
        assert_eq!(outcome.reply().text, "done");
        let attempts: Vec<_> =
            mock.requests().iter().map(|request| request.header("x-s15-attempt").map(str::to_owned)).collect();
        assert_eq!(attempts, [None, Some("1".to_owned())]);
        assert!(mock.requests().iter().all(|request| request.header("x-s15-call") == Some("7")));
    }
}

#[tokio::test]
async fn lasting_refusals_are_not_tried_again_and_say_what_to_do() {
    for (code, body, words, advice) in [
        (400, r#"{"error":{"message":"bad tools","code":400}}"#, "bad tools", "another model"),
        (401, r#"{"error":{"message":"who are you","code":"invalid_api_key"}}"#, "who are you", "OPENAI_API_KEY"),
        (402, r#"{"error":"no credit"}"#, "no credit", "billing"),
        (403, r#"{"detail":"not here"}"#, "not here", "OPENAI_API_KEY"),
        (
            404,
            r#"{"error":{"message":"The model `tiny` does not exist","code":"model_not_found"}}"#,
            "does not exist",
            "`tiny`",
        ),
        (404, "404 page not found", "page not found", "OPENAI_BASE_URL"),
        (404, "", "404 Not Found", "OPENAI_BASE_URL"),
        (413, "", "413", "too large"),
        (422, r#"{"detail":[{"loc":["body","messages"],"msg":"field required"}]}"#, "field required", "another model"),
        (
            429,
            r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota"}}"#,
            "quota",
            "billing",
        ),
    ] {
        let mock = Mock::start(vec![vec![status(code, "", body)], says("never")]).await;
        let outcome = ask(&mock.client()).await;
        let Err(AskError::Failed { text, status }) = outcome.result else { panic!("{code}") };
        assert_eq!(status, Some(code));
        assert_eq!(mock.requests().len(), 1);
        let (what, todo) = text.split_once('\n').unwrap();
        assert!(
            what.contains(&format!("{}/chat/completions answered {code}", mock.base)) && what.contains(words),
            "{text}"
        );
        assert!(todo.contains(advice), "{text}");
    }
}

#[tokio::test]
async fn the_last_refusal_is_the_one_that_is_told() {
    let busy = || vec![status(503, "retry-after: 0\r\n", "{\"error\":{\"message\":\"loading the model\"}}")];
    let mock = Mock::start(vec![busy(), busy(), busy(), says("never")]).await;
    let text = ask(&mock.client()).await.failure();
    assert!(text.contains("503 Service Unavailable: loading the model (tried 3 times)\n"), "{text}");
    assert_eq!(mock.requests().len(), 3);
}

#[tokio::test]
async fn nobody_there_is_told_with_what_to_do() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    for scheme in ["http", "https"] {
        let outcome = ask(&Client::new(settings(&format!("{scheme}://{address}/v1"))).unwrap()).await;
        assert_eq!(outcome.progress.len(), 2, "{:?}", outcome.progress);
        let text = outcome.failure();
        assert!(
            text.contains(&format!("{scheme}://{address}/v1/chat/completions"))
                && text.contains("Is the server running?"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn tls_where_there_is_none_is_told_and_not_tried_again() {
    let mock = Mock::start(vec![]).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(mock);
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let _ = tokio::io::AsyncWriteExt::write_all(
                &mut socket,
                b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n",
            )
            .await;
        }
    });
    let outcome = ask(&Client::new(settings(&format!("https://{address}/v1"))).unwrap()).await;
    assert_eq!(outcome.progress, Vec::<String>::new());
    let text = outcome.failure();
    assert!(text.contains("http://"), "{text}");
}

#[tokio::test]
async fn a_name_that_means_nothing_is_told() {
    let mut quick = settings("http://no-such-host.invalid/v1");
    quick.retries_max = 0;
    let text = ask(&Client::new(quick).unwrap()).await.failure();
    assert!(text.contains("no-such-host.invalid/v1/chat/completions"), "{text}");
}

#[tokio::test]
async fn a_connection_that_never_comes_has_a_limit() {
    // 192.0.2.0/24 is set aside for documentation: packets to it lead nowhere, or are refused on the way.
    let mut quick = settings("http://192.0.2.1:9/v1");
    (quick.retries_max, quick.connect_timeout) = (0, Duration::from_millis(50));
    let text = ask(&Client::new(quick).unwrap()).await.failure();
    assert!(text.contains("no connection to http://192.0.2.1:9/v1/chat/completions"), "{text}");
}

#[tokio::test]
async fn an_error_in_mid_stream_is_told_in_the_servers_words() {
    let began = events(&[delta(json!({"content": "so "}))]);
    for error in [
        "data: {\"error\":{\"message\":\"out of memory\",\"code\":500}}\n\n",
        "data: {\"error\":\"out of memory\"}\n\n",
        "error: {\"code\":500,\"message\":\"out of memory\",\"type\":\"server_error\"}\n\n",
        "event: error\ndata: {\"object\":\"error\",\"message\":\"out of memory\"}\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\"\"},\"finish_reason\":\"error\"}],\"error\":{\"message\":\"out of memory\"}}\n\n",
        "data: {\"choices\":[{\"finish_reason\":\"error\",\"error\":{\"message\":\"out of memory\"}}]}\n\ndata: [DONE]\n\n",
    ] {
        let mock = Mock::start(vec![stream(&(began.clone() + error)), says("well")]).await;
        let outcome = ask(&mock.client()).await;
        assert_eq!(
            outcome.progress,
            ["accepted", "text so ", "void", "retry 1/2 server error (out of memory)", "text well"],
            "{error}"
        );
        assert_eq!(outcome.reply().text, "well");
    }
}

#[tokio::test]
async fn a_lasting_error_in_mid_stream_is_not_tried_again() {
    let mock = Mock::start(vec![
        stream("data: {\"error\":{\"message\":\"prompt too long\",\"code\":400}}\n\n"),
        says("never"),
    ])
    .await;
    let text = ask(&mock.client()).await.failure();
    assert!(text.contains("prompt too long") && text.contains(&mock.base), "{text}");
    assert_eq!(mock.requests().len(), 1);
    let lacking = chunks(&[delta(json!({"content": "a"})), finish("insufficient_system_resource")]);
    assert_eq!(answered(lacking).await.progress[2], "void");
}

#[tokio::test]
async fn what_is_no_answer_is_named() {
    for (script, named) in [
        (
            vec![head("text/html"), send("<!doctype html><html><head><title>Sign in</title></head></html>")],
            "answered with HTML, not with a model's reply (Sign in)",
        ),
        (vec![head("text/event-stream"), send("\n<html></html>")], "answered with HTML, not"),
        (
            vec![head("text/plain"), send("Ollama is running")],
            "answered with plain text, not with a model's reply (Ollama is running)",
        ),
        (
            vec![head("application/json"), send("{\"status\": \"ok\"}")],
            "answered with JSON that is no reply, not with a model's reply ({\"status\": \"ok\"})",
        ),
        (vec![head("application/json"), send("{\"status")], "answered with plain text, not"),
        (
            vec![status(302, "location: https://elsewhere.example/v1\r\n", "")],
            "redirects to https://elsewhere.example/v1",
        ),
    ] {
        let mock = Mock::start(vec![script, says("never")]).await;
        let text = ask(&mock.client()).await.failure();
        assert!(text.contains(named) && text.contains(&mock.base) && text.contains("OPENAI_BASE_URL"), "{text}");
        assert_eq!(mock.requests().len(), 1);
    }
    let error = vec![head("application/json"), send("{\"error\": {\"message\": \"try later\"}}")];
    let mock = Mock::start(vec![error, says("later")]).await;
    assert_eq!(ask(&mock.client()).await.reply().text, "later");
}

#[tokio::test]
async fn a_stream_without_a_reply_is_tried_again() {
    for script in [
        stream(""),
        stream(": ping\n\n"),
        stream("data: [DONE]\n\n"),
        vec![send("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")],
        vec![send("HTTP/1.1 204 No Content\r\n\r\n")],
    ] {
        let mock = Mock::start(vec![script, says("now")]).await;
        let outcome = ask(&mock.client()).await;
        assert_eq!(outcome.progress, ["retry 1/2 the reply was cut off", "accepted", "text now"]);
    }
}

#[tokio::test]
async fn a_torn_piece_is_not_skipped() {
    let torn = events(&[delta(json!({"content": "a"}))])
        + "data: {\"choices\":[{\"del\n\n"
        + &events(&[delta(json!({"content": "c"})), finish("stop")]);
    let mock = Mock::start(vec![stream(&torn), says("abc")]).await;
    assert_eq!(ask(&mock.client()).await.reply().text, "abc");
}

#[tokio::test]
async fn a_filter_that_leaves_nothing_is_told() {
    let text = answered(chunks(&[delta(json!({"content": ""})), finish("content_filter")])).await.failure();
    assert!(text.contains("content filter"), "{text}");
    let some = answered(chunks(&[delta(json!({"content": "I can't"})), finish("content_filter")])).await;
    assert_eq!(some.reply().text, "I can't");
}

#[tokio::test]
async fn i12_no_text_ever_holds_the_key() {
    let key = "sk-proj-abcdefghijklmnop";
    let echo = format!("{{\"error\":{{\"message\":\"Bearer {key} {}{key}\",\"code\":\"{key}\"}}}}", "x".repeat(250));
    let page = format!("<html><title>{key}</title></html>");
    let told = format!("data: {{\"error\":{{\"message\":\"{key}\",\"{key}\":\"{key}\"}}}}\n\n");
    let scripts: Vec<Vec<Step>> = vec![
        vec![status(401, "", &echo)],
        vec![status(500, "", &echo)],
        vec![status(302, &format!("location: https://x/{key}\r\n"), "")],
        vec![status(403, "", key)],
        vec![head("text/html"), send(&page)],
        vec![head("text/plain"), send(key)],
        vec![head("application/json"), send(&format!("{{\"a\":\"{key}\"}}"))],
        stream(&told),
        stream(&format!("data: {{\"{key}\n\n")),
    ];
    for script in scripts {
        let mock = Mock::start(vec![script.clone(), script]).await;
        let mut with_key = settings(&mock.base);
        (with_key.api_key, with_key.retries_max) = (Some(Secret::new(key)), 1);
        let client = Client::new(with_key).unwrap();
        let outcome = ask(&client).await;
        let shown = format!("{client:?} {:?} {:?}", outcome.progress, outcome.result);
        assert!(!shown.contains("abcdefg"), "{shown}");
    }
}
