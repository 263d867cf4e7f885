//! `glob` and `grep`: sorted, bounded, as .gitignore says, and never outside.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use serde_json::json;

use super::Bench;

fn bench() -> Bench {
    Bench::new()
        .file("src/a.rs", "fn 你好() {}\nlet x = 1;\n")
        .file("src/b.txt", "fn other\n")
        .file("src/deep/c.rs", "fn deep\n")
        .file("target/c.rs", "fn hidden\n")
        .file(".gitignore", "target\n*.log\n")
        .file("src/.gitignore", "!keep.log\n")
        .file("src/keep.log", "fn kept\n")
        .file("src/lost.log", "fn lost\n")
        .file(".config/d.rs", "fn dotted\n")
        .file(".mailboxes/lead.jsonl", "fn mail\n")
        .file(".team/config.json", "fn team\n")
        .file(".git/config", "fn git\n")
}

#[tokio::test]
async fn globs_list_what_fits_and_grep_shows_where() {
    let bench = bench();
    let absolute =
        bench.path("src/*.rs").canonicalize().unwrap_or(bench.path("").canonicalize().unwrap().join("src/*.rs"));
    for (tool, arguments, text) in [
        ("glob", json!({"pattern": "**/*.rs"}), ".config/d.rs\nsrc/a.rs\nsrc/deep/c.rs"),
        ("glob", json!({"pattern": "*.rs"}), ".config/d.rs\nsrc/a.rs\nsrc/deep/c.rs"),
        ("glob", json!({"pattern": "./src/*.rs"}), "src/a.rs"),
        ("glob", json!({"pattern": absolute}), "src/a.rs"),
        ("glob", json!({"pattern": "src/**/*.{rs,txt}"}), "src/a.rs\nsrc/b.txt\nsrc/deep/c.rs"),
        ("glob", json!({"pattern": "src"}), "src/.gitignore\nsrc/a.rs\nsrc/b.txt\nsrc/deep/c.rs\nsrc/keep.log"),
        ("glob", json!({"pattern": "*", "path": "src/deep"}), "src/deep/c.rs"),
        ("glob", json!({"pattern": "deep/*", "path": "src"}), "src/deep/c.rs"),
        ("glob", json!({"pattern": "*", "path": "src/a.rs"}), "src/a.rs"),
        ("glob", json!({"pattern": "*.log"}), "src/keep.log"),
        ("glob", json!({"pattern": "*.py"}), "no file fits"),
        ("glob", json!({"pattern": "*", "path": "target"}), "target/c.rs"),
        (
            "grep",
            json!({"pattern": "^fn \\w+"}),
            ".config/d.rs:1:fn dotted\nsrc/a.rs:1:fn 你好() {}\nsrc/b.txt:1:fn other\nsrc/deep/c.rs:1:fn deep\nsrc/keep.log:1:fn kept",
        ),
        ("grep", json!({"pattern": "fn", "glob": "*.txt"}), "src/b.txt:1:fn other"),
        ("grep", json!({"pattern": "fn", "glob": "src/*.rs"}), "src/a.rs:1:fn 你好() {}"),
        ("grep", json!({"pattern": "fn|let", "path": "src/a.rs"}), "src/a.rs:1:fn 你好() {}\nsrc/a.rs:2:let x = 1;"),
        ("grep", json!({"pattern": "hidden", "path": "target"}), "target/c.rs:1:fn hidden"),
        ("grep", json!({"pattern": "nowhere"}), "no line fits"),
        ("glob", json!({"pattern": "{a,b}".repeat(800)}), "no file fits"),
    ] {
        let output = bench.run(tool, arguments.clone()).await;
        assert_eq!((output.ok, output.text.as_str()), (true, text), "{tool} {arguments}");
    }
}

#[tokio::test]
async fn what_cannot_be_searched_is_said_with_what_to_do() {
    let bench = bench();
    for (tool, arguments, why) in [
        ("grep", json!({"pattern": "("}), "the pattern is no regular expression for single lines:"),
        ("grep", json!({"pattern": "a\nb"}), "the pattern is no regular expression for single lines:"),
        ("grep", json!({"pattern": "x{99999}{99999}"}), "the pattern is no regular expression for single lines:"),
        ("grep", json!({"pattern": ""}), "the pattern is empty"),
        ("grep", json!({"pattern": "x".repeat(5_000)}), "the pattern has 5000 bytes; at most 4096"),
        ("glob", json!({"pattern": "x".repeat(5_000)}), "the pattern has 5000 bytes; at most 4096"),
        ("grep", json!({"pattern": "x", "path": "none"}), "none can't be searched: "),
        ("grep", json!({"pattern": "x", "glob": "["}), "the pattern is no glob:"),
        ("grep", json!({"pattern": "x", "path": ".."}), "`..` leads to /"),
        ("glob", json!({"pattern": "{a"}), "the pattern is no glob:"),
        ("glob", json!({"pattern": ""}), "the pattern is empty"),
        ("glob", json!({"pattern": "../*"}), "the pattern `../*` fits no file: give one relative to the workspace"),
        ("glob", json!({"pattern": "/etc/*"}), "the pattern `/etc/*` fits no file"),
        ("glob", json!({"pattern": "*", "path": "none"}), "none can't be searched: "),
    ] {
        let output = bench.run(tool, arguments.clone()).await;
        assert!(!output.ok && output.text.starts_with(&format!("error: {why}")), "{arguments}: {}", output.text);
    }
}

#[tokio::test]
async fn i8_results_are_bounded_and_say_how_much_was_left_out() {
    let mut bench = Bench::new();
    for number in 0..300 {
        bench = bench.file(&format!("many/{number:03}.txt"), "hit\nhit\n");
    }
    bench = bench
        .file("wide.md", format!("{}\n", "汉字 ".repeat(1_000)).repeat(150))
        .file("last.txt", "hit\n".repeat(1_000));
    let globbed = bench.run("glob", json!({"pattern": "many/*"})).await.text;
    assert!(
        globbed.starts_with("many/000.txt\n")
            && globbed.ends_with("many/199.txt\n… (100 more files; narrow the search)")
    );
    let hits = bench.run("grep", json!({"pattern": "hit"})).await.text;
    assert_eq!(hits.lines().count(), 201);
    assert!(
        hits.starts_with("last.txt:1:hit\n")
            && hits.ends_with("last.txt:200:hit\n… (1400 more lines fit; narrow the search)")
    );
    let hits = bench.run("grep", json!({"pattern": "hit", "path": "many"})).await.text;
    assert!(hits.starts_with("many/000.txt:1:hit\nmany/000.txt:2:hit\nmany/001.txt:1:hit\n"));
    assert!(hits.ends_with("many/099.txt:2:hit\n… (400 more lines fit; narrow the search)"), "{hits}");
    let wide = bench.run("grep", json!({"pattern": "汉"})).await.text;
    assert!(wide.chars().count() < 30_100 && wide.lines().all(|line| line.chars().count() < 320));
    assert!(wide.ends_with(" more lines fit; narrow the search)") && !wide.contains('\u{fffd}'));
}

#[tokio::test]
async fn i9_links_and_strange_files_harm_no_search() {
    let bench = bench().file("bin", b"fn binary\0\n").file("latin", b"fn caf\xe9\n").file("crlf", "fn crlf\r\n");
    std::fs::write(bench.outside("victim"), "fn outside\n").unwrap();
    let (victim, folder) = (bench.outside("victim"), bench.outside(""));
    let bench =
        bench.link(victim, "to-victim").link(folder, "to-folder").link("absent", "dangling").link("src", "to-src");
    nix::unistd::mkfifo(&bench.path("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    std::fs::write(bench.path("").join(OsStr::from_bytes(b"odd\n\xffname")), "fn odd\n").unwrap();
    let hits = bench.run("grep", json!({"pattern": "^fn (binary|caf|outside|odd|crlf)"})).await.text;
    assert_eq!(hits, "crlf:1:fn crlf\nlatin:1:fn caf\\xe9\nodd\\x0a\\xffname:1:fn odd");
    let names = bench.run("glob", json!({"pattern": "*o*"})).await.text;
    assert!(names.contains("odd\\x0a\\xffname\n") && names.contains("to-victim"), "{names}");
    assert!(!names.contains("fifo") && !names.contains("to-folder/"), "{names}");
}

#[tokio::test]
async fn i11_a_search_can_be_broken_off() {
    let bench = bench();
    let mut polled = false;
    let second_look = std::future::poll_fn(move |context| {
        context.waker().wake_by_ref();
        if std::mem::replace(&mut polled, true) {
            std::task::Poll::Ready("the user said so")
        } else {
            std::task::Poll::Pending
        }
    });
    let output = bench.run_until("grep", json!({"pattern": "fn"}), Box::pin(second_look)).await;
    let whole = bench.run("grep", json!({"pattern": "fn"})).await;
    let interrupted = "error: interrupted: the user said so; nothing was changed";
    assert!(output == whole || output.text == interrupted, "{}", output.text);
}
