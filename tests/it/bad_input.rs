//! What is wrong outside gets one clear message, and nothing is lost.

use crate::harness::{Bench, last_text, user_texts, wait_for};

const PLAIN: &str = "[fallback]\n\"*\" = \"好\"\n";

#[test]
fn no_key_and_no_server_is_one_line_with_three_ways() {
    let bench = Bench::new(PLAIN);
    let output = bench
        .command(&["-p", "hi"])
        .env_remove("OPENAI_API_KEY")
        .env_remove("OPENAI_BASE_URL")
        .output()
        .expect("the program runs");
    let text = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text.lines().count(), 1, "{text}");
    for way in ["OPENAI_API_KEY", "OPENAI_BASE_URL", "s15 demo"] {
        assert!(text.contains(way), "{text}");
    }
    assert!(bench.requests().is_empty());
}

#[test]
fn i8_a_refusal_names_the_url_and_what_to_do_and_loses_no_line() {
    for (status, body, words) in [
        (401, r#"{"error":{"message":"bad key"}}"#, ["401", "bad key", "OPENAI_API_KEY"]),
        (404, r#"{"error":{"message":"no such model","code":"model_not_found"}}"#, ["404", "no such model", "--model"]),
        (400, r#"{"error":"odd request"}"#, ["400", "odd request", "scripted"]),
        (404, "<html><title>Not here</title></html>", ["404", "Not here", "OPENAI_BASE_URL"]),
    ] {
        let scenario =
            format!("{PLAIN}[[rule]]\nagent = \"lead\"\ntimes = 1\nstatus = {status}\nbody = '''{body}'''\n");
        let bench = Bench::new(&scenario);
        let run = bench.run(&[], "first\nsecond\n");
        for word in words.iter().chain(&["/v1/chat/completions"]) {
            assert!(run.stdout.contains(word), "{status}: {word} in {}", run.stdout);
        }
        let requests = bench.requests();
        assert_eq!(requests.len(), 2, "{status} is not tried again");
        assert_eq!(user_texts(&requests[1]), ["first", "second"], "nothing typed is lost");
        assert_eq!(run.code, Some(0), "the session lived on");
    }
}

#[test]
fn a_busy_server_is_tried_again_and_the_call_keeps_its_number() {
    for (status, body) in [(429, "slow down"), (500, "boom"), (503, "")] {
        let scenario = format!("{PLAIN}[[rule]]\nagent = \"lead\"\ntimes = 2\nstatus = {status}\nbody = \"{body}\"\n");
        let bench = Bench::new(&scenario).env("S15_RETRY_BASE_MS", "1");
        let run = bench.run(&["-p", "hi"], "");
        assert_eq!((run.code, run.stdout.as_str()), (Some(0), "好\n"), "{run:?}");
        let requests = bench.requests();
        let attempts: Vec<Option<&str>> =
            requests.iter().map(|request| request.headers.get("x-s15-attempt").map(String::as_str)).collect();
        assert_eq!(attempts, [None, Some("1"), Some("2")]);
        assert!(requests.iter().all(|request| request.call == 1));
        assert!(run.stderr.contains("[retry] lead:"), "{}", run.stderr);
    }
}

#[test]
fn i11_a_server_that_stays_silent_is_given_up_with_a_reason() {
    let scenario = format!("{PLAIN}[[rule]]\nagent = \"lead\"\ntimes = 1\ndelay_ms = 60000\ntext = \"late\"\n");
    let bench = Bench::new(&scenario).env("S15_FIRST_BYTE_TIMEOUT", "1").env("S15_RETRY_BASE_MS", "1");
    let run = bench.run(&["-p", "hi"], "");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stderr.contains("no answer within 1 s"), "{}", run.stderr);
}

#[test]
fn a_server_that_is_not_there_is_said_with_its_address() {
    let bench = Bench::new(PLAIN).env("S15_RETRIES_MAX", "1").env("S15_RETRY_BASE_MS", "1");
    let run = bench.run(&["-p", "hi", "--base-url", "http://127.0.0.1:9/v1"], "");
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.contains("http://127.0.0.1:9/v1/chat/completions"), "{}", run.stderr);
}

#[test]
fn garbage_where_an_answer_belongs_is_said_and_not_taken() {
    let scenario = format!(
        "{PLAIN}[[rule]]\nagent = \"lead\"\ntimes = 1\nstatus = 200\nheaders = {{ content-type = \"text/html\" }}\nbody = \"<html><title>Log in</title></html>\"\n"
    );
    let bench = Bench::new(&scenario);
    let run = bench.run(&[], "first\nsecond\n");
    assert!(run.stdout.contains("Log in") && run.stdout.contains("OPENAI_BASE_URL"), "{}", run.stdout);
    assert_eq!(user_texts(&bench.requests()[1]), ["first", "second"]);
}

#[test]
fn i12_the_key_is_nowhere() {
    let scenario = format!(
        "{PLAIN}[[rule]]\nagent = \"lead\"\ntimes = 1\ncalls = [{{ tool = \"bash\", arguments = {{ command = \"env; cat /proc/self/environ\" }} }}]\n[[rule]]\nagent = \"lead\"\nafter_result = \"bash\"\nstatus = 401\nbody = \"key sk-leak-7777-1234 is wrong\"\n"
    );
    let bench = Bench::new(&scenario).env("OPENAI_API_KEY", "sk-leak-7777-1234").env("MY_TOKEN", "tok-8888");
    let run = bench.run(&["-p", "hi", "--output-format", "stream-json"], "");
    let seen = format!("{}{}", run.stdout, run.stderr);
    assert!(!seen.contains("sk-leak-7777") && !seen.contains("tok-8888"), "{seen}");
    for request in bench.requests() {
        assert!(!request.body.to_string().contains("sk-leak-7777"));
    }
    assert!(bench.requests()[1].body.to_string().contains("PATH="), "the rest of the environment is there");
}

#[test]
fn a_second_run_in_a_workspace_is_told_who_and_since_when() {
    let bench = Bench::new(PLAIN);
    let mut first = bench
        .command(&[])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("the program starts");
    let pid = first.id().to_string();
    wait_for("the lock", || {
        let folders = std::fs::read_dir(bench.state()).ok()?.flatten();
        folders
            .map(|folder| std::fs::read_to_string(folder.path().join("lock")).unwrap_or_default())
            .find(|text| text.contains(&pid))
    });
    let refused = bench.run(&["-p", "hi"], "");
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains(&pid) && refused.stderr.contains("since"), "{}", refused.stderr);
    first.kill().expect("it can be killed");
    first.wait().expect("it ends");
    assert_eq!(bench.run(&["-p", "hi"], "").code, Some(0), "the lock died with its holder");
}

#[test]
fn i1_two_runs_with_different_state_folders_do_not_share_mailboxes() {
    let bench = Bench::new(PLAIN).file(".mailboxes/.locks/x", "");
    let mut first = bench.command(&[]).stdin(std::process::Stdio::piped()).spawn().expect("the program starts");
    let lock = bench.path(".mailboxes/.locks/run.lock");
    wait_for("its hold", || lock.exists().then_some(()));
    wait_for("its lock", || {
        let held = std::fs::File::options().write(true).open(&lock).ok()?;
        held.try_lock().is_err().then_some(())
    });
    let other = bench.path("../home/other-state");
    let output = bench.command(&["-p", "hi"]).env("S15_STATE_DIR", other).output().expect("the program runs");
    let text = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("another s15 reads these mailboxes"), "{text}");
    first.kill().expect("it can be killed");
    first.wait().expect("it ends");
}

#[test]
fn i8_a_bad_mailbox_line_is_set_aside_and_the_rest_delivered() {
    let long = format!("{{\"content\":\"{}\"}}", "x".repeat(256 * 1024 + 1));
    let bench = Bench::new(PLAIN).file(
        ".mailboxes/lead.jsonl",
        &format!("{{\"from\":\"job\", oops\n\n[1]\n{long}\n{{\"from\":\"job\",\"content\":\"AFTER\"}}\n"),
    );
    let run = bench.run(&["-p", "hi"], "");
    assert_eq!(run.code, Some(0), "{run:?}");
    let request = bench
        .requests_of("lead")
        .into_iter()
        .find(|request| user_texts(request).iter().any(|text| text.contains("[message] job (outside mail): AFTER")));
    assert!(
        request.is_some(),
        "the good line arrived: {:?}",
        bench.requests().iter().map(last_text).collect::<Vec<_>>()
    );
    assert!(run.stderr.contains("3 lines of lead.jsonl set aside"), "{}", run.stderr);
    let kept = bench.read(".mailboxes/.quarantine/lead.jsonl").expect("the bad lines are kept");
    assert!(kept.contains("oops") && kept.lines().count() == 3 && kept.contains("put the text into a file"));
}

#[test]
fn usage_errors_exit_with_2() {
    let bench = Bench::new(PLAIN);
    for wrong in [&["--nonsense"][..], &["-C", "/nonexistent", "-p", "hi"], &["-p", "  "]] {
        let run = bench.run(wrong, "");
        assert_eq!(run.code, Some(2), "{wrong:?}: {run:?}");
        assert!(!run.stderr.contains("panicked"));
    }
}
