//! What needs a process of its own: a limit on files, a key in the environment. Each test runs itself again as a child.

use std::process::Command;

use serde_json::json;

use super::Bench;

/// Tells the child that it is one.
const CHILD: &str = "TOOLS_TEST_CHILD";

fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// Runs one test of this binary again, after what `before` says to the shell.
fn again(test: &str, before: &str) {
    let program = std::env::current_exe().unwrap();
    let output = Command::new("bash")
        .arg("-c")
        .arg(format!("{before}; exec \"$0\" --exact tools::tests::limited::{test} --nocapture"))
        .arg(program)
        .env(CHILD, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test]
async fn i10_a_write_that_fails_half_way_leaves_what_was_there() {
    if !is_child() {
        // One block: what is longer fails after a part was written.
        return again("i10_a_write_that_fails_half_way_leaves_what_was_there", "trap '' XFSZ; ulimit -f 1");
    }
    let bench = Bench::new().file("a.txt", "before\n");
    let long = "x".repeat(100_000);
    for (tool, arguments) in [
        ("write_file", json!({"path": "a.txt", "content": long})),
        ("edit_file", json!({"path": "a.txt", "old_text": "before", "new_text": long})),
        ("write_file", json!({"path": "new.txt", "content": long})),
    ] {
        let output = bench.run(tool, arguments).await;
        assert!(!output.ok && output.text.contains("can't be written: File too large"), "{}", output.text);
    }
    assert_eq!((bench.read("a.txt"), bench.names()), (b"before\n".to_vec(), vec!["a.txt".to_owned()]));
    let output = bench.run("bash", json!({"command": "yes | head -n 100000"})).await;
    assert!(output.ok && output.text.contains("the whole could not be kept (File too large"), "{}", output.text.len());
}

#[tokio::test]
async fn i12_no_key_reaches_a_command() {
    if !is_child() {
        let keys = "export OPENAI_API_KEY=sk-leak-7777 MY_MODEL=sk-leak-7777 GH_TOKEN=leak-2 Aws_Secret_Key=leak-3 \
                    DB_PASSWORD=leak-4 S15_BASE_URL=leak-5 PLAIN=kept";
        return again("i12_no_key_reaches_a_command", keys);
    }
    let bench = Bench::new();
    let output = bench.run("bash", json!({"command": "env; cat /proc/self/environ | tr '\\0' '\\n'; set"})).await;
    assert!(output.ok && !output.text.contains("leak"), "{}", output.text);
    for kept in ["PLAIN=kept", "PATH=", "HOME=", "TERM=dumb"] {
        assert!(output.text.contains(&format!("\n{kept}")), "{kept}: {}", output.text);
    }
}
