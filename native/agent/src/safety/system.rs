//! The files, places, processes and clocks that the safety of settings needs.
//!
//! [`ThisMachine`] is the real machine.
//! Tests simulate one, with crashes at any operation.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::io::Errno;

use crate::clock;
use crate::disk::{Disk, Local, Opening};
use crate::errno;
use crate::place::tunable;
use crate::plan::Location;
use crate::process::roll::{Leader, Roll};
use crate::process::{account, cgroup, enclosure};
use crate::safety::leftovers;
use crate::safety::restore::Places;
use crate::safety::undo::Made;
use crate::scratch::mount_point;

const BOOT_ID: (&str, &str) = ("/proc/sys/kernel/random", "boot_id");
const MACHINE_ID: (&str, &str) = ("/etc", "machine-id");
const LONGEST_ID: usize = 64;

/// One process's view of its machine.
pub trait System: Places + Clone {
    type Disk: Disk;
    /// Which process groups an agent has running.
    type Roll: Copy;

    fn disk(&self) -> &Self::Disk;
    /// The id of this boot.
    /// Another one means that all settings are the kernel's own again.
    fn boot_id(&self) -> Result<String, String>;
    /// The id of the machine, if it has one.
    fn machine_id(&self) -> Option<String>;
    /// This process.
    fn own_process(&self) -> Leader;
    fn is_alive(&self, process: Leader) -> bool;
    /// The user whose rights this process has.
    fn own_user(&self) -> u32;
    /// Since 1970.
    fn wall_clock(&self) -> Duration;
    /// A clock that changes to the wall clock do not affect.
    fn steady_clock(&self) -> Duration;
    /// With an enclosure of the session, where there can be one.
    fn make_roll(&self, owner: Leader) -> Result<Self::Roll, String>;
    /// Put this process, and what it starts from now on, into the enclosure.
    fn enter_enclosure(&self, roll: Self::Roll);
    /// Kill all others in it, and remove it.
    fn clear_enclosure(&self, roll: Self::Roll);
    /// Kill what is left of the processes of an agent that is dead.
    fn kill_left_by(&self, owner: Leader);
    fn remove_roll(&self, owner: Leader);
    /// Note that the first `steps` of the journal are on disk.
    /// The note is in memory and ends with the boot, as the values do.
    fn note_steps(&self, roll: Self::Roll, steps: usize);
    /// How many steps a dead agent had noted, if that is known.
    fn noted_steps(&self, owner: Leader) -> Option<usize>;
}

/// The machine that this runs on.
#[derive(Clone, Default)]
pub struct ThisMachine {
    /// The machine's lock, which a guardian keeps open as well.
    pub held: Option<Rc<OwnedFd>>,
}

impl System for ThisMachine {
    type Disk = Local;
    type Roll = Roll;

    fn disk(&self) -> &Local {
        &Local
    }

    fn boot_id(&self) -> Result<String, String> {
        id(BOOT_ID).map_err(|error| format!("{}/{}: {}", BOOT_ID.0, BOOT_ID.1, errno::of(error)))
    }

    fn machine_id(&self) -> Option<String> {
        id(MACHINE_ID).ok().filter(|id| !id.is_empty())
    }

    fn own_process(&self) -> Leader {
        let pid = std::process::id() as i32;
        Leader { pid, started_ticks: account::start_ticks(pid).unwrap_or(0) }
    }

    fn is_alive(&self, process: Leader) -> bool {
        account::start_ticks(process.pid) == Some(process.started_ticks)
    }

    fn own_user(&self) -> u32 {
        rustix::process::geteuid().as_raw()
    }

    fn wall_clock(&self) -> Duration {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }

    fn steady_clock(&self) -> Duration {
        thread_local!(static BEGIN: Instant = Instant::now());
        BEGIN.with(Instant::elapsed)
    }

    fn make_roll(&self, owner: Leader) -> Result<Roll, String> {
        let roll = Roll::create(owner).map_err(errno::of)?;
        let made = enclosure::create(&format!("{}-{}", owner.pid, owner.started_ticks));
        made.iter().for_each(|path| roll.enclose(path));
        Ok(roll)
    }

    fn enter_enclosure(&self, roll: Roll) {
        roll.enclosure().iter().for_each(|path| enclosure::enter(path));
    }

    fn clear_enclosure(&self, roll: Roll) {
        roll.enclosure().iter().for_each(|path| {
            enclosure::clear(path);
        });
    }

    fn kill_left_by(&self, owner: Leader) {
        Roll::left_by(owner).into_iter().for_each(leftovers::kill);
    }

    fn remove_roll(&self, owner: Leader) {
        Roll::remove(owner);
    }

    fn note_steps(&self, roll: Roll, steps: usize) {
        roll.note_steps(steps);
    }

    fn noted_steps(&self, owner: Leader) -> Option<usize> {
        Roll::left_by(owner).map(|roll| roll.steps())
    }
}

fn id((directory, name): (&str, &str)) -> Result<String, Errno> {
    let file = Local.open(&Local.open_directory(Path::new(directory))?, Path::new(name), Opening::Read)?;
    let mut bytes = [0; LONGEST_ID];
    let count = Local.read(&file, &mut bytes, 0)?;
    Ok(String::from_utf8_lossy(&bytes[..count]).trim().to_owned())
}

impl Places for ThisMachine {
    fn read(&mut self, location: &Location) -> Result<String, String> {
        tunable::read(location)
    }

    fn keep(&mut self, location: &Location) -> Result<String, String> {
        tunable::keep(location)
    }

    fn state(&mut self, location: &Location) -> Result<String, String> {
        tunable::state(location)
    }

    fn write(&mut self, location: &Location, value: &str) -> Result<(), String> {
        tunable::write(location, value)
    }

    fn is_there(&mut self, location: &Location) -> bool {
        tunable::is_there(location)
    }

    fn remove(&mut self, made: &Made) -> Result<(), String> {
        match made.path.starts_with(cgroup::ROOT) {
            true => cgroup::remove(Path::new(&made.path)),
            false => mount_point::remove(&made.path),
        }
    }

    fn pause(&self, duration: Duration) {
        clock::sleep(duration);
    }
}
