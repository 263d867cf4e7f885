//! The client against a real server: whichever `OPENAI_BASE_URL`, `OPENAI_MODEL` and `OPENAI_API_KEY` name. Run with `--ignored`.
//!
//! Knows nothing of what the model is able to: what is tested is the conversation with the server.

use std::env::var;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::model::mock::settings;
use crate::model::{Ask, AskError, Client, History, Progress, Purpose, Reply, Secret};
use crate::protocol::AgentName;

/// One tool, as any server takes it.
fn tools() -> Value {
    json!([{"type": "function", "function": {
        "name": "read_file",
        "description": "Reads a file.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    }}])
}

fn client() -> Client {
    let mut real = settings(&var("OPENAI_BASE_URL").expect("OPENAI_BASE_URL names a server"));
    real.api_key = var("OPENAI_API_KEY").ok().map(|key| Secret::new(&key));
    (real.first_byte_timeout, real.idle_timeout) = (Duration::from_secs(180), Duration::from_secs(60));
    Client::new(real).unwrap()
}

async fn ask(
    model: &str,
    history: &History,
    tools: &Value,
    progress: &mut (dyn FnMut(Progress<'_>) + Send),
    cancel: &CancellationToken,
) -> Result<Reply, AskError> {
    let agent = AgentName::lead();
    let ask = Ask { agent: &agent, call: 1, purpose: Purpose::Probe, model, history, tools };
    client().ask(&ask, progress, cancel).await
}

#[tokio::test]
#[ignore = "needs a real server: OPENAI_BASE_URL=… OPENAI_MODEL=… cargo test --lib real -- --ignored"]
async fn a_real_server_takes_back_what_it_said() {
    let model = var("OPENAI_MODEL").expect("OPENAI_MODEL names a model");
    let mut history = History::new("You are a helpful assistant. Use the tool read_file to read files.");
    let mut shown = String::new();
    for line in ["Read the file notes.txt and tell me what it says.", "Now say hello."] {
        history.push_user(line);
        for _ in 0..3 {
            let mut progress = |step: Progress<'_>| {
                if let Progress::Text(text) = step {
                    shown.push_str(text);
                }
            };
            let reply = ask(&model, &history, &tools(), &mut progress, &CancellationToken::new()).await.unwrap();
            assert!(reply.usage.is_some_and(|usage| usage.input_tokens > 0), "the server tells of tokens");
            history.push_reply(&reply);
            for slot in &reply.calls {
                history.push_result(
                    &slot.id,
                    slot.arguments.as_ref().map_or_else(String::as_str, |_| "The notes say: buy milk."),
                );
            }
            if reply.calls.is_empty() {
                break;
            }
        }
    }
    assert!(!shown.is_empty());
}

#[tokio::test]
#[ignore = "needs a real server: OPENAI_BASE_URL=… OPENAI_MODEL=… cargo test --lib real -- --ignored"]
async fn a_real_server_s_stream_can_be_cancelled() {
    let model = var("OPENAI_MODEL").expect("OPENAI_MODEL names a model");
    let mut history = History::new("You are a helpful assistant.");
    history.push_user("Count from 1 to 500, one number a line.");
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let mut progress = move |step: Progress<'_>| {
        if matches!(step, Progress::Text(_)) {
            stop.cancel();
        }
    };
    let result = ask(&model, &history, &json!([]), &mut progress, &cancel).await;
    assert!(matches!(result, Err(AskError::Cancelled { ref partial }) if !partial.is_empty()), "{result:?}");
}

#[tokio::test]
#[ignore = "needs a real server: OPENAI_BASE_URL=… OPENAI_MODEL=… cargo test --lib real -- --ignored"]
async fn a_real_server_s_refusal_is_told_in_its_own_words() {
    let model = var("OPENAI_MODEL").expect("OPENAI_MODEL names a model");
    let mut history = History::new("s");
    history.push_user(&"word ".repeat(400_000));
    let result = ask(&model, &history, &tools(), &mut |_| {}, &CancellationToken::new()).await;
    let Err(AskError::Failed { text, status }) = result else { panic!("{result:?}") };
    assert!(status.is_some_and(|status| (400..500).contains(&status)) && text.contains("/chat/completions"), "{text}");
}
