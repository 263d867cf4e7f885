//! A failed command's output, searched for what the sandbox refused it.
//!
//! Programs say in their own words what failed; only a line with the system's word for a refusal and a path that is
//! closed counts. Pure but for a look at what is there.

use std::path::{Component, Path, PathBuf};

use nix::unistd::{AccessFlags, access};

use super::policy::Bounds;

/// The system's words for a refusal, as programs repeat them.
const REFUSALS: [&str; 7] = [
    "permission denied",
    "read-only file system",
    "operation not permitted",
    "device or resource busy",
    "invalid cross-device link",
    "eacces",
    "erofs",
];
/// Lines that are looked at, the last of an output.
const LINES_MAX: usize = 200;
/// Places that are named as writable.
const NAMED_MAX: usize = 4;

/// What to tell the model of a place that was closed to its command; nothing if no line of the output names one. `folder`:
/// where the command ran.
#[must_use]
pub fn closed_by(bounds: &Bounds, folder: &Path, output: &str) -> Option<String> {
    let lines: Vec<&str> = output.lines().rev().take(LINES_MAX).collect();
    let refused = lines.into_iter().rev().filter(|line| is_refusal(line));
    let paths = refused.flat_map(|line| candidates(line)).map(|word| lexical(&folder.join(word)));
    let path = paths.into_iter().find(|path| is_closed(bounds, path))?;
    Some(words(bounds, &path))
}

/// Was it the sandbox that closed this? What the user may not do either is closed by others.
fn is_closed(bounds: &Bounds, path: &Path) -> bool {
    let Some(parent) = path.parent().filter(|parent| parent.is_dir()) else { return false };
    let there = if path.exists() { path } else { parent };
    let closed = !bounds.is_writable(path) || (bounds.is_frozen(parent) && !path.exists());
    closed && (!bounds.is_readable(path) || access(there, AccessFlags::W_OK).is_ok())
}

fn words(bounds: &Bounds, path: &Path) -> String {
    const OUTSIDE: &str = "call again with outside_sandbox: true and a reason, which asks the user";
    let shown = path.display();
    if !bounds.is_readable(path) {
        return format!("the sandbox closed: {shown} (neither read nor written by commands); {OUTSIDE}");
    }
    if bounds.is_writable(path) {
        return format!(
            "the sandbox closed: {shown} (on this machine commands can't make or remove anything directly in {}); make it \
             with write_file and run this again, or {OUTSIDE}",
            path.parent().unwrap_or(path).display()
        );
    }
    let mut writable: Vec<String> =
        bounds.writable.iter().take(NAMED_MAX).map(|place| place.display().to_string()).collect();
    if bounds.writable.len() > NAMED_MAX {
        writable.push("…".to_owned());
    }
    format!("the sandbox closed: {shown} (writing is allowed in {}); {OUTSIDE}", writable.join(", "))
}

/// What may be a path in a line: what stands in quotes, words with a slash, and what stands right before the refusal.
fn candidates(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (open, close) in [('\'', '\''), ('"', '"'), ('`', '`'), ('‘', '’'), ('`', '\'')] {
        let quoted = line.split_once(open).and_then(|(_, rest)| rest.split_once(close));
        found.extend(quoted.map(|(inside, _)| inside));
    }
    found.extend(line.split([' ', '(', ')', ',', ';']).filter(|word| word.contains('/')));
    let parts: Vec<&str> = line.split(": ").collect();
    let before = parts.windows(2).filter(|pair| is_refusal(pair[1])).map(|pair| pair[0].trim());
    found.extend(before.filter(|part| !part.contains(' ')));
    found.into_iter().map(|word| word.trim_end_matches([':', '.', ','])).filter(|word| !word.is_empty()).collect()
}

fn is_refusal(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    REFUSALS.iter().any(|word| text.contains(word))
}

/// A path without `.` and `..`, by its words alone.
fn lexical(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::super::policy::{Means, Network};
    use super::*;

    #[test]
    fn the_place_that_was_closed_is_found_in_what_programs_say() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        for folder in ["ws/.git/hooks", "ws/src", "home/.ssh", "etc"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        let bounds = Bounds {
            means: Means { landlock: true, mounts: true, network: true, seatbelt: false },
            writable: vec![root.join("ws")],
            read_only: vec![root.join("ws/.git/hooks")],
            hidden: vec![root.join("home/.ssh")],
            shown: Vec::new(),
            network: Network::Allowed,
            temp: Vec::new(),
        };
        let told = |bounds: &Bounds, output: &str| closed_by(bounds, &root.join("ws"), output);
        let ssh = root.join("home/.ssh/id").display().to_string();
        for (output, place) in [
            ("bash: line 1: /etc/x: Permission denied", "/etc/x"),
            ("ok\ntouch: cannot touch '/etc/x': Read-only file system\n", "/etc/x"),
            ("mkdir: cannot create directory ‘/etc/x y’: Permission denied", "/etc/x y"),
            ("PermissionError: [Errno 13] Permission denied: '/etc/x'", "/etc/x"),
            ("Error: EACCES: permission denied, open '/etc/x'", "/etc/x"),
            ("error: failed to create directory `/etc/x`: Permission denied (os error 13)", "/etc/x"),
            ("bash: line 1: ../x: Permission denied", &root.join("x").display().to_string()),
            (
                "bash: .git/hooks/pre-commit: Read-only file system",
                &root.join("ws/.git/hooks/pre-commit").display().to_string(),
            ),
            (&format!("cat: {ssh}: Permission denied"), &ssh),
        ] {
            let output = &output.replace("/etc/x", root.join("etc/x").to_str().unwrap());
            let place = &place.replace("/etc/x", root.join("etc/x").to_str().unwrap());
            let text = told(&bounds, output).unwrap_or_else(|| panic!("nothing in {output}"));
            assert!(text.starts_with(&format!("the sandbox closed: {place} (")), "{output}: {text}");
            assert!(text.contains("outside_sandbox: true"), "{text}");
        }
        for output in [
            "",
            "Permission denied",
            "bash: ./src/run.sh: Permission denied",
            "ssh: git@github.com: Permission denied (publickey).",
            "the file /etc/x is fine",
        ] {
            assert_eq!(told(&bounds, output), None, "{output}");
        }
        let alone = Bounds { means: Means { mounts: false, ..bounds.means }, ..bounds.clone() };
        let text = told(&alone, "mkdir: cannot create directory 'target': Permission denied").unwrap();
        assert!(text.contains("write_file"), "{text}");
        std::fs::write(root.join("ws/run.sh"), "").unwrap();
        for output in ["bash: ./src/run.sh: Permission denied", "bash: ./run.sh: Permission denied"] {
            assert_eq!(told(&alone, output), None, "{output}");
        }
    }
}
