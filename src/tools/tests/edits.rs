//! `edit_file`: exactly what was named changes, byte for byte.

use proptest::prelude::*;
use serde_json::json;

use super::super::files::edited;
use super::Bench;

#[tokio::test]
async fn an_edit_changes_just_what_was_named() {
    let bench = Bench::new()
        .file("e.txt", "x=1\ny=2\nx=1\n")
        .file("g.txt", "log(\"done\");\n")
        .file("crlf.txt", b"\xef\xbb\xbfa\r\nb\r\nc")
        .file("mixed.txt", "a\nb\r\nc\nd\r\n")
        .file("end.txt", "last")
        .file("cr.txt", "a\rb\n");
    for (path, old, new, all, after, said) in [
        (
            "g.txt",
            "log(\"done\");",
            "log(\"$& $1 ${2} $$ \\0 ok\");",
            false,
            &b"log(\"$& $1 ${2} $$ \\0 ok\");\n"[..],
            "line 1",
        ),
        ("crlf.txt", "b", "B\nB2", false, b"\xef\xbb\xbfa\r\nB\r\nB2\r\nc", "line 2"),
        ("crlf.txt", "a\nB\n", "A\nB\n", false, b"\xef\xbb\xbfA\r\nB\r\nB2\r\nc", "line 1"),
        ("crlf.txt", "A\r\nB", "A\nB\r\nC", false, b"\xef\xbb\xbfA\r\nB\r\nC\r\nB2\r\nc", "line 1"),
        ("crlf.txt", "\n", "", true, b"\xef\xbb\xbfABCB2c", "4 places: lines 1, 2, 3, 4"),
        ("mixed.txt", "b\nc", "b\nx\nc", false, b"a\nb\r\nx\r\nc\nd\r\n", "line 2"),
        ("mixed.txt", "d", "d\nd", false, b"a\nb\r\nx\r\nc\nd\nd\r\n", "line 5"),
        ("e.txt", "x=1", "x=9\r\nz", true, b"x=9\nz\ny=2\nx=9\nz\n", "2 places: lines 1, 3"),
        ("end.txt", "last", "first\nlast", false, b"first\nlast", "line 1"),
        ("cr.txt", "b", "c", false, b"a\rc\n", "line 1"),
    ] {
        let output =
            bench.run("edit_file", json!({"path": path, "old_text": old, "new_text": new, "replace_all": all})).await;
        assert_eq!(output.text, format!("edited {path} ({said})"));
        assert_eq!(bench.read(path), after, "{path}: {old:?}");
    }
}

#[tokio::test]
async fn what_is_not_clear_is_refused_with_what_would_help() {
    let bench = Bench::new()
        .file("e.txt", "x=1\ny=2\nx=1\n")
        .file("aaa.txt", "aaa")
        .file("many.txt", "hit\n".repeat(500))
        .file("code.rs", "fn main() {\n    let total = price * count;\n    show(total);\n}\n");
    for (path, old, new, why) in [
        ("e.txt", "x=1", "x=9", "old_text matches 2 times in e.txt (lines 1, 3); add surrounding lines"),
        ("aaa.txt", "aa", "b", "old_text matches 2 times in aaa.txt (lines 1, 1)"),
        (
            "many.txt",
            "hit",
            "b",
            "old_text matches 500 times in many.txt (lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, …)",
        ),
        ("e.txt", "", "Z", "old_text is empty"),
        ("e.txt", "y=2", "y=2", "old_text and new_text are the same"),
        ("e.txt", "nope", "Z", "old_text was not found in e.txt; nothing there is like it; read the file again"),
        ("none.txt", "a", "b", "none.txt does not exist"),
        (
            "code.rs",
            "let total = price * amount;",
            "Z",
            "old_text was not found in code.rs; the nearest lines are\n     2\t    let total = price * count;",
        ),
        (
            "code.rs",
            "fn main() {\n  let total = price * count;",
            "Z",
            "old_text was not found in code.rs; it differs only in white space from\n     1\tfn main() {\n     2\t    let total",
        ),
        ("code.rs", "     3\t    show(total);", "Z", "old_text was not found in code.rs; leave out the line numbers"),
        ("code.rs", "\n\n\n", "Z", "old_text was not found in code.rs; nothing there is like it"),
    ] {
        let before = std::fs::read(bench.path(path)).ok();
        let output = bench.run("edit_file", json!({"path": path, "old_text": old, "new_text": new})).await;
        assert!(!output.ok && output.text.starts_with(&format!("error: {why}")), "{old:?}: {}", output.text);
        assert_eq!(std::fs::read(bench.path(path)).ok(), before);
    }
}

#[tokio::test]
async fn edits_at_once_are_not_lost_to_each_other() {
    let lines: String = (0..40).map(|number| format!("<{number}>\n")).collect();
    let bench = Bench::new().file("shared.txt", lines);
    let edits = (0..40).map(|number| {
        let arguments =
            json!({"path": "shared.txt", "old_text": format!("<{number}>"), "new_text": format!("done {number}")});
        bench.run("edit_file", arguments)
    });
    let outputs = futures_util::future::join_all(edits).await;
    assert!(outputs.iter().all(|output| output.ok));
    let expected: String = (0..40).map(|number| format!("done {number}\n")).collect();
    assert_eq!(String::from_utf8(bench.read("shared.txt")).unwrap(), expected);
}

proptest! {
    /// In a text with LF alone an edit is what the standard library's replacement is, and its refusals are counts.
    #[test]
    fn i8_an_edit_is_plain_replacement(text in "[ab\n汉]{0,30}", old in "[ab\n汉]{1,3}", new in "[ab$\\\\1\n汉]{0,4}") {
        let count = text.matches(&old).count();
        match edited(&text, &old, &new, true) {
            Ok(edit) => {
                prop_assert_eq!(&edit.text, &text.replace(&old, &new));
                prop_assert_eq!(edit.lines.len(), count);
            }
            Err(_) => prop_assert_eq!(count, 0),
        }
        let starts = (0..text.len()).filter(|at| text.is_char_boundary(*at) && text[*at..].starts_with(&old)).count();
        prop_assert_eq!(edited(&text, &old, &new, false).is_ok(), starts == 1);
    }

    /// With CRLF throughout, an edit is the same as with LF, line ends aside.
    #[test]
    fn i8_crlf_changes_nothing_but_line_ends(text in "[ab\n]{0,20}\n", old in "[ab\n]{1,3}", new in "[ab\n]{0,4}", all in any::<bool>()) {
        let plain = edited(&text, &old, &new, all);
        let windows = edited(&text.replace('\n', "\r\n"), &old, &new, all);
        match (plain, windows) {
            (Ok(plain), Ok(windows)) => {
                prop_assert_eq!(plain.text.replace('\n', "\r\n"), windows.text);
                prop_assert_eq!(plain.lines, windows.lines);
            }
            (plain, windows) => prop_assert_eq!(plain, windows),
        }
    }

    /// Whatever the line ends, nothing outside the matches changes.
    #[test]
    fn i8_what_was_not_named_stays(text in "[ab\r\n]{0,30}", new in "[xy\n]{0,3}") {
        if let Ok(edit) = edited(&text, "b", &new, true) {
            let kept: Vec<&str> = text.split('b').collect();
            let mut rest = edit.text.as_str();
            for (at, part) in kept.iter().enumerate() {
                prop_assert!(rest.starts_with(part), "{:?} in {:?}", part, edit.text);
                rest = &rest[part.len()..];
                if at + 1 < kept.len() {
                    rest = rest.trim_start_matches(['x', 'y']);
                    for line in new.split('\n').skip(1) {
                        rest = rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n')).unwrap_or(rest);
                        rest = rest.strip_prefix(line).unwrap_or(rest);
                    }
                }
            }
            prop_assert_eq!(rest, "");
        }
    }
}
