//! Streams with known figures: some by hand, many random, counted in a second way.

use super::*;

fn name(text: &str) -> Name {
    let mut name = Name::default();
    name[..text.len()].copy_from_slice(text.as_bytes());
    name
}

fn switch(at_ns: u64, previous: u32, left: Left, next: u32) -> Moment {
    let named = |task: u32| name(&format!("t{task}"));
    let what = What::Switch { previous, previous_name: named(previous), left, next, next_name: named(next) };
    Moment { at_ns, cpu: 0, reschedule: false, what }
}

fn wake(at_ns: u64, task: u32, reschedule: bool) -> Moment {
    Moment { at_ns, cpu: 0, reschedule, what: What::Wakeup { task, cpu: 0, new: false } }
}

fn reckon(known: &[(u32, Part)], moments: &[Moment], until_ns: u64) -> Recording {
    let mut reckoning = Reckoning::new(0, known.iter().copied());
    moments.iter().for_each(|moment| reckoning.add(moment));
    reckoning.finish(until_ns)
}

const TWO: [(u32, Part); 2] = [(1, Part::Workload), (2, Part::Workload)];

#[test]
fn a_wakeup_that_preempts_is_told_from_a_turn_that_is_over() {
    let moments = [
        wake(10, 1, false),
        switch(20, 0, Left::Runnable, 1),
        wake(50, 2, true),
        switch(60, 1, Left::Runnable, 2),
        switch(100, 2, Left::Slept, 1),
        wake(110, 2, false),
        switch(400, 1, Left::Runnable, 2),
        switch(450, 2, Left::Blocked, 1),
    ];
    let found = reckon(&TWO, &moments, 500);
    let expected = Switches { by_wakeup: 1, by_turn: 1, slept: 1, blocked: 1, ..Switches::default() };
    assert_eq!(found.workload.switches, expected);
    assert_eq!((found.workload.wakeups, found.idle_ns), (3, 20));
    // Woken at 10, 50 and 110; run at 20, 60 and 400.
    assert_eq!((found.workload.latency.count, found.workload.latency.total_ns), (3, 10 + 10 + 290));
    // Besides, t1 waited from 60 to 100 and from 400 to 450.
    assert_eq!(found.workload.wait_ns, 310 + 40 + 50);
    assert_eq!((found.workload.runs.count, found.workload.runs.max_ns), (4, 300));
    assert_eq!(found.workload.run_ns, 500 - 20);
    assert_eq!(found.queue, [(1, 30 + 10 + 50), (2, 10 + 40 + 290 + 50)]);
    let pair = Preemption { preempted: "t1".to_owned(), by: "t2".to_owned(), part: Part::Workload, count: 2 };
    assert_eq!(found.preemptions, [pair]);
}

#[test]
fn what_is_forked_belongs_to_its_parent() {
    let fork = |at_ns, parent, child| Moment { at_ns, cpu: 0, reschedule: false, what: What::Fork { parent, child } };
    let new = |at_ns, task| Moment { what: What::Wakeup { task, cpu: 0, new: true }, ..wake(at_ns, task, false) };
    let moments = [
        switch(0, 9, Left::Slept, 1),
        fork(5, 1, 7),
        new(6, 7),
        fork(7, 9, 8),
        switch(20, 1, Left::Runnable, 7),
        fork(25, 7, 6),
        switch(30, 7, Left::Exited, 1),
    ];
    let found = reckon(&[(1, Part::Workload)], &moments, 40);
    assert_eq!(found.workload.tasks, 3);
    assert_eq!(found.workload.switches, Switches { by_wakeup: 1, exited: 1, ..Switches::default() });
    assert_eq!(found.shares[0], Share { command: "t1".to_owned(), part: Part::Workload, run_ns: 30, switches: 1 });
}

#[test]
fn a_wakeup_from_another_cpu_preempts_whoever_runs_when_it_takes_the_place() {
    let mut woken = wake(10, 2, false);
    woken.cpu = 1;
    let moments = [switch(0, 0, Left::Runnable, 1), woken, switch(11, 1, Left::Runnable, 2)];
    assert_eq!(reckon(&TWO, &moments, 20).workload.switches.by_wakeup, 1);
}

#[test]
fn one_that_has_not_slept_yet_is_not_woken() {
    let moments = [switch(0, 0, Left::Runnable, 1), wake(5, 1, false), switch(9, 1, Left::Slept, 0)];
    let found = reckon(&TWO, &moments, 10);
    assert_eq!((found.workload.wakeups, found.workload.latency.count), (0, 0));
}

#[test]
fn a_migration_moves_the_one_that_waits() {
    let move_it = Moment { what: What::Migration { task: 2, cpu: 1 }, ..wake(30, 2, false) };
    let moments = [switch(0, 0, Left::Runnable, 1), wake(10, 2, false), move_it];
    let found = reckon(&TWO, &moments, 50);
    assert_eq!(found.workload.migrations, 1);
    // CPU 0: one task, two, one. Nothing was seen to run on CPU 1.
    assert_eq!(found.queue, [(1, 10 + 20), (2, 20)]);
}

/// SplitMix64 (Steele, Lea and Flood 2014).
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }
}

/// A scheduler of one CPU and some tasks that counts its own figures.
#[derive(Default)]
struct Played {
    moments: Vec<Moment>,
    asleep: Vec<u32>,
    ready: Vec<u32>,
    current: u32,
    expected: Switches,
    /// By the number of tasks that could run.
    queue: BTreeMap<u64, u64>,
    run_ns: u64,
    wait_ns: u64,
}

impl Played {
    fn play(seed: u64, tasks: u32, until_ns: u64) -> Played {
        let mut draw = Draw(seed);
        let mut played = Played { asleep: (1..=tasks).collect(), ..Played::default() };
        for now in 0..until_ns {
            match draw.below(4) {
                0 if !played.asleep.is_empty() => played.wake_one(now, &mut draw),
                1 if played.current != IDLE => played.leave(now, &mut draw),
                _ if played.current == IDLE && !played.ready.is_empty() => {
                    played.take_next(now, Left::Runnable, &mut draw);
                }
                _ => {}
            }
            let runs = u64::from(played.current != IDLE);
            if played.moments.iter().any(|moment| matches!(moment.what, What::Switch { .. })) {
                *played.queue.entry(runs + played.ready.len() as u64).or_default() += 1;
            }
            played.run_ns += runs;
            played.wait_ns += played.ready.len() as u64;
        }
        played
    }

    fn wake_one(&mut self, now: u64, draw: &mut Draw) {
        let woken = self.asleep.swap_remove(draw.below(self.asleep.len() as u64) as usize);
        let preempts = self.current != IDLE && draw.below(2) == 0;
        self.moments.push(wake(now, woken, preempts));
        self.ready.push(woken);
        if preempts {
            self.expected.by_wakeup += 1;
            let previous = std::mem::replace(&mut self.current, woken);
            self.ready.retain(|task| *task != woken);
            self.ready.push(previous);
            self.moments.push(switch(now, previous, Left::Runnable, woken));
        }
    }

    fn leave(&mut self, now: u64, draw: &mut Draw) {
        let left = [Left::Slept, Left::Blocked, Left::Stopped, Left::Runnable][draw.below(4) as usize];
        match left {
            Left::Slept => self.expected.slept += 1,
            Left::Blocked => self.expected.blocked += 1,
            Left::Stopped => self.expected.stopped += 1,
            _ if self.ready.is_empty() => return,
            _ => self.expected.by_turn += 1,
        }
        self.take_next(now, left, draw);
    }

    fn take_next(&mut self, now: u64, left: Left, draw: &mut Draw) {
        let place = draw.below(self.ready.len().max(1) as u64) as usize;
        let next = if self.ready.is_empty() { IDLE } else { self.ready.swap_remove(place) };
        let previous = std::mem::replace(&mut self.current, next);
        self.moments.push(switch(now, previous, left, next));
        match (previous, left) {
            (IDLE, _) => {}
            (_, Left::Runnable) => self.ready.push(previous),
            _ => self.asleep.push(previous),
        }
    }
}

#[test]
fn whatever_a_scheduler_does_is_counted_as_it_was_done() {
    const UNTIL_NS: u64 = 400;
    for seed in 0..300 {
        let tasks = 1 + (seed % 7) as u32;
        let played = Played::play(seed, tasks, UNTIL_NS);
        let known: Vec<_> = (1..=tasks).map(|task| (task, Part::Workload)).collect();
        let found = reckon(&known, &played.moments, UNTIL_NS);
        assert_eq!(found.workload.switches, played.expected, "seed {seed}");
        assert_eq!(found.workload.run_ns, played.run_ns, "seed {seed}");
        assert_eq!(found.workload.wait_ns, played.wait_ns, "seed {seed}");
        assert_eq!(found.idle_ns, UNTIL_NS - played.run_ns, "seed {seed}");
        assert_eq!(found.queue, played.queue.into_iter().collect::<Vec<_>>(), "seed {seed}");
        assert_eq!(found.workload.tasks, u64::from(tasks));
    }
}
