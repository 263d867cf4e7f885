//! What an approved plan opens: places to write, and commands to run. As places that a sandbox can hold, not as patterns.
//!
//! Pure: paths are text here, relative to the workspace; what they lead to is for who opens them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The places and commands of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    /// Files and folders, each with all below it; an empty one is the whole workspace.
    paths: Vec<String>,
    /// Beginnings of simple commands, as words; empty: any command, held by the sandbox to the places.
    #[serde(default)]
    commands: Vec<Vec<String>>,
}

/// What joins commands, starts others, or writes files: with any of it a command is no simple one.
const OPERATORS: &[char] =
    &[';', '&', '|', '<', '>', '$', '`', '(', ')', '{', '}', '\\', '\'', '"', '\n', '\r', '!', '#'];
/// What stands for several names.
const PATTERN: &[char] = &['*', '?', '[', ']', '{', '}'];

impl Scope {
    /// The scope that a plan names. Without paths it is the whole workspace.
    ///
    /// # Errors
    /// A path leads out, or is a pattern that comes down to no folder; a command is no simple one. The text says what to do.
    pub fn parse(paths: &[String], commands: &[String]) -> Result<Self, String> {
        let mut places = paths.iter().map(|path| place(path)).collect::<Result<Vec<_>, _>>()?;
        if places.is_empty() {
            places.push(String::new());
        }
        places.sort();
        let mut kept: Vec<String> = Vec::new();
        for place in places {
            if !kept.iter().any(|known| holds(known, &place)) {
                kept.push(place);
            }
        }
        let commands = commands.iter().map(|command| {
            words(command).ok_or_else(|| {
                format!("{command:?} is no simple command; give the beginning of one, such as `cargo test`, without operators or quotes")
            })
        });
        Ok(Self { paths: kept, commands: commands.collect::<Result<_, _>>()? })
    }

    /// The same commands in other places.
    ///
    /// # Errors
    /// As [`Scope::parse`].
    pub fn narrowed(&self, paths: &[String]) -> Result<Self, String> {
        Ok(Self { commands: self.commands.clone(), ..Self::parse(paths, &[])? })
    }

    /// The places, relative to the workspace; an empty one is all of it.
    #[must_use]
    pub fn paths(&self) -> &[String] {
        &self.paths
    }

    /// Is it the whole workspace?
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.paths.iter().any(String::is_empty)
    }

    /// Does it hold this place? Relative to the workspace, without links and `..`.
    #[must_use]
    pub fn covers(&self, path: &str) -> bool {
        self.paths.iter().any(|place| holds(place, path))
    }

    /// Is this command one that the plan names? `None` if it names none.
    #[must_use]
    pub fn names_command(&self, command: &str) -> Option<bool> {
        if self.commands.is_empty() {
            return None;
        }
        let words = words(command);
        Some(words.is_some_and(|words| self.commands.iter().any(|known| words.starts_with(known))))
    }

    /// Is all of it within another?
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        let places = self.paths.iter().all(|path| other.covers(path));
        let known = |command: &Vec<String>| other.commands.iter().any(|known| command.starts_with(known));
        places && (other.commands.is_empty() || !self.commands.is_empty() && self.commands.iter().all(known))
    }

    /// Both.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        let mut both = self.clone();
        both.paths.extend(other.paths.iter().filter(|path| !self.covers(path)).cloned());
        if self.commands.is_empty() || other.commands.is_empty() {
            both.commands.clear();
        } else {
            both.commands.extend(other.commands.iter().filter(|command| !self.commands.contains(command)).cloned());
        }
        both
    }

    /// The places that belong to both.
    #[must_use]
    pub fn overlap(&self, other: &Self) -> Vec<String> {
        let shared =
            |one: &Self, all: &Self| one.paths.iter().filter(|path| all.covers(path)).cloned().collect::<Vec<_>>();
        let mut places = [shared(self, other), shared(other, self)].concat();
        places.sort_unstable();
        places.dedup();
        places
    }
}

/// `src/auth.rs, tests/ (commands: cargo test)`.
impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paths: Vec<&str> = self.paths.iter().map(|path| shown(path)).collect();
        f.write_str(&paths.join(", "))?;
        if self.commands.is_empty() {
            return Ok(());
        }
        let commands: Vec<String> = self.commands.iter().map(|command| command.join(" ")).collect();
        write!(f, " (commands: {})", commands.join(", "))
    }
}

fn shown(place: &str) -> &str {
    if place.is_empty() { "everything in the workspace" } else { place }
}

fn holds(place: &str, path: &str) -> bool {
    place.is_empty() || path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The place that a path of a plan names: `src/auth.rs`, `src/`, `src/**`.
fn place(path: &str) -> Result<String, String> {
    let text = path.trim();
    let folder = text.strip_suffix("/**/*").or_else(|| text.strip_suffix("/**")).or_else(|| text.strip_suffix("/*"));
    let folder = folder.unwrap_or(if matches!(text, "**" | "**/*" | "*") { "" } else { text });
    if folder.starts_with('/') || folder.starts_with('~') || folder.split('/').any(|part| part == "..") {
        return Err(format!("{path:?} leads out of the workspace; name places relative to it"));
    }
    if folder.contains(PATTERN) || folder.contains('\0') {
        return Err(format!("{path:?} can't be held as a pattern; name each file, or the folder (as `src/`)"));
    }
    let parts = folder.split('/').filter(|part| !part.is_empty() && *part != ".");
    Ok(parts.collect::<Vec<_>>().join("/"))
}

/// The words of a simple command.
fn words(command: &str) -> Option<Vec<String>> {
    let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
    // A first word with `=` sets a variable for the one behind it.
    let simple = !command.trim().contains(OPERATORS) && words.first().is_some_and(|first| !first.contains('='));
    simple.then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(paths: &[&str], commands: &[&str]) -> Scope {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        Scope::parse(&owned(paths), &owned(commands)).unwrap()
    }

    #[test]
    fn i3_a_scope_holds_its_places_and_nothing_beside_them() {
        let scope = scope(&["./src/auth/**", "tests/", "README.md", "src/auth/deep.rs"], &[]);
        for (path, held) in [
            ("src/auth", true),
            ("src/auth/deep/er.rs", true),
            ("src/authors.rs", false),
            ("src", false),
            ("tests/a b.rs", true),
            ("README.md", true),
            ("README.md.orig", false),
            ("", false),
        ] {
            assert_eq!(scope.covers(path), held, "{path:?}");
        }
        assert_eq!(scope.to_string(), "README.md, src/auth, tests");
        assert!(!scope.is_everything());
    }

    #[test]
    fn what_no_sandbox_can_hold_is_refused_with_advice() {
        for path in ["/etc", "../x", "a/../../x", "~/x", "src/*.rs", "src/**/mod.rs", "{a,b}", "a[1]"] {
            let error = Scope::parse(&[path.to_owned()], &[]).unwrap_err();
            assert!(error.contains("name"), "{error}");
        }
        for command in ["cargo test; rm x", "a && b", "echo $(x)", "a > b", "a | b", "X=1 make", "", "sh -c 'x'"] {
            assert!(Scope::parse(&[], &[command.to_owned()]).is_err(), "{command:?}");
        }
        for paths in [&[][..], &["**"], &["."], &["./"], &["*"]] {
            assert!(scope(paths, &[]).is_everything(), "{paths:?}");
        }
    }

    #[test]
    fn i3_a_prefix_matches_one_simple_command() {
        let scope = scope(&["src/"], &["cargo test", "ls"]);
        for (command, named) in [
            ("cargo test", true),
            ("cargo  test --offline", true),
            ("cargo tester", false),
            ("cargo", false),
            ("ls -l", true),
            ("cargo test; rm -rf x", false),
            ("cargo test\nrm x", false),
            ("cargo test $(rm x)", false),
            ("cargo test > x", false),
            ("X=1 cargo test", false),
        ] {
            assert_eq!(scope.names_command(command), Some(named), "{command:?}");
        }
        assert_eq!(self::scope(&[], &[]).names_command("rm x"), None);
    }

    #[test]
    fn scopes_can_be_compared_and_joined() {
        let (narrow, wide) = (scope(&["src/auth.rs"], &["ls"]), scope(&["src/", "docs/"], &[]));
        assert!(narrow.is_within(&wide) && !wide.is_within(&narrow));
        assert_eq!(narrow.overlap(&wide), ["src/auth.rs"]);
        assert!(narrow.overlap(&scope(&["src/auth"], &[])).is_empty());
        let both = narrow.with(&wide);
        assert!(wide.is_within(&both) && narrow.is_within(&both), "{both}");
        assert_eq!(narrow.with(&scope(&["a"], &["ls", "pwd"])).to_string(), "src/auth.rs, a (commands: ls, pwd)");
    }
}
