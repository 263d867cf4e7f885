//! The settings of the sandbox: how commands are held, what they may write besides the workspace, and the network.

use std::path::{Path, PathBuf};

use super::layers::Layers;
use super::setting::Setting;
use super::{ConfigError, Env, Place, values};
use crate::sandbox::{Network, Wanted};

/// How commands are confined, as the user has it, and the places of the user's own that this depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confinement {
    /// With which means.
    pub wanted: Wanted,
    /// What they may write besides the workspace; absolute. May not exist.
    pub write: Vec<PathBuf>,
    /// May they reach other machines?
    pub network: Network,
    /// The user's home.
    pub home: Option<PathBuf>,
    /// The user's settings file, which may hold a key.
    pub settings: Option<PathBuf>,
    /// The user's folder for sockets.
    pub runtime_dir: Option<PathBuf>,
}

impl Confinement {
    pub(super) fn read(layers: &Layers, env: Env<'_>, place: &Place) -> Result<Self, ConfigError> {
        let words = [
            ("auto", Wanted::Auto),
            ("landlock", Wanted::Landlock),
            ("namespaces", Wanted::Namespaces),
            ("off", Wanted::Off),
        ];
        let home = place.home.as_deref();
        let network = layers.value(Setting::SandboxNetwork, values::switch)?.unwrap_or(true);
        Ok(Self {
            wanted: layers.value(Setting::Sandbox, |text| values::word(text, &words))?.unwrap_or_default(),
            write: layers.value(Setting::SandboxWrite, |text| values::paths(text, home))?.unwrap_or_default(),
            network: if network { Network::Allowed } else { Network::Denied },
            home: place.home.clone(),
            settings: layers.user_file(env, place),
            runtime_dir: env("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| Path::is_absolute(folder)),
        })
    }
}
