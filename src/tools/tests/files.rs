//! `read_file` and `write_file`.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use serde_json::json;

use super::Bench;

#[tokio::test]
async fn reading_shows_numbered_lines_and_where_to_go_on() {
    let lines: String = (1..=5_000).map(|number| format!("line {number}\n")).collect();
    let wide: String = (1..=100).map(|_| format!("{}\n", "汉".repeat(1_000))).collect();
    let bench = Bench::new()
        .file("a.txt", "one\ntwo\n")
        .file("end.txt", "one\n\nthree")
        .file("crlf.txt", b"\xef\xbb\xbfa\r\nb\r\nc")
        .file("big.txt", lines)
        .file("wide.txt", wide)
        .file("long.txt", format!("{}\nshort\n", "汉".repeat(5_000)))
        .file("edge.txt", "x".repeat(2_000))
        .file("empty", "");
    for (arguments, text) in [
        (json!({"path": "a.txt"}), "     1\tone\n     2\ttwo\n"),
        (json!({"path": "./a.txt", "offset": 0, "limit": 0}), "     1\tone\n     2\ttwo\n"),
        (json!({"path": "a.txt", "offset": 2}), "     2\ttwo\n"),
        (json!({"path": "a.txt", "limit": "1"}), "     1\tone\n… (1 more lines; go on with offset 2)\n"),
        (json!({"path": "end.txt", "offset": "2"}), "     2\t\n     3\tthree\n"),
        (json!({"path": "crlf.txt"}), "     1\ta\n     2\tb\n     3\tc\n"),
        (json!({"path": "big.txt", "offset": 4_999}), "  4999\tline 4999\n  5000\tline 5000\n"),
        (json!({"path": "empty"}), "(the file is empty)"),
    ] {
        let output = bench.run("read_file", arguments.clone()).await;
        assert!(output.ok, "{arguments}: {}", output.text);
        assert_eq!(output.text, text, "{arguments}");
    }
    for (path, end, count) in [
        ("big.txt", "  2000\tline 2000\n… (3000 more lines; go on with offset 2001)\n", 2_001),
        ("wide.txt", "… (51 more lines; go on with offset 50)\n", 50),
        ("long.txt", "汉 … (line cut; it has 15000 bytes)\n     2\tshort\n", 2),
        ("edge.txt", "x\n", 1),
    ] {
        let output = bench.run("read_file", json!({"path": path})).await;
        assert!(output.ok && output.text.ends_with(end), "{path}");
        assert!(output.text.lines().count() == count && output.text.chars().count() < 51_000, "{path}");
    }
}

#[tokio::test]
async fn i8_what_cannot_be_read_is_said_and_never_waited_for() {
    let bench = Bench::new()
        .file("a.txt", "one\ntwo\n")
        .file("bin", [b'a', b'\n', 0, 1])
        .file("bin-first", [0, b'\n'])
        .file("latin", b"ok\ncaf\xe9\n")
        .file("utf16", b"\xff\xfea\0")
        .link("absent", "dangling");
    nix::unistd::mkfifo(&bench.path("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(bench.path("socket")).unwrap();
    for (arguments, why) in [
        (json!({"path": "a.txt", "offset": 9}), "a.txt has 2 lines; offset 9 is past its end"),
        (json!({"path": "bin"}), "bin is a binary file"),
        (json!({"path": "bin-first", "offset": 2}), "bin-first is a binary file"),
        (json!({"path": "latin"}), "latin is not UTF-8 (line 2)"),
        (json!({"path": "utf16"}), "utf16 is UTF-16 text, not UTF-8"),
        (json!({"path": "."}), ". is a folder; list what is in it with glob"),
        (json!({"path": "fifo"}), "fifo is a FIFO, not a regular file"),
        (json!({"path": "socket"}), "socket is a socket or a device"),
        (json!({"path": "none"}), "none does not exist; look for it with glob"),
        (json!({"path": "dangling"}), "dangling does not exist"),
        (json!({"path": "a.txt/x"}), "a.txt/x can't be read: a part of the path is no folder"),
        (json!({"path": "n".repeat(300)}), ""),
    ] {
        let output = bench.run("read_file", arguments.clone()).await;
        assert!(!output.ok && output.text.starts_with(&format!("error: {why}")), "{arguments}: {}", output.text);
    }
    for (path, why) in
        [("bin", "a binary file"), ("latin", "not UTF-8 (from byte 6 on)"), ("fifo", "a FIFO"), (".", "a folder")]
    {
        let output = bench.run("edit_file", json!({"path": path, "old_text": "a", "new_text": "b"})).await;
        assert!(!output.ok && output.text.contains(why), "{path}: {}", output.text);
    }
}

#[tokio::test]
async fn i8_a_file_of_a_gibibyte_is_read_in_parts() {
    let bench = Bench::new();
    let file = std::fs::File::create(bench.path("huge")).unwrap();
    std::io::Write::write_all(&mut &file, b"first\nsecond\n").unwrap();
    file.set_len(1 << 30).unwrap();
    let output = bench.run("read_file", json!({"path": "huge", "limit": 1})).await;
    assert_eq!(output.text, "     1\tfirst\n… (more lines follow; go on with offset 2)\n");
    let output = bench.run("edit_file", json!({"path": "huge", "old_text": "first", "new_text": "x"})).await;
    assert!(output.text.starts_with("error: huge has 1073741824 bytes, too many to edit here"), "{}", output.text);
}

#[tokio::test]
async fn writing_is_exact_and_keeps_mode_and_link() {
    let bench = Bench::new().file("run.sh", "old").file("real", "x").link("real", "link").link("fresh", "dangling");
    std::fs::set_permissions(bench.path("run.sh"), std::fs::Permissions::from_mode(0o750)).unwrap();
    for (path, content, said) in [
        ("run.sh", "new\n", "replaced run.sh (1 lines, 4 bytes)"),
        ("deep/er/file", "\u{feff}好\r\nx", "created deep/er/file (2 lines, 9 bytes)"),
        ("link", "through", "replaced link (1 lines, 7 bytes)"),
        ("dangling", "made", "created dangling (1 lines, 4 bytes)"),
        ("empty", "", "created empty (0 lines, 0 bytes)"),
        ("zero\u{202e}name", "a\0b", "created zeroname (1 lines, 3 bytes)"),
    ] {
        let output = bench.run("write_file", json!({"path": path, "content": content})).await;
        assert_eq!((output.ok, output.text.as_str()), (true, said));
        assert_eq!(bench.read(path), content.as_bytes());
    }
    assert_eq!(std::fs::metadata(bench.path("run.sh")).unwrap().mode() & 0o777, 0o750);
    assert!(bench.path("link").is_symlink() && bench.read("real") == b"through" && bench.read("fresh") == b"made");
    assert!(!bench.names().iter().any(|name| name.starts_with(".s15-")));
}

#[tokio::test]
async fn i9_a_hard_link_s_other_name_stays_as_it_is() {
    let bench = Bench::new();
    std::fs::write(bench.outside("victim"), "ORIG").unwrap();
    std::fs::hard_link(bench.outside("victim"), bench.path("hard")).unwrap();
    assert!(bench.run("write_file", json!({"path": "hard", "content": "X"})).await.ok);
    assert!(bench.run("edit_file", json!({"path": "hard", "old_text": "X", "new_text": "Y"})).await.ok);
    assert_eq!(
        (std::fs::read(bench.outside("victim")).unwrap(), bench.read("hard")),
        (b"ORIG".to_vec(), b"Y".to_vec())
    );
}

#[tokio::test]
async fn i10_what_cannot_be_written_is_said_and_stays() {
    let bench = Bench::new().file("a.txt", "before").file("folder/x", "y").file("locked", "before");
    std::fs::set_permissions(bench.path("locked"), std::fs::Permissions::from_mode(0o444)).unwrap();
    nix::unistd::mkfifo(&bench.path("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let names = bench.names();
    for (path, why) in [
        ("folder", "folder is a folder"),
        (".", "`.` is a folder; name a file in it"),
        ("new/", "`new/` is a folder; name a file in it"),
        ("fifo", "fifo is a FIFO"),
        ("locked", "locked is read-only; chmod it first"),
        ("a.txt/x", "a.txt/x can't be written: a part of the path is no folder"),
        (&"n".repeat(300), "nnn"),
        (&"d/".repeat(3_000), "`d/d/"),
    ] {
        let output = bench.run("write_file", json!({"path": path, "content": "after"})).await;
        assert!(!output.ok && output.text.starts_with(&format!("error: {why}")), "{path}: {}", output.text);
    }
    assert_eq!(
        (bench.read("a.txt"), bench.read("locked"), bench.names()),
        (b"before".to_vec(), b"before".to_vec(), names)
    );
}
