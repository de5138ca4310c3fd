//! The file systems of a guest: those that programs expect, and the tunables'.

use rustix::mount::{MountFlags, mount};

use crate::disk::fs;
use crate::errno;

struct Mount {
    kind: &'static str,
    place: &'static str,
    options: &'static str,
    /// Whether a guest is of no use without it.
    /// The others depend on the kernel's configuration.
    required: bool,
}

const MOUNTS: [Mount; 8] = [
    Mount { kind: "proc", place: "/proc", options: "", required: true },
    Mount { kind: "sysfs", place: "/sys", options: "", required: true },
    Mount { kind: "devtmpfs", place: "/dev", options: "mode=0755", required: true },
    Mount { kind: "debugfs", place: "/sys/kernel/debug", options: "", required: false },
    Mount { kind: "tracefs", place: "/sys/kernel/tracing", options: "", required: false },
    Mount { kind: "cgroup2", place: "/sys/fs/cgroup", options: "", required: false },
    Mount { kind: "tmpfs", place: "/tmp", options: "mode=1777", required: false },
    Mount { kind: "tmpfs", place: "/dev/shm", options: "mode=1777", required: false },
];

/// Where programs look for their own streams.
const LINKS: [(&str, &str); 4] = [
    ("/proc/self/fd", "/dev/fd"),
    ("/proc/self/fd/0", "/dev/stdin"),
    ("/proc/self/fd/1", "/dev/stdout"),
    ("/proc/self/fd/2", "/dev/stderr"),
];

/// Mount everything.
/// The error names the file system without which the guest is of no use.
pub fn mount_all() -> Result<(), String> {
    for each in &MOUNTS {
        // In /proc and /sys the kernel makes the directories, elsewhere they may be
        // missing.
        let _ = fs::create_dir_all(each.place);
        // A program of the host's may be in /tmp: the initramfs is a memory file system
        // itself.
        if each.place == "/tmp" && fs::read_dir(each.place).is_ok_and(|mut entries| entries.next().is_some()) {
            continue;
        }
        let options = std::ffi::CString::new(each.options).unwrap_or_default();
        let result = mount(each.kind, each.place, each.kind, MountFlags::empty(), Some(options.as_c_str()));
        match result {
            Ok(()) | Err(rustix::io::Errno::BUSY) => {}
            Err(error) if each.required => {
                return Err(format!("cannot mount {} on {}: {}", each.kind, each.place, errno::of(error)));
            }
            Err(_) => {}
        }
    }
    for (target, link) in LINKS {
        let _ = fs::symlink(target, link);
    }
    Ok(())
}
