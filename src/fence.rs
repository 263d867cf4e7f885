//! The bounds of one run's commands: its configuration, this machine's means, and a temporary folder that goes when the run ends.
//!
//! Knows nothing of sessions or of how bounds are laid on.

use std::path::Path;

use anyhow::Context;
use tempfile::TempDir;

use crate::config::Config;
use crate::sandbox::{Bounds, Ground, Policy, Support, Wanted};

/// This very program, whatever has become of its file since.
pub(crate) const THIS_PROGRAM: &str = "/proc/self/exe";

/// What commands of a run may do.
pub(crate) struct Fence {
    pub(crate) policy: Policy,
    /// What the user should be told, once.
    pub(crate) warning: Option<String>,
    /// Removed with this.
    _temp: TempDir,
}

impl Fence {
    /// `out_dir`: the run's long outputs.
    pub(crate) fn around(config: &Config, out_dir: &Path) -> anyhow::Result<Self> {
        let temp = tempfile::Builder::new().prefix("s15-").tempdir().context("no temporary folder can be had")?;
        let support = Support::of_this_machine(Path::new(THIS_PROGRAM));
        let (policy, warning) = match support.means(config.confinement.wanted) {
            means if means.any() => {
                let bounds = bounds(config, support, temp.path(), out_dir);
                bounds.make_ready(&config.workspace);
                let warning = weakness(&bounds, &config.workspace);
                (Policy::Confined(bounds), warning)
            }
            _ if config.confinement.wanted == Wanted::Off => (Policy::Full, Some(OFF.to_owned())),
            _ => (Policy::Full, Some(no_means(config.confinement.wanted, support))),
        };
        Ok(Self { policy, warning, _temp: temp })
    }

    /// What agents are told of it, after what they are told of the workspace.
    pub(crate) fn words(&self) -> &'static str {
        match self.policy {
            Policy::Full => "",
            Policy::Confined(_) => " Commands can write there and in $TMPDIR only.",
        }
    }
}

pub(crate) const OFF: &str = "the sandbox is off: commands of agents can read and change all that you can";

/// The bounds of a configuration, on a machine.
pub(crate) fn bounds(config: &Config, support: &Support, temp: &Path, out_dir: &Path) -> Bounds {
    let confinement = &config.confinement;
    Bounds::for_session(&Ground {
        workspace: &config.workspace,
        temp,
        state_dir: &config.state_dir,
        out_dir,
        settings: confinement.settings.as_deref(),
        home: confinement.home.as_deref(),
        runtime_dir: confinement.runtime_dir.as_deref(),
        opened: &confinement.write,
        network: confinement.network,
        means: support.means(confinement.wanted),
    })
}

pub(crate) fn no_means(wanted: Wanted, support: &Support) -> String {
    let why = support.no_mounts_since.as_deref().unwrap_or("they were tried");
    let what = match wanted {
        Wanted::Landlock => "Landlock can't be had on this machine".to_owned(),
        Wanted::Namespaces => format!("namespaces can't be had on this machine ({why})"),
        Wanted::Auto | Wanted::Off => format!("neither Landlock nor namespaces can be had on this machine ({why})"),
    };
    format!(
        "there is no sandbox: {what}; commands of agents can read and change all that you can. s15 doctor tells more"
    )
}

/// What the means that there are leave open.
pub(crate) fn weakness(bounds: &Bounds, workspace: &Path) -> Option<String> {
    let network = bounds.network == crate::sandbox::Network::Denied && !bounds.means.network && !bounds.means.seatbelt;
    let frozen = bounds.is_frozen(&workspace.join(".git"));
    let said = [
        (network && bounds.means.landlock, "TCP is closed to commands, other kinds of network are not"),
        (network && !bounds.means.landlock, "the network can't be closed to commands on this machine"),
        (
            frozen,
            "commands can't make anything new at the top of the workspace or of .git (so no commits): Landlock alone can't protect .git/hooks otherwise",
        ),
    ];
    let said: Vec<_> = said.into_iter().filter(|(holds, _)| *holds).map(|(_, text)| text).collect();
    (!said.is_empty()).then(|| format!("the sandbox is limited here: {}", said.join("; ")))
}
