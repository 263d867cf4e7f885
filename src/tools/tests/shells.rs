//! `bash`: order, ends, limits, and that nothing outlives a command.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use super::super::shell::Shell;
use super::super::{BashArgs, Output, Stop};
use super::Bench;

/// A command that notes its own number in `pid` and stays until it is ended.
const STAYS: &str = "echo $BASHPID > pid.part; mv pid.part pid; sleep 1000 & wait";

#[tokio::test]
async fn output_comes_in_order_with_the_command_s_end() {
    let bench = Bench::new();
    for (command, ok, text) in [
        ("echo a; echo b >&2; echo c; echo d >&2", true, "a\nb\nc\nd\nexit code: 0"),
        ("true", true, "(no output)\nexit code: 0"),
        ("", true, "(no output)\nexit code: 0"),
        ("exit 7", false, "(no output)\nexit code: 7"),
        ("no-such-command-here 2>/dev/null", false, "(no output)\nexit code: 127"),
        ("kill -9 $$", false, "(no output)\nended by signal 9 SIGKILL"),
        ("printf no-newline", true, "no-newline\nexit code: 0"),
        ("read -r x; echo \"got:[$x]\"; cat | wc -c", true, "got:[]\n0\nexit code: 0"),
        ("exec >&- 2>&-; exit 3", false, "(no output)\nexit code: 3"),
        (
            "printf 'A\\xff\\xfeB\\0C\\xe6\\xb1 D\\n'; printf 'err\\xf0\\n' >&2",
            true,
            "A\\xff\\xfeB\\x00C\\xe6\\xb1 D\nerr\\xf0\nexit code: 0",
        ),
        ("echo $PAGER $GIT_PAGER $TERM $GIT_TERMINAL_PROMPT", true, "cat cat dumb 0\nexit code: 0"),
        ("test -n \"$PATH\" && test -n \"$HOME\" && pwd -P | sed 's|.*/||'", true, "ws\nexit code: 0"),
    ] {
        let output = bench.run("bash", json!({"command": command})).await;
        assert_eq!((output.ok, output.text.as_str()), (ok, text), "{command}");
    }
}

#[tokio::test]
async fn what_cannot_be_started_is_said_with_what_to_do() {
    let bench = Bench::new();
    let call = |command: &str| BashArgs { command: command.to_owned(), timeout: None, run_in_background: None };
    let never = || -> Stop<'static> { Box::pin(std::future::pending()) };
    let shell = |program: &str| {
        Shell::new(&bench.path(""), bench.outside("out"), Duration::from_secs(60)).with_program(program)
    };
    let missing = shell("no-such-bash").run(&call("true"), None, never()).await;
    assert_eq!(
        missing.text,
        "error: no-such-bash was not found in PATH, or may not be run; ask the user to install it"
    );
    let long = bench.run("bash", json!({"command": format!(": {}", "x".repeat(300_000))})).await;
    assert!(
        long.text.starts_with("error: the command is too long (300002 bytes); write it to a file"),
        "{}",
        long.text
    );
    let zero = bench.run("bash", json!({"command": "echo a\0b"})).await;
    assert_eq!(zero.text, "error: the command has a zero byte; leave it out");
    std::fs::remove_dir(bench.path("")).unwrap();
    let gone = bench.run("bash", json!({"command": "true"})).await;
    assert!(gone.text.starts_with("error: the workspace ") && gone.text.contains("is gone"), "{}", gone.text);
}

#[tokio::test]
async fn where_a_command_began_is_said_when_it_went_elsewhere() {
    let bench = Bench::new();
    let root = bench.path("").canonicalize().unwrap();
    let said = format!("\nIt began in {}, and so does the next command: a cd doesn't last.", root.display());
    for (command, moves) in [
        ("cd / && pwd", true),
        ("(cd /; pwd)", true),
        ("true;cd /\npwd", true),
        ("pwd", false),
        ("echo cdrom abcd", false),
    ] {
        let output = bench.run("bash", json!({"command": command})).await;
        assert_eq!(output.text.ends_with(&said), moves, "{command}: {}", output.text);
    }
    assert_eq!(bench.run("bash", json!({"command": "pwd -P"})).await.text, format!("{}\nexit code: 0", root.display()));
}

#[tokio::test]
async fn i9_a_background_process_holds_nothing_and_ends_with_its_command() {
    let bench = Bench::new();
    for command in [
        "sleep 1000 & echo $! > pid; echo started",
        "(sleep 1000; touch late) & echo $! > pid; echo started",
        "sleep 1000 >/dev/null 2>&1 & echo $! > pid; echo started",
        "nohup sleep 1000 >/dev/null 2>&1 & echo $! > pid; disown; echo started",
        "(trap '' TERM HUP; sleep 1000) & echo $! > pid; echo started",
        "set -m; sleep 1000 & echo $! > pid; echo started",
        "setsid bash -c 'echo $$ > pid.part; mv pid.part pid; exec sleep 1000' & until test -e pid; do sleep 0.01; done; echo started",
    ] {
        if command.starts_with("setsid") && !Path::new("/usr/bin/setsid").exists() {
            continue;
        }
        let _ = std::fs::remove_file(bench.path("pid"));
        let output = bench.run("bash", json!({"command": command})).await;
        let (said, left) =
            output.text.split_once("\nexit code: 0\n").unwrap_or_else(|| panic!("{command}: {}", output.text));
        assert!(output.ok && said == "started", "{command}: {}", output.text);
        assert!(left.starts_with("A background process was ended with the command: "), "{command}: {left}");
        wait_gone(&bench.path("pid")).await;
        assert!(!bench.path("late").exists());
    }
    let nothing_left = bench.run("bash", json!({"command": "sleep 0 & wait; echo done"})).await;
    assert_eq!(nothing_left.text, "done\nexit code: 0");
}

#[tokio::test]
async fn i11_a_command_has_a_time_limit() {
    let bench = Bench::new();
    let commands = [STAYS, "kill -STOP $$", "exec yes > /dev/null", "yes", "exec >&- 2>&-; sleep 1000"];
    let runs = commands.map(|command| bench.run("bash", json!({"command": command, "timeout": "1"})));
    for (command, output) in commands.iter().zip(futures_util::future::join_all(runs).await) {
        assert!(!output.ok, "{command}");
        let text = output.text.as_str();
        assert!(text.starts_with("error: timed out after 1 s; the command and"), "{command}: {text}");
        assert!(text.contains(" Its output:\n") && text.len() < 40_000, "{command}: {}", text.len());
    }
    if bench.path("pid").exists() {
        wait_gone(&bench.path("pid")).await;
    }
}

#[tokio::test]
async fn i9_the_whole_group_ends_whatever_it_does_about_it() {
    for (command, said) in [
        ("sleep 1000 & echo $! > pid; echo; touch ready; wait", ""),
        ("trap '' TERM; (trap '' TERM; sleep 1000) & echo $! > pid; touch ready; wait; sleep 1000", ""),
        ("echo $$ > pid; touch ready; kill -STOP $$", ""),
        ("echo $$ > pid; touch ready; exec yes > /dev/null", ""),
        ("trap 'echo cleaned; exit 0' TERM; echo $$ > pid; touch ready; while :; do sleep 0.05; done", "cleaned"),
    ] {
        let bench = Bench::new();
        let ready = bench.path("ready");
        let stop: Stop<'_> = Box::pin(async {
            wait_there(&ready).await;
            "enough"
        });
        let output = bench.run_until("bash", json!({"command": command}), stop).await;
        assert!(output.text.starts_with("error: interrupted: enough; ") && output.text.ends_with(said), "{command}");
        wait_gone(&bench.path("pid")).await;
    }
}

#[tokio::test]
async fn i11_a_command_can_be_broken_off_and_keeps_what_it_said() {
    let bench = Bench::new();
    let pid = bench.path("pid");
    let stop: Stop<'_> = Box::pin(async {
        wait_there(&pid).await;
        "the gate closed"
    });
    let output = bench.run_until("bash", json!({"command": format!("echo said; {STAYS}")}), stop).await;
    assert!(!output.ok);
    let expected = "error: interrupted: the gate closed; the command and what it started were ended. Its output:\nsaid";
    assert_eq!(output.text, expected);
    wait_gone(&pid).await;
}

#[tokio::test]
async fn i3_a_call_that_must_stop_before_it_began_does_nothing() {
    let bench = Bench::new().file("a.txt", "before");
    for (tool, arguments) in [
        ("bash", json!({"command": "touch made"})),
        ("write_file", json!({"path": "a.txt", "content": "after"})),
        ("edit_file", json!({"path": "a.txt", "old_text": "before", "new_text": "after"})),
        ("grep", json!({"pattern": "before"})),
    ] {
        let output = bench.run_until(tool, arguments, Box::pin(std::future::ready("the gate closed"))).await;
        assert_eq!(output, Output::error("interrupted: the gate closed; nothing was done"));
    }
    assert_eq!((bench.read("a.txt"), bench.names()), (b"before".to_vec(), vec!["a.txt".to_owned()]));
}

#[tokio::test]
async fn i9_a_dropped_call_takes_its_processes_with_it() {
    let bench = Bench::new();
    let pid = bench.path("pid");
    tokio::select! {
        output = bench.run("bash", json!({"command": STAYS})) => panic!("{}", output.text),
        () = wait_there(&pid) => {}
    }
    wait_gone(&pid).await;
}

#[tokio::test]
async fn i8_ten_million_lines_are_bounded_and_kept() {
    let bench = Bench::new();
    let output = bench.run("bash", json!({"command": "yes | head -n 10000000"})).await;
    assert!(output.ok && output.text.len() < 40_000, "{}", output.text.len());
    assert!(output.text.starts_with("y\ny\n") && output.text.ends_with("y\nexit code: 0"));
    let kept = output.text.split_once("the whole is in ").and_then(|(_, rest)| rest.split_once(" …\n")).unwrap().0;
    assert_eq!(std::fs::metadata(kept).unwrap().len(), 20_000_000);
    let page = bench.run("read_file", json!({"path": kept, "offset": 10_000_000})).await;
    assert_eq!(page.text, "10000000\ty\n", "an agent can read on where the output was cut");
    assert!(!bench.run("write_file", json!({"path": kept, "content": "x"})).await.ok);
}

#[tokio::test]
async fn commands_run_side_by_side() {
    let bench = Bench::new();
    let commands: Vec<_> = (0..32)
        .map(|number| {
            let bench = &bench;
            async move {
                let command = format!("echo {number}; exit {number}");
                assert_eq!(
                    bench.run("bash", json!({"command": command})).await.text,
                    format!("{number}\nexit code: {number}")
                );
            }
        })
        .collect();
    futures_util::future::join_all(commands).await;
}

async fn wait_there(file: &Path) {
    wait_for(|| file.exists()).await;
}

async fn wait_gone(file: &Path) {
    let pid = std::fs::read_to_string(file).unwrap();
    let process = Path::new("/proc").join(pid.trim()).join("stat");
    // A killed process is there until its parent, or init, has taken its status.
    wait_for(|| std::fs::read_to_string(&process).map_or(true, |stat| stat.contains(") Z "))).await;
}

/// What never comes must not hang the tests.
async fn wait_for(come: impl Fn() -> bool) {
    let given_up = Instant::now() + Duration::from_secs(120);
    while !come() {
        assert!(Instant::now() < given_up, "waited in vain");
        tokio::task::yield_now().await;
    }
}
