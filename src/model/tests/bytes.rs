//! The stream as bytes: line ends, comments, pieces cut anywhere, ends that are none.
//!
//! Knows nothing of what the calls in it are for.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::model::mock::{
    Mock, Outcome, Step, answered, ask, ask_with, delta, events, finish, head, says, send, settings, stream,
};
use crate::model::{AskError, Client, History};

const FIELDS: &str = ": loading\r\n\r\n:\r\n\r\nevent: message\r\nid: 3\r\nretry: 500\r\ndata:{\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"你好🌍\"}}]}\r\n\r\n\
    data: {\"choices\":[],\"usage\":{}}\r\n\r\n: ping\r\n\
    data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"k\",\"function\":{\"name\":\"write_file\",\"arguments\":\"{\\\"path\\\":\\\"再见\\\"}\"}}]}}]}\r\n\r\n\
    data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\r\n\r\ndata: {\"choices\":[],\"cost\":\"0\"}\r\n\r\ndata: [DONE]\r\n\r\n";

fn assert_fields(outcome: Outcome) {
    let reply = outcome.reply();
    assert_eq!(reply.text, "你好🌍");
    assert_eq!(reply.calls.len(), 1);
    assert_eq!(reply.calls[0].arguments.as_ref().unwrap()["path"], "再见");
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

#[tokio::test]
async fn comments_fields_and_line_ends_mean_nothing() {
    for text in [FIELDS.to_owned(), FIELDS.replace("\r\n", "\n"), format!("\u{feff}{FIELDS}"), format!("\n\n{FIELDS}")]
    {
        assert_fields(answered(stream(&text)).await);
    }
    let pinged = events(&[delta(json!({"content": "a"}))]) + "data: ping\n\ndata:\n\n" + &events(&[finish("stop")]);
    assert_eq!(answered(stream(&pinged)).await.reply().text, "a");
}

#[test]
fn a_stream_cut_at_any_byte_is_the_same_stream() {
    run(async {
        let bytes = FIELDS.as_bytes();
        let scripts = (0..bytes.len()).map(|at| {
            vec![head("text/event-stream"), Step::Send(bytes[..at].to_vec()), Step::Send(bytes[at..].to_vec())]
        });
        let mock = Mock::start(scripts.collect()).await;
        let client = mock.client();
        for _ in 0..bytes.len() {
            assert_fields(ask(&client).await);
        }
        assert_eq!(mock.requests().len(), bytes.len());
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_stream_in_any_pieces_is_the_same_stream(sizes in prop::collection::vec(1_usize..40, 1..60), chunked in any::<bool>()) {
        let mut script = Vec::new();
        let mut rest = FIELDS.as_bytes();
        let mut sizes = sizes.into_iter().cycle();
        while !rest.is_empty() {
            let (piece, more) = rest.split_at(sizes.next().unwrap().min(rest.len()));
            rest = more;
            let mut bytes = piece.to_vec();
            if chunked {
                bytes = [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
            }
            script.push(Step::Send(bytes));
        }
        if chunked {
            script.insert(0, send("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"));
            script.push(send("0\r\n\r\n"));
        } else {
            script.insert(0, head("text/event-stream"));
        }
        assert_fields(run(answered(script)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn i8_no_bytes_stop_the_reader(
        lines in prop::collection::vec(prop_oneof![
            any::<Vec<u8>>(),
            "(data|event|id|retry|error|:)?:? ?[\\PC\r\n]{0,12}".prop_map(String::into_bytes),
            Just(b"\xEF\xBB\xBF".to_vec()),
            Just(b"data: {\"choices\":[]}\n\n".to_vec()),
        ], 1..8),
        size in 1_usize..64,
    ) {
        // `x` keeps it from being taken for JSON or a page.
        let bytes: Vec<u8> = b"x\n".iter().copied().chain(lines.concat()).collect();
        let script: Vec<Step> = [head("text/event-stream")].into_iter().chain(bytes.chunks(size).map(|piece| Step::Send(piece.to_vec()))).collect();
        run(async {
            let mut once = settings("");
            once.retries_max = 0;
            let mock = Mock::start(vec![script]).await;
            once.base_url.clone_from(&mock.base);
            let text = format!("{:?}", ask(&Client::new(once).unwrap()).await.result);
            assert!(!text.contains("its reader stopped") && !text.contains("UTF8"), "{text}");
        });
    }
}

#[tokio::test]
async fn bytes_that_are_no_text_harm_only_themselves() {
    for at in [0, 1, 2] {
        let mut bytes = b"data: {\"choices\":[{\"delta\":{\"content\":\"a\xFF\xE4\xBDb\"}}]}\n\ndata: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\n".to_vec();
        let rest = bytes.split_off(42 + at);
        let outcome = answered(vec![head("text/event-stream"), Step::Send(bytes), Step::Send(rest)]).await;
        assert_eq!(outcome.reply().text, "a\u{fffd}\u{fffd}b");
    }
    let halves = events(&[delta(json!({"content": "x"})), finish("stop")]).replace("\"x\"", "\"a\\ud83c\"");
    assert_eq!(answered(stream(&halves)).await.reply().text, "a\u{fffd}");
}

#[test]
fn an_answer_that_ends_anywhere_before_its_end_is_asked_for_again() {
    run(async {
        let call = json!({"index": 0, "id": "t", "function": {"name": "write_file", "arguments": "{\"path\":\"a\"}"}});
        let text = events(&[delta(json!({"content": "wait"})), delta(json!({"tool_calls": [call]}))]);
        // Also where the arguments happen to be whole: nothing said that the reply was over.
        for at in (0..text.len()).step_by(7).chain([text.len()]) {
            let mock = Mock::start(vec![stream(&text[..at]), says("again")]).await;
            let outcome = ask(&mock.client()).await;
            let shown_before = outcome.progress.iter().position(|step| step.starts_with("text wait"));
            let void = outcome.progress.iter().position(|step| step == "void");
            assert_eq!(shown_before.is_some(), void.is_some(), "cut at {at}: {:?}", outcome.progress);
            assert_eq!(outcome.progress.iter().filter(|step| *step == "accepted").count(), 1);
            let reply = outcome.reply();
            assert_eq!((reply.text.as_str(), reply.calls.len()), ("again", 0), "cut at {at}");
            assert_eq!(mock.requests()[1].header("x-s15-attempt"), Some("1"));
        }
    });
}

#[tokio::test]
async fn a_connection_that_breaks_is_a_cut() {
    let broken = vec![send(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9999\r\n\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n",
    )];
    let mock = Mock::start(vec![broken.clone(), broken.clone(), broken]).await;
    let outcome = ask(&mock.client()).await;
    assert_eq!(
        outcome.progress,
        [
            "accepted",
            "text a",
            "void",
            "retry 1/2 the reply was cut off",
            "text a",
            "void",
            "retry 2/2 the reply was cut off",
            "text a",
            "void"
        ]
    );
    let text = outcome.failure();
    assert!(text.contains(&mock.base) && text.contains("cut off") && text.contains("tried 3 times"), "{text}");
}

#[tokio::test]
async fn a_last_event_without_its_blank_line_counts() {
    let text = events(&[delta(json!({"content": "a"})), finish("stop")]);
    assert_eq!(answered(stream(text.trim_end())).await.reply().text, "a");
}

#[tokio::test]
async fn what_follows_the_end_is_not_waited_for() {
    let mut quick = settings("");
    quick.idle_timeout = Duration::from_millis(50);
    let mut script = stream(&events(&[delta(json!({"content": "a"})), finish("stop")]));
    script.push(Step::Hang);
    let mock = Mock::start(vec![script]).await;
    quick.base_url.clone_from(&mock.base);
    assert_eq!(ask(&Client::new(quick).unwrap()).await.reply().text, "a");
    mock.closed().await;
}

#[tokio::test]
async fn the_two_silences_have_limits_and_names_of_their_own() {
    let mut quick = settings("");
    quick.retries_max = 1;
    (quick.first_byte_timeout, quick.idle_timeout) = (Duration::from_millis(60), Duration::from_millis(60));
    for (script, cause) in [
        (vec![Step::Hang], "no answer within 0.1 s"),
        (vec![head("text/event-stream"), Step::Hang], "no answer within 0.1 s"),
        (
            vec![head("text/event-stream"), send(&events(&[delta(json!({"content": "a"}))])), Step::Hang],
            "silent for 0.1 s",
        ),
        (vec![head("application/json"), send("{\"choices\""), Step::Hang], "silent for 0.1 s"),
    ] {
        let mock = Mock::start(vec![script, says("there")]).await;
        quick.base_url.clone_from(&mock.base);
        let outcome = ask(&Client::new(quick.clone()).unwrap()).await;
        assert!(outcome.progress.contains(&format!("retry 1/1 {cause}")), "{:?}", outcome.progress);
        assert_eq!(outcome.reply().text, "there");
        mock.closed().await;
    }
}

#[tokio::test]
async fn a_cancel_ends_every_wait_and_closes_the_connection() {
    let began = events(&[delta(json!({"content": "half a "})), delta(json!({"content": "sentence"}))]);
    for (script, partial) in [
        (vec![Step::Hang], ""),
        (vec![head("text/event-stream"), Step::Hang], ""),
        (vec![head("text/event-stream"), send(&began), Step::Hang], "half a sentence"),
    ] {
        let mock = Mock::start(vec![script]).await;
        let cancel = CancellationToken::new();
        let (client, history, tools) = (mock.client(), History::new("s"), json!([]));
        let mut seen = String::new();
        let agent = crate::protocol::AgentName::lead();
        let asking = crate::model::Ask {
            agent: &agent,
            call: 1,
            purpose: crate::model::Purpose::Turn,
            model: "m",
            history: &history,
            tools: &tools,
        };
        let stop = cancel.clone();
        let mut progress = |step: crate::model::Progress<'_>| {
            if let crate::model::Progress::Text(text) = step {
                seen.push_str(text);
                if seen.ends_with("sentence") {
                    stop.cancel();
                }
            }
        };
        let ask = client.ask(&asking, &mut progress, &cancel);
        let arrived = async {
            while mock.requests().is_empty() {
                tokio::task::yield_now().await;
            }
            if partial.is_empty() {
                cancel.cancel();
            }
        };
        let (result, ()) = tokio::join!(ask, arrived);
        assert_eq!(result, Err(AskError::Cancelled { partial: partial.to_owned() }));
        mock.closed().await;
    }
}

#[tokio::test]
async fn a_cancel_ends_the_wait_for_a_retry() {
    let mut patient = settings("");
    (patient.retry_base, patient.retry_wait_max) = (Duration::from_secs(3600), Duration::from_secs(3600));
    let mock = Mock::start(vec![vec![crate::model::mock::status(429, "retry-after: 3600\r\n", "busy")]]).await;
    patient.base_url.clone_from(&mock.base);
    let client = Client::new(patient).unwrap();
    let cancel = CancellationToken::new();
    let (history, tools) = (History::new("s"), json!([]));
    let agent = crate::protocol::AgentName::lead();
    let asking = crate::model::Ask {
        agent: &agent,
        call: 1,
        purpose: crate::model::Purpose::Turn,
        model: "m",
        history: &history,
        tools: &tools,
    };
    let stop = cancel.clone();
    let mut progress = |step: crate::model::Progress<'_>| {
        if matches!(step, crate::model::Progress::Retry { .. }) {
            stop.cancel();
        }
    };
    assert!(matches!(client.ask(&asking, &mut progress, &cancel).await, Err(AskError::Cancelled { .. })));
    cancel.cancel();
    assert!(matches!(ask_with(&client, &history, &tools, &cancel).await.result, Err(AskError::Cancelled { .. })));
    assert_eq!(mock.requests().len(), 1, "a cancelled call asks nothing");
}

#[tokio::test]
async fn a_finished_stream_leaves_its_connection_for_the_next_call() {
    let body = events(&[delta(json!({"content": "a"})), finish("stop")]) + "data: [DONE]\n\n";
    let open = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let text = format!("{open}{:x}\r\n{body}\r\n", body.len());
    // The end of the body comes with its last event, or after the client has seen all it needs.
    for pieces in [vec![send(&(text.clone() + "0\r\n\r\n"))], vec![send(&text), send(""), send(""), send("0\r\n\r\n")]]
    {
        let kept = |last: Step| pieces.iter().cloned().chain([last]).collect::<Vec<_>>();
        let mock = Mock::start(vec![kept(Step::Again), kept(Step::Again), kept(Step::Hang)]).await;
        let client = mock.client();
        for _ in 0..3 {
            assert_eq!(ask(&client).await.reply().text, "a");
            // What is left of the body is read in the background.
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
        }
        assert_eq!((mock.requests().len(), mock.connections()), (3, 1));
    }
}
