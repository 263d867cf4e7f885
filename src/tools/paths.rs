//! Paths that stay inside the workspace: links are followed in words first, the place they lead to is judged, and that
//! place is then opened from the workspace's own handle without following any link.
//!
//! So what was judged is what is opened: a folder that is swapped for a link in between makes the call fail, not
//! escape. Hard links can't be told apart from files; writes replace a file by a new one and leave its other names be.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat};
use nix::sys::stat::{Mode, mkdirat};

use super::text;
use crate::protocol::Scope;
use crate::sandbox::Bounds;

/// Followed links in one path, at most; more is a loop.
const LINKS_MAX: usize = 40;

/// Places at the workspace's top that are the program's own: file tools don't write there.
const OWN: [&str; 3] = [".mailboxes", ".team", ".s15.toml"];
/// Git's own folder, at any depth: hooks and configuration in it are run.
const GIT: &str = ".git";

/// How something is opened that is only looked at or passed through.
#[cfg(target_os = "linux")]
pub(super) const PASSAGE: OFlag = OFlag::O_PATH;
#[cfg(not(target_os = "linux"))]
pub(super) const PASSAGE: OFlag = OFlag::O_RDONLY.union(OFlag::O_NONBLOCK);

/// How something is opened to be read.
const LOOK: OFlag = OFlag::O_RDONLY.union(OFlag::O_NONBLOCK).union(OFlag::O_NOCTTY).union(OFlag::O_CLOEXEC);

/// How a plan is widened.
pub(super) const AMEND: &str = "To go on there, submit_plan again with what you need besides";

/// A workspace, and what else may be read.
#[derive(Clone, Debug)]
pub(super) struct Workspace {
    root: PathBuf,
    folder: Arc<OwnedFd>,
    /// Long outputs of earlier calls; need not exist yet.
    out_dir: PathBuf,
    /// What commands are kept from, wherever it lies.
    bounds: Option<Arc<Bounds>>,
    /// What an approved plan opens, if one bounds the call.
    scope: Option<Scope>,
}

/// A place that a call may use: free of links and `..` when it was judged. It need not exist.
#[derive(Debug)]
pub(super) struct Place {
    base: Arc<OwnedFd>,
    bounds: Option<Arc<Bounds>>,
    /// Below `base`; empty for `base` itself.
    inside: PathBuf,
    /// As the call wrote it, for its result.
    shown: String,
    /// Where it really lies.
    real: PathBuf,
}

impl Workspace {
    pub(super) fn new(root: &Path, out_dir: &Path) -> io::Result<Self> {
        let root = root.canonicalize()?;
        let folder = Arc::new(open_folder(&root)?);
        Ok(Self { root, folder, out_dir: out_dir.to_owned(), bounds: None, scope: None })
    }

    /// What is closed to commands is closed to file tools too, in the workspace as well.
    pub(super) fn keep_to(&mut self, bounds: &Bounds) {
        self.bounds = Some(Arc::new(bounds.clone()));
    }

    /// The same for a call that an approved plan bounds.
    pub(super) fn within(&self, scope: &Scope) -> Self {
        Self { scope: Some(scope.clone()), ..self.clone() }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// A place to look at.
    pub(super) fn readable(&self, path: &str) -> Result<Place, String> {
        let real = self.real(path)?;
        if self.bounds.as_ref().is_some_and(|bounds| !bounds.is_readable(&real)) {
            return Err(format!(
                "{} is kept from tools: it may hold secrets; ask the user for what you need",
                quoted(path)
            ));
        }
        if let Ok(inside) = real.strip_prefix(&self.root) {
            return Ok(self.place(inside, path, &real));
        }
        if let Some(out_dir) = follow(&self.out_dir)
            && let Ok(inside) = real.strip_prefix(&out_dir)
            && let Ok(base) = open_folder(&out_dir)
        {
            return Ok(Place { base: Arc::new(base), ..self.place(inside, path, &real) });
        }
        Err(self.outside(path, &real))
    }

    /// A file to write.
    pub(super) fn writable(&self, path: &str) -> Result<Place, String> {
        let real = self.real(path)?;
        let Ok(inside) = real.strip_prefix(&self.root) else { return Err(self.outside(path, &real)) };
        if inside.as_os_str().is_empty() || path.ends_with(['/']) || path.ends_with("/.") {
            return Err(format!("{} is a folder; name a file in it", quoted(path)));
        }
        if let Some(whose) = protected(inside) {
            return Err(format!("{} is {whose}; choose another place", quoted(path)));
        }
        if self.bounds.as_ref().is_some_and(|bounds| !bounds.is_writable(&real)) {
            return Err(format!("{} is protected and not written by tools; choose another place", quoted(path)));
        }
        if let Some(scope) = self.scope.as_ref().filter(|scope| !inside.to_str().is_some_and(|at| scope.covers(at))) {
            return Err(format!("{} is outside your approved plan, which opens {scope}. {AMEND}", quoted(path)));
        }
        Ok(self.place(inside, path, &real))
    }

    /// A path below the workspace as an agent would write it.
    pub(super) fn name(&self, path: &Path) -> String {
        text::name(path.strip_prefix(&self.root).unwrap_or(path).as_os_str().as_bytes())
    }

    fn place(&self, inside: &Path, path: &str, real: &Path) -> Place {
        let shown = text::one_line(path, 400);
        let (base, bounds) = (Arc::clone(&self.folder), self.bounds.clone());
        Place { base, bounds, inside: inside.to_owned(), shown, real: real.to_owned() }
    }

    fn outside(&self, path: &str, real: &Path) -> String {
        let reached = text::name(real.as_os_str().as_bytes());
        format!("{} leads to {reached}, outside the workspace {}; stay inside it", quoted(path), self.root.display())
    }

    /// Where a path leads to.
    fn real(&self, path: &str) -> Result<PathBuf, String> {
        if path.is_empty() || path.contains('\0') {
            return Err("the path is empty or has a zero byte; name a file in the workspace".to_owned());
        }
        follow(&self.root.join(path)).ok_or_else(|| format!("{} leads round in circles by its links", quoted(path)))
    }
}

/// Follows every link in an absolute path, also one whose target doesn't exist, and each `..` after the link before it.
/// `None`: too many links.
fn follow(path: &Path) -> Option<PathBuf> {
    let mut real = PathBuf::new();
    let mut rest = parts(path);
    let mut links = 0;
    while let Some(part) = rest.pop() {
        match part.components().next() {
            Some(Component::ParentDir) => {
                real.pop();
            }
            Some(Component::Normal(_)) => {
                real.push(&part);
                if let Ok(target) = std::fs::read_link(&real) {
                    links += 1;
                    if links > LINKS_MAX {
                        return None;
                    }
                    real.pop();
                    rest.extend(parts(&target));
                }
            }
            Some(Component::RootDir | Component::Prefix(_)) => real = part,
            Some(Component::CurDir) | None => {}
        }
    }
    Some(real)
}

impl Place {
    /// As the call wrote it.
    pub(super) fn shown(&self) -> &str {
        &self.shown
    }

    /// Where it really lies. For walks that begin there; to open it, use [`Self::open`].
    pub(super) fn real(&self) -> &Path {
        &self.real
    }

    /// This place or one below it, as a walk from [`Self::real`] found it, unless it is kept from tools.
    pub(super) fn below(&self, path: &Path) -> Option<Self> {
        if self.bounds.as_ref().is_some_and(|bounds| !bounds.is_readable(path)) {
            return None;
        }
        let rest = path.strip_prefix(&self.real).ok()?;
        // Joining nothing would leave a slash at the end of a file's path.
        let inside = if rest.as_os_str().is_empty() { self.inside.clone() } else { self.inside.join(rest) };
        let (base, bounds) = (Arc::clone(&self.base), self.bounds.clone());
        Some(Self { base, bounds, inside, shown: String::new(), real: path.to_owned() })
    }

    /// Opens what is there for reading, without following links and without waiting for a writer.
    pub(super) fn open(&self) -> io::Result<File> {
        let path = if self.inside.as_os_str().is_empty() { Path::new(".") } else { &self.inside };
        match open_beneath(&self.base, path, LOOK) {
            Err(Errno::ENOSYS | Errno::EPERM) => self.open_by_steps(),
            opened => Ok(opened?.into()),
        }
    }

    /// The same, folder by folder, where the kernel can't do it at once.
    pub(super) fn open_by_steps(&self) -> io::Result<File> {
        let name = self.inside.file_name().unwrap_or(OsStr::new("."));
        let file = openat(self.parent(Missing::Fails)?, name, LOOK | OFlag::O_NOFOLLOW, Mode::empty())?;
        Ok(file.into())
    }

    /// The name in its folder.
    pub(super) fn file_name(&self) -> &OsStr {
        self.inside.file_name().unwrap_or_default()
    }

    /// The folder it lies in, opened step by step without following links.
    pub(super) fn parent(&self, missing: Missing) -> io::Result<OwnedFd> {
        let flags = PASSAGE | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let mut folder = self.base.try_clone()?;
        for part in self.inside.parent().into_iter().flat_map(Path::iter) {
            if missing == Missing::IsMade {
                match mkdirat(&folder, part, Mode::from_bits_truncate(0o777)) {
                    Ok(()) | Err(Errno::EEXIST) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            folder = openat(&folder, part, flags, Mode::empty())?;
        }
        Ok(folder)
    }
}

/// What happens with folders on the way that are not there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    Fails,
    IsMade,
}

/// Whose place this is, if file tools must not write there. File systems may fold case, so this does.
fn protected(inside: &Path) -> Option<&'static str> {
    let is = |part: &OsStr, name: &str| part.to_str().is_some_and(|part| part.eq_ignore_ascii_case(name));
    if inside.iter().next().is_some_and(|top| OWN.iter().any(|name| is(top, name))) {
        return Some("the program's own and not written by tools");
    }
    let in_git = inside.iter().any(|part| is(part, GIT));
    in_git.then_some("git's own and not written by tools: use git through bash")
}

/// The parts of a path, last first.
fn parts(path: &Path) -> Vec<PathBuf> {
    path.components().rev().map(|part| PathBuf::from(part.as_os_str())).collect()
}

fn quoted(path: &str) -> String {
    format!("`{}`", text::one_line(path, 400))
}

fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    Ok(open(path, PASSAGE | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?)
}

/// One system call for the whole path, where the kernel has it.
#[cfg(target_os = "linux")]
fn open_beneath(base: &impl AsFd, path: &Path, flags: OFlag) -> nix::Result<OwnedFd> {
    use nix::fcntl::{OpenHow, ResolveFlag, openat2};
    let resolve = ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS;
    openat2(base, path, OpenHow::new().flags(flags).resolve(resolve))
}

#[cfg(not(target_os = "linux"))]
fn open_beneath(_base: &impl AsFd, _path: &Path, _flags: OFlag) -> nix::Result<OwnedFd> {
    Err(Errno::ENOSYS)
}
