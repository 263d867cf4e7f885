//! The demo is honest and ends well, whatever the order in which things happen.

use std::process::Command;

/// A run of the demo by itself; gives the exit code and what it printed.
fn demo(seed: u32, delay_millis: u32) -> (Option<i32>, String) {
    demo_in("auto", seed, delay_millis)
}

fn demo_in(sandbox: &str, seed: u32, delay_millis: u32) -> (Option<i32>, String) {
    let home = tempfile::tempdir().expect("a temporary folder");
    let output = Command::new(env!("CARGO_BIN_EXE_s15"))
        .args(["demo", "--script"])
        .current_dir(home.path())
        .env("S15_SANDBOX", sandbox)
        .env("S15_DEMO_SEED", seed.to_string())
        .env("S15_DEMO_DELAY_MS", delay_millis.to_string())
        .env("OPENAI_API_KEY", "sk-not-for-the-demo")
        .env("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
        .env_remove("RUST_BACKTRACE")
        .output()
        .expect("the program runs");
    (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

fn assert_whole_story(seed: u32, delay_millis: u32) {
    let (code, said) = demo(seed, delay_millis);
    assert_eq!(code, Some(0), "seed {seed}, delay {delay_millis}:\n{said}");
    assert!(said.starts_with("demo: the model's replies are scripted; everything else is real"), "{said}");
    for line in [
        "[team] proposal: 3 teammates (confirm: 开始吧 / yes)",
        "[teammate] config spawned",
        "[teammate] auth spawned",
        "[teammate] tests spawned",
        "[gate] auth: pending → rejected",
        "[gate] auth: pending → approved",
        "[bus] config → lead (result)",
        "[bus] auth → lead (result)",
        "[bus] tests → lead (result)",
        "[all teammates shut down]",
        "【总结】重构完成，最后一次 cargo test 全部通过",
    ] {
        assert_eq!(said.matches(line).count(), 1, "seed {seed}, delay {delay_millis}: {line} once in\n{said}");
    }
    assert!(!said.contains("sk-not-for-the-demo") && !said.contains('\x1b'), "{said}");
}

/// Fifty runs with random delays, two at a time.
#[test]
fn fifty_runs_with_random_delays_all_end_with_passing_tests() {
    std::thread::scope(|scope| {
        for half in 0..2 {
            scope.spawn(move || (0..25).for_each(|run| assert_whole_story(run * 2 + half, 1 + run * 7 % 200)));
        }
    });
}

/// Builds work in it, whatever holds it.
#[test]
fn the_story_is_the_same_in_every_sandbox() {
    for sandbox in ["landlock", "namespaces", "off"] {
        let (code, said) = demo_in(sandbox, 1, 0);
        assert!(code == Some(0) && said.contains("【总结】重构完成"), "{sandbox}:\n{said}");
    }
}
