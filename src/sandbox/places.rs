//! Which places are closed whatever a session is about: the program's own, what git runs by itself, and the user's secrets.
//!
//! Looks at what exists; knows nothing of how it is closed.

use std::fs;
use std::path::{Path, PathBuf};

use super::policy::{Bounds, Means, Network};

/// Of the workspace's top, what is the program's own.
const OWN: [&str; 3] = [".mailboxes", ".team", ".s15.toml"];
/// Of a git folder, what git runs or is told by what to run.
const GIT_RUNS: [&str; 3] = ["hooks", "config", "config.worktree"];
/// Below the home folder, what opens doors elsewhere.
const SECRETS: [&str; 29] = [
    ".ssh",
    ".aws",
    ".azure",
    ".gnupg",
    ".kube",
    ".netrc",
    ".git-credentials",
    ".pypirc",
    ".vault-token",
    ".password-store",
    ".docker/config.json",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".terraform.d/credentials.tfrc.json",
    ".config/gh",
    ".config/hub",
    ".config/git/credentials",
    ".config/gcloud",
    ".config/op",
    ".config/rclone",
    ".config/s15",
    ".config/google-chrome",
    ".config/chromium",
    ".local/share/keyrings",
    ".mozilla",
    ".bash_history",
    ".zsh_history",
    "Library/Keychains",
    "Library/Application Support/Google/Chrome",
];
/// Who talks to these has others do what the sandbox keeps from it.
const SERVANTS: [&str; 6] = [
    "/run/screen",
    "/run/docker.sock",
    "/run/containerd/containerd.sock",
    "/run/podman/podman.sock",
    "/run/dbus/system_bus_socket",
    "/run/systemd/private",
];

/// What a session's bounds are made of.
#[derive(Clone, Debug)]
pub struct Ground<'a> {
    /// Absolute and canonical.
    pub workspace: &'a Path,
    /// The session's folder for what doesn't last.
    pub temp: &'a Path,
    /// Where locks and journals are kept; hidden.
    pub state_dir: &'a Path,
    /// Below it, the session's long outputs; shown.
    pub out_dir: &'a Path,
    /// The user's settings file, which may hold a key; hidden.
    pub settings: Option<&'a Path>,
    /// The user's home.
    pub home: Option<&'a Path>,
    /// The user's folder for sockets (`XDG_RUNTIME_DIR`); hidden.
    pub runtime_dir: Option<&'a Path>,
    /// What the user opened besides, files or folders.
    pub opened: &'a [PathBuf],
    /// As the user has it.
    pub network: Network,
    /// What the machine can hold them with.
    pub means: Means,
}

impl Bounds {
    /// The bounds of a session's commands, unless a call has narrower ones.
    #[must_use]
    pub fn for_session(ground: &Ground<'_>) -> Self {
        let opened: Vec<_> = ground.opened.iter().filter_map(|place| place.canonicalize().ok()).collect();
        let git = Git::of(ground.workspace);
        let mut writable = vec![ground.workspace.to_owned(), real(ground.temp)];
        writable.extend(opened.iter().cloned());
        writable.extend(git.elsewhere);
        let mut read_only: Vec<_> = OWN.iter().map(|name| ground.workspace.join(name)).collect();
        read_only.extend(git.read_only);
        let secrets = ground.home.into_iter().flat_map(|home| SECRETS.iter().map(move |secret| home.join(secret)));
        let secrets = secrets.chain(ground.settings.map(Path::to_owned)).chain(ground.runtime_dir.map(Path::to_owned));
        let secrets = secrets
            .chain(SERVANTS.iter().map(PathBuf::from))
            .chain(windows())
            .filter_map(|place| place.canonicalize().ok());
        // A place that the user opened by its own name is no secret to them.
        let mut hidden: Vec<_> = secrets.filter(|place| !opened.contains(place)).collect();
        hidden.push(real(ground.state_dir));
        // What holds the workspace can't be hidden.
        hidden.retain(|place| !ground.workspace.starts_with(place));
        for places in [&mut writable, &mut read_only, &mut hidden] {
            places.sort();
            places.dedup();
        }
        Self {
            means: ground.means,
            writable,
            read_only,
            hidden,
            shown: vec![
                real(ground.state_dir).join(ground.out_dir.strip_prefix(ground.state_dir).unwrap_or(ground.out_dir)),
            ],
            network: ground.network,
            temp: vec![real(ground.temp)],
        }
    }
}

/// What cargo writes beside its manifest.
const CARGO: (&str, &str) = ("Cargo.toml", "Cargo.lock");
/// The folders that builds make at the top of a workspace of their kind.
const BUILDS: [(&str, &str); 2] = [("Cargo.toml", "target"), ("package.json", "node_modules")];

impl Bounds {
    /// Makes what must be there before the first command. Folders for hooks: a missing one could be made and filled, an empty
    /// one can be held. And where commands can't make anything new at the workspace's top (see [`Bounds::is_frozen`]), what
    /// builds of its kind make there.
    pub fn make_ready(&self, workspace: &Path) {
        for hooks in self.read_only.iter().filter(|place| place.ends_with("hooks")) {
            // Without its parent there is nothing to hold; one that can't be made here can't be made by commands either.
            let _ = fs::create_dir(hooks);
        }
        if self.means.mounts || !self.means.landlock {
            return;
        }
        // What can't be made is missed by the build, which says so.
        for (_, folder) in BUILDS.iter().filter(|(marker, _)| workspace.join(marker).is_file()) {
            let _ = fs::create_dir(workspace.join(folder));
        }
        if workspace.join(CARGO.0).is_file() {
            // Cargo takes an empty one for one that is to be filled.
            let _ = fs::File::create_new(workspace.join(CARGO.1));
        }
    }
}

/// The user's terminals and windows, which take keys from whoever asks.
fn windows() -> [PathBuf; 2] {
    ["/tmp/.X11-unix".into(), format!("/tmp/tmux-{}", nix::unistd::getuid()).into()]
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// What a workspace's git needs, and what of it stays closed.
#[derive(Default)]
struct Git {
    /// The repository, if it lies elsewhere.
    elsewhere: Option<PathBuf>,
    read_only: Vec<PathBuf>,
}

impl Git {
    fn of(workspace: &Path) -> Self {
        let entry = workspace.join(".git");
        let Ok(facts) = entry.symlink_metadata() else {
            // One that a command makes is closed from then on.
            return Self { elsewhere: None, read_only: runs(&entry) };
        };
        if facts.is_dir() {
            return Self { elsewhere: None, read_only: closed_in(&entry) };
        }
        // A worktree: a file that names its folder in the repository. It is believed only if that folder names it too, which
        // nobody can bring about from within the workspace.
        let Some(repository) = repository_of(&entry) else { return Self { elsewhere: None, read_only: vec![entry] } };
        let mut read_only = closed_in(&repository);
        let worktrees = fs::read_dir(repository.join("worktrees")).into_iter().flatten().flatten();
        read_only.extend(worktrees.map(|worktree| worktree.path().join("config.worktree")));
        read_only.push(entry);
        Self { elsewhere: Some(repository), read_only }
    }
}

fn runs(folder: &Path) -> Vec<PathBuf> {
    GIT_RUNS.iter().map(|name| folder.join(name)).collect()
}

/// What stays closed in a git folder and in those of its submodules.
fn closed_in(folder: &Path) -> Vec<PathBuf> {
    let mut closed = runs(folder);
    if folder.join("hooks").is_symlink() {
        // A link can't be held, only the folder it stands in.
        closed.push(folder.to_owned());
    }
    let modules = fs::read_dir(folder.join("modules")).into_iter().flatten().flatten();
    closed.extend(modules.filter(|module| module.path().is_dir()).flat_map(|module| runs(&module.path())));
    closed
}

/// The repository of a worktree whose `.git` is a file.
fn repository_of(entry: &Path) -> Option<PathBuf> {
    let text = fs::read_to_string(entry).ok()?;
    let folder = Path::new(text.strip_prefix("gitdir:")?.trim()).canonicalize().ok()?;
    let named_back = fs::read_to_string(folder.join("gitdir")).ok()?;
    let is_it = Path::new(named_back.trim()).canonicalize().ok()? == entry.canonicalize().ok()?;
    let repository = folder.parent().filter(|worktrees| worktrees.ends_with("worktrees"))?.parent()?;
    (is_it && repository.join("HEAD").is_file()).then(|| repository.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn git(folder: &Path, arguments: &[&str]) {
        let status = std::process::Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"])
            .args(arguments)
            .current_dir(folder)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .status();
        assert!(status.unwrap().success(), "git {arguments:?}");
    }

    #[test]
    fn a_worktree_opens_its_repository_and_a_forged_one_opens_nothing() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let main = root.join("main");
        fs::create_dir(&main).unwrap();
        git(&main, &["init", "-q"]);
        git(&main, &["commit", "-q", "--allow-empty", "-m", "x"]);
        git(&main, &["worktree", "add", "-q", "../tree"]);
        let of_tree = Git::of(&root.join("tree"));
        assert_eq!(of_tree.elsewhere, Some(main.join(".git")));
        for closed in ["main/.git/hooks", "main/.git/config", "main/.git/worktrees/tree/config.worktree", "tree/.git"] {
            assert!(of_tree.read_only.contains(&root.join(closed)), "{closed}");
        }
        let forged = root.join("forged");
        fs::create_dir(&forged).unwrap();
        fs::copy(root.join("tree/.git"), forged.join(".git")).unwrap();
        assert_eq!(Git::of(&forged).elsewhere, None);
        fs::write(forged.join(".git"), format!("gitdir: {}", root.display())).unwrap();
        assert_eq!(Git::of(&forged).elsewhere, None);
    }
}
