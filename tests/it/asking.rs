//! The runtime's own question, at the session's own door: what is on screen at Enter is set here exactly.

use std::sync::Arc;
use std::time::Duration;

use s15::event::{Event, Item};
use s15::journal::{Events, Mask, Views};
use s15::mail::Post;
use s15::model::{Client, ClientSettings};
use s15::scenario::{Scenario, ServeOptions, serve};
use s15::session::{Means, Session, Settings, Source, UserInput};
use s15::tools::Workshop;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use uuid::Uuid;

use crate::harness::PATIENCE;

const TWO_PROPOSALS: &str = r#"
[fallback]
"*" = "ok"
[[rule]]
agent = "lead"
user = "team"
n = 1
calls = [{ tool = "propose_team", arguments = { members = [{ name = "alice", role = "r", prompt = "p" }], reason = "r" } }]
[[rule]]
agent = "lead"
n = 2
calls = [{ tool = "bash", arguments = { command = "until [ -e go ]; do sleep 0.01; done" } }]
[[rule]]
agent = "lead"
n = 3
calls = [{ tool = "propose_team", arguments = { members = [{ name = "mallory", role = "r", prompt = "p" }], reason = "r" } }]
"#;

async fn until(items: &mut UnboundedReceiver<Item>, holds: impl Fn(&Event) -> bool) -> Item {
    let look = async {
        loop {
            let item = items.recv().await.expect("the session goes on");
            if holds(&item.event) {
                return item;
            }
        }
    };
    tokio::time::timeout(PATIENCE, look).await.expect("it comes")
}

#[tokio::test]
async fn i2_a_yes_to_a_question_about_one_team_never_confirms_another() {
    let server = serve(Scenario::parse(TWO_PROPOSALS).unwrap(), ServeOptions::default()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let id = Uuid::now_v7();
    let second = Duration::from_secs(5);
    let client = Client::new(ClientSettings {
        base_url: server.url(),
        api_key: None,
        session: id,
        retries_max: 0,
        retry_base: second,
        retry_wait_max: second,
        connect_timeout: second,
        first_byte_timeout: PATIENCE,
        idle_timeout: PATIENCE,
    })
    .unwrap();
    let events = Events::new(Mask::new(None));
    let (told, mut items) = unbounded_channel();
    events.subscribe(told);
    let (say, user) = unbounded_channel();
    let settings = Settings {
        job_timeout: std::time::Duration::from_secs(60),
        id,
        workspace: folder.path().to_owned(),
        out_dir: folder.path().join("out"),
        journals: None,
        model: "m".to_owned(),
        teammate_model: "m".to_owned(),
        teammates_max: 8,
        turn_calls_max: 20,
        request_timeout: PATIENCE,
        yes: false,
        source: Source::Terminal,
        surroundings: String::new(),
    };
    let means = Means {
        client,
        post: Post::new(folder.path(), id),
        workshop: Arc::new(Workshop::new(folder.path(), folder.path().join("out"), PATIENCE).unwrap()),
        events,
        views: Views::new(folder.path()),
        user,
        next_line: Box::new(|| {}),
    };
    let session = tokio::spawn(Session::run(settings, means, None));
    let line = |text: &str, seen: u64| drop(say.send(UserInput::Line { text: text.to_owned(), seen }));

    line("team", 0);
    let shown = until(&mut items, |event| matches!(event, Event::Proposed { .. })).await.seq;
    until(&mut items, |event| matches!(event, Event::TurnEnded { .. })).await;
    line("wait a moment", shown);
    until(&mut items, |event| matches!(event, Event::ToolStarted { tool, .. } if tool == "bash")).await;
    line("yes", shown);
    let asked = until(&mut items, |event| matches!(event, Event::Question { .. })).await.seq;
    std::fs::write(folder.path().join("go"), "").unwrap();
    until(&mut items, |event| matches!(event, Event::Proposed { .. })).await;
    // Enter was pressed with the question about alice on screen, before mallory's table stood there.
    line("y", asked);
    let heard = until(&mut items, |event| {
        matches!(event, Event::Confirmed { .. }) || matches!(event, Event::UserLine { text, .. } if text == "y")
    })
    .await;
    assert!(matches!(heard.event, Event::UserLine { .. }), "{heard:?}");
    say.send(UserInput::Leave).unwrap();
    assert_eq!(tokio::time::timeout(PATIENCE, session).await.unwrap().unwrap(), 0);
}
