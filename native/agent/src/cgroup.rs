//! A control group (cgroup v2) of a process's own, for its share of the CPU.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{clock, errno};

/// Where cgroup v2 is mounted.
pub const ROOT: &str = "/sys/fs/cgroup";
const PREFIX: &str = "ajuste-";
/// Processes that were killed take a moment to be gone.
const REMOVAL_GOES: u32 = 200;
const REMOVAL_PAUSE: Duration = Duration::from_millis(10);

/// Let groups below the root have a `cpu.weight`, where the kernel can do that. For guests: on a host this is the
/// host's business.
pub fn enable_cpu() {
    let _ = fs::write(format!("{ROOT}/cgroup.subtree_control"), "+cpu");
}

/// Where the group of the process with this name in a plan is.
pub fn path(name: &str) -> PathBuf {
    PathBuf::from(format!("{ROOT}/{PREFIX}{}-{name}", std::process::id()))
}

/// Remove a group that an agent has made, with all processes in it. That it is gone is no error.
pub fn remove(path: &Path) -> Result<(), String> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if !name.starts_with(PREFIX) || path != Path::new(ROOT).join(name) {
        return Err(format!("{} is no group of an agent", path.display()));
    }
    for _ in 0..REMOVAL_GOES {
        match fs::remove_dir(path) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(_) => kill_members(path),
        }
        clock::sleep(REMOVAL_PAUSE);
    }
    Err(format!("{} cannot be removed: there are processes in it", path.display()))
}

fn kill_members(path: &Path) {
    let members = fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
    for pid in members.split_whitespace().filter_map(|number| number.parse::<i32>().ok()).filter(|pid| *pid > 1) {
        // SAFETY: kill(2) only takes numbers. The kernel has just said that it is in our group.
        unsafe { libc::kill(pid, libc::SIGKILL) };
    }
}

/// A group that exists as long as this value does.
pub struct Group {
    path: PathBuf,
}

impl Group {
    /// Make a group with the given `cpu.weight` (1 … 10000). The error says what is missing.
    pub fn create(name: &str, weight: u32) -> Result<Group, String> {
        if fs::metadata(format!("{ROOT}/cgroup.controllers")).is_err() {
            return Err(format!("cgroup_weight needs cgroup v2 at {ROOT}"));
        }
        let path = path(name);
        fs::create_dir(&path).map_err(|error| format!("{}: {}", path.display(), errno::of(error)))?;
        let group = Group { path };
        let place = group.path.join("cpu.weight");
        let file = OpenOptions::new().write(true).open(&place);
        file.and_then(|mut file| std::io::Write::write_all(&mut file, weight.to_string().as_bytes()))
            .map_err(|error| format!("{}: {}", place.display(), errno::of(error)))?;
        Ok(group)
    }

    /// The file through which a process joins by writing `0` to it.
    pub fn door(&self) -> Result<File, String> {
        let place = self.path.join("cgroup.procs");
        let file = OpenOptions::new().write(true).open(&place);
        file.map_err(|error| format!("{}: {}", place.display(), errno::of(error)))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.path);
    }
}
