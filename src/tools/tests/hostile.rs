//! Arguments that no model should send: every call ends in an output, nothing panics, nothing leaves the workspace.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::super::*;
use super::{Bench, check};

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
        prop_oneof![
            Just("."),
            Just("/"),
            Just("a.txt"),
            Just("in/"),
            Just("**"),
            Just("[{"),
            Just("(?"),
            Just("../.."),
            Just("fifo"),
            Just("\0"),
            Just("18446744073709551616"),
            Just("1e999"),
            Just("[{}]"),
            Just("[[[["),
            Just("null"),
        ]
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((field(), inner), 0..4).prop_map(|fields| Value::from(Map::from_iter(fields))),
        ]
    })
}

fn field() -> impl Strategy<Value = String> {
    static NAMES: [&str; 19] = [
        "path",
        "content",
        "old_text",
        "new_text",
        "replace_all",
        "pattern",
        "glob",
        "offset",
        "limit",
        "timeout",
        "members",
        "name",
        "prompt",
        "role",
        "to",
        "request_id",
        "approve",
        "reason",
        "tool",
    ];
    prop_oneof![10 => proptest::sample::select(&NAMES[..]).prop_map(str::to_owned), 1 => ".{0,5}"]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]
    #[test]
    fn i8_no_arguments_do_harm(
        tool in proptest::sample::select(&["read_file", "write_file", "edit_file", "glob", "grep", "propose_team", "review_plan"][..]),
        fields in proptest::collection::vec((field(), any_value()), 0..8),
    ) {
        thread_local! {
            static RUNTIME: tokio::runtime::Runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            static BENCH: Bench = {
                let bench = Bench::new().file("a.txt", "text\n").file("in/file", "fn\n");
                nix::unistd::mkfifo(&bench.path("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
                bench
            };
        }
        BENCH.with(|bench| RUNTIME.with(|runtime| match parse(Role::Lead, tool, Map::from_iter(fields)) {
            Ok(call) => {
                assert!(call.summary().chars().count() <= 200 && !call.summary().chars().any(char::is_control));
                if let Call::Local(call) = call {
                    check(runtime.block_on(bench.workshop.run(call, Box::pin(std::future::pending()))));
                }
                let beside = std::fs::read_dir(bench.folder.path()).unwrap().count();
                assert_eq!((beside, std::fs::read_dir(bench.outside("")).unwrap().count()), (2, 0));
            }
            Err(text) => assert!(text.starts_with("error: ")),
        }));
    }
}

#[tokio::test]
async fn i8_arguments_of_megabytes_are_answered_in_few_words() {
    let bench = Bench::new().file("a.txt", "line of text\n".repeat(50_000));
    let big = "很长 x".repeat(500_000);
    for (tool, arguments) in [
        ("read_file", json!({"path": big})),
        ("write_file", json!({"path": big, "content": "x"})),
        ("edit_file", json!({"path": "a.txt", "old_text": big, "new_text": "x"})),
        ("edit_file", json!({"path": "a.txt", "old_text": "line", "new_text": "x"})),
        ("glob", json!({"pattern": big})),
        ("glob", json!({"pattern": "{".repeat(100_000)})),
        ("grep", json!({"pattern": "(".repeat(100_000)})),
        ("grep", json!({"pattern": big.replace(' ', "{9999}")})),
        ("bash", json!({"command": format!("'{big}'")})),
        (&big, json!({})),
    ] {
        let output = bench.run(tool, arguments).await;
        assert!(!output.ok && output.text.chars().count() < 2_000, "{}", text::first_chars(&output.text, 3_000));
    }
}
