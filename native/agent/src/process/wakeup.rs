//! How late the agent woke up.
//! On a busy machine a woken process waits for a CPU before it can read the clock.
//!
//! The kernel accounts for exactly that: the run delay, the second figure of `/proc/self/schedstat`
//! (Documentation/scheduler/sched-stats.rst). What it grew by while the agent slept is how long ago that happened which
//! woke it. A kernel without the file, or one that does not account, knows of no delay.

use std::os::unix::fs::FileExt;
use std::sync::OnceLock;
use std::time::Duration;

use crate::clock;
use crate::disk::fs::File;
use crate::process::lifetime::{LATE_NS, Seen};

const PLACE: &str = "/proc/self/schedstat";
/// Three numbers of at most twenty digits.
const LONGEST: usize = 64;

/// Says when the agent was woken, if this kernel can tell.
pub struct Wakeups {
    account: Option<&'static File>,
}

/// The moment before a sleep.
#[derive(Clone, Copy, Debug)]
pub struct Asleep {
    from_ns: u64,
    before: Option<Waits>,
}

/// What the agent has waited for a CPU so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Waits {
    run_delay_ns: u64,
    /// How often it was preempted.
    /// A wait after that has nothing to do with the wake-up.
    taken_off: i64,
}

/// In which order both are read.
/// A preemption between the readings must show in the number of preemptions.
enum Order {
    PreemptionsFirst,
    DelayFirst,
}

impl Wakeups {
    pub fn open() -> Wakeups {
        // One for all trials: opening it takes longer than reading it.
        static ACCOUNT: OnceLock<Option<File>> = OnceLock::new();
        Wakeups { account: ACCOUNT.get_or_init(|| File::open(PLACE).ok()).as_ref() }
    }

    /// To be called just before a sleep.
    pub fn asleep(&self) -> Asleep {
        Asleep { from_ns: clock::raw_ns(), before: self.waits(Order::PreemptionsFirst) }
    }

    /// When that happened which woke the agent; it was awake at `at_ns`, and before at `looked_ns`.
    pub fn seen(&self, asleep: Asleep, looked_ns: u64, at_ns: u64) -> Seen {
        match (asleep.before, self.waits(Order::DelayFirst)) {
            (Some(before), Some(after)) => seen(asleep.from_ns, looked_ns, at_ns, before, after),
            _ => Seen { earliest_ns: looked_ns, woken_ns: Some(at_ns), at_ns },
        }
    }

    /// For how long the agent has waited for a CPU since then.
    pub fn waited(&self, asleep: Asleep) -> Duration {
        let (before, after) = (asleep.before, self.waits(Order::DelayFirst));
        let delay_ns =
            before.zip(after).map_or(0, |(before, after)| after.run_delay_ns.saturating_sub(before.run_delay_ns));
        Duration::from_nanos(delay_ns)
    }

    fn waits(&self, order: Order) -> Option<Waits> {
        let account = self.account?;
        let delay_ns = || {
            let mut bytes = [0; LONGEST];
            let length = account.read_at(&mut bytes, 0).ok()?;
            run_delay_ns(&bytes[..length])
        };
        // The fields are evaluated in the order in which they are written.
        Some(match order {
            Order::PreemptionsFirst => Waits { taken_off: taken_off(), run_delay_ns: delay_ns()? },
            Order::DelayFirst => Waits { run_delay_ns: delay_ns()?, taken_off: taken_off() },
        })
    }
}

/// If it was preempted meanwhile, the share of the delay before its sleep is unknown.
fn seen(from_ns: u64, looked_ns: u64, at_ns: u64, before: Waits, after: Waits) -> Seen {
    let delay_ns = after.run_delay_ns.saturating_sub(before.run_delay_ns);
    let woken_ns = at_ns.saturating_sub(delay_ns);
    // It did not sleep if that had happened before.
    let slept = woken_ns > from_ns.saturating_add(LATE_NS);
    let earliest_ns = if slept { woken_ns } else { looked_ns.min(woken_ns) };
    let preempted = after.taken_off != before.taken_off;
    Seen { earliest_ns, woken_ns: (!preempted).then_some(woken_ns.max(from_ns).min(at_ns)), at_ns }
}

fn run_delay_ns(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

fn taken_off() -> i64 {
    // SAFETY: zeros are a valid structure, and getrusage(2) fills in what it is given.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage.ru_nivcsw
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn waits(run_delay_ns: u64, taken_off: i64) -> Waits {
        Waits { run_delay_ns, taken_off }
    }

    const MS: u64 = 1_000_000;

    const fn saw(earliest_ns: u64, woken_ns: Option<u64>) -> Seen {
        Seen { earliest_ns, woken_ns, at_ns: 9 * MS }
    }

    #[test]
    fn the_wait_for_a_cpu_is_no_part_of_what_is_measured() {
        assert_eq!(seen(MS, 0, 9 * MS, waits(50, 3), waits(50 + 2 * MS, 3)), saw(7 * MS, Some(7 * MS)));
        assert_eq!(seen(MS, 0, 9 * MS, waits(50, 3), waits(50, 3)), Seen::at(9 * MS));
    }

    #[test]
    fn what_happened_before_the_sleep_is_later_than_the_last_look() {
        assert_eq!(seen(8 * MS, 3 * MS, 9 * MS, waits(0, 0), waits(2 * MS, 0)), saw(3 * MS, Some(8 * MS)));
        assert_eq!(seen(9 * MS, 3 * MS, 9 * MS, waits(0, 0), waits(0, 0)), saw(3 * MS, Some(9 * MS)));
        assert_eq!(seen(MS, 0, 9 * MS, waits(2 * MS, 0), waits(0, 0)), Seen::at(9 * MS));
    }

    #[test]
    fn a_wait_of_one_who_was_not_asleep_is_not_taken_off() {
        assert_eq!(seen(MS, 0, 9 * MS, waits(50, 3), waits(50 + 2 * MS, 4)), saw(7 * MS, None));
    }

    #[test]
    fn the_run_delay_is_the_second_figure() {
        assert_eq!(run_delay_ns(b"123 456 7\n"), Some(456));
        assert_eq!(run_delay_ns(b"0 0 0\n"), Some(0));
        assert_eq!(run_delay_ns(b""), None);
        let without = Wakeups { account: None };
        assert_eq!(without.seen(without.asleep(), 100, 9 * MS), saw(100, Some(9 * MS)));
    }
}
