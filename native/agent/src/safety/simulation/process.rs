//! A process of a simulated machine: its faults, and its view of the machine.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;

use crate::errno;
use crate::plan::Location;
use crate::process::roll::Leader;
use crate::safety::guardian::Guarded;
use crate::safety::recovery;
use crate::safety::restore::Places;
use crate::safety::session::Session;
use crate::safety::simulation::world::{DEFAULTS, Fault, Pending, Planted, SHARED, Shared, World, run_guardians};
use crate::safety::system::System;
use crate::safety::undo::Made;

/// A process of a simulated machine.
#[derive(Clone)]
pub struct Process {
    pub world: Shared,
    pub machine: usize,
    pub pid: i32,
}

/// A file or directory that a process has open.
pub struct Open {
    process: Process,
    pub volume: usize,
    pub inode: Option<usize>,
    pub path: PathBuf,
    pub number: u64,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.process.world.borrow_mut().close(self.number, self.process.pid);
    }
}

impl Process {
    pub fn start(world: &Shared, machine: usize) -> Process {
        let mut own = world.borrow_mut();
        let pid = own.number() as i32;
        own.alive.insert(pid, machine);
        drop(own);
        Process { world: world.clone(), machine, pid }
    }

    pub fn is_running(&self) -> bool {
        self.world.borrow().is_alive(self.pid)
    }

    /// End the process.
    /// Its guardian is next.
    pub fn end(self) {
        self.world.borrow_mut().kill(self.pid);
        run_guardians(&self.world);
    }

    /// What is to happen at this operation, if anything does.
    pub fn operation(&self, name: &'static str) -> Result<Option<Fault>, Errno> {
        let (comes_between, others) = {
            let mut world = self.world.borrow_mut();
            (world.busy && world.is_alive(self.pid) && world.chance.one_in(150), world.others)
        };
        if comes_between {
            others(&self.world, self.machine);
        }
        let mut world = self.world.borrow_mut();
        if !world.is_alive(self.pid) {
            return Err(Errno::IO);
        }
        world.operations += 1;
        world.seen.insert(name);
        world.tell(|world| format!("{} on {}: {name}, {:?}", self.pid, self.machine, world.fates.get(&self.pid)));
        let fault = match world.fates.get_mut(&self.pid) {
            Some((0, fault)) => *fault,
            Some((left, _)) => {
                *left -= 1;
                return Ok(None);
            }
            None => return Ok(None),
        };
        world.fates.remove(&self.pid);
        match fault {
            Fault::Error(error) => return Err(error),
            Fault::ReadOnly => world.volumes.iter_mut().for_each(|volume| volume.is_read_only = true),
            Fault::Loses => world.lose(),
            Fault::Killed { after: false } => {
                world.kill(self.pid);
                return Err(Errno::IO);
            }
            Fault::Reset => {
                world.reset(self.machine);
                return Err(Errno::IO);
            }
            Fault::Short | Fault::Torn | Fault::Killed { after: true } => return Ok(Some(fault)),
        }
        Ok(None)
    }

    /// An operation that is done wholly or not at all.
    pub fn whole<T>(&self, name: &'static str, work: impl FnOnce(&mut World) -> Result<T, Errno>) -> Result<T, Errno> {
        let fault = self.operation(name)?;
        let done = work(&mut self.world.borrow_mut());
        match fault {
            Some(Fault::Killed { .. }) => {
                self.world.borrow_mut().kill(self.pid);
                Err(Errno::IO)
            }
            Some(Fault::Torn) => Err(Errno::IO),
            _ => done,
        }
    }

    pub fn volume(&self, path: &Path) -> usize {
        if path.starts_with("/home") { SHARED } else { 1 + self.machine }
    }

    pub fn opened(&self, world: &mut World, volume: usize, inode: Option<usize>, path: &Path) -> Open {
        let number = world.number();
        world.openings.insert(number, BTreeSet::from([self.pid]));
        Open { process: self.clone(), volume, inode, path: path.to_owned(), number }
    }

    /// The same open file in another process, which was forked.
    pub fn inherited(&self, open: &Open) -> Open {
        self.world.borrow_mut().openings.entry(open.number).or_default().insert(self.pid);
        Open { process: self.clone(), volume: open.volume, inode: open.inode, path: open.path.clone(), ..*open }
    }
}

fn name(location: &Location) -> &str {
    match location {
        Location::File(file) => &file.path,
        _ => panic!("only files are played"),
    }
}

impl Places for Process {
    fn read(&mut self, location: &Location) -> Result<String, String> {
        let found = self.whole("a value is read", |world| {
            world.machines[self.machine].values.get(name(location)).cloned().ok_or(Errno::NOENT)
        });
        found.map_err(errno::of)
    }

    fn state(&mut self, location: &Location) -> Result<String, String> {
        Places::read(self, location)
    }

    fn keep(&mut self, location: &Location) -> Result<String, String> {
        Places::read(self, location)
    }

    fn write(&mut self, location: &Location, value: &str) -> Result<(), String> {
        let written = self.whole("a value is written", |world| {
            let name = name(location).to_owned();
            let values = &mut world.machines[self.machine].values;
            let is_too_deep =
                name == "depth" && values["scheduler"] == "none" && value.parse::<u32>().is_ok_and(|depth| depth > 128);
            if is_too_deep || (name == "bytes" && value == "0") {
                return Err(Errno::INVAL);
            }
            match name.as_str() {
                "bytes" => drop(values.insert("ratio".to_owned(), "0".to_owned())),
                "ratio" => drop(values.insert("bytes".to_owned(), "0".to_owned())),
                "scheduler" if value == "none" => drop(values.insert("depth".to_owned(), "128".to_owned())),
                "scheduler" => drop(values.insert("depth".to_owned(), "256".to_owned())),
                _ => {}
            }
            values.insert(name, value.to_owned());
            Ok(())
        });
        if self.is_running() {
            self.world.borrow_mut().flush_deferred();
        } else {
            self.world.borrow_mut().deferred.clear();
        }
        self.world.borrow().tell(|world| format!("values: {:?}", world.machines[self.machine].values));
        written.map_err(errno::of)
    }

    fn is_there(&mut self, location: &Location) -> bool {
        DEFAULTS.iter().any(|(one, _)| *one == name(location))
    }

    fn remove(&mut self, _: &Made) -> Result<(), String> {
        Ok(())
    }

    fn pause(&self, duration: Duration) {
        self.world.borrow_mut().clock += duration;
        run_guardians(&self.world);
    }
}

impl System for Process {
    type Disk = Process;
    type Roll = i32;

    fn disk(&self) -> &Process {
        self
    }

    fn boot_id(&self) -> Result<String, String> {
        let world = self.world.borrow();
        let boot = if world.planted == Planted::NoBootId { 0 } else { world.machines[self.machine].boot };
        Ok(format!("boot-{}-{boot}", self.machine))
    }

    fn machine_id(&self) -> Option<String> {
        Some(format!("machine-{}", self.machine))
    }

    fn own_process(&self) -> Leader {
        Leader { pid: self.pid, started_ticks: 7 }
    }

    fn is_alive(&self, process: Leader) -> bool {
        self.world.borrow().alive.get(&process.pid) == Some(&self.machine)
    }

    fn own_user(&self) -> u32 {
        0
    }

    fn wall_clock(&self) -> Duration {
        self.world.borrow().wall
    }

    fn steady_clock(&self) -> Duration {
        self.world.borrow().clock
    }

    fn make_roll(&self, owner: Leader) -> Result<i32, String> {
        let made = self.whole("a roll is made", |world| {
            world.machines[self.machine].rolls.insert(owner.pid, 0);
            Ok(owner.pid)
        });
        made.map_err(errno::of)
    }

    fn enter_enclosure(&self, _: i32) {}

    fn clear_enclosure(&self, _: i32) {}

    fn kill_left_by(&self, _: Leader) {}

    fn remove_roll(&self, owner: Leader) {
        let _ = self.whole("a roll is removed", |world| {
            world.machines[self.machine].rolls.remove(&owner.pid);
            Ok(())
        });
    }

    fn note_steps(&self, roll: i32, steps: usize) {
        let _ = self.whole("the steps are noted", |world| {
            world.machines[self.machine].rolls.insert(roll, steps);
            Ok(())
        });
    }

    fn noted_steps(&self, owner: Leader) -> Option<usize> {
        self.world.borrow().machines[self.machine].rolls.get(&owner.pid).copied()
    }
}

impl Guarded for Process {
    type Guardian = i32;

    fn fork_guardian(&self, session: &Session<Process>, _: i32) -> Result<i32, String> {
        self.whole("a guardian is forked", |_| Ok(())).map_err(errno::of)?;
        let guardian = Process::start(&self.world, self.machine);
        let [file, directory] = session.journal.descriptors();
        let session = session.seen_by(&guardian, guardian.inherited(file), guardian.inherited(directory));
        let mut world = self.world.borrow_mut();
        world.machines[self.machine].locks.inherit(self.pid, guardian.pid);
        world.draw_fate(guardian.pid, 60);
        world.guardians.push(Pending {
            pid: guardian.pid,
            owner: self.pid,
            work: Box::new(move || recovery::take_over(&session)),
        });
        Ok(guardian.pid)
    }

    fn is_guarded(&self, guardian: &i32) -> bool {
        self.world.borrow().is_alive(*guardian)
    }

    fn dismiss(&self, guardian: i32) {
        let pending = {
            let mut world = self.world.borrow_mut();
            let index = world.guardians.iter().position(|one| one.pid == guardian);
            index.map(|index| world.guardians.remove(index))
        };
        let is_alive = self.world.borrow().is_alive(guardian);
        pending.filter(|_| is_alive).into_iter().for_each(|pending| (pending.work)());
        self.world.borrow_mut().kill(guardian);
    }
}
