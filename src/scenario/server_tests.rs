//! The server over a real socket: streams, whole replies, faults, kept connections.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;

async fn served(scenario: &str, options: ServeOptions) -> Running {
    serve(Scenario::parse(scenario).unwrap(), options).await.unwrap()
}

async fn connect(running: &Running) -> TcpStream {
    let url = running.url();
    let address = url.strip_prefix("http://").unwrap().strip_suffix("/v1").unwrap();
    TcpStream::connect(address).await.unwrap()
}

fn post(more: &str, body: &str) -> String {
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-S15-Agent: lead\r\nX-S15-Session: s\r\n\
         X-S15-Call: 1\r\n{more}\r\n{body}"
    )
}

fn body(text: &str) -> String {
    let messages = json!([{"role": "system", "content": "s"}, {"role": "user", "content": text}]);
    json!({"model": "m", "stream": true, "messages": messages}).to_string()
}

fn sized(body: &str) -> String {
    post(&format!("Content-Length: {}\r\n", body.len()), body)
}

/// Sends a request on a connection of its own; everything up to the connection's end.
async fn ask(running: &Running, body: &str) -> String {
    let request = post(&format!("Connection: close\r\nContent-Length: {}\r\n", body.len()), body);
    exchange(running, &request).await
}

async fn exchange(running: &Running, request: &str) -> String {
    let mut stream = connect(running).await;
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

fn events(answer: &str) -> Vec<Value> {
    let data = answer.lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).unwrap()).collect()
}

fn joined(events: &[Value], pointer: &str) -> String {
    events.iter().filter_map(|event| event.pointer(pointer)?.as_str()).collect()
}

const ECHO: &str = "[[rule]]\nagent = \"lead\"\nchunk = 3\ntext = \"you said: ${line}\"\n\
    calls = [{ tool = \"bash\", arguments = { command = \"echo 你好\" } }]";

#[tokio::test]
async fn a_stream_is_well_formed_to_its_end() {
    let running = served(ECHO, ServeOptions::default()).await;
    let answer = ask(&running, &body("hello")).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"), "{answer}");
    assert!(answer.ends_with("data: [DONE]\n\n\r\n0\r\n\r\n"), "{answer}");
    let events = events(&answer);
    assert_eq!(joined(&events, "/choices/0/delta/content"), "you said: hello");
    assert!(events.iter().filter(|event| event.pointer("/choices/0/delta/content").is_some()).count() > 3);
    let arguments = joined(&events, "/choices/0/delta/tool_calls/0/function/arguments");
    assert_eq!(arguments, r#"{"command":"echo 你好"}"#);
    assert_eq!(joined(&events, "/choices/0/delta/tool_calls/0/id"), "call_lead_1_0");
    assert_eq!(joined(&events, "/choices/0/finish_reason"), "tool_calls");
    let usage = &events.last().unwrap()["usage"];
    assert!(usage["prompt_tokens"].as_u64().unwrap() > 10, "{usage}");
    assert_eq!(running.faults(), Vec::<String>::new());
}

#[tokio::test]
async fn a_connection_is_kept_and_chunked_bodies_are_read() {
    let running = served(ECHO, ServeOptions::default()).await;
    let mut stream = connect(&running).await;
    let whole = body("one");
    let (first, second) = whole.split_at(20);
    let chunked = format!("{:x}\r\n{first}\r\n{:x};ext=1\r\n{second}\r\n0\r\n\r\n", first.len(), second.len());
    let requests = post("Transfer-Encoding: chunked\r\n", &chunked) + &sized(&whole);
    stream.write_all(requests.as_bytes()).await.unwrap();
    let models = "GET /v1/models HTTP/1.1\r\nConnection: close\r\n\r\n";
    stream.write_all(models.as_bytes()).await.unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).await.unwrap();
    assert_eq!(answers.matches("data: [DONE]").count(), 2);
    assert!(answers.ends_with('}') && answers.contains("\"scripted\""), "{answers}");
    assert_eq!(running.faults(), Vec::<String>::new());
    let requests = running.requests();
    assert_eq!([requests[0].n, requests[1].n], [1, 2]);
    assert_eq!(requests[0].raw_len, whole.len());
    assert_eq!(requests[0].headers["x-s15-agent"], "lead");
    assert_eq!(requests[1].body["messages"][1]["content"], "one");
    assert!(requests.iter().all(|request| request.answered.is_some_and(|at| at >= request.at)));
}

#[tokio::test]
async fn a_malformed_request_gets_400_with_its_fault() {
    let running = served(ECHO, ServeOptions::default()).await;
    let answer = ask(&running, &body(" ")).await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert!(answer.contains("an empty user message"), "{answer}");
    let answer = ask(&running, "nonsense").await;
    assert!(answer.contains("no JSON"), "{answer}");
    let bare = "POST /v1/chat/completions HTTP/1.1\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}";
    assert!(exchange(&running, bare).await.contains("x-s15-agent is missing"));
    let faults = running.faults();
    assert!(faults[0].starts_with("lead request 1: message 1: an empty user message"), "{faults:?}");
}

#[tokio::test]
async fn a_changed_prefix_is_a_fault_until_a_compaction() {
    let running = served(ECHO, ServeOptions::default()).await;
    assert!(ask(&running, &body("one")).await.contains("200 OK"));
    assert!(ask(&running, &body("two")).await.contains("the prefix changed"));
    let two = body("three");
    let compact =
        post(&format!("X-S15-Purpose: compact\r\nConnection: close\r\nContent-Length: {}\r\n", two.len()), &two);
    assert!(exchange(&running, &compact).await.contains("200 OK"));
    assert!(ask(&running, &body("four")).await.contains("200 OK"));
    assert_eq!(running.faults().len(), 1);
}

#[tokio::test]
async fn faults_are_sent_as_the_rule_says() {
    let running = served(
        "[[rule]]\nagent = \"lead\"\nn = 1\nstatus = 429\nheaders = { retry-after = \"0\" }\nbody = 'slow down'\n\
         [[rule]]\nagent = \"lead\"\nn = 2\ntext = \"a text that is cut\"\nchunk = 1\ncut = true\n\
         [[rule]]\nagent = \"lead\"\ncalls = [{ tool = \"bash\", raw_arguments = \"{\", id = \"same\" }]",
        ServeOptions::default(),
    )
    .await;
    let answer = ask(&running, &body("x")).await;
    assert!(answer.starts_with("HTTP/1.1 429 Too Many Requests\r\n") && answer.contains("retry-after: 0"));
    assert!(answer.ends_with("slow down"));
    let answer = ask(&running, &body("x")).await;
    assert!(answer.contains("data: ") && !answer.contains("[DONE]"), "{answer}");
    let events = events(&ask(&running, &body("x")).await);
    assert_eq!(joined(&events, "/choices/0/delta/tool_calls/0/function/arguments"), "{");
    assert_eq!(joined(&events, "/choices/0/delta/tool_calls/0/id"), "same");
}

#[tokio::test]
async fn a_lenient_server_answers_whole_and_only_notes_faults() {
    let options = ServeOptions { strict: false, record: false, ..ServeOptions::default() };
    let running = served(ECHO, options).await;
    let answer = ask(&running, &body("x").replace("\"stream\":true", "\"stream\":false")).await;
    let whole: Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!(whole["choices"][0]["message"]["content"], "you said: x");
    assert_eq!(whole["choices"][0]["message"]["tool_calls"][0]["function"]["name"], "bash");
    assert_eq!(running.faults(), ["lead request 1: `stream` is not true"]);
    assert_eq!(running.requests()[0].body, Value::Null);
}

#[tokio::test]
async fn other_paths_are_told_and_rubbish_closes_the_connection() {
    let running = served(ECHO, ServeOptions::default()).await;
    let answer = exchange(&running, "GET /v2 HTTP/1.1\r\nConnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 404") && answer.contains("no such path"), "{answer}");
    assert_eq!(exchange(&running, "rubbish\r\n\r\n").await, "");
    assert_eq!(running.requests().len(), 0);
}

#[tokio::test]
async fn what_no_rule_takes_is_listed_and_gets_the_fallback() {
    let running = served("[fallback]\nlead = \"I am a script.\"", ServeOptions::default()).await;
    let answer = ask(&running, &body("what?")).await;
    assert_eq!(joined(&events(&answer), "/choices/0/delta/content"), "I am a script.");
    assert_eq!(running.unmatched(), ["lead request 1: what?"]);
}

#[tokio::test]
async fn delays_depend_on_seed_agent_and_number_alone() {
    let delays = |seed: u64| -> Vec<Duration> {
        let options = ServeOptions { seed, delay_max: Duration::from_millis(50), ..ServeOptions::default() };
        let clerk = Clerk::new(Scenario::parse(ECHO).unwrap(), options);
        ["lead", "auth"]
            .iter()
            .flat_map(|agent| (1..20).map(|n| clerk.random_delay(agent, n)).collect::<Vec<_>>())
            .collect()
    };
    assert_eq!(delays(1), delays(1));
    assert_ne!(delays(1), delays(2));
    assert!(delays(3).iter().all(|delay| *delay <= Duration::from_millis(50)));
    assert!(delays(3).iter().any(|delay| *delay > Duration::from_millis(25)));
}

#[tokio::test]
async fn dropping_it_stops_it() {
    let running = served(ECHO, ServeOptions::default()).await;
    let mut stream = connect(&running).await;
    stream.write_all(sized(&body("x")).as_bytes()).await.unwrap();
    let mut first = [0; 1];
    stream.read_exact(&mut first).await.unwrap();
    drop(running);
    let mut rest = Vec::new();
    // Ends, whether as a close or as a reset.
    let _ = stream.read_to_end(&mut rest).await;
}
