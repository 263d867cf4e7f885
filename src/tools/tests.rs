//! The tools over ordinary, edge and hostile input. No test here waits for a clock.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::*;

struct Bench {
    folder: tempfile::TempDir,
    workshop: Workshop,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path().join("ws");
        std::fs::create_dir(&workspace).unwrap();
        let workshop = Workshop::new(&workspace, folder.path().join("out"), Duration::from_secs(60)).unwrap();
        Self { folder, workshop }
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.folder.path().join("ws").join(path)
    }

    fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        std::fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        std::fs::write(self.path(path), content).unwrap();
        self
    }

    fn read(&self, path: &str) -> Vec<u8> {
        std::fs::read(self.path(path)).unwrap()
    }

    async fn run(&self, tool: &str, arguments: Value) -> Output {
        self.run_until(tool, arguments, Box::pin(std::future::pending())).await
    }

    async fn run_until(&self, tool: &str, arguments: Value, stop: Stop<'_>) -> Output {
        let Value::Object(arguments) = arguments else { panic!("an object") };
        match parse(Role::Lead, tool, arguments) {
            Ok(Call::Local(call)) => self.workshop.run(call, stop).await,
            Ok(Call::Team(_)) => panic!("{tool} is a team tool"),
            Err(text) => Output { ok: false, text },
        }
    }
}

#[tokio::test]
async fn bash_gives_output_in_order_and_its_end() {
    let bench = Bench::new();
    for (command, ok, text) in [
        ("echo a; echo b >&2; echo c", true, "a\nb\nc\nexit code: 0"),
        ("true", true, "exit code: 0"),
        ("exit 7", false, "exit code: 7"),
        ("kill -9 $$", false, "ended by signal 9"),
        ("printf no-newline", true, "no-newline\nexit code: 0"),
        ("read -r x; echo \"got:[$x]\"; cat | wc -c", true, "got:[]\n0\nexit code: 0"),
        ("printf 'A\\xff\\xfeB\\0C\\xe6\\xb1 D\\n'", true, "A\\xff\\xfeB\\x00C\\xe6\\xb1 D\nexit code: 0"),
    ] {
        let output = bench.run("bash", json!({"command": command})).await;
        assert_eq!((output.ok, output.text.as_str()), (ok, text), "{command}");
    }
}

#[tokio::test]
async fn i9_what_a_command_leaves_behind_ends_with_it() {
    let bench = Bench::new();
    let output = bench.run("bash", json!({"command": "(sleep 2; touch late) & echo $! > pid; echo started"})).await;
    assert!(output.ok && output.text.starts_with("started\nexit code: 0"), "{}", output.text);
    assert!(output.text.contains("left in the background was ended"), "{}", output.text);
    wait_gone(&bench, "pid").await;
    assert!(!bench.path("late").exists());
}

#[tokio::test]
async fn i11_a_command_has_a_time_limit_for_its_whole_group() {
    let bench = Bench::new();
    let output = bench
        .run("bash", json!({"command": "trap '' TERM; sleep 100 & echo $! > pid; wait; sleep 100", "timeout": "1"}))
        .await;
    assert!(!output.ok && output.text.starts_with("timed out after 1 s"), "{}", output.text);
    wait_gone(&bench, "pid").await;
}

#[tokio::test]
async fn a_command_can_be_broken_off_and_keeps_what_it_said() {
    let bench = Bench::new();
    let (told, begun) = tokio::sync::oneshot::channel::<()>();
    let pid = bench.path("pid");
    tokio::spawn(async move {
        while !pid.exists() {
            tokio::task::yield_now().await;
        }
        told.send(()).ok();
    });
    let stop: Stop<'_> = Box::pin(async move {
        begun.await.ok();
        "the gate closed"
    });
    let output = bench.run_until("bash", json!({"command": "echo said; sleep 100 & echo $! > pid; wait"}), stop).await;
    assert!(output.text.contains("interrupted: the gate closed"), "{}", output.text);
    wait_gone(&bench, "pid").await;
}

async fn wait_gone(bench: &Bench, file: &str) {
    let pid = String::from_utf8(bench.read(file)).unwrap();
    let process = Path::new("/proc").join(pid.trim()).join("stat");
    // A killed child of a killed bash is a zombie until init takes it.
    while std::fs::read_to_string(&process).is_ok_and(|stat| !stat.contains(") Z ")) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn ten_million_lines_are_bounded_and_kept() {
    let bench = Bench::new();
    let output = bench.run("bash", json!({"command": "yes | head -n 10000000"})).await;
    assert!(
        output.ok && output.text.len() < 40_000 && output.text.contains("bytes left out; the whole is in"),
        "{}",
        output.text.len()
    );
    assert!(output.text.starts_with("y\n") && output.text.ends_with("y\nexit code: 0"));
}

#[test]
fn i12_names_of_secrets_are_known() {
    for name in ["OPENAI_API_KEY", "GH_TOKEN", "aws_secret_access_key", "DB_PASSWORD", "S15_YES", "TOKEN", "MY_SECRET"]
    {
        assert!(shell::is_secret(name), "{name}");
    }
    for name in ["PATH", "HOME", "LANG", "KEYBOARD", "CARGO_HOME", "SSH_AUTH_SOCK"] {
        assert!(!shell::is_secret(name), "{name}");
    }
}

#[tokio::test]
async fn read_file_shows_lines_and_says_what_it_cannot_show() {
    let lines: String = (1..=5_000).map(|number| format!("line {number}\n")).collect();
    let bench = Bench::new()
        .file("a.txt", "one\ntwo\n")
        .file("big.txt", lines)
        .file("bin", [0, 1])
        .file("latin", b"caf\xe9")
        .file("empty", "");
    nix::unistd::mkfifo(&bench.path("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    for (arguments, ok, word) in [
        (json!({"path": "a.txt"}), true, "     1\tone\n     2\ttwo\n"),
        (json!({"path": "a.txt", "offset": 2}), true, "     2\ttwo"),
        (json!({"path": "a.txt", "offset": "2", "limit": "1"}), true, "     2\ttwo"),
        (json!({"path": "a.txt", "offset": 9}), false, "has 2 lines"),
        (json!({"path": "big.txt"}), true, "(3000 more lines; go on with offset 2001)"),
        (json!({"path": "empty"}), true, "(the file is empty)"),
        (json!({"path": "bin"}), false, "binary"),
        (json!({"path": "latin"}), false, "not UTF-8"),
        (json!({"path": "."}), false, "folder"),
        (json!({"path": "fifo"}), false, "no regular file"),
        (json!({"path": "none"}), false, "can't be read"),
        (json!({"path": "../out/x"}), false, "can't be read"),
        (json!({"path": "/etc/passwd"}), false, "outside the workspace"),
        (json!({}), false, "missing field `path`"),
        (json!({"path": 7}), false, "read_file"),
    ] {
        let output = bench.run("read_file", arguments.clone()).await;
        assert!(output.ok == ok && output.text.contains(word), "{arguments}: {}", output.text);
        assert_eq!(output.text.starts_with("error: "), !ok);
    }
}

#[tokio::test]
async fn write_file_replaces_whole_and_keeps_the_mode_and_the_link() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let bench = Bench::new().file("run.sh", "old").file("real", "x");
    std::fs::set_permissions(bench.path("run.sh"), std::fs::Permissions::from_mode(0o750)).unwrap();
    symlink("real", bench.path("link")).unwrap();
    for (path, content) in [("run.sh", "new\n"), ("deep/er/file", "好\r\n"), ("link", "through")] {
        assert!(bench.run("write_file", json!({"path": path, "content": content})).await.ok, "{path}");
        assert_eq!(bench.read(path), content.as_bytes());
    }
    assert_eq!(std::fs::metadata(bench.path("run.sh")).unwrap().permissions().mode() & 0o777, 0o750);
    assert!(bench.path("link").is_symlink());
    assert!(!bench.run("write_file", json!({"path": "deep", "content": "x"})).await.ok, "a folder is not replaced");
}

#[tokio::test]
async fn i10_a_write_that_fails_leaves_what_was_there() {
    let bench = Bench::new().file("a.txt", "before");
    let limited =
        bench.run("bash", json!({"command": "ulimit -f 0; trap '' XFSZ; echo x > probe || echo limited"})).await;
    assert!(limited.text.contains("limited"), "{}", limited.text);
    // The folder can't take a new file: its name is too long, so that nothing can be put beside the old one either.
    let long = "n".repeat(300);
    assert!(!bench.run("write_file", json!({"path": long, "content": "x"})).await.ok);
    assert!(!bench.run("write_file", json!({"path": "a.txt/x", "content": "x"})).await.ok);
    assert_eq!(bench.read("a.txt"), b"before");
}

#[tokio::test]
async fn edit_file_changes_just_what_was_named() {
    let bench = Bench::new()
        .file("e.txt", "x=1\ny=2\nx=1\n")
        .file("g.txt", "log(\"done\");\n")
        .file("crlf.txt", b"\xef\xbb\xbfa\r\nb\r\nc")
        .file("end.txt", "last");
    for (arguments, word) in [
        (json!({"path": "e.txt", "old_text": "x=1", "new_text": "x=9"}), "stands 2 times in e.txt (lines 1, 3)"),
        (json!({"path": "e.txt", "old_text": "", "new_text": "Z"}), "old_text is empty"),
        (json!({"path": "e.txt", "old_text": "y=2", "new_text": "y=2"}), "the same"),
        (json!({"path": "e.txt", "old_text": "yes=2", "new_text": "Z"}), "not found"),
        (
            json!({"path": "g.txt", "old_text": "log(\"dune\")", "new_text": "Z"}),
            "the nearest line is 1: log(\"done\");",
        ),
    ] {
        let output = bench.run("edit_file", arguments.clone()).await;
        assert!(!output.ok && output.text.contains(word), "{arguments}: {}", output.text);
    }
    assert_eq!(bench.read("e.txt"), b"x=1\ny=2\nx=1\n");
    for (path, old, new, all, after) in [
        ("g.txt", "log(\"done\");", "log(\"$& $1 ${2} $$ \\0 ok\");", false, &b"log(\"$& $1 ${2} $$ \\0 ok\");\n"[..]),
        ("crlf.txt", "b", "B\nB2", false, b"\xef\xbb\xbfa\r\nB\r\nB2\r\nc"),
        ("crlf.txt", "a\nB", "A\nB", false, b"\xef\xbb\xbfA\r\nB\r\nB2\r\nc"),
        ("e.txt", "x=1", "x=9", true, b"x=9\ny=2\nx=9\n"),
        ("end.txt", "last", "first", false, b"first"),
    ] {
        let output =
            bench.run("edit_file", json!({"path": path, "old_text": old, "new_text": new, "replace_all": all})).await;
        assert!(output.ok, "{}", output.text);
        assert_eq!(bench.read(path), after, "{path}");
    }
}

#[tokio::test]
async fn searches_obey_gitignore_and_stay_bounded() {
    let mut bench = Bench::new()
        .file("src/a.rs", "fn 你好() {}\nlet x = 1;\n")
        .file("src/b.txt", "fn other\n")
        .file("target/c.rs", "fn hidden\n")
        .file(".gitignore", "target\n")
        .file(".mailboxes/lead.jsonl", "fn mail\n");
    for (tool, arguments, text) in [
        ("glob", json!({"pattern": "**/*.rs"}), "src/a.rs"),
        ("glob", json!({"pattern": "*.rs"}), "src/a.rs"),
        ("glob", json!({"pattern": "*", "path": "src"}), "src/a.rs\nsrc/b.txt"),
        ("glob", json!({"pattern": "*.py"}), "no file fits"),
        ("grep", json!({"pattern": "^fn \\w+"}), "src/a.rs:1:fn 你好() {}\nsrc/b.txt:1:fn other"),
        ("grep", json!({"pattern": "fn", "glob": "*.txt"}), "src/b.txt:1:fn other"),
        ("grep", json!({"pattern": "fn", "path": "src/a.rs"}), "src/a.rs:1:fn 你好() {}"),
        ("grep", json!({"pattern": "nowhere"}), "no line fits"),
    ] {
        let output = bench.run(tool, arguments.clone()).await;
        assert_eq!((output.ok, output.text.as_str()), (true, text), "{tool} {arguments}");
    }
    assert!(
        bench
            .run("grep", json!({"pattern": "("}))
            .await
            .text
            .starts_with("error: the pattern is no regular expression")
    );
    assert!(!bench.run("glob", json!({"pattern": "*", "path": ".."})).await.ok);
    bench = bench.file("many.txt", "hit\n".repeat(1_000));
    assert!(
        bench.run("grep", json!({"pattern": "hit"})).await.text.ends_with("… (800 more lines fit; narrow the search)")
    );
}

#[test]
fn i8_unknown_tools_and_wrong_arguments_are_said_with_what_would_be_right() {
    let refused = |role, name: &str, arguments: Value| {
        let Value::Object(arguments) = arguments else { panic!("an object") };
        parse(role, name, arguments).err().unwrap_or_default()
    };
    let unknown = refused(Role::Lead, "todo_write", json!({}));
    assert!(unknown.starts_with("error: there is no tool \"todo_write\"; the tools are: bash, read_file"), "{unknown}");
    assert!(refused(Role::Teammate, "spawn_teammate", json!({"name": "x"})).contains("submit_plan"));
    assert!(refused(Role::Lead, "bash", json!({})).contains("missing field `command`"));
    let proposal = json!({"members": "[{\"name\":\"a\",\"prompt\":\"p\"}]", "reason": "r", "extra": 1});
    assert_eq!(refused(Role::Lead, "propose_team", proposal), "", "a list written as a string is taken");
    assert_eq!(refused(Role::Lead, "review_plan", json!({"request_id": "x", "approve": "true", "feedback": null})), "");
}
