//! The fronts without a terminal: the test program runs itself again with pipes for its streams ([`child`]).
//!
//! Knows nothing of sessions.
#![allow(clippy::exit, reason = "a test process of its own ends itself")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Output, Stdio};

use super::{Front, OutputFormat, Typed, Ui, UiOptions};
use crate::event::{Event, Item, Level};

const FRONT: &str = "S15_TEST_UI_FRONT";

/// Runs the child with `input`; a reader of its output is there or not.
fn run(front: &str, input: &[u8], output_is_read: bool) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "ui::tests::child", "--nocapture", "--test-threads=1"]);
    command.env(FRONT, front).env("TERM", "xterm-256color");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    if !output_is_read {
        // The test program's own head comes before the first question; it wouldn't survive a closed output.
        let mut head = BufReader::new(child.stdout.take().unwrap());
        head.read_until(b']', &mut Vec::new()).unwrap();
    }
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn from_a_pipe_lines_come_one_by_one_after_what_was_sent_before() {
    let output = run("pipe", "一\r\n\n二\n".as_bytes(), true);
    let out = text(&output.stdout);
    let expected = "ask 1 [y/N]\nline \"一\" seen 1\nask 3 [y/N]\nline \"二\" seen 3\nask 5 [y/N]\neof\n";
    assert!(out.contains(expected), "{out}");
    assert!(!out.contains('\x1b') && output.stderr.is_empty(), "{output:?}");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn an_output_that_nobody_reads_is_no_fault() {
    let output = run("pipe", "一\n二\n".as_bytes(), false);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn headless_data_goes_to_the_output_and_all_else_to_the_error_stream() {
    let output = run("stream-json", b"", true);
    assert!(text(&output.stdout).contains("{\"seq\":1,\"time\":\"\",\"event\":\"question\""));
    assert!(output.stderr.is_empty());
    let output = run("text", b"", true);
    assert!(!text(&output.stdout).contains("ask 1"));
    assert_eq!(text(&output.stderr), "ask 1 [y/N]\n");
}

#[test]
fn child() {
    let Ok(front) = std::env::var(FRONT) else {
        return;
    };
    let front = match front.as_str() {
        "stream-json" => Front::Print(OutputFormat::StreamJson),
        "text" => Front::Print(OutputFormat::Text),
        _ => Front::Pipe,
    };
    let (typed, mut typed_rx) = tokio::sync::mpsc::unbounded_channel();
    let ui = Ui::start(front, UiOptions::default(), typed).unwrap();
    let items = ui.items();
    let mut seq = 0;
    let mut emit = |event: fn(u64, String) -> Event, text: String| {
        seq += 1;
        items.send(Item { seq, time: String::new(), event: event(seq, text) }).unwrap();
    };
    let question: fn(u64, String) -> Event = |seq, _| Event::Question { text: format!("ask {seq} [y/N]") };
    let notice: fn(u64, String) -> Event = |_, text| Event::Notice { level: Level::Info, text };
    loop {
        emit(question, String::new());
        if front != Front::Pipe {
            break;
        }
        ui.ready_for_line();
        match typed_rx.blocking_recv() {
            Some(Typed::Line { text, seen }) => emit(notice, format!("line {text:?} seen {seen}")),
            Some(Typed::Interrupt | Typed::Leave) => unreachable!("a pipe has no keys"),
            Some(Typed::Eof) | None => {
                emit(notice, "eof".to_owned());
                break;
            }
        }
    }
    ui.close();
    std::process::exit(0);
}
