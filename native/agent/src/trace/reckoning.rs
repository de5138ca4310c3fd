//! From moments to figures: which task was where since when. Pure.

use std::collections::{BTreeMap, HashMap};

use super::moment::{Left, Moment, Name, What};
use super::recording::{Behaviour, Part, Preemption, Recording, Share, Switches};
use super::spread::Durations;

/// The most shares and preemptions in a recording.
const MOST_NAMED: usize = 20;
/// The idle task.
const IDLE: u32 = 0;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Away,
    Running,
    /// Since when; woken (not preempted); woken from another CPU or as a new task.
    Waiting {
        since_ns: u64,
        woken: bool,
        unseen: bool,
    },
}

#[derive(Clone, Copy, Debug, Default)]
struct Task {
    part: Part,
    state: State,
    cpu: usize,
}

/// Why the task that runs is to give up the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    ByWakeup,
    ByTurn,
}

#[derive(Clone, Copy, Debug)]
struct Cpu {
    /// Since when its task runs, if that was seen.
    since_ns: Option<u64>,
    current: Option<(u32, Name)>,
    told: Option<Told>,
    runnable: u64,
    counted_ns: u64,
}

#[derive(Debug, Default)]
struct Tally {
    tasks: u64,
    switches: Switches,
    wakeups: u64,
    migrations: u64,
    run_ns: u64,
    wait_ns: u64,
    latency: Durations,
    runs: Durations,
}

/// Takes moments in the order of time.
#[derive(Debug)]
pub struct Reckoning {
    from_ns: u64,
    events: u64,
    tasks: HashMap<u32, Task>,
    cpus: BTreeMap<usize, Cpu>,
    tallies: [Tally; 3],
    idle_ns: u64,
    queue: BTreeMap<u64, u64>,
    shares: BTreeMap<(Part, Name), (u64, u64)>,
    preemptions: BTreeMap<(Name, Name, Part), u64>,
}

impl Reckoning {
    /// From `from_ns` on. The tasks that are there already have their part.
    pub fn new(from_ns: u64, known: impl IntoIterator<Item = (u32, Part)>) -> Reckoning {
        let mut reckoning = Reckoning {
            from_ns,
            events: 0,
            tasks: HashMap::new(),
            cpus: BTreeMap::new(),
            tallies: Default::default(),
            idle_ns: 0,
            queue: BTreeMap::new(),
            shares: BTreeMap::new(),
            preemptions: BTreeMap::new(),
        };
        for (number, part) in known {
            reckoning.tasks.insert(number, Task { part, ..Task::default() });
            reckoning.tallies[part as usize].tasks += 1;
        }
        reckoning
    }

    pub fn add(&mut self, moment: &Moment) {
        self.events += 1;
        let Moment { at_ns, cpu, .. } = *moment;
        self.note_told(moment);
        match moment.what {
            What::Switch { previous, previous_name, left, next, next_name } => {
                self.leave(at_ns, cpu, (previous, previous_name), left, (next, next_name));
                self.enter(at_ns, cpu, (next, next_name));
            }
            What::Wakeup { task, cpu: target, new } => self.wake(at_ns, task, target, new || target != cpu),
            What::Migration { task, cpu: target } => self.migrate(at_ns, task, target),
            What::Fork { parent, child } => {
                let part = self.task(parent).part;
                self.tasks.insert(child, Task { part, ..Task::default() });
                self.tallies[part as usize].tasks += 1;
            }
        }
    }

    /// A wake-up is recorded after the kernel has decided whether it preempts.
    fn note_told(&mut self, moment: &Moment) {
        if !moment.reschedule {
            return;
        }
        let by_wakeup = matches!(moment.what, What::Wakeup { cpu, .. } if cpu == moment.cpu);
        let told = if by_wakeup { Told::ByWakeup } else { Told::ByTurn };
        self.cpu(moment.cpu).told.get_or_insert(told);
    }

    fn leave(&mut self, at_ns: u64, place: usize, previous: (u32, Name), left: Left, next: (u32, Name)) {
        let (number, name) = previous;
        let cpu = *self.cpu(place);
        let ran_ns = at_ns.saturating_sub(cpu.since_ns.unwrap_or(self.from_ns));
        if number == IDLE {
            self.idle_ns += ran_ns;
            return;
        }
        if self.task(number).state != State::Running {
            self.count(at_ns, place, 1);
        }
        let part = self.task(number).part;
        let cause = self.cause(left, &cpu, next.0);
        let tally = &mut self.tallies[part as usize];
        *cause(&mut tally.switches) += 1;
        tally.run_ns += ran_ns;
        if cpu.since_ns.is_some() && part != Part::Other {
            tally.runs.add(ran_ns);
        }
        let share = self.shares.entry((part, name)).or_default();
        *share = (share.0 + ran_ns, share.1 + 1);
        if left == Left::Runnable {
            if part == Part::Workload {
                let by = self.task(next.0).part;
                *self.preemptions.entry((name, next.1, by)).or_default() += 1;
            }
            *self.task(number) =
                Task { part, state: State::Waiting { since_ns: at_ns, woken: false, unseen: false }, cpu: place };
            return;
        }
        self.count(at_ns, place, -1);
        *self.task(number) = Task { part, state: State::Away, cpu: place };
        if left == Left::Exited {
            self.tasks.remove(&number);
        }
    }

    /// Which of the switches one is.
    fn cause(&mut self, left: Left, cpu: &Cpu, next: u32) -> fn(&mut Switches) -> &mut u64 {
        match left {
            Left::Slept => |switches| &mut switches.slept,
            Left::Blocked => |switches| &mut switches.blocked,
            Left::Stopped => |switches| &mut switches.stopped,
            Left::Exited => |switches| &mut switches.exited,
            Left::Runnable if self.makes_way(cpu, next) => |switches| &mut switches.by_wakeup,
            Left::Runnable => |switches| &mut switches.by_turn,
        }
    }

    /// Whether a task that could go on makes way for one that woke up.
    /// Of a wake-up from another CPU, and of a new task, the record does not tell; there `next` has been woken while
    /// the task ran.
    fn makes_way(&mut self, cpu: &Cpu, next: u32) -> bool {
        let began_ns = cpu.since_ns.unwrap_or(self.from_ns);
        let woken_meanwhile = matches!(
            self.task(next).state,
            State::Waiting { since_ns, woken: true, unseen: true } if since_ns >= began_ns
        );
        cpu.told == Some(Told::ByWakeup) || woken_meanwhile
    }

    fn enter(&mut self, at_ns: u64, place: usize, next: (u32, Name)) {
        if next.0 != IDLE {
            let task = *self.task(next.0);
            match task.state {
                State::Waiting { since_ns, woken, .. } => {
                    let waited_ns = at_ns.saturating_sub(since_ns);
                    let tally = &mut self.tallies[task.part as usize];
                    tally.wait_ns += waited_ns;
                    if woken && task.part != Part::Other {
                        tally.latency.add(waited_ns);
                    }
                }
                State::Away | State::Running => self.count(at_ns, place, 1),
            }
            *self.task(next.0) = Task { state: State::Running, cpu: place, ..task };
        }
        let cpu = self.cpu(place);
        if cpu.since_ns.is_none() {
            cpu.counted_ns = at_ns;
        }
        (cpu.since_ns, cpu.current, cpu.told) = (Some(at_ns), Some(next), None);
    }

    /// One that has not left the CPU yet does not wait for it.
    fn wake(&mut self, at_ns: u64, number: u32, place: usize, unseen: bool) {
        let task = *self.task(number);
        if task.state == State::Away {
            self.tallies[task.part as usize].wakeups += 1;
            self.count(at_ns, place, 1);
            *self.task(number) =
                Task { state: State::Waiting { since_ns: at_ns, woken: true, unseen }, cpu: place, ..task };
        }
    }

    fn migrate(&mut self, at_ns: u64, number: u32, place: usize) {
        let task = *self.task(number);
        self.tallies[task.part as usize].migrations += 1;
        if matches!(task.state, State::Waiting { .. }) {
            self.count(at_ns, task.cpu, -1);
            self.count(at_ns, place, 1);
        }
        self.task(number).cpu = place;
    }

    fn task(&mut self, number: u32) -> &mut Task {
        self.tasks.entry(number).or_default()
    }

    fn cpu(&mut self, place: usize) -> &mut Cpu {
        let unknown = Cpu { since_ns: None, current: None, told: None, runnable: 0, counted_ns: self.from_ns };
        self.cpus.entry(place).or_insert(unknown)
    }

    /// From now on `more` additional tasks can run on that CPU.
    /// The task before its first switch is unknown.
    fn count(&mut self, at_ns: u64, place: usize, more: i64) {
        let cpu = self.cpu(place);
        let counted_ns = if cpu.since_ns.is_some() { cpu.counted_ns } else { at_ns };
        let (runnable, lasted_ns) = (cpu.runnable, at_ns.saturating_sub(counted_ns));
        cpu.runnable = runnable.saturating_add_signed(more);
        cpu.counted_ns = at_ns;
        *self.queue.entry(runnable).or_default() += lasted_ns;
    }

    /// The figures up to `until_ns`.
    /// The recorder adds what concerns the recording.
    pub fn finish(mut self, until_ns: u64) -> Recording {
        for (place, cpu) in self.cpus.clone() {
            self.count(until_ns, place, 0);
            let Some((number, name)) = cpu.current else { continue };
            let ran_ns = until_ns.saturating_sub(cpu.since_ns.unwrap_or(self.from_ns));
            if number == IDLE {
                self.idle_ns += ran_ns;
                continue;
            }
            let part = self.task(number).part;
            self.tallies[part as usize].run_ns += ran_ns;
            self.shares.entry((part, name)).or_default().0 += ran_ns;
        }
        for task in self.tasks.values() {
            if let State::Waiting { since_ns, .. } = task.state {
                self.tallies[task.part as usize].wait_ns += until_ns.saturating_sub(since_ns);
            }
        }
        let [workload, background, _] = self.tallies.map(Tally::behaviour);
        Recording {
            covered_ns: until_ns.saturating_sub(self.from_ns),
            events: self.events,
            cpus: self.cpus.len() as u64,
            idle_ns: self.idle_ns,
            workload,
            background,
            queue: self.queue.into_iter().filter(|(_, lasted_ns)| *lasted_ns > 0).collect(),
            shares: shares(self.shares),
            preemptions: preemptions(self.preemptions),
            ..Recording::default()
        }
    }
}

impl Tally {
    fn behaviour(self) -> Behaviour {
        Behaviour {
            tasks: self.tasks,
            switches: self.switches,
            wakeups: self.wakeups,
            migrations: self.migrations,
            run_ns: self.run_ns,
            wait_ns: self.wait_ns,
            latency: self.latency.spread(),
            runs: self.runs.spread(),
        }
    }
}

fn shares(all: BTreeMap<(Part, Name), (u64, u64)>) -> Vec<Share> {
    let share = |((part, name), (run_ns, switches))| Share { command: text(name), part, run_ns, switches };
    let mut shares: Vec<Share> = all.into_iter().map(share).collect();
    shares.sort_by_key(|share| std::cmp::Reverse(share.run_ns));
    shares.truncate(MOST_NAMED);
    shares
}

fn preemptions(all: BTreeMap<(Name, Name, Part), u64>) -> Vec<Preemption> {
    let named = |((preempted, by, part), count)| Preemption { preempted: text(preempted), by: text(by), part, count };
    let mut preemptions: Vec<Preemption> = all.into_iter().map(named).collect();
    preemptions.sort_by_key(|preemption| std::cmp::Reverse(preemption.count));
    preemptions.truncate(MOST_NAMED);
    preemptions
}

fn text(name: Name) -> String {
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    String::from_utf8_lossy(&name[..end]).into_owned()
}

#[cfg(test)]
#[path = "reckoning_test.rs"]
mod tests;
