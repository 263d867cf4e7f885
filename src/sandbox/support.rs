//! What this machine can hold bounds with, found out by trying it.
//!
//! A kernel that has namespaces may refuse them, by a setting, by AppArmor or in a container; only trying tells. It is tried
//! in a process of its own.

use std::path::Path;
#[cfg(target_os = "linux")]
use std::process::{Command, ExitCode, Stdio};
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

#[cfg(target_os = "linux")]
use super::policy::Bounds;
use super::policy::Means;

/// How the program is called that is to try. The guardian's name has its reasons; this one follows it.
#[cfg(target_os = "linux")]
const PROBE_NAME: &str = "cmd-probe";

/// What can be had, and why not what can't.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Support {
    /// The version of the kernel's Landlock rules, if it has them.
    pub landlock: Option<u32>,
    /// Namespaces with mounts.
    pub mounts: bool,
    /// Why not, if not.
    pub no_mounts_since: Option<String>,
    /// A network namespace too.
    pub network: bool,
    /// The platform's own sandbox (macOS).
    pub seatbelt: bool,
}

/// Which means the user wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wanted {
    /// The best that can be had.
    #[default]
    Auto,
    /// Landlock alone.
    Landlock,
    /// Namespaces alone.
    Namespaces,
    /// No sandbox.
    Off,
}

impl Support {
    /// Tries it, once a process. `program` is this very program, which calls [`probe_if_asked`] first of all.
    pub fn of_this_machine(program: &Path) -> &'static Self {
        static FOUND: OnceLock<Support> = OnceLock::new();
        FOUND.get_or_init(|| Self::probe(program))
    }

    #[cfg(target_os = "linux")]
    fn probe(program: &Path) -> Self {
        use std::os::unix::process::CommandExt;
        let output =
            Command::new(program).arg0(PROBE_NAME).env_clear().stdin(Stdio::null()).stderr(Stdio::null()).output();
        let told = output.map_err(|error| error.to_string()).and_then(|output| {
            serde_json::from_slice(&output.stdout).map_err(|_| "the program couldn't try it".to_owned())
        });
        told.unwrap_or_else(|why| Self { no_mounts_since: Some(why), ..Self::default() })
    }

    #[cfg(not(target_os = "linux"))]
    fn probe(_program: &Path) -> Self {
        #[cfg(target_os = "macos")]
        let seatbelt = Path::new(super::seatbelt::PROGRAM).exists();
        #[cfg(not(target_os = "macos"))]
        let seatbelt = false;
        Self { no_mounts_since: Some("only Linux has them".to_owned()), seatbelt, ..Self::default() }
    }

    /// The means to hold bounds with. None where nothing can be had, or nothing is wanted.
    #[must_use]
    pub fn means(&self, wanted: Wanted) -> Means {
        let all = Means {
            landlock: self.landlock.is_some(),
            mounts: self.mounts,
            network: self.network,
            seatbelt: self.seatbelt,
        };
        match wanted {
            Wanted::Auto => all,
            Wanted::Landlock => Means { mounts: false, network: false, ..all },
            Wanted::Namespaces => Means { landlock: false, ..all },
            Wanted::Off => Means::default(),
        }
    }
}

/// Is this process to try what can be had? Then it does, tells, and is done.
#[cfg(target_os = "linux")]
pub fn probe_if_asked() -> Option<ExitCode> {
    use std::io::Write;
    let mut arguments = std::env::args_os();
    let asked = arguments.next().is_some_and(|name| name == PROBE_NAME) && arguments.next().is_none();
    asked.then(|| {
        let told = serde_json::to_vec(&attempt()).unwrap_or_default();
        match std::io::stdout().write_all(&told) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        }
    })
}

/// Does for nothing what is done for a command. Leaves the process in the namespaces, if there are any.
#[cfg(target_os = "linux")]
fn attempt() -> Support {
    use super::linux;
    let trial = Bounds {
        means: Means { mounts: true, ..Means::default() },
        writable: vec!["/tmp".into()],
        read_only: Vec::new(),
        hidden: vec!["/root".into(), "/home".into()],
        shown: Vec::new(),
        network: super::Network::Allowed,
        temp: Vec::new(),
    };
    let (network, entered) = match linux::enter(true) {
        Ok(()) => (true, Ok(())),
        Err(_) => (false, linux::enter(false)),
    };
    let arranged = entered.and_then(|()| linux::arrange(&trial));
    let mounts = arranged.is_ok();
    let no_mounts_since = arranged.err().map(|fault| fault.to_string());
    Support { landlock: linux::abi(), mounts, no_mounts_since, network: network && mounts, seatbelt: false }
}
