//! `s15 doctor` tells what is in force, and with its exit code whether anything is wrong.

use std::process::Output;

use crate::harness::Bench;

fn doctor(bench: &Bench, arguments: &[&str]) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } =
        bench.command(&[&["doctor"], arguments].concat()).output().expect("the program runs");
    assert!(stderr.is_empty(), "{}", String::from_utf8_lossy(&stderr));
    (status.code(), String::from_utf8(stdout).expect("UTF-8"))
}

fn bench() -> Bench {
    let bench = Bench::new("[fallback]\nlead = \"ok\"\n")
        .env("GH_TOKEN", "t-secret-1")
        .env("S15_ENV_PASS", "MY_TOKEN")
        .env("MY_TOKEN", "t-secret-2");
    std::fs::create_dir_all(bench.state()).expect("a folder");
    bench.file(".git/config", "").file(".mailboxes/x", "")
}

#[test]
fn i12_a_healthy_machine_is_told_and_no_secret_is() {
    let bench = bench();
    let (code, said) = doctor(&bench, &[]);
    assert!(!said.contains("sk-test") && !said.contains("t-secret"), "{said}");
    for part in [
        "with a key, model scripted",
        "all variables but: GH_TOKEN, OPENAI_API_KEY",
        "that look like secrets: MY_TOKEN",
        "no other s15 works here",
        "/bash\n",
        &bench.state().display().to_string(),
    ] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
    assert_eq!(code, Some(0), "{said}");
    let (code, json) = doctor(&bench, &["--json"]);
    let report: serde_json::Value = serde_json::from_str(&json).expect("one JSON object");
    assert_eq!((code, &report["ok"]), (Some(0), &true.into()));
    #[cfg(target_os = "linux")]
    {
        assert!(said.contains("sandbox         on, with "), "{said}");
        let names = |key: &str| report["bounds"][key].to_string();
        assert!(names("writable").contains("/ws\""), "{json}");
        assert!(
            names("read_only").contains("/ws/.git/config\"") && names("read_only").contains("/ws/.mailboxes\""),
            "{json}"
        );
        assert!(names("hidden").contains("/home/state\""), "{json}");
        assert_eq!(report["bounds"]["network"], true);
    }
    // Looking changes nothing.
    assert_eq!(std::fs::read_dir(bench.state()).expect("a folder").count(), 0);
    assert!(!bench.path(".git/hooks").exists());
}

#[test]
fn what_is_wrong_is_marked_and_ends_with_1() {
    let (code, said) = doctor(&bench().env("PATH", "/nowhere"), &[]);
    assert!(code == Some(1) && said.contains("X bash            not found"), "{said}");
    let (code, said) = doctor(&bench().env("S15_MAX_TEAMMATES", "x"), &[]);
    assert!(code == Some(1) && said.contains("X configuration   S15_MAX_TEAMMATES"), "{said}");
    let (code, said) = doctor(&bench().env("S15_STATE_DIR", "/dev/null/x"), &[]);
    assert!(code == Some(1) && said.contains("X state folder    /dev/null/x"), "{said}");
    let (code, said) = doctor(&bench().env("S15_SANDBOX", "off"), &[]);
    assert!(code == Some(0) && said.contains("! sandbox         the sandbox is off"), "{said}");
}

#[cfg(target_os = "linux")]
#[test]
fn what_landlock_alone_leaves_open_is_told() {
    let (code, said) = doctor(&bench().env("S15_SANDBOX", "landlock").env("S15_SANDBOX_NETWORK", "false"), &[]);
    if said.contains("Landlock: no") {
        return;
    }
    for part in
        ["on, with Landlock", "TCP is closed to commands, other kinds", "no commits", "sockets of other programs"]
    {
        assert!(said.contains(part), "{part} is not in {said}");
    }
    assert_eq!(code, Some(0));
}
