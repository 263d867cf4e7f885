//! Bounds as Landlock's rules: what they don't name is closed.
//!
//! Where the command has a view of the file system of its own, these are a second wall, and keep it from other processes.
//! Where it has none they are the only one.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};
use nix::errno::Errno;

use super::Fault;
use super::grants;
use super::open::{Kind, Spot};
use crate::sandbox::policy::{Bounds, Network};

/// The newest rules that are made use of; an older kernel takes those that it knows.
const NEWEST: ABI = ABI::V9;
/// Devices that can be written.
const DEVICES: [&str; 6] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];
/// These too, where they are the command's own.
const OWN: [&str; 3] = ["/dev/ptmx", "/dev/pts", "/dev/shm"];
/// Read where the devices are the machine's own only as far as they are named above: who can read others' terminals takes the
/// keys that the user types.
const ALL_DEVICES: &str = "/dev";
const SHARED_MEMORY: &str = "/dev/shm";

/// The version of the kernel's rules.
pub(in crate::sandbox) fn abi() -> Option<u32> {
    const VERSION: u32 = 1;
    // SAFETY: no pointer is read when the version is asked for.
    #[allow(unsafe_code, reason = "the crate keeps its own answer to itself")]
    let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0_usize, VERSION) };
    u32::try_from(version).ok().filter(|version| *version > 0)
}

/// Restricts this thread and all that it starts.
pub(super) fn restrict(bounds: &Bounds) -> Result<(), Fault> {
    let rules = rules(bounds).map_err(Fault::of("Landlock's rules can't be made"))?;
    let status = rules.restrict_self().map_err(|_| Errno::EPERM).map_err(Fault::of("Landlock can't be had"))?;
    match status.ruleset {
        landlock::RulesetStatus::NotEnforced => Err(Fault { what: "Landlock can't be had", errno: Errno::ENOSYS }),
        landlock::RulesetStatus::FullyEnforced | landlock::RulesetStatus::PartiallyEnforced => Ok(()),
    }
}

fn rules(bounds: &Bounds) -> nix::Result<RulesetCreated> {
    let alone = !bounds.means.mounts;
    let to_write = AccessFs::from_write(NEWEST) & !BitFlags::from(AccessFs::ResolveUnix);
    let to_read = AccessFs::ReadFile | AccessFs::ResolveUnix;
    // What is hidden is not there in a view of one's own.
    let handled = if alone { AccessFs::from_all(NEWEST) } else { to_write };
    let mut set =
        Ruleset::default().set_compatibility(CompatLevel::BestEffort).handle_access(handled).map_err(refused)?;
    if bounds.network == Network::Denied && !bounds.means.network {
        set = set.handle_access(AccessNet::from_all(NEWEST)).map_err(refused)?;
    }
    let set = set.scope(Scope::from_all(NEWEST)).map_err(refused)?;
    let mut made = Rules { set: Some(set.create().map_err(refused)?), handled };
    // What isn't there closes nothing, and must not keep its folder from being granted as a whole.
    let there = |places: &[PathBuf]| -> Vec<PathBuf> {
        places.iter().filter(|place| place.symlink_metadata().is_ok()).cloned().collect()
    };
    let hidden = there(&bounds.hidden);
    let closed = [there(&bounds.read_only), hidden.clone()].concat();
    for place in &bounds.writable {
        let closed = if alone { below(place, &closed) } else { Vec::new() };
        grants::around(place, &closed, &mut |spot| made.grant(&spot, to_write))?;
    }
    for device in DEVICES.iter().chain(OWN.iter().filter(|_| !alone)) {
        made.grant_at(Path::new(device), to_write | to_read)?;
    }
    if alone {
        made.grant_at(Path::new(SHARED_MEMORY), to_read)?;
        made.grant_at(Path::new("/"), AccessFs::Execute | AccessFs::ReadDir)?;
        let shown =
            [Path::new("/")].into_iter().chain(bounds.shown.iter().chain(&bounds.writable).map(PathBuf::as_path));
        for place in shown {
            let mut closed = below(place, &hidden);
            closed.push(PathBuf::from(ALL_DEVICES));
            grants::around(place, &closed, &mut |spot| made.grant(&spot, to_read))?;
        }
    }
    made.set.take().ok_or(Errno::EINVAL)
}

/// Those of `closed` that lie below a place. Those above it don't count: the place was opened below them.
fn below(place: &Path, closed: &[PathBuf]) -> Vec<PathBuf> {
    closed.iter().filter(|closed| closed.starts_with(place)).cloned().collect()
}

/// Rules on their way.
struct Rules {
    set: Option<RulesetCreated>,
    /// What they are about.
    handled: BitFlags<AccessFs>,
}

impl Rules {
    fn grant_at(&mut self, path: &Path, access: BitFlags<AccessFs>) -> nix::Result<()> {
        match Spot::at(path)? {
            Some(spot) => self.grant(&spot, access),
            None => Ok(()),
        }
    }

    fn grant(&mut self, spot: &Spot, access: BitFlags<AccessFs>) -> nix::Result<()> {
        // Of a file the kernel takes none of a folder's rights.
        let access = access & self.handled;
        let access = if spot.kind == Kind::Folder { access } else { access & AccessFs::from_file(NEWEST) };
        let rules = self.set.take().ok_or(Errno::EINVAL)?;
        self.set = Some(rules.add_rule(PathBeneath::new(&spot.fd, access)).map_err(refused)?);
        Ok(())
    }
}

fn refused(_: RulesetError) -> Errno {
    Errno::EINVAL
}
