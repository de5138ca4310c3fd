//! Simulated machines: their disks, memory, processes and events.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use rustix::io::Errno;

use crate::safety::simulation::chance::Chance;
use crate::safety::simulation::volume::Volume;

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
    /// The machine's lock is not checked.
    NoLock,
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

/// What does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// A value is not what it was.
    Value(String),
    /// Something is unknown or left without damage to a journal.
    Untrue(String),
    /// What another has was touched.
    Another(String),
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Wrong::Value(text) | Wrong::Untrue(text) | Wrong::Another(text)) = self;
        out.write_str(text)
    }
}

pub const USERS: u64 = 2;

/// A user's lock of a machine.
#[derive(Default)]
pub struct UserLock {
    /// The processes that have it open.
    pub holders: BTreeSet<i32>,
    /// Who says that they have the machine.
    pub status: Option<i32>,
}

/// The locks of one machine, by user.
#[derive(Default)]
pub struct Locks(pub [UserLock; USERS as usize]);

impl Locks {
    /// Another process has open what this one has.
    pub fn inherit(&mut self, from: i32, to: i32) {
        for lock in self.0.iter_mut().filter(|lock| lock.holders.contains(&from)) {
            lock.holders.insert(to);
        }
    }

    /// The kernel closes what a process had. What it said stays.
    pub fn ended(&mut self, pid: i32) {
        for lock in &mut self.0 {
            lock.holders.remove(&pid);
        }
    }

    pub fn are_free(&self) -> bool {
        self.0.iter().all(|lock| lock.holders.is_empty())
    }
}

/// All of the machines share it.
pub const SHARED: usize = 0;

#[derive(Default)]
pub struct Machine {
    pub boot: u64,
    pub values: BTreeMap<String, String>,
    /// What they are if everything is put back.
    pub expected: BTreeMap<String, String>,
    pub locks: Locks,
    /// Those whose experiments go on.
    pub at_work: BTreeSet<i32>,
    /// What agents have noted in memory, by their numbers.
    pub rolls: BTreeMap<i32, usize>,
}

pub struct World {
    pub chance: Chance,
    pub planted: Planted,
    pub machines: Vec<Machine>,
    /// That which all share, and one for each machine.
    pub volumes: Vec<Volume>,
    pub alive: BTreeMap<i32, usize>,
    next: u64,
    /// Which processes have an open file, by its number.
    pub openings: BTreeMap<u64, BTreeSet<i32>>,
    /// Whose lock is on a file: by the number of its opening, and of which machine.
    pub locks: BTreeMap<(usize, usize), (u64, usize)>,
    pub locks_are_shared: bool,
    pub guardians: Vec<Pending>,
    pub clock: Duration,
    pub wall: Duration,
    /// Operations until something happens to a process.
    pub fates: BTreeMap<i32, (u64, Fault)>,
    pub operations: u64,
    pub seen: BTreeSet<&'static str>,
    pub deferred: Vec<(usize, usize, Vec<u8>)>,
    /// Whether others may come in between.
    pub busy: bool,
    /// What they do, on the machine of that number.
    pub others: fn(&Shared, usize),
    pub wrong: Vec<Wrong>,
    /// What was not synced is lost in power failures only.
    pub storage_is_sound: bool,
    /// Whether what happens is printed.
    pub tells: bool,
}

/// A guardian that waits for the end of its agent.
pub struct Pending {
    pub pid: i32,
    pub owner: i32,
    /// What it does then.
    pub work: Box<dyn FnOnce()>,
}

pub type Shared = Rc<RefCell<World>>;

/// Two coupled ones, and a scheduler that decides how deep a queue may be.
pub const DEFAULTS: [(&str, &str); 6] =
    [("a", "1"), ("b", "2"), ("bytes", "0"), ("ratio", "20"), ("scheduler", "deadline"), ("depth", "200")];

fn defaults() -> BTreeMap<String, String> {
    DEFAULTS.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

impl World {
    pub fn new(seed: u64, machines: usize, planted: Planted, others: fn(&Shared, usize)) -> Shared {
        let mut chance = Chance::new(seed);
        let locks_are_shared = chance.one_in(2);
        let machine = |_| Machine { boot: 1, values: defaults(), expected: defaults(), ..Machine::default() };
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
            others,
            wrong: Vec::new(),
            storage_is_sound: false,
            tells: false,
        }))
    }

    pub fn tell(&self, what: impl FnOnce(&World) -> String) {
        if self.tells {
            println!("{}", what(self));
        }
    }

    pub fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    pub fn is_alive(&self, pid: i32) -> bool {
        self.alive.contains_key(&pid)
    }

    pub fn close(&mut self, number: u64, pid: i32) {
        if let Some(holders) = self.openings.get_mut(&number) {
            holders.remove(&pid);
            if holders.is_empty() {
                self.openings.remove(&number);
                self.locks.retain(|_, (opening, _)| *opening != number);
            }
        }
    }

    pub fn kill(&mut self, pid: i32) {
        if self.alive.remove(&pid).is_some() {
            self.tell(|_| format!("{pid} has ended"));
        }
        self.fates.remove(&pid);
        let open: Vec<u64> = self.openings.keys().copied().collect();
        open.into_iter().for_each(|number| self.close(number, pid));
        for machine in &mut self.machines {
            machine.locks.ended(pid);
            machine.at_work.remove(&pid);
        }
    }

    /// The power fails and comes back: all settings are the kernel's own again.
    pub fn reset(&mut self, machine: usize) {
        self.tell(|_| format!("the power of machine {machine} fails"));
        let pids: Vec<i32> = self.alive.iter().filter(|(_, on)| **on == machine).map(|(pid, _)| *pid).collect();
        pids.into_iter().for_each(|pid| self.kill(pid));
        self.volumes[1 + machine].lose(&mut self.chance, false);
        if self.machines.len() == 1 {
            self.volumes[SHARED].lose(&mut self.chance, false);
        }
        let machine = &mut self.machines[machine];
        machine.boot += 1;
        machine.rolls.clear();
        machine.values = defaults();
        machine.expected = defaults();
    }

    /// The storage loses what was not synced, while the machines go on.
    pub fn lose(&mut self) {
        if self.storage_is_sound {
            return;
        }
        self.tell(|_| "the storage loses what was not synced".to_owned());
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

    pub fn flush_deferred(&mut self) {
        for (volume, inode, bytes) in std::mem::take(&mut self.deferred) {
            self.volumes[volume].inodes[inode].data.extend(bytes);
            self.volumes[volume].sync(inode);
        }
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
            (pending.work)();
        }
        world.borrow_mut().kill(pending.pid);
    }
}
