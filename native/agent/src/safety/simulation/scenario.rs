//! What happens on the simulated machines, and what must hold.
//! Experiments of several homes, restores, crashes.

use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::event::Event;
use crate::plan::{FileLocation, Location, Plan};
use crate::safety::candidates::Scope;
use crate::safety::keeper::Keeper;
use crate::safety::recovery::{Permit, Recovery, Verdict, is_done};
use crate::safety::registry::Registry;
use crate::safety::simulation::lock::Use;
use crate::safety::simulation::process::Process;
use crate::safety::simulation::world::{DEFAULTS, Fault, Planted, SHARED, Shared, USERS, World, Wrong, run_guardians};

const REGISTRY: &str = "/var/lib/ajuste/journals";
const HOMES: [&str; 2] = ["/home/a", "/home/b"];

impl World {
    /// Draw a fault for a process within `span` operations, or none.
    pub fn draw_fate(&mut self, pid: i32, span: u64) {
        if self.chance.one_in(3) {
            return;
        }
        let fault = match self.chance.below(12) {
            0 => Fault::Error(Errno::NOSPC),
            1 => Fault::Error(Errno::IO),
            2 => Fault::ReadOnly,
            3 => Fault::Short,
            4 => Fault::Torn,
            5 => Fault::Loses,
            6 => Fault::Reset,
            7 | 8 => Fault::Killed { after: false },
            _ => Fault::Killed { after: true },
        };
        let operations = self.chance.below(span);
        self.fates.insert(pid, (operations, fault));
    }
}

pub fn registry(process: &Process) -> Registry<Process> {
    Registry::new(process, Path::new(REGISTRY))
}

fn recovery(process: &Process) -> Recovery<Process> {
    let place = |name: &str| Location::File(FileLocation { path: name.to_owned() });
    let permit = Permit::Only(DEFAULTS.iter().map(|(name, _)| place(name)).collect());
    Recovery { system: process.clone(), registry: registry(process), permit }
}

fn scope(homes: &[&str]) -> Scope {
    Scope { places: homes.iter().map(PathBuf::from).collect(), all: true }
}

/// Run `ajuste restore`.
/// True if it reports that nothing is left to do.
pub fn restore(process: &Process, homes: &[&str]) -> bool {
    recovery(process).restore(&scope(homes), &mut |_| {}) && process.is_running()
}

/// Run `ajuste restore` as `user`.
/// True if it reports that nothing is left to do. It does not disturb an experiment of that user.
fn restore_as(user: u64, process: &Process) -> bool {
    let restored = process.lock_machine(user, Use::Restoration) && restore(process, &HOMES);
    process.unlock_machine(user);
    restored
}

/// Another process acts while one of `machine` is in the middle of something.
fn somebody_else(world: &Shared, machine: usize) {
    world.borrow_mut().busy = false;
    let (what, user, machines) = {
        let mut own = world.borrow_mut();
        (own.chance.below(8), own.chance.below(USERS), own.machines.len())
    };
    let restores = |machine: usize| {
        let person = Process::start(world, machine);
        restore_as(user, &person);
        person.end();
    };
    match what {
        0 => world.borrow_mut().lose(),
        1 => world.borrow_mut().step_clock(),
        2 => experiment(world, machine, user, HOMES[1]),
        3 | 4 => restores(machine),
        _ => restores((machine + 1) % machines),
    }
    world.borrow_mut().busy = true;
}

/// Carry out a study as `ajuste.executor.host.host` does.
/// The lock, an earlier session's rest, the agent and its plans, the end. All processes have the rights for that, for
/// every user.
fn experiment(world: &Shared, machine: usize, user: u64, home: &str) {
    let orchestrator = Process::start(world, machine);
    if world.borrow_mut().chance.one_in(4) {
        let operations = world.borrow_mut().chance.below(60);
        world.borrow_mut().fates.insert(orchestrator.pid, (operations, Fault::Killed { after: true }));
    }
    if orchestrator.lock_machine(user, Use::Experiment) {
        if nothing_stands(&orchestrator, home) {
            begin(world, &orchestrator, home);
        }
        orchestrator.unlock_machine(user);
    }
    orchestrator.end();
}

/// Nothing is changed while something is in the way. What is void is removed.
fn nothing_stands(orchestrator: &Process, home: &str) -> bool {
    let recovery = recovery(orchestrator);
    let candidates = recovery.candidates(&scope(&[home]));
    let mut stands = !candidates.problems.is_empty();
    let mut void = Vec::new();
    for candidate in &candidates.found {
        match recovery.examine(candidate) {
            Verdict::Void(..) => void.push(candidate),
            Verdict::Left(..) | Verdict::Settled(..) => stands = true,
            Verdict::Other(state, _) => stands |= !is_done(state),
        }
    }
    if !stands {
        for candidate in void {
            recovery.carry_out(candidate, &mut |_| {});
        }
    }
    !stands && orchestrator.is_running()
}

fn begin(world: &Shared, orchestrator: &Process, home: &str) {
    let machine = orchestrator.machine;
    require_as_it_was(world, machine, "an experiment began");
    if !world.borrow_mut().machines[machine].at_work.is_empty() {
        world.borrow_mut().wrong.push(Wrong::Another("two experiments have one machine".to_owned()));
    }
    let agent = Process::start(world, machine);
    let plans = {
        let mut own = world.borrow_mut();
        own.machines[machine].at_work.insert(orchestrator.pid);
        own.machines[machine].locks.inherit(orchestrator.pid, agent.pid);
        own.draw_fate(agent.pid, 120);
        1 + own.chance.below(3)
    };
    let mut keeper = Keeper::new(&agent, PathBuf::from(home), registry(&agent));
    let mut said = false;
    for number in 0..plans {
        let plan = plan(number + world.borrow_mut().chance.below(4));
        said |= keeper.change(&plan, &mut |_| Ok(())).map(|()| meddle(&plan, &agent)).is_err();
        keeper.look();
        said |= keeper.put_back().iter().any(|event| matches!(event, Event::Failed(_)));
        orchestrator.pass("an observation is heard");
        if !orchestrator.is_running() {
            break;
        }
    }
    said |= keeper.finish().is_err();
    if !said && agent.is_running() {
        require_as_it_was(world, machine, "the agent ended well");
    }
    let was_lost = !agent.is_running();
    agent.end();
    if was_lost && is_put_back(orchestrator, home) {
        require_as_it_was(world, machine, "after a lost agent everything was put back, it was said");
    }
}

/// What an orchestrator says that has lost its agent, when it has done what it can.
fn is_put_back(orchestrator: &Process, home: &str) -> bool {
    let recovery = recovery(orchestrator);
    let scope = Scope { places: vec![PathBuf::from(home)], all: false };
    recovery.restore(&scope, &mut |_| {}) && orchestrator.is_running()
}

fn require_as_it_was(world: &Shared, machine: usize, what: &str) {
    let difference = difference(&world.borrow(), machine);
    let wrong = difference.map(|difference| Wrong::Value(format!("{what}, but {difference}")));
    world.borrow_mut().wrong.extend(wrong);
}

fn plan(number: u64) -> Plan {
    let write = |name: &str, value: &str, companion: &str| {
        let file = |name: &str| format!(r#"{{"kind":"file","path":"{name}"}}"#);
        let companions = if companion.is_empty() { String::new() } else { file(companion) };
        format!(r#"{{"tunable":"{name}","location":{},"value":"{value}","companions":[{companions}]}}"#, file(name))
    };
    let keep =
        |(name, _): &(&str, &str)| format!(r#"{{"tunable":"{name}","location":{{"kind":"file","path":"{name}"}}}}"#);
    let (writes, keeps) = match number % 4 {
        0 => (vec![write("a", "10", ""), write("b", "20", "")], Vec::new()),
        1 => (vec![write("bytes", "8192", "ratio")], Vec::new()),
        2 => (vec![write("ratio", "30", "bytes"), write("a", "11", "")], Vec::new()),
        _ => (vec![write("b", "21", "")], DEFAULTS.iter().map(keep).collect()),
    };
    let text = format!(r#"{{"id":"p","writes":[{}],"keeps":[{}]}}"#, writes.join(","), keeps.join(","));
    Plan::parse(text.as_bytes()).expect("a plan of the simulation")
}

/// What a program does that a plan with `keeps` has started.
fn meddle(plan: &Plan, agent: &Process) {
    if !plan.keeps.is_empty() && agent.is_running() {
        let values = &mut agent.world.borrow_mut().machines[agent.machine].values;
        for (name, value) in [("a", "77"), ("scheduler", "none"), ("depth", "11"), ("bytes", "4096"), ("ratio", "0")] {
            values.insert(name.to_owned(), value.to_owned());
        }
    }
}

/// What is not as it should be on a machine.
fn difference(world: &World, machine: usize) -> Option<String> {
    let machine = &world.machines[machine];
    let differing = machine.values.iter().filter(|(name, value)| machine.expected.get(*name) != Some(value));
    let words: Vec<String> = differing.map(|(name, value)| format!("{name} is {value}")).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// The files that a machine has made.
fn left_by(world: &World, machine: usize) -> Vec<String> {
    let left = world.volumes.iter().flat_map(|volume| {
        volume.names.iter().filter(|(_, inode)| volume.inodes[**inode].maker == machine).map(|(path, _)| path)
    });
    left.map(|path| path.display().to_string()).collect()
}

/// A person sets a value on a free machine.
/// A restore would overwrite it while a journal is left.
fn set_value(world: &mut World, machine: usize) {
    let is_theirs = world.machines[machine].locks.are_free() && left_by(world, machine).is_empty();
    if !is_theirs || difference(world, machine).is_some() {
        return;
    }
    let value = (100 + world.chance.below(100)).to_string();
    let name = ["a", "b"][world.chance.below(2) as usize];
    let machine = &mut world.machines[machine];
    machine.values.insert(name.to_owned(), value.clone());
    machine.expected.insert(name.to_owned(), value);
}

/// Delete a journal, flip a bit of it, or lose its end and what agents have noted in memory.
/// True if there was one.
fn harm(world: &mut World) -> bool {
    let how = world.chance.below(3);
    let volume = &mut world.volumes[SHARED];
    let Some((path, inode)) = volume.names.iter().next().map(|(path, inode)| (path.clone(), *inode)) else {
        return false;
    };
    let length = volume.inodes[inode].data.len() as u64;
    match how {
        0 => {
            volume.names.remove(&path);
            volume.sync_directory(path.parent().unwrap_or(Path::new("/")));
        }
        1 if length > 0 => {
            let bit = world.chance.below(length * 8) as usize;
            world.volumes[SHARED].inodes[inode].data[bit / 8] ^= 1 << (bit % 8);
        }
        _ if length > 0 => {
            let left = world.chance.below(length) as usize;
            world.volumes[SHARED].inodes[inode].data.truncate(left);
            world.machines.iter_mut().for_each(|machine| machine.rolls.clear());
        }
        _ => {}
    }
    true
}

/// All that happens under one seed, on a world that is `set` up in a certain way.
/// The error says what did not hold.
pub fn run(seed: u64, planted: Planted, set: impl Fn(&mut World)) -> Result<(), Vec<Wrong>> {
    let machines = 1 + (seed % 2) as usize;
    let world = World::new(seed, machines, planted, somebody_else);
    set(&mut world.borrow_mut());
    let rounds = 2 + world.borrow_mut().chance.below(4);
    let mut was_harmed = false;
    for _ in 0..rounds {
        let (machine, user, home) = {
            let mut own = world.borrow_mut();
            let machine = own.chance.below(machines as u64) as usize;
            set_value(&mut own, machine);
            (machine, own.chance.below(USERS), HOMES[own.chance.below(2) as usize])
        };
        experiment(&world, machine, user, home);
        let mut own = world.borrow_mut();
        own.volumes.iter_mut().for_each(|volume| volume.is_read_only = false);
        match own.chance.below(12) {
            0 => own.reset(machine),
            1 => own.lose(),
            2 => own.step_clock(),
            3 => was_harmed |= harm(&mut own),
            _ => {}
        }
    }
    end(&world, was_harmed)
}

/// All has ended; people restore, on machines that work again.
fn end(world: &Shared, was_harmed: bool) -> Result<(), Vec<Wrong>> {
    run_guardians(world);
    {
        let mut own = world.borrow_mut();
        own.busy = false;
        own.fates.clear();
        own.volumes.iter_mut().for_each(|volume| volume.is_read_only = false);
    }
    let machines = world.borrow().machines.len();
    let mut wrong = std::mem::take(&mut world.borrow_mut().wrong);
    for machine in 0..machines {
        let person = Process::start(world, machine);
        // I/O errors of before may come to light only now: once each, of two files and
        // their directories.
        let done = (0..=4).any(|_| restore_as(0, &person));
        person.end();
        let own = world.borrow();
        match difference(&own, machine) {
            Some(difference) if done => {
                wrong.push(Wrong::Value(format!("everything was put back, it was said, but {difference}")));
            }
            Some(difference) if !was_harmed => {
                wrong.push(Wrong::Value(format!("nobody did any harm, but {difference}")));
            }
            None if !done && !was_harmed => {
                wrong.push(Wrong::Untrue("nobody did any harm, but something is unknown".to_owned()));
            }
            _ => {}
        }
        let left = left_by(&own, machine);
        if !left.is_empty() && !was_harmed && done {
            wrong.push(Wrong::Untrue(format!("these are left: {}", left.join(", "))));
        }
    }
    wrong.append(&mut world.borrow_mut().wrong);
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(wrong),
    }
}

/// Run one session with this fault at its operation number `at`.
/// Returns its number of operations; the error says what did not hold.
pub fn session_with(at: u64, fault: Option<Fault>, seen: &mut dyn FnMut(&World)) -> Result<u64, Vec<Wrong>> {
    let world = World::new(at, 1, Planted::Nothing, somebody_else);
    {
        let mut own = world.borrow_mut();
        own.busy = false;
        set_value(&mut own, 0);
    }
    let agent = Process::start(&world, 0);
    world.borrow_mut().fates.extend(fault.map(|fault| (agent.pid, (at, fault))));
    let mut keeper = Keeper::new(&agent, PathBuf::from(HOMES[0]), registry(&agent));
    let mut said = false;
    for number in 0..4 {
        let plan = plan(number);
        said |= keeper.change(&plan, &mut |_| Ok(())).map(|()| meddle(&plan, &agent)).is_err();
        keeper.look();
        said |= keeper.put_back().iter().any(|event| matches!(event, Event::Failed(_)));
    }
    said |= keeper.finish().is_err();
    let operations = world.borrow().operations;
    if !said && agent.is_running() {
        if let Some(difference) = difference(&world.borrow(), 0) {
            return Err(vec![Wrong::Value(format!("the agent ended well, but {difference}"))]);
        }
    }
    agent.end();
    let ended = end(&world, false);
    seen(&world.borrow());
    ended.map(|()| operations)
}
