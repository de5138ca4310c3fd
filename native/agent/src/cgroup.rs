//! A control group (cgroup v2) of a process's own, for its share of the CPU.

use std::fs::{self, File, OpenOptions};
use std::path::PathBuf;

use crate::errno;

const ROOT: &str = "/sys/fs/cgroup";

/// Let groups below the root have a `cpu.weight`, where the kernel can do that. For guests: on a host this is the
/// host's business.
pub fn enable_cpu() {
    let _ = fs::write(format!("{ROOT}/cgroup.subtree_control"), "+cpu");
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
        let path = PathBuf::from(format!("{ROOT}/ajuste-{}-{name}", std::process::id()));
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
