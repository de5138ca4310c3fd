//! A control group (cgroup v2) for one process: its CPU share and limits.
//! `enclosure` is the group of a whole session.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::clock;
use crate::disk::fs::{self, File, OpenOptions};
use crate::errno;
use crate::plan::Attributes;

/// Where cgroup v2 is mounted.
pub const ROOT: &str = "/sys/fs/cgroup";
/// The controllers that groups below it have.
const SHARED: &str = "/sys/fs/cgroup/cgroup.subtree_control";
const PREFIX: &str = "ajuste-";
/// Processes that were killed take a moment to be gone.
const REMOVAL_GOES: u32 = 200;
const REMOVAL_PAUSE: Duration = Duration::from_millis(10);

/// Let groups have a `cpu.weight`, where the kernel can do that.
/// For guests: on a host this is the host's business.
pub fn enable_cpu() {
    let _ = enable("cpu");
}

fn enable(controller: &str) -> Result<(), String> {
    fs::write(SHARED, format!("+{controller}")).map_err(errno::at(SHARED))
}

/// Enable `controller` for groups below the root, if the root has it `present`.
fn offer(controller: &str, present: &str, may_enable: bool) -> Result<(), String> {
    let listed = |text: &str| text.split_whitespace().any(|word| word == controller);
    if !listed(present) {
        return Err(format!("cgroup v2 has no controller {controller} here, only {}", present.trim_end()));
    }
    let shared = fs::read_to_string(SHARED).map_err(errno::at(SHARED))?;
    match listed(&shared) {
        true => Ok(()),
        false if may_enable => enable(controller),
        false => {
            Err(format!("groups do not have the controller {controller}; to enable it: echo +{controller} > {SHARED}"))
        }
    }
}

/// `memory` for `memory.max`
fn controller(file: &str) -> &str {
    file.split('.').next().unwrap_or(file)
}

/// Where the group of the process with this name in a plan is.
pub fn path(name: &str) -> PathBuf {
    PathBuf::from(format!("{ROOT}/{PREFIX}{}-{name}", std::process::id()))
}

/// Remove a group that an agent has made, with all processes in it.
/// That it is gone is no error.
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
    for pid in members(path) {
        // SAFETY: kill(2) only takes numbers.
        // The kernel has just said that it is in our group.
        unsafe { libc::kill(pid, libc::SIGKILL) };
    }
}

/// The processes of a group, but for this one.
pub fn members(path: &Path) -> Vec<i32> {
    let text = fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
    let me = std::process::id() as i32;
    let numbers = text.split_whitespace().filter_map(|number| number.parse::<i32>().ok());
    numbers.filter(|pid| *pid > 1 && *pid != me).collect()
}

/// A group that exists while this value does.
pub struct Group {
    path: PathBuf,
}

impl Group {
    /// The group that `attributes` ask for, with all their values.
    /// The error says what is missing.
    ///
    /// `may_enable` has controllers enabled that groups do not have yet: a guest is the agent's own, a host is not.
    pub fn create(name: &str, attributes: &Attributes, may_enable: bool) -> Result<Option<Group>, String> {
        let weight = attributes.cgroup_weight.map(|weight| ("cpu.weight".to_owned(), weight.to_string()));
        let values: Vec<(String, String)> = weight.into_iter().chain(attributes.cgroup_limits.clone()).collect();
        if values.is_empty() {
            return Ok(None);
        }
        let present = fs::read_to_string(format!("{ROOT}/cgroup.controllers"));
        let present = present.map_err(|_| format!("a control group needs cgroup v2 at {ROOT}"))?;
        for (file, _) in &values {
            offer(controller(file), &present, may_enable).map_err(|reason| format!("{file}: {reason}"))?;
        }
        let path = path(name);
        fs::create_dir(&path).map_err(errno::at(path.display()))?;
        let group = Group { path };
        values.iter().try_for_each(|(file, value)| group.set(file, value)).map(|()| Some(group))
    }

    fn set(&self, file: &str, value: &str) -> Result<(), String> {
        let place = self.path.join(file);
        let opened = OpenOptions::new().write(true).open(&place);
        opened
            .and_then(|mut file| file.write_all(value.as_bytes()))
            .map_err(|error| format!("writing {value:?} to {}: {}", place.display(), errno::of(error)))
    }

    /// The file through which a process joins by writing `0` to it.
    pub fn door(&self) -> Result<File, String> {
        let place = self.path.join("cgroup.procs");
        let file = OpenOptions::new().write(true).open(&place);
        file.map_err(errno::at(place.display()))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.path);
    }
}
