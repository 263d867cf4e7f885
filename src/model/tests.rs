//! The client against exact bytes on a real socket: every dialect and every fault that is known.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::accumulate::Accumulator;
use super::*;

/// One scripted answer: pieces of bytes, each its own write.
#[derive(Clone)]
struct Answer {
    pieces: Vec<Vec<u8>>,
    hang: bool,
}

fn raw(head: &str, body: &str) -> Answer {
    Answer { pieces: vec![format!("HTTP/1.1 {head}\r\nConnection: close\r\n\r\n{body}").into_bytes()], hang: false }
}

fn stream(body: &str) -> Answer {
    raw("200 OK\r\nContent-Type: text/event-stream", body)
}

fn chunk(delta: &Value, finish: Option<&str>) -> String {
    format!("data: {}\n\n", json!({"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}))
}

/// A server that gives these answers in order, the last for ever; counts the requests and keeps the last one's text.
async fn serve(answers: Vec<Answer>) -> (String, Arc<AtomicUsize>, Arc<std::sync::Mutex<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (count, last) = (Arc::new(AtomicUsize::new(0)), Arc::new(std::sync::Mutex::new(String::new())));
    let (counted, kept) = (Arc::clone(&count), Arc::clone(&last));
    tokio::spawn(async move {
        loop {
            let Ok((mut socket, _)) = listener.accept().await else { return };
            let answer = answers[counted.fetch_add(1, Ordering::SeqCst).min(answers.len() - 1)].clone();
            let kept = Arc::clone(&kept);
            tokio::spawn(async move {
                let mut request = Vec::new();
                let mut buffer = [0; 4096];
                loop {
                    let count = socket.read(&mut buffer).await.unwrap_or(0);
                    request.extend_from_slice(&buffer[..count]);
                    let text = String::from_utf8_lossy(&request).into_owned();
                    let whole = text.split_once("\r\n\r\n").is_some_and(|(head, body)| {
                        let length = head.lines().find_map(|line| {
                            line.to_ascii_lowercase().strip_prefix("content-length: ").map(str::to_owned)
                        });
                        body.len() >= length.and_then(|length| length.parse().ok()).unwrap_or(0)
                    });
                    if whole || count == 0 {
                        *kept.lock().unwrap() = text;
                        break;
                    }
                }
                for piece in &answer.pieces {
                    socket.write_all(piece).await.ok();
                    socket.flush().await.ok();
                    tokio::task::yield_now().await;
                }
                if answer.hang {
                    std::future::pending::<()>().await;
                }
            });
        }
    });
    (url, count, last)
}

fn client(url: &str) -> Client {
    let settings = ClientSettings {
        base_url: url.to_owned(),
        api_key: Some(Secret::new(" sk-secret-1234\n").unwrap()),
        session: Uuid::nil(),
        retries_max: 2,
        retry_base: Duration::from_millis(1),
        retry_wait_max: Duration::from_millis(2),
        connect_timeout: Duration::from_secs(5),
        first_byte_timeout: Duration::from_millis(400),
        idle_timeout: Duration::from_millis(400),
    };
    Client::new(settings).unwrap()
}

#[derive(Debug, Default)]
struct Seen {
    text: String,
    accepted: usize,
    voids: usize,
    retries: usize,
}

async fn ask(client: &Client) -> (Result<Reply, AskError>, Seen) {
    let mut history = History::new("system");
    history.push_user("hi");
    let mut seen = Seen::default();
    let lead = AgentName::lead();
    let tools = json!([]);
    let asked = Ask { agent: &lead, call: 7, purpose: Purpose::Turn, model: "m", history: &history, tools: &tools };
    let mut progress = |step: Progress<'_>| match step {
        Progress::Accepted => seen.accepted += 1,
        Progress::Text(text) => seen.text.push_str(text),
        Progress::Reasoning(_) => {}
        Progress::Void => {
            seen.voids += 1;
            seen.text.clear();
        }
        Progress::Retry { .. } => seen.retries += 1,
    };
    let answer = client.ask(&asked, &mut progress, &CancellationToken::new()).await;
    (answer, seen)
}

async fn answered(answers: Vec<Answer>) -> (Result<Reply, AskError>, Seen, usize) {
    let (url, count, _) = serve(answers).await;
    let (answer, seen) = ask(&client(&url)).await;
    (answer, seen, count.load(Ordering::SeqCst))
}

fn call(delta: &Value) -> String {
    chunk(&json!({"tool_calls": [delta]}), None)
}

fn names_and_arguments(reply: &Reply) -> Vec<(String, Value)> {
    reply
        .calls
        .iter()
        .map(|slot| (slot.name.clone(), slot.arguments.clone().map_or(Value::Null, Value::Object)))
        .collect()
}

#[tokio::test]
async fn calls_come_whole_out_of_every_dialect() {
    let end = chunk(&json!({}), Some("tool_calls"));
    let a = json!({"path": "a"});
    let b = json!({"path": "b"});
    let two = vec![("read_file".to_owned(), a.clone()), ("read_file".to_owned(), b.clone())];
    let one = vec![("read_file".to_owned(), a.clone())];
    let f = |arguments: Value| json!({"name": "read_file", "arguments": arguments});
    let cases = [
        // No index at all.
        (
            call(&json!({"id": "1", "function": f(a.to_string().into())}))
                + &call(&json!({"id": "2", "function": f(b.to_string().into())})),
            two.clone(),
        ),
        // One index for both.
        (
            call(&json!({"index": 0, "id": "1", "function": f(a.to_string().into())}))
                + &call(&json!({"index": 0, "id": "2", "function": f(b.to_string().into())})),
            two.clone(),
        ),
        // Id and name in every delta.
        (
            call(&json!({"index": 0, "id": "1", "function": f("{\"path\":".into())}))
                + &call(&json!({"index": 0, "id": "1", "function": f("\"a\"}".into())})),
            one.clone(),
        ),
        // Interleaved by index.
        (
            call(&json!({"index": 0, "id": "1", "function": f("{\"path\"".into())}))
                + &call(&json!({"index": 1, "id": "2", "function": f("{\"path\"".into())}))
                + &call(&json!({"index": 0, "function": {"arguments": ":\"a\"}"}}))
                + &call(&json!({"index": 1, "function": {"arguments": ":\"b\"}"}})),
            two.clone(),
        ),
        // No ids, arguments as an object.
        (call(&json!({"index": 0, "id": "", "function": f(a.clone())})), one.clone()),
        // No index and no id in what follows; `index: null`.
        (
            call(&json!({"index": null, "id": "1", "function": f("{\"path\":".into())}))
                + &call(&json!({"function": {"arguments": "\"a\"}"}})),
            one.clone(),
        ),
        // Encoded twice.
        (
            call(&json!({"index": 0, "id": "1", "function": f(Value::String(json!(a.to_string()).to_string()))})),
            one.clone(),
        ),
        // The same id twice in one message.
        (
            call(&json!({"index": 0, "id": "1", "function": f(a.to_string().into())}))
                + &call(&json!({"index": 1, "id": "1", "function": f(b.to_string().into())})),
            two.clone(),
        ),
    ];
    for (body, expected) in cases {
        for finish in [
            end.clone(),
            chunk(&json!({}), Some("stop")),
            chunk(&json!({}), Some("eos")),
            "data: [DONE]\n\n".to_owned(),
        ] {
            let (reply, ..) = answered(vec![stream(&(body.clone() + &finish))]).await;
            let reply = reply.unwrap_or_else(|error| panic!("{error:?} for {body}"));
            assert_eq!(names_and_arguments(&reply), expected, "{body}");
            let ids: std::collections::HashSet<_> = reply.calls.iter().map(|slot| &slot.id).collect();
            assert_eq!(ids.len(), reply.calls.len(), "I5: ids differ");
        }
    }
}

#[tokio::test]
async fn noise_in_a_stream_changes_nothing() {
    let body = ": warming up\r\n\r\n:\r\n\r\nevent: message\r\nid: 7\r\nretry: 1000\r\ndata:".to_owned()
        + &chunk(&json!({"role": "assistant", "content": "稍"}), None)[5..].replace('\n', "\r\n")
        + "data: {\"id\":\"\",\"choices\":[],\"usage\":{}}\r\n\r\n: ping\r\n"
        + &chunk(&json!({"content": null}), None)
        + &chunk(&json!({"content": [{"type": "text", "text": "等"}]}), Some(""))
        + &chunk(&json!({}), Some("stop"))
        + "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2}}\n\ndata: [DONE] \n\n";
    let (reply, seen, _) = answered(vec![stream(&body)]).await;
    let reply = reply.unwrap();
    assert_eq!((reply.text.as_str(), seen.text.as_str(), seen.accepted), ("稍等", "稍等", 1));
    assert_eq!(reply.usage.map(|usage| (usage.input_tokens, usage.output_tokens)), Some((5, 2)));
}

#[tokio::test]
async fn thoughts_are_kept_apart_and_given_back_where_calls_need_them() {
    let body =
        chunk(&json!({"content": "<thi"}), None) + &chunk(&json!({"content": "nk>hm</think>\nhi"}), Some("stop"));
    let (reply, seen, _) = answered(vec![stream(&body)]).await;
    assert_eq!((reply.unwrap().text.as_str(), seen.text.as_str()), ("hi", "hi"));
    let body = chunk(&json!({"reasoning_content": "hm"}), None)
        + &call(
            &json!({"index": 0, "id": "1", "extra_content": {"signature": "s"}, "function": {"name": "glob", "arguments": ""}}),
        )
        + &chunk(&json!({}), Some("tool_calls"));
    let (reply, ..) = answered(vec![stream(&body)]).await;
    let message = reply.unwrap().message;
    assert_eq!(message["reasoning_content"], "hm");
    assert_eq!(message["tool_calls"][0]["extra_content"]["signature"], "s");
    assert_eq!(message["tool_calls"][0]["function"]["arguments"], "{}");
}

#[tokio::test]
async fn i5_half_a_reply_is_no_reply() {
    let half = call(&json!({"index": 0, "id": "1", "function": {"name": "bash", "arguments": "{\"command\":\"rm "}}));
    let good = chunk(&json!({"content": "well"}), Some("stop"));
    let shown = chunk(&json!({"content": "half"}), None);
    for cut in [half, shown] {
        let (reply, seen, count) = answered(vec![stream(&cut), stream(&good)]).await;
        assert_eq!((reply.unwrap().text.as_str(), seen.text.as_str(), count, seen.retries), ("well", "well", 2, 1));
        assert_eq!(seen.accepted, 1, "accepted once a call");
    }
    let error = "data: {\"error\":{\"message\":\"overloaded\",\"code\":500}}\n\n";
    let (reply, _, count) = answered(vec![stream(error)]).await;
    let Err(AskError::Failed { text, .. }) = reply else { panic!("{reply:?}") };
    assert!(text.contains("overloaded") && count == 3, "{text}");
}

#[tokio::test]
async fn broken_arguments_stay_well_formed_and_are_said() {
    let end = chunk(&json!({}), Some("tool_calls"));
    for (arguments, word) in [
        ("{\"command\": \"echo \"hi\"\"", "not valid JSON"),
        ("[1]", "JSON object"),
        ("{\"command\": \"ls", "not valid JSON"),
    ] {
        let body = call(&json!({"index": 0, "id": "1", "function": {"name": "bash", "arguments": arguments}})) + &end;
        let (reply, ..) = answered(vec![stream(&body)]).await;
        let reply = reply.unwrap();
        assert!(reply.calls[0].arguments.as_ref().unwrap_err().contains(word), "{arguments}");
        assert_eq!(reply.message["tool_calls"][0]["function"]["arguments"], "{}");
    }
    let cut = call(&json!({"index": 0, "id": "1", "function": {"name": "bash", "arguments": "{\"command\": \"ls"}}))
        + &chunk(&json!({}), Some("length"));
    let (reply, ..) = answered(vec![stream(&cut)]).await;
    assert!(reply.unwrap().calls[0].arguments.as_ref().unwrap_err().contains("cut off"));
    let odd = call(&json!({"index": 0, "id": "1", "function": {"name": "a b", "arguments": "{}"}})) + &end;
    let (reply, ..) = answered(vec![stream(&odd)]).await;
    assert_eq!(reply.unwrap().message["tool_calls"][0]["function"]["name"], "unnamed_tool");
}

#[tokio::test]
async fn a_whole_answer_to_a_request_for_a_stream_is_taken_and_a_page_is_not() {
    let whole =
        json!({"choices": [{"message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}]}).to_string();
    let (reply, seen, _) = answered(vec![raw("200 OK\r\nContent-Type: application/json", &whole)]).await;
    assert_eq!((reply.unwrap().text.as_str(), seen.text.as_str()), ("hi", "hi"));
    for (head, body) in [
        ("200 OK\r\nContent-Type: text/html", "<title>Log in</title>"),
        ("200 OK\r\nContent-Type: application/json", "{\"status\":\"ok\"}"),
        ("200 OK\r\nContent-Type: text/plain", "hello"),
        ("200 OK\r\nContent-Type: text/event-stream", "data: hello\n\n"),
    ] {
        let (reply, _, count) = answered(vec![raw(head, body)]).await;
        let Err(AskError::Failed { text, .. }) = reply else { panic!("{body}: {reply:?}") };
        assert!(text.contains("/v1/chat/completions") && text.contains("OPENAI_BASE_URL") && count == 1, "{text}");
    }
}

#[tokio::test]
async fn refusals_are_told_in_the_servers_own_words_and_tried_again_only_where_that_can_help() {
    for (status, body, words, tries) in [
        (401, r#"{"error":{"message":"bad key sk-secret-1234","code":401}}"#, "bad key [key]", 1),
        (400, r#"{"error":"plain words"}"#, "plain words", 1),
        (404, r#"[{"error":{"message":"no model","code":"model_not_found"}}]"#, "no model", 1),
        (422, r#"{"detail":"unfit"}"#, "unfit", 1),
        (429, r#"{"error":{"message":"broke","code":"insufficient_quota"}}"#, "broke", 1),
        (429, "slow down", "slow down", 3),
        (500, "<html><title>Oops</title></html>", "Oops", 3),
        (529, "", "529", 3),
    ] {
        let (reply, _, count) = answered(vec![raw(&format!("{status} X\r\nContent-Type: text/plain"), body)]).await;
        let Err(AskError::Failed { text, status: told }) = reply else { panic!("{reply:?}") };
        assert!(text.contains(words) && told == Some(status) && count == tries, "{status}: {count} tries, {text}");
        assert!(!text.contains("sk-secret-1234"), "I12: {text}");
    }
}

#[tokio::test]
async fn i11_silence_has_a_limit_before_and_between_the_bytes() {
    let silent = Answer { pieces: vec![], hang: true };
    let (reply, ..) = answered(vec![silent]).await;
    let Err(AskError::Failed { text, .. }) = reply else { panic!("{reply:?}") };
    assert!(text.contains("no answer within 0.4 s"), "{text}");
    let mut stuck = stream(&chunk(&json!({"content": "half"}), None));
    stuck.hang = true;
    let (reply, ..) = answered(vec![stuck]).await;
    let Err(AskError::Failed { text, .. }) = reply else { panic!("{reply:?}") };
    assert!(text.contains("nothing came for 0.4 s"), "{text}");
}

#[tokio::test]
async fn a_call_can_be_broken_off_and_keeps_what_had_come() {
    let mut stuck = stream(&chunk(&json!({"content": "half"}), None));
    stuck.hang = true;
    let (url, ..) = serve(vec![stuck]).await;
    let client = client(&url);
    let (history, lead, tools, cancel) = (History::new("s"), AgentName::lead(), json!([]), CancellationToken::new());
    let asked = Ask { agent: &lead, call: 1, purpose: Purpose::Turn, model: "m", history: &history, tools: &tools };
    let when = cancel.clone();
    let mut progress = |step: Progress<'_>| {
        if let Progress::Text(_) = step {
            when.cancel();
        }
    };
    let answer = client.ask(&asked, &mut progress, &cancel).await;
    assert_eq!(answer.err(), Some(AskError::Cancelled { partial: "half".to_owned() }));
}

#[tokio::test]
async fn stream_options_are_dropped_and_remembered_once_refused() {
    let refusal =
        raw("400 X\r\nContent-Type: application/json", r#"{"error":{"message":"unknown field stream_options"}}"#);
    let (url, count, last) = serve(vec![refusal, stream(&chunk(&json!({"content": "hi"}), Some("stop")))]).await;
    let client = client(&url);
    assert!(ask(&client).await.0.is_ok());
    assert!(!last.lock().unwrap().contains("stream_options"));
    assert!(ask(&client).await.0.is_ok());
    assert_eq!(count.load(Ordering::SeqCst), 3, "the second call did not try again");
}

#[tokio::test]
async fn every_request_says_who_asks_and_holds_nothing_of_its_own() {
    let (url, _, last) = serve(vec![stream(&chunk(&json!({"content": "hi"}), Some("stop")))]).await;
    assert!(ask(&client(&format!("{url}/v1/"))).await.0.is_ok());
    let request = last.lock().unwrap().clone();
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /v1/chat/completions "), "{head}");
    for header in ["x-s15-agent: lead", "x-s15-call: 7", "x-s15-purpose: turn", "authorization: Bearer sk-secret-1234"]
    {
        assert!(head.contains(header), "{header} in {head}");
    }
    let body: Value = serde_json::from_str(body).unwrap();
    let keys: Vec<&String> = body.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["model", "messages", "stream", "stream_options"]);
    assert_eq!(body["stream"], true);
}

#[test]
fn a_url_that_is_none_and_a_key_that_is_none_are_refused() {
    let settings =
        |url: &str| ClientSettings { base_url: url.to_owned(), ..client("http://127.0.0.1:1").inner_settings() };
    for url in ["", "localhost:1", "ftp://x", "http://"] {
        assert!(Client::new(settings(url)).is_err(), "{url:?}");
    }
    assert!(Client::new(settings("https://example.org/v1")).is_ok());
    for key in ["", "a\nb", "ключ"] {
        assert!(Secret::new(key).is_err(), "{key:?}");
    }
    assert!(!format!("{:?}", Secret::new("sk-1").unwrap()).contains("sk-1"));
}

proptest! {
    /// However the bytes of a stream are cut, the reply is the same.
    #[test]
    fn cuts_between_any_bytes_change_nothing(cuts in proptest::collection::vec(0_usize..600, 0..12)) {
        let body = chunk(&json!({"content": "你好🌍再见"}), None)
            + &call(&json!({"index": 0, "id": "1", "function": {"name": "bash", "arguments": "{\"command\":\"回声\"}"}}))
            + &chunk(&json!({}), Some("tool_calls")) + "data: [DONE]\n\n";
        let bytes = format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n{body}").into_bytes();
        let mut places: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        places.extend([0, bytes.len()]);
        places.sort_unstable();
        let pieces = places.windows(2).map(|pair| bytes[pair[0]..pair[1]].to_vec()).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (reply, ..) = runtime.block_on(answered(vec![Answer { pieces, hang: false }]));
        let reply = reply.unwrap();
        prop_assert_eq!(reply.text.as_str(), "你好🌍再见");
        prop_assert_eq!(names_and_arguments(&reply), vec![("bash".to_owned(), json!({"command": "回声"}))]);
    }

    /// Whatever is pushed in whatever order, a strict server accepts the history, and its prefix never changes.
    #[test]
    fn i5_a_history_is_always_well_formed(steps in proptest::collection::vec((0_u8..5, 0_usize..4), 0..40)) {
        let mut history = History::new("system");
        let mut before: Vec<String> = Vec::new();
        for (kind, number) in steps {
            let open: Vec<String> = history.open_calls().to_vec();
            match kind {
                0 => history.push_user(["", "  ", "hi", "好"][number]),
                1 => {
                    let mut parts = Accumulator::default();
                    for index in 0..number {
                        parts.add(&json!({"choices": [{"delta": {"tool_calls": [{"index": index, "id": "same", "function": {"name": "bash", "arguments": "{"}}]}}]}));
                    }
                    history.push_reply(&Reply::build(parts));
                }
                2 => if let Some(id) = open.get(number) { history.push_result(id, "") },
                3 => history.push_result("nobody's", "x"),
                _ => history.push_cut_reply(["", "half", " ", "x"][number]),
            }
            let now: Vec<String> = history.messages().iter().map(Value::to_string).collect();
            prop_assert!(now.starts_with(&before), "the prefix is stable");
            before = now;
        }
        history.push_user("end");
        let mut waiting: Vec<String> = Vec::new();
        for message in history.messages() {
            if message["role"] == "tool" {
                let at = waiting.iter().position(|id| *id == message["tool_call_id"]);
                prop_assert!(at.is_some(), "no orphan");
                waiting.remove(at.unwrap());
                continue;
            }
            prop_assert!(waiting.is_empty(), "every call has its result right after it");
            prop_assert!(message["content"].as_str().is_none_or(|text| !text.trim().is_empty()), "no empty message");
            waiting = message["tool_calls"].as_array().into_iter().flatten().map(|call| call["id"].as_str().unwrap().to_owned()).collect();
        }
        prop_assert!(waiting.is_empty());
    }
}
