//! The rights of a guest's processes.
//! An ordinary user needs no root to be measured, and root cannot reach the agent.
//!
//! All of it is set once at boot, in the first process, whose children inherit it: a trial pays nothing for it. What the
//! first process may do itself is not changed, because it never executes another program.

use std::io;
use std::os::unix::fs::PermissionsExt;

use crate::disk::fs;
use crate::errno;

/// linux/capability.h.
/// Ports and memory of the machine, code in its kernel, other processes' memory, its switches.
const CAP_SYS_MODULE: u32 = 16;
const CAP_SYS_RAWIO: u32 = 17;
const CAP_SYS_PTRACE: u32 = 19;
const CAP_SYS_BOOT: u32 = 22;
const WITHHELD: [u32; 4] = [CAP_SYS_MODULE, CAP_SYS_RAWIO, CAP_SYS_PTRACE, CAP_SYS_BOOT];

/// The capabilities of programs that the kernel starts (core dumps, modules, …).
const OF_KERNEL_HELPERS: &str = "/proc/sys/kernel/usermodehelper/bset";

/// The most open files that any process can have (fs.nr_open).
const MOST_FILES: libc::rlim_t = 1 << 20;

/// An ordinary user's highest real-time priority; the agent has 99.
const BELOW_THE_AGENT: libc::rlim_t = 98;

/// Files that an ordinary user opens in a trial.
const LATENCY: &str = "/dev/cpu_dma_latency";
const PING_GROUPS: &str = "/proc/sys/net/ipv4/ping_group_range";
const DIRECTORIES: [&str; 3] = ["/tmp", "/var/tmp", "/study"];

/// Let ordinary users run workloads, and withhold what no workload needs.
pub fn settle() -> Result<(), String> {
    allow_ordinary_users();
    withhold().map_err(|error| format!("cannot give up rights for workloads: {}", errno::of(error)))
}

/// What root would be given anyway.
/// None of it is needed everywhere, so that nothing is missing where it fails.
fn allow_ordinary_users() {
    let everything = libc::RLIM_INFINITY;
    for (resource, most) in [
        (libc::RLIMIT_RTPRIO, BELOW_THE_AGENT),
        (libc::RLIMIT_NICE, 40),
        (libc::RLIMIT_MEMLOCK, everything),
        (libc::RLIMIT_NPROC, everything),
        (libc::RLIMIT_SIGPENDING, everything),
        (libc::RLIMIT_MSGQUEUE, everything),
    ] {
        set_limit(resource, most, most);
    }
    // Programs go through all files that they may have open: what they have at their
    // start stays as it is.
    set_limit(libc::RLIMIT_NOFILE, 1024, MOST_FILES);
    for place in DIRECTORIES {
        let _ = fs::set_permissions(place, fs::Permissions::from_mode(0o1777));
    }
    let devices = fs::read_dir("/dev").into_iter().flatten().flatten().map(|entry| entry.path());
    let null_blocks = devices.filter(|path| path.to_string_lossy().starts_with("/dev/nullb"));
    for device in null_blocks.chain([LATENCY.into()]) {
        let _ = fs::set_permissions(device, fs::Permissions::from_mode(0o666));
    }
    let _ = fs::write(PING_GROUPS, "0 2147483647");
}

fn set_limit(resource: libc::__rlimit_resource_t, now: libc::rlim_t, most: libc::rlim_t) {
    let limit = libc::rlimit { rlim_cur: now, rlim_max: most };
    // SAFETY: the structure is what setrlimit(2) reads.
    unsafe { libc::setrlimit(resource, &limit) };
}

/// Withhold the [`WITHHELD`] capabilities from every program executed from now on.
/// None gets more rights than the program that executes it.
fn withhold() -> io::Result<()> {
    for capability in WITHHELD {
        // SAFETY: prctl(2) takes numbers here.
        succeeded(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) })?;
    }
    // SAFETY: as above.
    succeeded(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })?;
    withhold_from_kernel_helpers()
}

/// Keep root from regaining all capabilities through a core dump handler.
fn withhold_from_kernel_helpers() -> io::Result<()> {
    let text = match fs::read_to_string(OF_KERNEL_HELPERS) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        text => text?,
    };
    let mut words = text.split_whitespace().filter_map(|word| word.parse::<u32>().ok());
    let (Some(low), Some(high)) = (words.next(), words.next()) else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let left = WITHHELD.iter().fold(low, |set, capability| set & !(1 << capability));
    fs::write(OF_KERNEL_HELPERS, format!("{left} {high}\n"))
}

fn succeeded(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
