//! A control group around all processes of a session.
//! It limits nothing. It finds a process that has left its group, its session and its parents, even after the agent's
//! death.
//!
//! It is made below the agent's own group where groups have no controllers, so that nothing that is measured depends on
//! it: in cgroup v2, or in a hierarchy of cgroup v1 that only has a name. Where there is neither, there is none. The
//! agent enters it once, and what it starts is in it from its first moment.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::clock;
use crate::disk::fs;
use crate::process::cgroup::members;

const PREFIX: &str = "ajuste-session-";
const MEMBERS: &str = "cgroup.procs";
/// Killed processes take a moment to end, and may just have forked.
const GOES: u32 = 500;
const PAUSE: Duration = Duration::from_millis(10);

/// One that was made for the session `name`.
/// `None` where there can be none, or may not be.
pub fn create(name: &str) -> Option<PathBuf> {
    let path = own_group()?.join(format!("{PREFIX}{name}"));
    fs::create_dir(&path).ok()?;
    Some(path)
}

/// Put this process, and what it starts from now on, into the enclosure.
pub fn enter(path: &Path) {
    let _ = fs::write(path.join(MEMBERS), "0");
}

/// Let this process leave it, kill all others in it, and remove it.
/// That it is gone is no error.
pub fn clear(path: &Path) -> bool {
    let is_one = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
    let Some(parent) = path.parent().filter(|_| is_one) else { return false };
    if fs::metadata(path).is_err() {
        return true;
    }
    enter(parent);
    for _ in 0..GOES {
        if fs::remove_dir(path).is_ok() {
            return true;
        }
        for pid in members(path) {
            // SAFETY: kill(2) only takes numbers.
            // The kernel has just said that it is in the session's group.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        clock::sleep(PAUSE);
    }
    false
}

/// The directory of this process's group, where child groups have no controllers.
fn own_group() -> Option<PathBuf> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let me = std::process::id().to_string();
    let is_ours = |path: &PathBuf| {
        let listed = fs::read_to_string(path.join(MEMBERS)).unwrap_or_default();
        let shared = fs::read_to_string(path.join("cgroup.subtree_control")).unwrap_or_default();
        listed.split_whitespace().any(|pid| pid == me) && shared.trim().is_empty()
    };
    candidates(&own, &mounts).into_iter().find(is_ours)
}

/// Candidates, by /proc/self/cgroup and /proc/self/mounts.
/// (cgroups(7), proc_mounts(5))
fn candidates(own: &str, mounts: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for line in own.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let is_it = |kind: &str, options: &str| match controllers {
            "" => kind == "cgroup2",
            name => kind == "cgroup" && name.starts_with("name=") && options.split(',').any(|one| one == name),
        };
        let places = mounts.lines().filter_map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            (words.len() > 3 && is_it(words[2], words[3])).then(|| words[1])
        });
        found.extend(places.map(|place| Path::new(place).join(path.trim_start_matches('/'))));
    }
    found.sort_by_key(|path| path.components().count());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hierarchies_without_controllers_are_taken() {
        let own = "9:name=systemd:/a\n2:cpu,cpuacct:/b\n0::/c/d\n";
        let mounts = "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu,cpuacct 0 0\n\
                      cgroup /sys/fs/cgroup/systemd cgroup rw,xattr,name=systemd 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let expected = ["/sys/fs/cgroup/systemd/a", "/sys/fs/cgroup/unified/c/d"].map(PathBuf::from);
        assert_eq!(candidates(own, mounts), expected);
        assert!(candidates("", mounts).is_empty());
    }

    #[test]
    fn nothing_else_is_cleared() {
        assert!(!clear(Path::new("/sys/fs/cgroup")));
        assert!(!clear(Path::new("/tmp")));
        assert!(clear(Path::new("/nowhere/ajuste-session-1-2")));
    }
}
