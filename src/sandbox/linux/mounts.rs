//! A view of the file system of the command's own: everything read-only but what is writable, hidden places empty, and of the
//! devices only the harmless ones.
//!
//! What is to stay as it was is set aside first, then all is closed, then what was set aside is laid over it again. A folder
//! between a writable one and something closed in it is laid over itself, since it could be moved away otherwise.

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

use super::Fault;
use super::open::{Kind, Spot, errno};
use crate::sandbox::policy::Bounds;

/// Devices that commands have. What isn't there is left out.
const DEVICES: [&str; 6] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];
/// What an empty folder in the place of a hidden one may hold: the way to what is shown.
const HIDDEN_OPTIONS: &str = "size=64k,nr_inodes=64";
const TERMINALS: &str = "/dev/pts";
const SHARED_MEMORY: &str = "/dev/shm";
const CLOSED: u64 = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NODEV | libc::MOUNT_ATTR_NOSUID;
const OPEN: u64 = libc::MOUNT_ATTR_NODEV | libc::MOUNT_ATTR_NOSUID;

/// What becomes of a place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Writable,
    ReadOnly,
    Hidden,
    Shown,
}

/// A view of its own, in which this process may mount; without a network if it is to have none. The user stays the same.
pub(in crate::sandbox) fn enter(without_network: bool) -> Result<(), Fault> {
    let mut spaces = CloneFlags::CLONE_NEWNS;
    spaces.set(CloneFlags::CLONE_NEWNET, without_network);
    let entered = if geteuid().is_root() {
        // Root keeps its rights over the files of others that way; a container's root mostly may not, and has Landlock.
        unshare(spaces)
    } else {
        let (user, group) = (geteuid(), getegid());
        unshare(spaces | CloneFlags::CLONE_NEWUSER).and_then(|()| {
            write("/proc/self/setgroups", "deny")?;
            write("/proc/self/uid_map", &format!("{user} {user} 1"))?;
            write("/proc/self/gid_map", &format!("{group} {group} 1"))
        })
    };
    entered.map_err(Fault::of("no namespace can be had"))?;
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_SLAVE, None::<&str>)
        .map_err(Fault::of("nothing can be mounted in the namespace"))?;
    if without_network {
        raise_loopback().map_err(Fault::of("the command's own network can't be started"))?;
    }
    Ok(())
}

fn write(path: &str, text: &str) -> nix::Result<()> {
    fs::write(path, text).map_err(|error| errno(&error))
}

/// Closes everything but what the bounds open.
pub(in crate::sandbox) fn arrange(bounds: &Bounds) -> Result<(), Fault> {
    let devices = set_aside(DEVICES.into_iter().map(|device| (PathBuf::from(device), Fate::Writable)))?;
    let layers = set_aside(fates(bounds).into_iter())?;
    let everything = Spot::at(Path::new("/")).and_then(|top| top.ok_or(Errno::ENOENT));
    let everything = everything.map_err(Fault::of("the root folder can't be opened"))?;
    change(&everything.fd, CLOSED).map_err(Fault::of("the file system can't be made read-only"))?;
    for layer in &layers {
        let laid = match layer.fate {
            Fate::Writable => layer.lay(OPEN),
            Fate::ReadOnly | Fate::Shown => layer.lay(CLOSED),
            Fate::Hidden => layer.hide(&layers),
        };
        laid.map_err(Fault::of(layer.fate.fault()))?;
    }
    for device in &devices {
        device.lay(libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID).map_err(Fault::of("no device can be kept"))?;
    }
    // Where these can't be had, the closed ones stay.
    let _ = own_terminals();
    let _ = own_memory();
    Ok(())
}

/// Each place that isn't merely closed, those above before those below.
fn fates(bounds: &Bounds) -> BTreeMap<PathBuf, Fate> {
    let all = [
        (&bounds.writable, Fate::Writable),
        (&bounds.shown, Fate::Shown),
        (&bounds.read_only, Fate::ReadOnly),
        (&bounds.hidden, Fate::Hidden),
    ];
    let mut fates = BTreeMap::new();
    for (places, fate) in all {
        fates.extend(places.iter().map(|place| (place.clone(), fate)));
    }
    let mut between = Vec::new();
    for (place, _) in fates.iter().filter(|(_, fate)| matches!(fate, Fate::ReadOnly | Fate::Hidden)) {
        let roots = bounds.writable.iter().filter(|root| *root != place && place.starts_with(root));
        for root in roots {
            let above = place.ancestors().skip(1).take_while(|above| *above != root.as_path());
            between.extend(above.map(Path::to_owned));
        }
    }
    for place in between {
        fates.entry(place).or_insert(Fate::Writable);
    }
    fates
}

impl Fate {
    fn fault(self) -> &'static str {
        match self {
            Self::Writable => "a writable place can't be laid open",
            Self::ReadOnly => "a protected place can't be made read-only",
            Self::Hidden => "a place can't be hidden",
            Self::Shown => "a place below a hidden one can't be shown",
        }
    }
}

/// A place as it was, with all that is mounted below it.
struct Layer {
    path: PathBuf,
    fate: Fate,
    kind: Kind,
    tree: OwnedFd,
}

/// Sets aside what exists of these.
fn set_aside(places: impl Iterator<Item = (PathBuf, Fate)>) -> Result<Vec<Layer>, Fault> {
    let mut layers = Vec::new();
    for (path, fate) in places {
        let spot = Spot::at(&path).map_err(Fault::of(fate.fault()))?;
        // Of the root folder nothing can be laid over itself, and in it nothing is hidden by its own name.
        let Some(spot) = spot.filter(|_| path.parent().is_some()) else { continue };
        let tree = copy(&spot.fd).map_err(Fault::of(fate.fault()))?;
        layers.push(Layer { path, fate, kind: spot.kind, tree });
    }
    Ok(layers)
}

impl Layer {
    /// Lays it where it was.
    fn lay(&self, attributes: u64) -> nix::Result<()> {
        change(&self.tree, attributes)?;
        self.lay_as_it_is(&self.tree)
    }

    fn lay_as_it_is(&self, tree: &OwnedFd) -> nix::Result<()> {
        let below = Spot::at(&self.path)?.ok_or(Errno::ENOENT)?;
        attach(tree, &below.fd)
    }

    /// An empty folder in its place, with the way to what else is laid below it; in a file's place a device that is none.
    fn hide(&self, layers: &[Self]) -> nix::Result<()> {
        if self.kind != Kind::Folder {
            let null = Spot::at(Path::new(DEVICES[0]))?.ok_or(Errno::ENOENT)?;
            let tree = copy(&null.fd)?;
            change(&tree, CLOSED)?;
            return self.lay_as_it_is(&tree);
        }
        let inside: Vec<_> =
            layers.iter().filter(|layer| layer.path != self.path && layer.path.starts_with(&self.path)).collect();
        let mode = if inside.is_empty() { "mode=0000" } else { "mode=0711" };
        mount_at(&self.path, "tmpfs", &format!("{HIDDEN_OPTIONS},{mode}"))?;
        for layer in inside {
            let folders = if layer.kind == Kind::Folder { Some(layer.path.as_path()) } else { layer.path.parent() };
            fs::create_dir_all(folders.unwrap_or(&layer.path)).map_err(|error| errno(&error))?;
            if layer.kind != Kind::Folder {
                fs::File::create(&layer.path).map_err(|error| errno(&error))?;
            }
        }
        let empty = Spot::at(&self.path)?.ok_or(Errno::ENOENT)?;
        change(&empty.fd, CLOSED)
    }
}

/// Terminals of the command's own: it can make new ones, and the user's is out of reach.
fn own_terminals() -> nix::Result<()> {
    mount_at(Path::new(TERMINALS), "devpts", "newinstance,ptmxmode=0666,mode=0620")?;
    let opener = Spot::at(&Path::new(TERMINALS).join("ptmx"))?.ok_or(Errno::ENOENT)?;
    let below = Spot::at(Path::new("/dev/ptmx"))?.ok_or(Errno::ENOENT)?;
    attach(&copy(&opener.fd)?, &below.fd)
}

/// Shared memory of the command's own.
fn own_memory() -> nix::Result<()> {
    mount_at(Path::new(SHARED_MEMORY), "tmpfs", "mode=1777")
}

fn mount_at(path: &Path, kind: &str, options: &str) -> nix::Result<()> {
    let below = Spot::at(path)?.ok_or(Errno::ENOENT)?;
    let below = format!("/proc/self/fd/{}", below.fd.as_raw_fd());
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
    mount(Some(kind), below.as_str(), Some(kind), flags, Some(options))
}

/// A copy of what is mounted at a place and below it, mounted nowhere yet.
#[allow(unsafe_code, reason = "no safe wrapper")]
fn copy(place: &OwnedFd) -> nix::Result<OwnedFd> {
    let flags =
        libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC | libc::AT_EMPTY_PATH as u32 | libc::AT_RECURSIVE as u32;
    // SAFETY: the path is a string with its end that lives through the call; the descriptor is open.
    let fd = unsafe { libc::syscall(libc::SYS_open_tree, place.as_raw_fd(), c"".as_ptr(), flags) };
    let fd = i32::try_from(Errno::result(fd)?).map_err(|_| Errno::EBADF)?;
    // SAFETY: the call gave a new descriptor, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Mounts a copy over a place.
#[allow(unsafe_code, reason = "no safe wrapper")]
fn attach(tree: &OwnedFd, place: &OwnedFd) -> nix::Result<()> {
    let empty = c"".as_ptr();
    let flags = libc::MOVE_MOUNT_F_EMPTY_PATH | libc::MOVE_MOUNT_T_EMPTY_PATH;
    let (tree, place) = (tree.as_raw_fd(), place.as_raw_fd());
    // SAFETY: both paths are strings with their end that live through the call; both descriptors are open.
    Errno::result(unsafe { libc::syscall(libc::SYS_move_mount, tree, empty, place, empty, flags) }).map(drop)
}

/// Adds attributes to a mount and all below it.
#[allow(unsafe_code, reason = "no safe wrapper")]
fn change(tree: &impl AsFd, attributes: u64) -> nix::Result<()> {
    let flags = libc::AT_EMPTY_PATH | libc::AT_RECURSIVE;
    let change = libc::mount_attr { attr_set: attributes, attr_clr: 0, propagation: 0, userns_fd: 0 };
    let (size, tree) = (size_of::<libc::mount_attr>(), tree.as_fd().as_raw_fd());
    // SAFETY: the structure lives through the call and its size is told; the path is a string with its end.
    Errno::result(unsafe { libc::syscall(libc::SYS_mount_setattr, tree, c"".as_ptr(), flags, &raw const change, size) })
        .map(drop)
}

/// A network of one's own begins with its loopback down.
#[allow(unsafe_code, reason = "no safe wrapper")]
fn raise_loopback() -> nix::Result<()> {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    // SAFETY: all zeroes are a valid request, and its name is filled below.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = libc::c_char::from_ne_bytes([*from]);
    }
    request.ifr_ifru.ifru_flags = i16::try_from(libc::IFF_UP).unwrap_or(1);
    // SAFETY: the request is of the kind that this call takes, and lives through it.
    Errno::result(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw mut request) }).map(drop)
}
