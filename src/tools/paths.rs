//! Paths that stay inside the workspace: links are followed first, then the place they lead to is judged.

use std::io;
use std::path::{Component, Path, PathBuf};

/// Followed links in one path, at most; more is a loop.
const LINKS_MAX: usize = 40;

/// Places in the workspace that hold the program's own or git's own trust: file tools don't write there.
const PROTECTED: [&str; 5] = [".mailboxes", ".team", ".s15.toml", ".git/hooks", ".git/config"];

/// A workspace and what else may be read.
#[derive(Clone, Debug)]
pub(super) struct Workspace {
    root: PathBuf,
    /// Long outputs of earlier calls: readable.
    out_dir: PathBuf,
}

impl Workspace {
    pub(super) fn new(root: &Path, out_dir: PathBuf) -> io::Result<Self> {
        let root = root.canonicalize()?;
        let out_dir = out_dir.canonicalize().unwrap_or(out_dir);
        Ok(Self { root, out_dir })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Where a path that is to be read really lies.
    pub(super) fn readable(&self, text: &str) -> Result<PathBuf, String> {
        let real = self.real(text)?;
        if real.starts_with(&self.root) || real.starts_with(&self.out_dir) {
            Ok(real)
        } else {
            Err(self.outside(text, &real))
        }
    }

    /// Where a path that is to be written really lies; it need not exist yet.
    pub(super) fn writable(&self, text: &str) -> Result<PathBuf, String> {
        let real = self.real(text)?;
        let Ok(inside) = real.strip_prefix(&self.root) else { return Err(self.outside(text, &real)) };
        if inside.as_os_str().is_empty() {
            return Err(format!("{text:?} is the workspace itself; name a file in it"));
        }
        if let Some(place) = PROTECTED.iter().find(|place| inside.starts_with(place)) {
            return Err(format!("{place} is the program's own or git's own; it is not written by tools"));
        }
        Ok(real)
    }

    /// A path as its owner would write it.
    pub(super) fn shown<'a>(&self, path: &'a Path) -> &'a Path {
        path.strip_prefix(&self.root).unwrap_or(path)
    }

    fn outside(&self, text: &str, real: &Path) -> String {
        format!("{text:?} leads to {}, outside the workspace {}; stay inside it", real.display(), self.root.display())
    }

    /// Follows every link, also one whose target does not exist, and every `..` after its link.
    fn real(&self, text: &str) -> Result<PathBuf, String> {
        if text.is_empty() || text.contains('\0') {
            return Err("the path is empty or has a zero byte".to_owned());
        }
        let mut real = PathBuf::new();
        let mut rest: Vec<PathBuf> = parts(&self.root.join(text));
        let mut links = 0;
        while let Some(part) = rest.pop() {
            match part.components().next() {
                Some(Component::ParentDir) => {
                    real.pop();
                    continue;
                }
                Some(Component::Normal(_)) => real.push(&part),
                Some(Component::RootDir | Component::Prefix(_)) => {
                    real = part;
                    continue;
                }
                Some(Component::CurDir) | None => continue,
            }
            if let Ok(target) = std::fs::read_link(&real) {
                links += 1;
                if links > LINKS_MAX {
                    return Err(format!("{text:?} leads round in circles"));
                }
                real.pop();
                rest.extend(parts(&target));
            }
        }
        Ok(real)
    }
}

/// The parts of a path, last first.
fn parts(path: &Path) -> Vec<PathBuf> {
    path.components().rev().map(|part| PathBuf::from(part.as_os_str())).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn i9_no_path_leads_out_of_the_workspace() {
        let outside = tempfile::tempdir().unwrap();
        let parent = tempfile::tempdir().unwrap();
        let root = parent.path().join("ws");
        std::fs::create_dir_all(root.join("in")).unwrap();
        std::fs::create_dir_all(parent.path().join("ws-evil")).unwrap();
        let victim = outside.path().join("victim");
        std::fs::write(&victim, "ORIG").unwrap();
        symlink(&victim, root.join("l1")).unwrap();
        symlink(outside.path().join("new"), root.join("l2")).unwrap();
        symlink(outside.path(), root.join("l3")).unwrap();
        symlink("in", root.join("l4")).unwrap();
        symlink("../..", root.join("in/up")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        let workspace = Workspace::new(&root, parent.path().join("out")).unwrap();
        let evil = parent.path().join("ws-evil/x");
        let absolute = victim.display().to_string();
        for path in [
            "l1",
            "l2",
            "l3/x",
            "../x",
            "in/../../x",
            "in/up/x",
            "loop",
            &evil.display().to_string(),
            &absolute,
            "",
            "a\0b",
        ] {
            assert!(workspace.writable(path).is_err(), "{path:?}");
        }
        for path in ["l1", "l3/victim", &absolute] {
            assert!(workspace.readable(path).is_err(), "{path:?}");
        }
        let inside = workspace.writable("l4/ok").unwrap();
        assert!(inside.ends_with("ws/in/ok"), "{inside:?}");
        assert!(workspace.writable("new/folder/file").is_ok());
        assert!(workspace.writable("in/../ok").is_ok());
        assert!(workspace.writable(&root.join("in/x").display().to_string()).is_ok());
    }

    #[test]
    fn i2_the_programs_own_files_are_not_written() {
        let root = tempfile::tempdir().unwrap();
        symlink(".mailboxes", root.path().join("box")).unwrap();
        let workspace = Workspace::new(root.path(), root.path().join("out")).unwrap();
        for path in
            [".mailboxes/lead.jsonl", ".team/config.json", ".s15.toml", ".git/hooks/pre-commit", ".git/config", "box/x"]
        {
            assert!(workspace.writable(path).is_err(), "{path:?}");
        }
        assert!(workspace.writable(".github/x").is_ok());
        assert!(workspace.readable(".mailboxes/x").is_ok());
    }
}
