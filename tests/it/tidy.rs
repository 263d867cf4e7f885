//! The house rules, held by a test: who may import whom, how long files and functions are, what must not be in them.
//!
//! Reads the sources as text with comments and literals blanked out; knows no more of Rust than that.

use std::fs;
use std::path::{Path, PathBuf};

/// Longest file without its tests, in lines.
const FILE_LINES_MAX: usize = 400;
/// Longest function, in lines.
const FUNCTION_LINES_MAX: usize = 70;

/// Each module of the crate and those it may import, besides itself. A new module gets its line here.
const MAY_IMPORT: [(&str, &[&str]); 19] = [
    ("main", ANY),
    ("lib", ANY),
    ("demo", ANY),
    ("run", ANY),
    ("session", &["killpoint", "seam", "agent", "tools", "mail", "model", "journal", "event", "protocol"]),
    ("agent", &["killpoint", "seam", "tools", "mail", "model", "journal", "event", "protocol"]),
    ("doctor", ANY),
    ("fence", &["config", "sandbox"]),
    ("tools", &["sandbox", "killpoint", "seam", "secrets", "journal", "event", "protocol"]),
    ("mail", &["killpoint", "private", "seam", "journal", "event", "protocol"]),
    ("model", &["killpoint", "seam", "journal", "event", "protocol"]),
    ("journal", &["killpoint", "seam", "private", "event", "protocol"]),
    ("lock", &["private", "journal"]),
    ("sessions", &["config", "journal", "lock", "protocol"]),
    ("config", &["sandbox", "cli", "secrets"]),
    ("ui", &["event", "protocol"]),
    ("scenario", &["event", "protocol"]),
    ("event", &["protocol"]),
    ("protocol", &[]),
];
/// Modules that import nothing of the crate.
const LEAVES: [&str; 6] = ["cli", "killpoint", "private", "sandbox", "seam", "secrets"];
const ANY: &[&str] = &["*"];

/// Crates that belong to one module alone.
const ONLY_IN: [(&str, &[&str]); 4] =
    [("async_openai", &["model"]), ("rustyline", &["ui"]), ("crossterm", &["ui"]), ("clap", &["cli", "main", "run"])];

/// What a module that is pure does without.
const NOT_IN_PROTOCOL: [&str; 9] =
    ["std::fs", "std::io", "std::net", "std::process", "std::time", "std::env", "tokio", ".await", "now_v7"];

/// Words that no code holds, and where they may stand after all.
const BANNED: [(&str, &[&str]); 7] = [
    ("println!", &["src/ui", "src/main.rs", "src/session/sim"]),
    ("eprintln!", &["src/ui", "src/main.rs"]),
    ("print!", &["src/ui", "src/main.rs"]),
    ("eprint!", &["src/ui", "src/main.rs"]),
    ("dbg!", &[]),
    ("todo!", &[]),
    ("unimplemented!", &[]),
];

/// One source file.
struct Source {
    /// From the repository's top, with `/`.
    path: String,
    text: String,
    /// The text with comments and literals blanked, line for line the same.
    code: String,
}

impl Source {
    fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).expect("a source can be read");
        let code = blank(&text);
        let top = Path::new(env!("CARGO_MANIFEST_DIR"));
        let below = path.strip_prefix(top).unwrap_or(path);
        let path = below.to_string_lossy().replace('\\', "/");
        Self { path, text, code }
    }

    /// `session` for `src/session.rs` and `src/session/desk.rs`.
    fn module(&self) -> &str {
        let below = self.path.strip_prefix("src/").unwrap_or(&self.path);
        below.split('/').next().unwrap_or(below).trim_end_matches(".rs")
    }

    fn is_test(&self) -> bool {
        self.path.starts_with("tests/")
            || self.path.ends_with("tests.rs")
            || self.path.contains("/tests/")
            || self.path.contains("_tests/")
            || self.path.ends_with("/mock.rs")
            || self.path.ends_with("/simulated.rs")
            || self.path.ends_with("/stand_in.rs")
            || self.path.contains("/sim/")
            || self.path.ends_with("/sim.rs")
    }

    /// The code without the test module at its end.
    fn product(&self) -> &str {
        if self.is_test() {
            return "";
        }
        let inline = self.code.match_indices("#[cfg(test)]").find(|(at, _)| {
            let after = self.code[*at..].trim_start_matches("#[cfg(test)]").trim_start();
            let head = after.split(['{', ';']).next().unwrap_or_default();
            after[head.len()..].starts_with('{') && head.contains("mod ")
        });
        &self.code[..inline.map_or(self.code.len(), |(at, _)| at)]
    }
}

fn files(folder: &str, end: &str) -> Vec<PathBuf> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.expect("a folder can be listed").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(end) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn sources(folders: &[&str]) -> Vec<Source> {
    let found: Vec<_> =
        folders.iter().flat_map(|folder| files(folder, ".rs")).map(|path| Source::read(&path)).collect();
    assert!(!found.is_empty(), "no sources in {folders:?}");
    found
}

fn assert_none(faults: &[String], advice: &str) {
    assert!(faults.is_empty(), "{advice}:\n  {}", faults.join("\n  "));
}

#[test]
fn every_file_says_what_it_is_for() {
    let faults: Vec<_> = sources(&["src", "tests", "benches"])
        .into_iter()
        .filter(|source| !source.text.starts_with("//! "))
        .map(|source| source.path)
        .collect();
    assert_none(&faults, "a file opens with `//!` and what it is for");
}

#[test]
fn files_stay_short() {
    let mut faults = Vec::new();
    for source in sources(&["src"]) {
        let lines = source.product().lines().count();
        if lines > FILE_LINES_MAX {
            faults.push(format!("{}: {lines} lines", source.path));
        }
    }
    assert_none(&faults, &format!("split these by idea; at most {FILE_LINES_MAX} lines besides tests"));
}

#[test]
fn functions_stay_short() {
    let mut faults = Vec::new();
    for source in sources(&["src", "tests"]) {
        for (name, line, lines) in functions(&source.code) {
            if lines > FUNCTION_LINES_MAX {
                faults.push(format!("{}:{line}: {name} has {lines} lines", source.path));
            }
        }
    }
    assert_none(&faults, &format!("give these steps names; at most {FUNCTION_LINES_MAX} lines a function"));
}

#[test]
fn imports_go_downwards_only() {
    let allowed = |module: &str| {
        let leaf = LEAVES.contains(&module).then_some(&[][..]);
        leaf.or_else(|| MAY_IMPORT.iter().find(|(name, _)| *name == module).map(|(_, allowed)| *allowed))
    };
    let mut faults = Vec::new();
    for source in sources(&["src"]) {
        let module = source.module();
        let Some(allowed) = allowed(module) else {
            faults.push(format!("{}: `{module}` has no line in MAY_IMPORT", source.path));
            continue;
        };
        for (line, imported) in imports(source.product()) {
            let known = allowed == ANY || allowed.contains(&imported.as_str()) || imported == module;
            if !known && starts_lowercase(&imported) {
                faults.push(format!("{}:{line}: `{module}` imports `{imported}`", source.path));
            }
        }
    }
    assert_none(&faults, "an import goes up, or to a neighbour it must not know");
}

#[test]
fn some_crates_belong_to_one_module_and_protocol_is_pure() {
    let mut faults = Vec::new();
    for source in sources(&["src"]) {
        let code = source.product();
        for (name, modules) in ONLY_IN {
            if has_word(code, name) && !modules.contains(&source.module()) {
                faults.push(format!("{}: {name} belongs to {modules:?}", source.path));
            }
        }
        if source.module() == "protocol" {
            let impure = NOT_IN_PROTOCOL.iter().filter(|word| code.contains(**word));
            faults.extend(impure.map(|word| format!("{}: {word}", source.path)));
        }
    }
    assert_none(&faults, "these reach for what isn't theirs");
}

#[test]
fn nothing_is_unfinished_or_printed_past_the_printer() {
    let mut faults = Vec::new();
    for source in sources(&["src"]) {
        for (number, line) in source.code.lines().enumerate() {
            for (word, places) in BANNED {
                let allowed = places.iter().any(|place| source.path.starts_with(place));
                if !allowed && has_word(line, word) {
                    faults.push(format!("{}:{}: {word}", source.path, number + 1));
                }
            }
        }
        for (number, line) in source.text.lines().enumerate() {
            if ["FIXME", "XXX", "HACK"].iter().any(|mark| has_word(line, mark)) {
                faults.push(format!("{}:{}: {}", source.path, number + 1, line.trim()));
            }
        }
    }
    assert_none(&faults, "finish these, or take them out");
}

#[test]
fn an_unwrap_outside_tests_has_its_reason() {
    let mut faults = Vec::new();
    for source in sources(&["src"]) {
        let text: Vec<&str> = source.text.lines().collect();
        for (number, line) in source.product().lines().enumerate() {
            let said = text[number].contains("//") || number > 0 && text[number - 1].trim_start().starts_with("//");
            if line.contains(".unwrap()") && !said {
                faults.push(format!("{}:{}", source.path, number + 1));
            }
            if line.contains(".expect(") && text[number].contains(".expect(\"\")") {
                faults.push(format!("{}:{}", source.path, number + 1));
            }
        }
    }
    assert_none(&faults, "say why it can't fail: `expect(\"…\")` or a comment");
}

#[test]
fn every_prompt_is_used() {
    let sources = sources(&["src"]);
    let mut faults = Vec::new();
    for prompt in files("prompts", ".md") {
        let name = prompt.file_name().unwrap().to_string_lossy().into_owned();
        let stem = name.trim_end_matches(".md");
        let path = [format!("/{name}\""), format!("\"{name}\""), format!("\"{stem}\"")];
        if !sources.iter().any(|source| path.iter().any(|path| source.text.contains(path))) {
            faults.push(prompt.display().to_string());
        }
    }
    assert_none(&faults, "no source includes these");
}

#[test]
fn every_test_module_of_this_binary_is_run() {
    let main = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/main.rs")).unwrap();
    let modules = files("tests/it", ".rs").into_iter().filter(|path| path.parent().is_some_and(|p| p.ends_with("it")));
    let forgotten: Vec<_> = modules
        .map(|path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned())
        .filter(|name| name != "main" && !main.contains(&format!("mod {name};")))
        .collect();
    assert_none(&forgotten, "tests/it/main.rs doesn't name these");
}

fn starts_lowercase(word: &str) -> bool {
    word.chars().next().is_some_and(char::is_lowercase)
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Does `text` hold `word`, not merely as a part of a longer one?
fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back().is_some_and(is_word_char);
        let after = word.ends_with(is_word_char) && text[at + word.len()..].chars().next().is_some_and(is_word_char);
        !before && !after
    })
}

/// What follows each `crate::`, with its line; groups taken apart at their first level.
fn imports(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, word) in code.match_indices("crate::") {
        if code[..at].ends_with(is_word_char) {
            continue;
        }
        let line = code[..at].matches('\n').count() + 1;
        let rest = &code[at + word.len()..];
        for name in first_names(rest) {
            found.push((line, name));
        }
    }
    found
}

/// The first name of a path, or of each path in a group.
fn first_names(rest: &str) -> Vec<String> {
    let name = |text: &str| text.trim_start().chars().take_while(|c| is_word_char(*c)).collect::<String>();
    let Some(group) = rest.strip_prefix('{') else {
        return vec![name(rest)];
    };
    let mut depth = 0;
    let mut names = vec![name(group)];
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => names.push(name(&group[at + 1..])),
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

/// Each function with a body: its name, its first line, and how many lines it has.
fn functions(code: &str) -> Vec<(String, usize, usize)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        if code[..at].ends_with(is_word_char) {
            continue;
        }
        let name: String = code[at + 3..].chars().take_while(|c| is_word_char(*c)).collect();
        let Some(length) = body_end(&code[at..]).filter(|_| !name.is_empty()) else {
            continue;
        };
        let line = code[..at].matches('\n').count() + 1;
        found.push((name, line, code[at..at + length].matches('\n').count() + 1));
    }
    found
}

/// Where the body ends that begins after a signature; `None` for a signature without one.
fn body_end(code: &str) -> Option<usize> {
    let mut depth = 0_i32;
    let mut braces = 0_i32;
    for (at, c) in code.char_indices() {
        match c {
            '(' | '[' if braces == 0 => depth += 1,
            ')' | ']' if braces == 0 => depth -= 1,
            ';' if braces == 0 && depth == 0 => return None,
            '{' => braces += 1,
            '}' => {
                braces -= 1;
                if braces == 0 && depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// The text with comments, strings and characters blanked out, line for line the same.
fn blank(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let after_word = code.ends_with(is_word_char);
        let length = literal_length(rest, after_word);
        if let Some(length) = length {
            code.extend(rest[..length].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
            rest = &rest[length..];
        } else {
            code.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    code
}

/// How long the comment or literal is that `rest` begins with, in bytes.
fn literal_length(rest: &str, after_word: bool) -> Option<usize> {
    if rest.starts_with("//") {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return Some(block_comment_length(rest));
    }
    if rest.starts_with('"') {
        return Some(quoted_length(rest));
    }
    if !after_word && rest.starts_with(['r', 'b', 'c']) {
        let prefix = rest.trim_start_matches(['r', 'b', 'c']);
        let raw = prefix.trim_start_matches('#');
        let (marks, prefix_length) = (prefix.len() - raw.len(), rest.len() - prefix.len());
        if prefix_length <= 2 && raw.starts_with('"') && rest[..prefix_length].contains('r') {
            let end = format!("\"{}", "#".repeat(marks));
            let open = rest.len() - raw.len() + 1;
            return Some(rest[open..].find(&end).map_or(rest.len(), |at| open + at + end.len()));
        }
    }
    // A lifetime has no quote after its first character.
    let mut chars = rest.strip_prefix('\'')?.chars();
    match (chars.next()?, chars.next()) {
        ('\\', Some(escaped)) => {
            let from = 2 + escaped.len_utf8();
            rest[from..].find('\'').map(|at| from + at + 1)
        }
        (c, Some('\'')) => Some(2 + c.len_utf8()),
        (_, _) => None,
    }
}

fn quoted_length(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

fn block_comment_length(rest: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest[at..].starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

#[test]
fn the_reader_of_sources_is_not_fooled() {
    let code = "let a = \"fn x() { // \\\" crate::ui\"; // crate::run\nlet b = '{'; let c = '\\''; let d: &'static str = r#\"crate::\"{\"#;\n/* a /* b */ crate::x */ let e = b\"{\"; let f = '\\u{1F600}';";
    let blanked = blank(code);
    assert_eq!(blanked.lines().count(), code.lines().count());
    assert!(!blanked.contains("crate") && !blanked.contains('{'), "{blanked}");
    assert!(["let a", "let b", "let c", "&'static str", "let e", "let f"].iter().all(|part| blanked.contains(part)));

    let names: Vec<_> = imports("use crate::{ui, model::{self, x},\n run};\npub(crate) fn f() { crate::tools::go() }");
    let names: Vec<_> = names.iter().map(|(line, name)| (*line, name.as_str())).collect();
    assert_eq!(names, [(1, "ui"), (1, "model"), (1, "run"), (3, "tools")]);

    let code = "trait T { fn a(&self); fn b(x: [u8; 2]) -> u8 {\n 1\n} }\nfn c() where u8: Copy { if x { y }\n\n\n}";
    let found: Vec<_> = functions(code).into_iter().map(|(name, _, lines)| (name, lines)).collect();
    assert_eq!(found, [("b".to_owned(), 3), ("c".to_owned(), 4)]);
    assert!(has_word("a println!(b)", "println!") && !has_word("eprintln!(b)", "println!"));
}
