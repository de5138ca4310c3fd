//! Pauses of the agent, its processes or the machine during a trial.
//! A time with a pause in it is no figure.
//!
//! A stopped process resumes by SIGCONT, which it receives even while stopped.
//! A frozen container or a machine that stands still sends nothing: the agent, which otherwise sleeps during the trial,
//! wakes once a second and notices that it was late. On a busy machine it waits for a CPU, which is no pause.
//! The clocks show whether the machine slept.
//!
//! Only on a host: in a guest nothing can pause a process, and under its virtual clock nothing else may happen.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::clock;
use crate::event::{Event, Paused, PausedOne, Role};
use crate::process::account::{self, Change};
use crate::process::interrupts::Changes;

/// Between two looks at the time.
pub const HEARTBEAT: Duration = Duration::from_secs(1);
/// A wake-up that is late by this much, without waiting for a CPU, counts as a pause.
const LATE: Duration = Duration::from_millis(500);
/// The largest difference between two readings of clocks without a sleep.
const SLEPT_NS: u64 = 50_000_000;

/// What was noticed in one trial.
pub struct Pauses {
    /// When the agent was seen awake last.
    awake: Instant,
    asleep_ns: u64,
    found: Vec<Paused>,
    /// Who is stopped now, and since when.
    stopped: Vec<(i32, PausedOne, Instant)>,
}

impl Pauses {
    /// From now on.
    pub fn start() -> Pauses {
        Pauses { awake: Instant::now(), asleep_ns: asleep_ns(), found: Vec::new(), stopped: Vec::new() }
    }

    /// When to be awake again at the latest.
    pub fn next_look(&self) -> Instant {
        self.awake + HEARTBEAT
    }

    /// The agent is about to sleep, and was not watched over until now.
    pub fn awake(&mut self) {
        self.awake = Instant::now();
    }

    /// The agent woke up at `now`, wanted to by `due` at the latest, and `waited` for a CPU meanwhile.
    /// A moment before its sleep does not make it late.
    pub fn woke(&mut self, now: Instant, due: Instant, changes: Changes, waited: impl FnOnce() -> Duration) {
        let late = now.saturating_duration_since(due.max(self.awake));
        if changes.continued || (late > LATE && late.saturating_sub(waited()) > LATE) {
            self.note(PausedOne::Agent, now.saturating_duration_since(self.awake));
        }
        self.awake = now;
    }

    /// Something happened to a process.
    pub fn look_at(&mut self, pid: i32, role: Role, now: Instant) {
        let who = match role {
            Role::Workload => PausedOne::Workload,
            Role::Background => PausedOne::Background,
            Role::Before | Role::After => return,
        };
        match account::change(pid) {
            Some(Change::Stopped) => self.stopped.push((pid, who, now)),
            Some(Change::Continued) if self.stopped.iter().all(|(stopped, ..)| *stopped != pid) => {
                self.note(who, Duration::ZERO);
            }
            Some(Change::Continued) => self.goes_on(pid, now),
            None => {}
        }
    }

    fn goes_on(&mut self, pid: i32, now: Instant) {
        let (over, stopped): (Vec<_>, Vec<_>) = self.stopped.drain(..).partition(|(stopped, ..)| *stopped == pid);
        self.stopped = stopped;
        for (_, who, since) in over {
            self.note(who, now.saturating_duration_since(since));
        }
    }

    fn note(&mut self, who: PausedOne, paused: Duration) {
        self.found.push(Paused { at_ns: clock::raw_ns(), who, paused_ns: paused.as_nanos() as u64 });
    }

    /// All pauses so far: each process once, with its longest pause.
    pub fn events(mut self) -> Vec<Event> {
        let now = Instant::now();
        while let Some((pid, ..)) = self.stopped.first() {
            self.goes_on(*pid, now);
        }
        let slept_ns = asleep_ns().saturating_sub(self.asleep_ns);
        if slept_ns > SLEPT_NS {
            self.note(PausedOne::Machine, Duration::from_nanos(slept_ns));
        }
        let longest = |who| self.found.iter().filter(move |one| one.who == who).max_by_key(|one| one.paused_ns);
        let everybody = [PausedOne::Agent, PausedOne::Workload, PausedOne::Background, PausedOne::Machine];
        everybody.into_iter().filter_map(longest).cloned().map(Event::Paused).collect()
    }
}

/// For how long the machine has slept since its boot.
/// CLOCK_MONOTONIC stands still meanwhile (clock_gettime(2)).
fn asleep_ns() -> u64 {
    let monotonic = clock_gettime(ClockId::Monotonic);
    let boot = clock_gettime(ClockId::Boottime);
    let nanoseconds = (boot.tv_sec - monotonic.tv_sec) * 1_000_000_000 + (boot.tv_nsec - monotonic.tv_nsec);
    nanoseconds.max(0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(events: Vec<Event>) -> Vec<(PausedOne, u64)> {
        let words = |event| match event {
            Event::Paused(paused) => (paused.who, paused.paused_ns),
            other => panic!("{other:?}"),
        };
        events.into_iter().map(words).collect()
    }

    fn no_wait() -> Duration {
        Duration::ZERO
    }

    #[test]
    fn waking_up_in_time_is_no_pause() {
        let mut pauses = Pauses::start();
        let due = pauses.next_look();
        pauses.woke(due + Duration::from_millis(20), due, Changes::default(), no_wait);
        pauses.woke(
            due + Duration::from_millis(30),
            due + HEARTBEAT,
            Changes { of_children: true, continued: false },
            no_wait,
        );
        assert_eq!(found(pauses.events()), []);
    }

    #[test]
    fn waking_up_late_or_by_being_continued_is_one() {
        let mut pauses = Pauses::start();
        let (begin, due) = (pauses.awake, pauses.next_look());
        pauses.woke(begin + Duration::from_secs(10), due, Changes::default(), no_wait);
        assert_eq!(found(pauses.events()), [(PausedOne::Agent, 10_000_000_000)]);
        let mut pauses = Pauses::start();
        let (begin, due) = (pauses.awake, pauses.next_look());
        pauses.woke(begin + Duration::from_millis(5), due, Changes { continued: true, of_children: false }, no_wait);
        pauses.woke(begin + Duration::from_millis(6), due, Changes { continued: true, of_children: false }, no_wait);
        assert_eq!(found(pauses.events()), [(PausedOne::Agent, 5_000_000)]);
    }

    #[test]
    fn a_moment_that_passed_before_the_sleep_is_no_pause() {
        let mut pauses = Pauses::start();
        let (begin, past) = (pauses.awake, pauses.awake.checked_sub(Duration::from_secs(2)).expect("up for 2 s"));
        pauses.woke(begin + Duration::from_micros(28), past, Changes::default(), no_wait);
        assert_eq!(found(pauses.events()), []);
    }

    #[test]
    fn waiting_for_a_cpu_is_no_pause() {
        let mut pauses = Pauses::start();
        let due = pauses.next_look();
        pauses.woke(due + Duration::from_millis(900), due, Changes::default(), || Duration::from_millis(850));
        assert_eq!(found(pauses.events()), []);
        let mut pauses = Pauses::start();
        let due = pauses.next_look();
        pauses.woke(due + Duration::from_millis(900), due, Changes::default(), || Duration::from_millis(300));
        assert_eq!(found(pauses.events()), [(PausedOne::Agent, 1_900_000_000)]);
    }
}
