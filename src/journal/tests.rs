//! The stream's order, what stands in which journal, what happens when nothing can be written, and the views.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::*;
use crate::event::{Event, Item, Level, Status};
use crate::protocol::{AgentName, Request, RequestStatus, RequestType};

fn alice() -> AgentName {
    AgentName::parse("alice").unwrap()
}

fn line(text: &str) -> Event {
    Event::UserLine { text: text.to_owned(), queued: false }
}

fn ended(agent: AgentName, result: &str) -> Event {
    Event::ToolEnded {
        agent,
        call_id: "c1".into(),
        tool: "bash".into(),
        ok: true,
        millis: 1,
        result: result.to_owned(),
    }
}

fn drain(items: &mut mpsc::UnboundedReceiver<Item>) -> Vec<Item> {
    std::iter::from_fn(|| items.try_recv().ok()).collect()
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.ends_with('\n'), "every line is whole");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_timestamp_is_rfc_3339_with_milliseconds() {
    let time = timestamp();
    assert_eq!((time.len(), &time[19..20], &time[23..]), (24, ".", "Z"), "{time}");
}

#[test]
fn every_subscriber_gets_all_items_in_order_without_gaps_from_many_threads() {
    let events = Events::new(Mask::default());
    let (first, mut items) = mpsc::unbounded_channel();
    events.subscribe(first);
    let (gone, receiver) = mpsc::unbounded_channel();
    events.subscribe(gone);
    drop(receiver);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                (0..250).for_each(|number| {
                    events.emit(line(&number.to_string()));
                });
            });
        }
    });
    let items = drain(&mut items);
    let seqs: Vec<u64> = items.iter().map(|item| item.seq).collect();
    assert_eq!(seqs, (1..=1000).collect::<Vec<_>>());
    assert!(items.is_sorted_by(|a, b| a.time <= b.time));
    assert_eq!(events.emit(Event::AllShutDown), 1001);
}

#[test]
fn i12_the_key_is_hidden_in_every_part_of_every_event() {
    let key = "sk-leak-7777";
    let events = Events::new(Mask::new(Some(key)));
    let (sender, mut items) = mpsc::unbounded_channel();
    events.subscribe(sender);
    let root = tempfile::tempdir().unwrap();
    events.journal_to(Journal::new(root.path().join("s"), Uuid::now_v7()).unwrap(), 0);
    events.emit(ended(alice(), &format!("OPENAI_API_KEY={key}\nPATH=/bin")));
    let message = json!({ "content": key, "tool_calls": [{ "deep": { key: format!("x{key}x") } }] });
    events.emit(Event::Replied { agent: alice(), call: 1, message, usage: None });
    events.emit(line("nothing to hide"));
    events.close_journal();
    let items = drain(&mut items);
    assert_eq!(items.len(), 3);
    assert!(!serde_json::to_string(&items).unwrap().contains(key));
    assert_eq!(items[0].event, ended(alice(), "OPENAI_API_KEY=[key hidden]\nPATH=/bin"));
    assert_eq!(items[2].event, line("nothing to hide"));
    assert!(!fs::read_to_string(root.path().join("s/alice.jsonl")).unwrap().contains(key));
    assert_eq!(Mask::new(Some(key)).text("a sk-leak-7777!"), "a [key hidden]!");
}

#[test]
fn a_placeholder_key_hides_no_ordinary_words() {
    let events = Events::new(Mask::new(Some("none")));
    let (sender, mut items) = mpsc::unbounded_channel();
    events.subscribe(sender);
    events.emit(line("none of it"));
    assert_eq!(drain(&mut items)[0].event, line("none of it"));
}

#[test]
fn agents_have_their_own_journals_and_the_session_is_in_the_leads() {
    let root = tempfile::tempdir().unwrap();
    let folder = session_folder(root.path(), Uuid::nil());
    let events = Events::new(Mask::default());
    events.journal_to(Journal::new(folder.clone(), Uuid::nil()).unwrap(), 0);
    assert!(!folder.exists(), "nothing on disk before it's needed");
    events.emit(line("你好"));
    events.emit(Event::Text { agent: AgentName::lead(), line: "streaming".into() });
    events.emit(Event::Teammate { name: alice(), status: Status::Working, reason: String::new() });
    events.emit(ended(AgentName::parse("Alice").unwrap(), "ok"));
    events.emit(ended(AgentName::lead(), "ok"));
    events.close_journal();

    let lead = lines(&folder.join("lead.jsonl"));
    assert_eq!(lead[0]["journal"], 2);
    assert_eq!(lead[0]["session"], Uuid::nil().to_string());
    assert_eq!((&lead[0]["agent"], lead[0]["created"].as_str().unwrap().len()), (&json!("lead"), 24));
    let seqs: Vec<_> = lead[1..].iter().map(|line| line["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, [1, 3, 5]);
    let item: Item = serde_json::from_value(lead[1].clone()).unwrap();
    assert_eq!(item.event, line("你好"));
    let own = lines(&folder.join("alice.jsonl"));
    assert_eq!((own.len(), &own[1]["seq"]), (2, &json!(4)));
}

#[test]
fn a_journal_that_exists_is_continued_without_a_second_header() {
    let root = tempfile::tempdir().unwrap();
    for text in ["one", "two"] {
        let events = Events::new(Mask::default());
        events.journal_to(Journal::new(root.path().to_owned(), Uuid::nil()).unwrap(), 0);
        events.emit(line(text));
        events.close_journal();
    }
    let lead = lines(&root.path().join("lead.jsonl"));
    let headers = lead.iter().filter(|line| line.get("journal").is_some()).count();
    assert_eq!((lead.len(), headers), (3, 1));
}

#[test]
fn a_journal_that_cannot_be_written_warns_once_and_catches_up_when_it_can() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("s");
    fs::write(&folder, "in the way").unwrap();
    let events = Events::new(Mask::default());
    let (sender, mut items) = mpsc::unbounded_channel();
    events.subscribe(sender);
    events.journal_to(Journal::new(folder.clone(), Uuid::nil()).unwrap(), 0);
    events.emit(line("one"));
    let warning = loop {
        if let Event::Notice { level: Level::Warning, text } = items.blocking_recv().unwrap().event {
            break text;
        }
    };
    for part in [folder.to_str().unwrap(), "can't be resumed", "S15_STATE_DIR"] {
        assert!(warning.contains(part), "{part:?} is not in: {warning}");
    }
    events.emit(line("two"));
    fs::remove_file(&folder).unwrap();
    assert!(!events.all_recorded());
    events.record(&[]);
    assert!(events.all_recorded(), "it needs nothing new to catch up");
    events.emit(line("three"));
    events.close_journal();
    let notices = drain(&mut items).iter().filter(|item| matches!(item.event, Event::Notice { .. })).count();
    assert_eq!(notices, 0, "told once");
    let texts: Vec<_> =
        lines(&folder.join("lead.jsonl")).iter().filter_map(|line| line["text"].as_str().map(str::to_owned)).collect();
    assert_eq!(texts.len(), 4);
    assert_eq!((texts[0].as_str(), texts[2].as_str(), texts[3].as_str()), ("one", "two", "three"));
}

#[test]
fn a_closed_journal_is_left_alone_by_later_events() {
    let root = tempfile::tempdir().unwrap();
    let events = Events::new(Mask::default());
    events.journal_to(Journal::new(root.path().to_owned(), Uuid::nil()).unwrap(), 0);
    events.emit(line("in"));
    events.close_journal();
    events.emit(line("out"));
    events.emit(line("out"));
    assert_eq!(lines(&root.path().join("lead.jsonl")).len(), 2);
}

fn entry(name: &str) -> RosterEntry {
    RosterEntry {
        name: AgentName::parse(name).unwrap(),
        role: "整理配置".into(),
        status: Status::Working,
        model: "m".into(),
        require_plan: true,
    }
}

fn request() -> Request {
    Request {
        id: Uuid::now_v7(),
        kind: RequestType::Plan,
        from: alice(),
        to: AgentName::lead(),
        status: RequestStatus::Pending,
        payload: "the plan".into(),
        feedback: None,
        work: 1,
        created: timestamp(),
        resolved: None,
    }
}

#[test]
fn views_appear_when_they_are_written_and_not_before() {
    let root = tempfile::tempdir().unwrap();
    let team = root.path().join(".team");
    let views = Views::new(root.path());
    assert!(!team.exists());
    assert_eq!(views.write_roster(Uuid::nil(), &[entry("alice"), entry("bob")]), None);
    assert!(!team.join("requests").exists());
    let read = |path: &Path| serde_json::from_str::<Value>(&fs::read_to_string(path).unwrap()).unwrap();
    let roster = read(&team.join("config.json"));
    assert_eq!(roster["session"], Uuid::nil().to_string());
    let alice = json!({ "name": "alice", "role": "整理配置", "status": "working", "model": "m", "require_plan": true });
    assert_eq!(roster["members"][0], alice);

    let mut request = request();
    assert_eq!(views.write_request(&request), None);
    request.status = RequestStatus::Approved;
    request.resolved = Some(timestamp());
    assert_eq!(views.write_request(&request), None);
    let view = read(&team.join(format!("requests/{}.json", request.id)));
    assert_eq!(
        (&view["type"], &view["status"], &view["payload"]),
        (&json!("plan"), &json!("approved"), &json!("the plan"))
    );
    assert_eq!(fs::read_dir(team.join("requests")).unwrap().count(), 1, "nothing is left over");
    assert_eq!(fs::read_to_string(team.join(".gitignore")).unwrap(), "*\n");

    fs::remove_dir_all(&team).unwrap();
    assert_eq!(views.write_request(&request), None);
    assert!(team.join(".gitignore").exists());
}

#[test]
fn views_that_cannot_be_written_are_told_once() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join(".team"), "in the way").unwrap();
    let views = Views::new(root.path());
    let text = views.write_roster(Uuid::nil(), &[]).unwrap();
    assert!(text.contains(".team") && text.contains("works on"), "{text}");
    assert_eq!(views.write_request(&request()), None);
    assert_eq!(fs::read_to_string(root.path().join(".team")).unwrap(), "in the way");
}

#[cfg(unix)]
#[test]
fn i9_a_link_in_the_workspace_leads_no_view_out_of_it() {
    let root = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    let views = Views::new(root.path());
    std::os::unix::fs::symlink(outside.path(), root.path().join(".team")).unwrap();
    assert!(views.write_roster(Uuid::nil(), &[]).is_some());
    fs::remove_file(root.path().join(".team")).unwrap();
    assert_eq!(views.write_roster(Uuid::nil(), &[]), None);
    std::os::unix::fs::symlink(outside.path(), root.path().join(".team/requests")).unwrap();
    assert_eq!(views.write_request(&request()), None, "told already");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[cfg(unix)]
#[test]
fn journals_and_views_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let root = tempfile::tempdir().unwrap();
    let events = Events::new(Mask::default());
    events.journal_to(Journal::new(root.path().join("s"), Uuid::nil()).unwrap(), 0);
    events.emit(line("x"));
    events.close_journal();
    let views = Views::new(root.path());
    assert_eq!((views.write_roster(Uuid::nil(), &[]), views.write_request(&request())), (None, None));
    let mode = |path: &str| fs::metadata(root.path().join(path)).unwrap().permissions().mode() & 0o777;
    for (path, expected) in [
        ("s", 0o700),
        ("s/lead.jsonl", 0o600),
        (".team", 0o700),
        (".team/requests", 0o700),
        (".team/config.json", 0o600),
    ] {
        assert_eq!(mode(path), expected, "{path}");
    }
}
