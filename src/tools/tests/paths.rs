//! No path leads out of the workspace, whatever links and dots it goes through, also when it changes in between.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use serde_json::json;

use super::super::paths::{Missing, Workspace};
use super::Bench;
use crate::sandbox::{Bounds, Means, Network};

/// A bench with every kind of way out.
fn bench() -> Bench {
    let bench = Bench::new().file("in/file", "inside\n");
    std::fs::write(bench.outside("victim"), "ORIG").unwrap();
    std::fs::create_dir(bench.outside("dir")).unwrap();
    std::fs::create_dir(bench.folder.path().join("ws-evil")).unwrap();
    let (victim, new, dir) = (bench.outside("victim"), bench.outside("new"), bench.outside("dir"));
    let bench = bench.link(victim, "to-victim").link(new, "to-new").link(dir, "to-dir");
    bench
        .link("in", "to-in")
        .link("in/file", "to-file")
        .link("in/absent", "to-absent")
        .link("../..", "in/up")
        .link("loop", "loop")
        .link("to-victim", "twice")
        .link("../outside/victim", "relative")
        .link(".mailboxes", "box")
        .link("/proc/self/cwd", "cwd")
}

#[tokio::test]
async fn i9_no_file_tool_reaches_outside_the_workspace() {
    let bench = bench();
    let absolute = |path: &str| bench.folder.path().join(path).display().to_string();
    let outside = [
        "to-victim".to_owned(),
        "twice".to_owned(),
        "relative".to_owned(),
        "to-new".to_owned(),
        "to-dir/x".to_owned(),
        "to-dir/../victim".to_owned(),
        "../out-of-ws".to_owned(),
        "in/../../x".to_owned(),
        "in/up/x".to_owned(),
        "./../outside/victim".to_owned(),
        absolute("ws-evil/x"),
        absolute("outside/victim"),
        absolute("ws/../outside/victim"),
        "/etc/passwd".to_owned(),
    ];
    for path in &outside {
        for (tool, arguments) in [
            ("write_file", json!({"path": path, "content": "X"})),
            ("edit_file", json!({"path": path, "old_text": "ORIG", "new_text": "X"})),
            ("read_file", json!({"path": path})),
            ("glob", json!({"pattern": "*", "path": path})),
            ("grep", json!({"pattern": "ORIG", "path": path})),
        ] {
            let output = bench.run(tool, arguments).await;
            let text = output.text.as_str();
            assert!(
                !output.ok && text.contains(" leads to /") && text.contains("outside the workspace"),
                "{tool} {path}: {text}"
            );
        }
    }
    for path in ["loop", "loop/x", "", "a\0b"] {
        assert!(!bench.run("write_file", json!({"path": path, "content": "X"})).await.ok, "{path:?}");
        assert!(!bench.run("read_file", json!({"path": path})).await.ok, "{path:?}");
    }
    assert_eq!(std::fs::read(bench.outside("victim")).unwrap(), b"ORIG");
    let names: Vec<_> = std::fs::read_dir(bench.outside("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert_eq!(std::fs::read_dir(bench.outside("dir")).unwrap().count(), 0);
    assert!(!bench.folder.path().join("out-of-ws").exists() && !bench.folder.path().join("x").exists());
}

#[tokio::test]
async fn links_and_dots_within_the_workspace_are_fine() {
    let bench = bench();
    let absolute = bench.path("in/absolute").display().to_string();
    for (path, real) in [
        ("to-in/ok", "in/ok"),
        ("to-file", "in/file"),
        ("to-absent", "in/absent"),
        ("in/../top", "top"),
        ("./new//deep/./file", "new/deep/file"),
        ("in/up/ws/back", "back"),
        (&absolute, "in/absolute"),
        ("cwd-not/..x/...", "cwd-not/..x/..."),
    ] {
        let output = bench.run("write_file", json!({"path": path, "content": path})).await;
        assert!(output.ok, "{}", output.text);
        assert_eq!(bench.read(real), path.as_bytes());
    }
    for link in ["to-in", "to-file", "to-absent"] {
        assert!(bench.path(link).is_symlink(), "{link} is kept");
    }
}

#[tokio::test]
async fn i2_the_program_s_and_git_s_own_files_are_not_written() {
    let bench = bench().file(".mailboxes/lead.jsonl", "{}\n").file("sub/.git/config", "x");
    for path in [
        ".mailboxes/lead.jsonl",
        ".Mailboxes/x",
        ".team/config.json",
        ".s15.toml",
        ".git/hooks/pre-commit",
        ".git/config",
        ".GIT/config",
        ".git",
        "sub/.git/config",
        "box/x",
        "in/../.team/x",
    ] {
        let output = bench.run("write_file", json!({"path": path, "content": "x"})).await;
        assert!(!output.ok && output.text.contains("not written by tools"), "{path}: {}", output.text);
    }
    let output = bench.run("edit_file", json!({"path": "sub/.git/config", "old_text": "x", "new_text": "y"})).await;
    assert!(!output.ok && bench.read("sub/.git/config") == b"x");
    for path in [".github/x", ".gitignore", "in/.mailboxes", "git/config"] {
        assert!(bench.run("write_file", json!({"path": path, "content": "x"})).await.ok, "{path}");
    }
    assert!(bench.run("read_file", json!({"path": ".mailboxes/lead.jsonl"})).await.ok);
}

/// A workspace may be a home, with secrets in it, or hold the state folder.
#[test]
fn i9_what_is_kept_from_commands_is_kept_from_file_tools() {
    let bench = bench().file(".ssh/id", "SECRET").file("state/journal", "x").file("state/out/long", "long");
    let root = bench.path("").canonicalize().unwrap();
    let bounds = Bounds {
        means: Means::default(),
        writable: vec![root.clone()],
        read_only: vec![root.join("in")],
        hidden: vec![root.join(".ssh"), root.join("state")],
        shown: vec![root.join("state/out")],
        network: Network::Allowed,
        temp: Vec::new(),
    };
    let mut workspace = Workspace::new(&root, &bench.outside("none")).unwrap();
    workspace.keep_to(&bounds);
    for (path, read, written) in [
        (".ssh/id", false, false),
        ("in/../.ssh/id", false, false),
        ("to-in/../.ssh/new", false, false),
        ("state/journal", false, false),
        ("state/out/long", true, false),
        ("in/file", true, false),
        ("to-file", true, false),
        ("new", true, true),
    ] {
        assert_eq!((workspace.readable(path).is_ok(), workspace.writable(path).is_ok()), (read, written), "{path}");
    }
    let top = workspace.readable(".").unwrap();
    assert!(top.below(&root.join(".ssh/id")).is_none() && top.below(&root.join("in/file")).is_some());
}

/// What was judged is what is opened: a place that turns into a link after it was judged is not followed.
#[test]
fn i9_a_link_put_in_between_is_not_followed() {
    let bench = bench().file("folder/file", "inside");
    let workspace = Workspace::new(&bench.path(""), &bench.outside("none")).unwrap();
    let file = workspace.readable("folder/file").unwrap();
    for opened in [file.open(), file.open_by_steps()] {
        assert_eq!(std::io::read_to_string(opened.unwrap()).unwrap(), "inside");
    }
    let top = workspace.readable(".").unwrap();
    assert!(top.open().is_ok() && top.open_by_steps().is_ok());
    let new = workspace.writable("folder/new").unwrap();
    let deep = workspace.writable("folder/deep/new").unwrap();
    std::fs::rename(bench.path("folder"), bench.path("moved")).unwrap();
    symlink(bench.outside(""), bench.path("folder")).unwrap();
    std::fs::write(bench.outside("file"), "outside").unwrap();
    assert!(file.open().is_err() && file.open_by_steps().is_err());
    assert!(new.parent(Missing::IsMade).is_err() && deep.parent(Missing::IsMade).is_err());
    assert!(!bench.outside("deep").exists());
}

/// The same against a folder that is swapped for a link and back without end.
#[tokio::test]
async fn i9_racing_links_never_lead_outside() {
    let bench = bench().file("swapped/victim", "inside");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                // Writes may make the folder anew in between, so that a step here can fail.
                let (swapped, kept) = (bench.path("swapped"), bench.path("kept"));
                let _ = std::fs::rename(&swapped, &kept);
                let _ = symlink(bench.outside(""), &swapped);
                let _ = std::fs::remove_file(&swapped).or_else(|_| std::fs::remove_dir_all(&swapped));
                let _ = std::fs::rename(&kept, &swapped);
            }
        });
        let workspace = Workspace::new(&bench.path(""), &bench.outside("none")).unwrap();
        for round in 0..3_000 {
            let Ok(place) = workspace.readable("swapped/victim") else { continue };
            for file in [place.open(), place.open_by_steps()].into_iter().flatten() {
                assert_eq!(std::io::read_to_string(file).unwrap(), "inside", "round {round}");
            }
            let call = super::super::WriteFileArgs { path: format!("swapped/{round}"), content: String::new() };
            super::super::files::write(&workspace, &call, Box::new(|_| {}));
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(std::fs::read(bench.outside("victim")).unwrap(), b"ORIG");
    assert_eq!(std::fs::read_dir(bench.outside("")).unwrap().count(), 2, "nothing was made outside");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn i9_no_mix_of_parts_leads_outside(parts in proptest::collection::vec(
        prop_oneof![
            Just(".."), Just("."), Just("in"), Just("up"), Just("to-dir"), Just("to-in"), Just("to-victim"), Just("/"),
            Just("relative"), Just("ws"), Just("ws-evil"), Just("outside"), Just("loop"), Just("new"), Just("victim"),
        ],
        1..8,
    ), absolute in any::<bool>()) {
        thread_local!(static BENCH: Bench = bench());
        BENCH.with(|bench| {
            let workspace = Workspace::new(&bench.path(""), &bench.outside("none")).unwrap();
            let root = workspace.root().to_owned();
            let tail = parts.join("/");
            let path = if absolute { format!("{}/{tail}", root.display()) } else { tail };
            if let Ok(place) = workspace.writable(&path) {
                prop_assert!(place.real().starts_with(&root) && place.real() != root);
                // The kernel's own view, where the place exists.
                if let Ok(real) = Path::new(place.real()).canonicalize() {
                    prop_assert!(real.starts_with(&root), "{path} is {}", real.display());
                }
            }
            Ok(())
        })?;
    }
}
