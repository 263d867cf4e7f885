//! What a command doesn't keep: new privileges by exec, and of root's all but those over files and users.

use nix::errno::Errno;
use nix::sys::prctl;

use super::Fault;

/// Root's own that a command keeps: over the files of others, their owners, and becoming another user. By their numbers:
/// CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, NET_BIND_SERVICE.
const KEPT: [libc::c_ulong; 8] = [0, 1, 3, 4, 5, 6, 7, 10];
/// No kernel has more.
const CAPABILITIES_MAX: libc::c_ulong = 64;

/// Gives up what a way out could be made of: mounts, devices, looking into other processes, set-user-id programs.
pub(super) fn give_up() -> Result<(), Fault> {
    prctl::set_no_new_privs().map_err(Fault::of("new privileges can't be given up"))?;
    if !nix::unistd::geteuid().is_root() {
        // Those in a namespace of one's own go with the exec.
        return Ok(());
    }
    for capability in (0..CAPABILITIES_MAX).filter(|capability| !KEPT.contains(capability)) {
        drop_from_bounds(capability).map_err(Fault::of("root's capabilities can't be given up"))?;
    }
    Ok(())
}

#[allow(unsafe_code, reason = "no safe wrapper; numbers in, a number out")]
fn drop_from_bounds(capability: libc::c_ulong) -> Result<(), Errno> {
    // SAFETY: neither call takes a pointer.
    let held = unsafe { libc::prctl(libc::PR_CAPBSET_READ, capability, 0, 0, 0) };
    if held != 1 {
        return Ok(());
    }
    // SAFETY: as above.
    Errno::result(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) }).map(drop)
}
