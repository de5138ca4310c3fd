//! Supervises the processes of a trial.
//! It sleeps until one of them ends, the time is up, or an interrupt arrives.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::clock;
use crate::event::{Exited, Role};
use crate::process::account::{self, Ended};
use crate::process::capture::Watch;
use crate::process::interrupts::Interrupts;
use crate::process::launch::Launched;
use crate::process::lifetime::{Notebook, Seen};
use crate::process::pauses::Pauses;
use crate::process::wakeup::{Asleep, Wakeups};
use crate::sampling::sampler::Samplers;

/// Between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_millis(100);
/// A killed process that is not gone after that hangs in the kernel.
const DEATH: Duration = Duration::from_secs(10);

/// A process that was released.
struct Running {
    role: Role,
    index: usize,
    launched: Launched,
    /// Of a workload on a host: in a guest the agent sees every end at once.
    notebook: Option<Notebook>,
    /// How it ended, and when.
    ended: Option<(Ended, u64)>,
    timed_out: bool,
}

/// Why a wait is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// The process that was waited for ended.
    Ended,
    /// The time is up.
    Elapsed,
    /// The agent is to stop, and why.
    Interrupted(&'static str),
}

/// The processes of a trial. All that are left are killed when it is dropped.
pub struct Supervision<'a> {
    running: Vec<Running>,
    watch: Watch,
    interrupts: Option<&'a Interrupts>,
    /// Of a host.
    pauses: Option<Pauses>,
    /// Of a host: in a guest the agent runs before everything.
    wakeups: Option<Wakeups>,
    /// When the agent was awake last.
    looked_ns: u64,
    samplers: Option<Samplers>,
    spared: Vec<i32>,
}

impl<'a> Supervision<'a> {
    /// Without processes yet.
    /// The agent's existing children are `spared`.
    pub fn new(interrupts: Option<&'a Interrupts>, spared: Vec<i32>) -> Self {
        let pauses = interrupts.map(|interrupts| {
            interrupts.take_changes();
            Pauses::start()
        });
        let wakeups = interrupts.map(|_| Wakeups::open());
        Supervision {
            running: Vec::new(),
            watch: Watch::start(),
            interrupts,
            pauses,
            wakeups,
            looked_ns: clock::raw_ns(),
            samplers: None,
            spared,
        }
    }

    /// Release a process and watch over it from now on. Returns its place here.
    pub fn start(&mut self, role: Role, index: usize, launched: Launched) -> usize {
        self.watch.add(&launched.stdout);
        self.watch.add(&launched.stderr);
        let is_noted = role == Role::Workload && self.wakeups.is_some();
        let notebook = is_noted.then(|| Notebook::open(launched.pid).ok()).flatten();
        launched.release();
        self.running.push(Running { role, index, launched, notebook, ended: None, timed_out: false });
        self.running.len() - 1
    }

    /// Read these whenever their time comes, until they are taken back.
    pub fn sample(&mut self, samplers: Samplers) {
        self.samplers = Some(samplers);
    }

    /// Read them once more, and no longer.
    pub fn take_samplers(&mut self) -> Option<Samplers> {
        let mut samplers = self.samplers.take()?;
        samplers.read_all();
        Some(samplers)
    }

    /// Who was stopped meanwhile. No longer looked for.
    pub fn take_pauses(&mut self) -> Option<Pauses> {
        self.pauses.take()
    }

    pub fn launched(&self, place: usize) -> &Launched {
        &self.running[place].launched
    }

    /// The CPU time of every process so far, in the order of their start.
    pub fn cpu_ns(&self) -> Vec<u64> {
        let used = |running: &Running| match &running.ended {
            Some((ended, _)) => ended.user_ns() + ended.system_ns(),
            None => account::cpu_ns(running.launched.pid).unwrap_or(0),
        };
        self.running.iter().map(|running| used(running).saturating_sub(running.launched.beginning.cpu_ns())).collect()
    }

    /// Role, index and streams of every process.
    pub fn processes(&self) -> impl Iterator<Item = (Role, usize, &Launched)> {
        self.running.iter().map(|running| (running.role, running.index, &running.launched))
    }

    /// Sleep until the process at `leader` ended, at most for `limit`.
    /// Others that end meanwhile are reaped.
    pub fn wait(&mut self, leader: Option<usize>, limit: Duration) -> Woken {
        let deadline = Instant::now().checked_add(limit);
        self.pauses.iter_mut().for_each(Pauses::awake);
        loop {
            if leader.is_some_and(|place| self.running[place].ended.is_some()) {
                return Woken::Ended;
            }
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return Woken::Elapsed;
            }
            let due = self.samplers.as_ref().and_then(Samplers::next_due);
            let look = self.pauses.as_ref().map(Pauses::next_look);
            let when = [deadline, self.watch.next_look(), due, look].into_iter().flatten().min();
            let woken = self.sleep_until(when);
            let now = Instant::now();
            self.look_for_pauses(now, when, woken.asleep);
            if woken.printed {
                self.watch.printed(now);
            }
            if self.watch.next_look().is_some_and(|look| look <= now) {
                let streams = self.running.iter_mut().map(|running| &mut running.launched);
                self.watch.look(streams.flat_map(|launched| [&mut launched.stdout, &mut launched.stderr]), now);
            }
            if let Some(samplers) = &mut self.samplers {
                samplers.read_due(now);
                if leader.is_some_and(|place| woken.ended.contains(&place)) {
                    samplers.read_all();
                }
            }
            for place in woken.ended {
                self.running[place].note_end(woken.seen);
            }
            if let Some(reason) = self.interrupts.filter(|_| woken.interrupted).and_then(Interrupts::take) {
                return Woken::Interrupted(reason);
            }
        }
    }

    /// Look for pauses since the last time; `due` was the wanted time to wake up.
    fn look_for_pauses(&mut self, now: Instant, due: Option<Instant>, asleep: Option<Asleep>) {
        let (Some(pauses), Some(interrupts)) = (&mut self.pauses, self.interrupts) else { return };
        let changes = interrupts.take_changes();
        let waited =
            || self.wakeups.as_ref().zip(asleep).map_or(Duration::ZERO, |(wakeups, asleep)| wakeups.waited(asleep));
        pauses.woke(now, due.unwrap_or(now), changes, waited);
        if changes.of_children {
            for running in self.running.iter().filter(|running| running.ended.is_none()) {
                pauses.look_at(running.launched.pid, running.role, now);
            }
        }
    }

    /// One ppoll(2) on everything that can happen.
    fn sleep_until(&mut self, when: Option<Instant>) -> Wake {
        let alive: Vec<usize> = (0..self.running.len()).filter(|place| self.running[*place].ended.is_none()).collect();
        let readable = |descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN);
        let processes = alive.iter().map(|place| readable(self.running[*place].launched.pidfd.as_fd()));
        let interrupts = self.interrupts.into_iter().flat_map(Interrupts::waiting);
        let mut waiting: Vec<PollFd<'_>> = processes.chain(self.watch.first_write().map(readable)).collect();
        let before_interrupts = waiting.len();
        waiting.extend(interrupts.map(|(descriptor, flags)| PollFd::from_borrowed_fd(descriptor, flags)));
        let after_interrupts = waiting.len();
        waiting.extend(self.interrupts.map(|interrupts| readable(interrupts.changes())));
        let timeout = when.map(|when| clock::timespec(when.saturating_duration_since(Instant::now())));
        let asleep = self.wakeups.as_ref().map(Wakeups::asleep);
        let result = poll(&mut waiting, timeout.as_ref());
        let awake_ns = clock::raw_ns();
        let ready = |each: &PollFd<'_>| result.is_ok() && !each.revents().is_empty();
        let interrupted = waiting[before_interrupts..after_interrupts].iter().any(ready);
        let mut ready = waiting.iter().map(ready);
        let ended: Vec<usize> = alive.into_iter().filter(|_| ready.next().unwrap_or(false)).collect();
        let printed = self.watch.first_write().is_some() && ready.next().unwrap_or(false);
        let seen = match self.wakeups.as_ref().zip(asleep).filter(|_| !ended.is_empty()) {
            Some((wakeups, asleep)) => wakeups.seen(asleep, self.looked_ns, awake_ns),
            None => Seen::at(awake_ns),
        };
        self.looked_ns = awake_ns;
        Wake { seen, ended, interrupted, printed, asleep }
    }

    /// End the process at `place`: SIGTERM to its group, SIGKILL a moment later.
    pub fn end(&mut self, place: usize, timed_out: bool) {
        self.running[place].timed_out = timed_out;
        account::signal_group(self.running[place].launched.pid, libc::SIGTERM);
        if !self.running[place].ends_within(GRACE) {
            account::signal_group(self.running[place].launched.pid, libc::SIGKILL);
        }
        self.running[place].die();
    }

    /// Kill all that is left and its descendants.
    /// The error names a process that cannot be killed.
    pub fn stop(&mut self) -> Result<(), String> {
        for running in self.running.iter().filter(|running| running.ended.is_none()) {
            account::signal_group(running.launched.pid, libc::SIGKILL);
        }
        for running in &mut self.running {
            if !running.die() {
                return Err(format!("process {} cannot be killed: it hangs in the kernel", running.launched.pid));
            }
        }
        account::kill_children(&self.spared);
        Ok(())
    }

    /// Let go of processes that have ended, and of all that they have left running.
    pub fn leave(mut self) {
        self.spared.extend(account::children());
        for running in self.running.drain(..) {
            running.launched.stay_on_roll();
        }
    }

    /// How every process ended, in the order of their start.
    pub fn exits(&self) -> Vec<Exited> {
        self.running.iter().filter_map(Running::exited).collect()
    }
}

impl Drop for Supervision<'_> {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

/// What a sleep ended with.
struct Wake {
    seen: Seen,
    ended: Vec<usize>,
    interrupted: bool,
    printed: bool,
    /// Of a host.
    asleep: Option<Asleep>,
}

impl Running {
    /// After its end: kill the rest of its group, then reap it.
    /// The group's number is safe until it is reaped. What a command before or after the trial leaves running may go
    /// on.
    fn note_end(&mut self, seen: Seen) {
        if matches!(self.role, Role::Workload | Role::Background) || self.timed_out {
            account::signal_group(self.launched.pid, libc::SIGKILL);
        }
        if let Ok(ended) = account::reap(self.launched.pid) {
            let notes = self.notebook.take().and_then(|mut notebook| notebook.read());
            let beginning = &self.launched.beginning;
            let cpu_ns = (ended.user_ns() + ended.system_ns()).saturating_sub(beginning.cpu_ns());
            self.ended = Some((ended, seen.end_ns(notes, beginning.at_ns(), cpu_ns)));
        }
    }

    fn ends_within(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        loop {
            let mut waiting = [PollFd::new(&self.launched.pidfd, PollFlags::IN)];
            let rest = clock::timespec(deadline.saturating_duration_since(Instant::now()));
            match poll(&mut waiting, Some(&rest)) {
                Err(Errno::INTR) => {}
                result => return result.is_ok_and(|ready| ready > 0),
            }
        }
    }

    /// True if it is gone, after having been killed.
    fn die(&mut self) -> bool {
        if self.ended.is_none() && self.ends_within(DEATH) {
            self.note_end(Seen::at(clock::raw_ns()));
        }
        self.ended.is_some()
    }

    fn exited(&self) -> Option<Exited> {
        let (ended, end_ns) = self.ended.as_ref()?;
        let (began_ns, prepared_ns) = (self.launched.beginning.at_ns(), self.launched.beginning.cpu_ns());
        let system_ns = ended.system_ns().saturating_sub(prepared_ns);
        let user_ns = (ended.user_ns() + ended.system_ns()).saturating_sub(prepared_ns + system_ns);
        let count = |total: libc::c_long, before: u64| (total as u64).saturating_sub(before);
        let (usage, before) = (&ended.usage, &self.launched.baseline);
        Some(Exited {
            at_ns: clock::raw_ns(),
            role: self.role,
            index: self.index,
            exit_code: ended.exit_code,
            signal: ended.signal,
            timed_out: self.timed_out,
            // One that was ended before it began has no time of its own.
            wall_ns: if began_ns == 0 { 0 } else { end_ns.saturating_sub(began_ns) },
            user_ns,
            system_ns,
            voluntary_switches: count(usage.ru_nvcsw, before.voluntary_switches),
            involuntary_switches: count(usage.ru_nivcsw, before.involuntary_switches),
            minor_faults: count(usage.ru_minflt, before.minor_faults),
            major_faults: count(usage.ru_majflt, before.major_faults),
            peak_rss_bytes: usage.ru_maxrss as u64 * 1024,
        })
    }
}
