//! Machines that are played: disks that fail and forget, processes that die at any operation, boots and clocks.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use rustix::io::Errno;

use crate::disk::{About, Disk, Opening};
use crate::plan::Location;
use crate::safety::recovery;
use crate::safety::restore::Places;
use crate::safety::roll::Leader;
use crate::safety::session::Session;
use crate::safety::simulation::chance::Chance;
use crate::safety::simulation::volume::Volume;
use crate::safety::system::System;
use crate::safety::undo::Made;

/// What is broken on purpose, to see that it is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    Nothing,
    /// What is synced is not.
    NoSync,
    /// A step is in the journal only after its value was written.
    WriteFirst,
    /// Every boot is the same.
    NoBootId,
}

/// What happens at an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Error(Errno),
    /// Nothing can be written from now on.
    ReadOnly,
    /// Only a part is done, and that is said.
    Short,
    /// Only a part is done, and an error is said.
    Torn,
    /// The storage loses what was not synced.
    Loses,
    /// The process is killed, before or after it.
    Killed {
        after: bool,
    },
    /// The machine is.
    Reset,
}

/// All of the machines share it.
pub const SHARED: usize = 0;

pub struct Machine {
    pub boot: u64,
    pub values: BTreeMap<String, String>,
    /// What they are if everything is put back.
    pub expected: BTreeMap<String, String>,
    /// Who has the machine's lock.
    pub lock: BTreeSet<i32>,
}

pub struct World {
    pub chance: Chance,
    pub planted: Planted,
    pub machines: Vec<Machine>,
    /// That which all share, and one for each machine.
    pub volumes: Vec<Volume>,
    alive: BTreeMap<i32, usize>,
    next: u64,
    /// Which processes have an open file, by its number.
    openings: BTreeMap<u64, BTreeSet<i32>>,
    /// Whose lock is on a file: by the number of its opening, and of which machine.
    locks: BTreeMap<(usize, usize), (u64, usize)>,
    pub locks_are_shared: bool,
    guardians: Vec<Pending>,
    clock: Duration,
    wall: Duration,
    /// Operations until something happens to a process.
    pub fates: BTreeMap<i32, (u64, Fault)>,
    pub operations: u64,
    pub seen: BTreeSet<&'static str>,
    deferred: Vec<(usize, usize, Vec<u8>)>,
    /// Whether others may come in between.
    pub busy: bool,
    pub wrong: Vec<String>,
}

struct Pending {
    pid: i32,
    owner: i32,
    session: Session<Process>,
}

pub type Shared = Rc<RefCell<World>>;

/// A process of a machine that is played.
#[derive(Clone)]
pub struct Process {
    pub world: Shared,
    pub machine: usize,
    pub pid: i32,
}

/// A file or directory that a process has open.
pub struct Open {
    process: Process,
    volume: usize,
    inode: Option<usize>,
    path: PathBuf,
    number: u64,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.process.world.borrow_mut().close(self.number, self.process.pid);
    }
}

pub const DEFAULTS: [(&str, &str); 4] = [("a", "1"), ("b", "2"), ("bytes", "0"), ("ratio", "20")];

fn defaults() -> BTreeMap<String, String> {
    DEFAULTS.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

impl World {
    pub fn new(seed: u64, machines: usize, planted: Planted) -> Shared {
        let mut chance = Chance::new(seed);
        let locks_are_shared = chance.one_in(2);
        let machine = |_| Machine { boot: 1, values: defaults(), expected: defaults(), lock: BTreeSet::new() };
        let mut volumes: Vec<Volume> = (0..=machines).map(|_| Volume::default()).collect();
        for volume in &mut volumes {
            volume.directories = ["/", "/home", "/home/a", "/home/b", "/var", "/var/lib"].map(PathBuf::from).to_vec();
        }
        Rc::new(RefCell::new(World {
            chance,
            planted,
            machines: (0..machines).map(machine).collect(),
            volumes,
            alive: BTreeMap::new(),
            next: 100,
            openings: BTreeMap::new(),
            locks: BTreeMap::new(),
            locks_are_shared,
            guardians: Vec::new(),
            clock: Duration::ZERO,
            wall: Duration::from_secs(1_000_000),
            fates: BTreeMap::new(),
            operations: 0,
            seen: BTreeSet::new(),
            deferred: Vec::new(),
            busy: true,
            wrong: Vec::new(),
        }))
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    pub fn is_alive(&self, pid: i32) -> bool {
        self.alive.contains_key(&pid)
    }

    fn close(&mut self, number: u64, pid: i32) {
        if let Some(holders) = self.openings.get_mut(&number) {
            holders.remove(&pid);
            if holders.is_empty() {
                self.openings.remove(&number);
                self.locks.retain(|_, (opening, _)| *opening != number);
            }
        }
    }

    pub fn kill(&mut self, pid: i32) {
        self.alive.remove(&pid);
        self.fates.remove(&pid);
        let open: Vec<u64> = self.openings.keys().copied().collect();
        open.into_iter().for_each(|number| self.close(number, pid));
        for machine in &mut self.machines {
            machine.lock.remove(&pid);
        }
    }

    /// The power fails and comes back: all settings are the kernel's own again.
    pub fn reset(&mut self, machine: usize) {
        let pids: Vec<i32> = self.alive.iter().filter(|(_, on)| **on == machine).map(|(pid, _)| *pid).collect();
        pids.into_iter().for_each(|pid| self.kill(pid));
        self.volumes[1 + machine].lose(&mut self.chance, false);
        if self.machines.len() == 1 {
            self.volumes[SHARED].lose(&mut self.chance, false);
        }
        let machine = &mut self.machines[machine];
        machine.boot += 1;
        machine.values = defaults();
        machine.expected = defaults();
    }

    pub fn lose(&mut self) {
        for volume in 0..self.volumes.len() {
            self.volumes[volume].lose(&mut self.chance, true);
        }
    }

    /// Clocks are set by people.
    pub fn step_clock(&mut self) {
        let seconds = self.chance.below(20_000);
        self.wall = match self.chance.one_in(2) {
            true => self.wall + Duration::from_secs(seconds),
            false => self.wall.saturating_sub(Duration::from_secs(seconds)),
        };
    }

    fn flush_deferred(&mut self) {
        for (volume, inode, bytes) in std::mem::take(&mut self.deferred) {
            self.volumes[volume].inodes[inode].data.extend(bytes);
            self.volumes[volume].sync(inode);
        }
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

    /// The end of the process, in whatever way. Its guardian is next.
    pub fn end(self) {
        self.world.borrow_mut().kill(self.pid);
        run_guardians(&self.world);
    }

    /// What is to happen at this operation, if anything does.
    fn operation(&self, name: &'static str) -> Result<Option<Fault>, Errno> {
        let comes_between = {
            let mut world = self.world.borrow_mut();
            world.busy && world.is_alive(self.pid) && world.chance.one_in(150)
        };
        if comes_between {
            super::scenario::somebody_else(&self.world, self.machine);
        }
        let mut world = self.world.borrow_mut();
        if !world.is_alive(self.pid) {
            return Err(Errno::IO);
        }
        world.operations += 1;
        world.seen.insert(name);
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
    fn whole<T>(&self, name: &'static str, work: impl FnOnce(&mut World) -> Result<T, Errno>) -> Result<T, Errno> {
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

    fn volume(&self, path: &Path) -> usize {
        if path.starts_with("/home") {
            SHARED
        } else {
            1 + self.machine
        }
    }

    fn opened(&self, world: &mut World, volume: usize, inode: Option<usize>, path: &Path) -> Open {
        let number = world.number();
        world.openings.insert(number, BTreeSet::from([self.pid]));
        Open { process: self.clone(), volume, inode, path: path.to_owned(), number }
    }

    /// The same open file in another process, which was forked.
    fn inherited(&self, open: &Open) -> Open {
        self.world.borrow_mut().openings.entry(open.number).or_default().insert(self.pid);
        Open { process: self.clone(), volume: open.volume, inode: open.inode, path: open.path.clone(), ..*open }
    }
}

/// Those whose agent is dead are at work.
pub fn run_guardians(world: &Shared) {
    loop {
        let pending = {
            let mut own = world.borrow_mut();
            let awake = |one: &Pending| !own.is_alive(one.owner);
            let Some(index) = own.guardians.iter().position(awake) else { return };
            own.guardians.remove(index)
        };
        if world.borrow().is_alive(pending.pid) {
            recovery::take_over(&pending.session);
        }
        world.borrow_mut().kill(pending.pid);
    }
}

impl Disk for Process {
    type File = Open;

    fn open_directory(&self, path: &Path) -> Result<Open, Errno> {
        let volume = self.volume(path);
        self.whole("open_directory", |world| {
            match world.volumes[volume].directories.iter().any(|directory| directory == path) {
                true => Ok(self.opened(world, volume, None, path)),
                false => Err(Errno::NOENT),
            }
        })
    }

    fn open(&self, directory: &Open, name: &Path, opening: Opening) -> Result<Open, Errno> {
        let path = directory.path.join(name);
        self.whole("open", |world| {
            let volume = &mut world.volumes[directory.volume];
            let found = volume.names.get(&path).copied();
            let inode = match (opening, found) {
                (Opening::Read, Some(inode)) => inode,
                (Opening::Read | Opening::Append, None) => return Err(Errno::NOENT),
                _ if volume.is_read_only => return Err(Errno::ROFS),
                (Opening::Append, Some(inode)) => inode,
                (Opening::Create(_), Some(_)) => return Err(Errno::EXIST),
                (Opening::Create(mode), None) => volume.create(&path, mode, self.machine),
            };
            Ok(self.opened(world, directory.volume, Some(inode), &path))
        })
    }

    fn about(&self, file: &Open) -> Result<About, Errno> {
        self.whole("about", |world| {
            world.flush_deferred();
            Ok(about(&world.volumes[file.volume], file.volume, file.inode))
        })
    }

    fn about_named(&self, directory: &Open, name: &Path) -> Result<About, Errno> {
        self.whole("about_named", |world| {
            let volume = &world.volumes[directory.volume];
            let inode = volume.names.get(&directory.path.join(name)).ok_or(Errno::NOENT)?;
            Ok(about(volume, directory.volume, Some(*inode)))
        })
    }

    fn about_path(&self, path: &Path) -> Result<About, Errno> {
        let number = self.volume(path);
        self.whole("about_path", |world| {
            let volume = &world.volumes[number];
            match volume.names.get(path) {
                Some(inode) => Ok(about(volume, number, Some(*inode))),
                None if volume.directories.iter().any(|one| one == path) => Ok(about(volume, number, None)),
                None => Err(Errno::NOENT),
            }
        })
    }

    fn read(&self, file: &Open, buffer: &mut [u8], offset: u64) -> Result<usize, Errno> {
        let fault = self.operation("read")?;
        let mut world = self.world.borrow_mut();
        world.flush_deferred();
        if matches!(fault, Some(Fault::Killed { .. } | Fault::Torn)) {
            if fault != Some(Fault::Torn) {
                world.kill(self.pid);
            }
            return Err(Errno::IO);
        }
        let data = &world.volumes[file.volume].inodes[file.inode.ok_or(Errno::ISDIR)?].data;
        let rest = data.get(offset as usize..).unwrap_or_default();
        let most = if fault == Some(Fault::Short) { rest.len().div_ceil(2) } else { rest.len() };
        let count = most.min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn append(&self, file: &Open, bytes: &[u8]) -> Result<usize, Errno> {
        let fault = self.operation("append")?;
        let mut world = self.world.borrow_mut();
        let inode = file.inode.ok_or(Errno::ISDIR)?;
        if world.volumes[file.volume].is_read_only {
            return Err(Errno::ROFS);
        }
        let is_step = file.path.extension().is_some_and(|word| word == "journal");
        let has_header = !world.volumes[file.volume].inodes[inode].data.is_empty();
        if world.planted == Planted::WriteFirst && fault.is_none() && is_step && has_header {
            world.deferred.push((file.volume, inode, bytes.to_vec()));
            return Ok(bytes.len());
        }
        let count = match fault {
            Some(Fault::Short | Fault::Torn) => bytes.len().div_ceil(2),
            _ => bytes.len(),
        };
        world.volumes[file.volume].inodes[inode].data.extend(&bytes[..count]);
        match fault {
            Some(Fault::Torn) => Err(Errno::NOSPC),
            Some(Fault::Killed { .. }) => {
                world.kill(self.pid);
                Err(Errno::IO)
            }
            _ => Ok(count),
        }
    }

    fn truncate(&self, file: &Open, length: u64) -> Result<(), Errno> {
        self.whole("truncate", |world| {
            let volume = &mut world.volumes[file.volume];
            if volume.is_read_only {
                return Err(Errno::ROFS);
            }
            volume.inodes[file.inode.ok_or(Errno::ISDIR)?].data.resize(length as usize, 0);
            Ok(())
        })
    }

    fn sync(&self, file: &Open) -> Result<(), Errno> {
        self.whole("sync", |world| synced(world, file))
    }

    fn sync_data(&self, file: &Open) -> Result<(), Errno> {
        self.whole("sync_data", |world| synced(world, file))
    }

    fn lock(&self, file: &Open) -> Result<(), Errno> {
        self.whole("lock", |world| {
            let key = (file.volume, file.inode.ok_or(Errno::ISDIR)?);
            match world.locks.get(&key) {
                Some((number, machine))
                    if *number != file.number && (world.locks_are_shared || *machine == self.machine) =>
                {
                    Err(Errno::WOULDBLOCK)
                }
                _ => {
                    world.locks.insert(key, (file.number, self.machine));
                    Ok(())
                }
            }
        })
    }

    fn unlink(&self, directory: &Open, name: &Path) -> Result<(), Errno> {
        let path = directory.path.join(name);
        self.whole("unlink", |world| {
            let volume = &mut world.volumes[directory.volume];
            if volume.is_read_only {
                return Err(Errno::ROFS);
            }
            let inode = volume.names.remove(&path).ok_or(Errno::NOENT)?;
            if volume.inodes[inode].maker != self.machine {
                world.wrong.push(format!("{} of another machine was removed", path.display()));
            }
            Ok(())
        })
    }

    fn make_directory(&self, path: &Path, _: u32) -> Result<(), Errno> {
        let volume = self.volume(path);
        self.whole("make_directory", |world| {
            let volume = &mut world.volumes[volume];
            if volume.is_read_only {
                return Err(Errno::ROFS);
            }
            volume.directories.push(path.to_owned());
            Ok(())
        })
    }

    fn names(&self, path: &Path) -> Result<Vec<OsString>, Errno> {
        let volume = self.volume(path);
        self.whole("names", |world| Ok(world.volumes[volume].list(path)))
    }
}

fn about(volume: &Volume, device: usize, inode: Option<usize>) -> About {
    let (kind, mode, size) = match inode {
        Some(inode) => (libc::S_IFREG, volume.inodes[inode].mode, volume.inodes[inode].data.len()),
        None => (libc::S_IFDIR, 0o755, 0),
    };
    let is_named = inode.is_none_or(|inode| volume.is_named(inode));
    let number = inode.map_or(0, |inode| inode as u64 + 1);
    About { size: size as u64, is_named, owner: 0, mode: kind | mode, device: device as u64, inode: number }
}

fn synced(world: &mut World, file: &Open) -> Result<(), Errno> {
    if world.planted == Planted::NoSync {
        return Ok(());
    }
    let volume = &mut world.volumes[file.volume];
    match file.inode {
        Some(inode) if !volume.sync(inode) => return Err(Errno::IO),
        Some(_) => {}
        None if !volume.sync_directory(&file.path) => return Err(Errno::IO),
        None => {}
    }
    Ok(())
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
        found.map_err(crate::errno::of)
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
            if name == "bytes" && value == "0" {
                return Err(Errno::INVAL);
            }
            let values = &mut world.machines[self.machine].values;
            match name.as_str() {
                "bytes" => drop(values.insert("ratio".to_owned(), "0".to_owned())),
                "ratio" => drop(values.insert("bytes".to_owned(), "0".to_owned())),
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
        written.map_err(crate::errno::of)
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
    type Roll = ();
    type Guardian = i32;

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

    fn make_roll(&self, _: Leader) -> Result<(), String> {
        self.whole("a roll is made", |_| Ok(())).map_err(crate::errno::of)
    }

    fn enter_enclosure(&self, (): ()) {}

    fn clear_enclosure(&self, (): ()) {}

    fn kill_left_by(&self, _: Leader) {}

    fn remove_roll(&self, _: Leader) {}

    fn fork_guardian(&self, session: &Session<Process>, (): ()) -> Result<i32, String> {
        self.whole("a guardian is forked", |_| Ok(())).map_err(crate::errno::of)?;
        let guardian = Process::start(&self.world, self.machine);
        let [file, directory] = session.journal.descriptors();
        let session = session.seen_by(&guardian, guardian.inherited(file), guardian.inherited(directory));
        let mut world = self.world.borrow_mut();
        world.machines[self.machine].lock.insert(guardian.pid);
        world.draw_fate(guardian.pid, 60);
        world.guardians.push(Pending { pid: guardian.pid, owner: self.pid, session });
        Ok(guardian.pid)
    }

    fn is_guarded(&self, guardian: &i32) -> bool {
        self.world.borrow().is_alive(*guardian)
    }

    fn dismiss(&self, guardian: i32) {
        let session = {
            let mut world = self.world.borrow_mut();
            let index = world.guardians.iter().position(|one| one.pid == guardian);
            index.map(|index| world.guardians.remove(index).session)
        };
        if self.world.borrow().is_alive(guardian) {
            session.iter().for_each(recovery::take_over);
        }
        self.world.borrow_mut().kill(guardian);
    }
}
