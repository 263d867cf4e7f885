//! What a command may do, as plain data: which places it may write, which stay closed below them, and whether it has a network.
//!
//! Knows nothing of how a system holds it to that.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Folders that builds write to and that hold nothing of their own: a plan's scope is opened together with these.
pub const BUILD_FOLDERS: [&str; 6] = ["target", "build", "dist", "node_modules/.cache", ".pytest_cache", ".mypy_cache"];

/// What holds for one command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Policy {
    /// No sandbox: all that the user may.
    #[default]
    Full,
    /// Only this.
    Confined(Bounds),
}

/// The limits of a command. All paths are absolute and free of links when the bounds are made; a place that is none any
/// more when a command starts is not opened to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// With what the system is to hold them. A command isn't started if one of these can't be had.
    pub means: Means,
    /// Folders with all below them, and files.
    #[serde(with = "raw")]
    pub writable: Vec<PathBuf>,
    /// Stay as they are although they lie in writable folders. What doesn't exist can't be held.
    #[serde(with = "raw")]
    pub read_only: Vec<PathBuf>,
    /// Can't be read either.
    #[serde(with = "raw")]
    pub hidden: Vec<PathBuf>,
    /// Folders below hidden ones that can be read all the same.
    #[serde(with = "raw")]
    pub shown: Vec<PathBuf>,
    /// May the command reach other machines?
    pub network: Network,
    /// The session's folder for what doesn't last; writable, and told to commands as `TMPDIR`.
    #[serde(with = "raw")]
    pub temp: Vec<PathBuf>,
}

/// What a system holds bounds with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Means {
    /// Landlock's rules.
    pub landlock: bool,
    /// A view of the file system of the command's own, in which the rest is mounted read-only.
    pub mounts: bool,
    /// A network of the command's own, where it is to have none; Landlock's rules know TCP alone.
    pub network: bool,
    /// The platform's own sandbox (macOS).
    pub seatbelt: bool,
}

/// May a command reach other machines?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    /// Yes.
    #[default]
    Allowed,
    /// No.
    Denied,
}

impl Means {
    /// Can anything be held?
    #[must_use]
    pub fn any(self) -> bool {
        self.landlock || self.mounts || self.seatbelt
    }
}

impl Policy {
    /// The bounds, if there are any.
    #[must_use]
    pub fn bounds(&self) -> Option<&Bounds> {
        match self {
            Self::Full => None,
            Self::Confined(bounds) => Some(bounds),
        }
    }

    /// What commands under this policy find in their environment besides the rest.
    pub(crate) fn variables(&self) -> Vec<(&'static str, OsString)> {
        let Some(temp) = self.bounds().and_then(|bounds| bounds.temp.first()) else { return Vec::new() };
        // Caches that programs can't do without, where their usual place is closed.
        let caches = [("GOCACHE", "go"), ("npm_config_cache", "npm"), ("UV_CACHE_DIR", "uv"), ("PIP_CACHE_DIR", "pip")];
        let caches = caches.into_iter().filter(|(name, _)| std::env::var_os(name).is_none());
        let caches = caches.map(|(name, folder)| (name, temp.join("cache").join(folder).into_os_string()));
        std::iter::once(("TMPDIR", temp.clone().into_os_string())).chain(caches).collect()
    }
}

impl Bounds {
    /// The same with other places to write: `places` and the temporary folder instead of the workspace and what the user
    /// configured. For a teammate whose plan was approved: its paths, and [`BUILD_FOLDERS`]. What doesn't exist is left
    /// out, and so is what was not writable before; [`Self::is_writable`] tells.
    #[must_use]
    pub fn writing_only(&self, places: &[PathBuf]) -> Self {
        let real = places.iter().filter_map(|place| place.canonicalize().ok());
        let writable = real.filter(|place| self.is_writable(place)).chain(self.temp.iter().cloned()).collect();
        Self { writable, ..self.clone() }
    }

    /// The same with more places that stay as they are, such as files that belong to other teammates.
    #[must_use]
    pub fn keeping(&self, places: &[PathBuf]) -> Self {
        let mut bounds = self.clone();
        bounds.read_only.extend(places.iter().filter_map(|place| place.canonicalize().ok()));
        bounds
    }

    /// May a command write there? Of what doesn't exist, the folder decides. `path` is absolute and free of links and `..`.
    #[must_use]
    pub fn is_writable(&self, path: &Path) -> bool {
        let opened = deepest(&self.writable, path);
        let closed = deepest(&self.read_only, path).max(deepest(&self.hidden, path));
        opened > 0 && opened > closed
    }

    /// Can a command read what is there?
    #[must_use]
    pub fn is_readable(&self, path: &Path) -> bool {
        let opened = deepest(&self.shown, path).max(deepest(&self.writable, path));
        opened >= deepest(&self.hidden, path)
    }

    /// Where only Landlock holds the bounds, a folder with something closed in it can't be opened as a whole: nothing new
    /// can be made in it, and nothing taken away. Is this such a folder?
    #[must_use]
    pub fn is_frozen(&self, folder: &Path) -> bool {
        let closed = || self.read_only.iter().chain(&self.hidden);
        let is_there = |path: &PathBuf| path != folder && path.starts_with(folder) && path.symlink_metadata().is_ok();
        self.means.landlock && !self.means.mounts && closed().any(is_there)
    }
}

/// How many parts the longest of `places` has that holds `path`.
fn deepest(places: &[PathBuf], path: &Path) -> usize {
    let holding = places.iter().filter(|place| path.starts_with(place));
    holding.map(|place| place.components().count()).max().unwrap_or(0)
}

/// Paths as the system has them, UTF-8 or not.
mod raw {
    use std::ffi::OsString;
    use std::path::PathBuf;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(paths.iter().map(|path| path.as_os_str()))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PathBuf>, D::Error> {
        let paths = Vec::<OsString>::deserialize(deserializer)?;
        Ok(paths.into_iter().map(PathBuf::from).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    fn bounds() -> Bounds {
        Bounds {
            means: Means { landlock: true, ..Means::default() },
            writable: vec!["/w".into(), "/h/state/tmp".into()],
            read_only: vec!["/w/.git/hooks".into(), "/w/own".into()],
            hidden: vec!["/h/state".into(), "/w/secret".into()],
            shown: vec!["/h/state/out".into()],
            network: Network::Denied,
            temp: vec!["/h/state/tmp".into()],
        }
    }

    #[test]
    fn the_nearest_word_on_a_place_counts() {
        for (path, readable, writable) in [
            ("/w", true, true),
            ("/w/src/new", true, true),
            ("/wide", true, false),
            ("/", true, false),
            ("/w/.git", true, true),
            ("/w/.git/hooks", true, false),
            ("/w/.git/hooks/x", true, false),
            ("/w/.git/hooks-old", true, true),
            ("/w/secret/x", false, false),
            ("/h/state/journal", false, false),
            ("/h/state/out/long", true, false),
            ("/h/state/tmp/x", true, true),
        ] {
            let path = Path::new(path);
            assert_eq!((bounds().is_readable(path), bounds().is_writable(path)), (readable, writable), "{path:?}");
        }
    }

    #[test]
    fn a_scope_is_never_wider_than_what_it_is_made_of() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        for folder in ["w/src", "w/own", "out"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        std::os::unix::fs::symlink(root.join("out"), root.join("w/link")).unwrap();
        let whole = Bounds { writable: vec![root.join("w")], read_only: vec![root.join("w/own")], ..bounds() };
        let places = ["w/src", "w/own", "out", "w/link", "w/src/../../out", "w/none", "", "w/src/none"];
        let scope = whole.writing_only(&places.map(|place| root.join(place)));
        assert_eq!(scope.writable, [root.join("w/src"), "/h/state/tmp".into()]);
        assert_eq!(scope.read_only, whole.read_only);
    }

    #[test]
    fn a_policy_goes_over_the_wire_as_it_is() {
        let odd = PathBuf::from(OsString::from_vec(b"/w/\xff\n".to_vec()));
        let policy = Policy::Confined(Bounds { writable: vec![odd], ..bounds() });
        let line = serde_json::to_vec(&policy).unwrap();
        assert_eq!(serde_json::from_slice::<Policy>(&line).unwrap(), policy);
    }
}
