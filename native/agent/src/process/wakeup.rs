//! How late the agent woke up.
//! On a busy machine a woken process waits for a CPU before it can read the clock.
//!
//! The kernel accounts for exactly that: the run delay, the second figure of `/proc/self/schedstat`
//! (Documentation/scheduler/sched-stats.rst). What it grew by while the agent slept is how long ago that happened which
//! woke it. A kernel without the file, or one that does not account, knows of no delay.

use std::os::unix::fs::FileExt;

use crate::clock;
use crate::disk::fs::File;

const PLACE: &str = "/proc/self/schedstat";
/// Three numbers of at most twenty digits.
const LONGEST: usize = 64;

/// Says when the agent was woken, if this kernel can tell.
pub struct Wakeups {
    account: Option<File>,
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

impl Wakeups {
    pub fn open() -> Wakeups {
        Wakeups { account: File::open(PLACE).ok() }
    }

    /// To be called just before a sleep.
    pub fn asleep(&self) -> Asleep {
        Asleep { from_ns: clock::raw_ns(), before: self.waits() }
    }

    /// When the agent was woken that was awake at `at_ns`.
    pub fn woken_ns(&self, asleep: Asleep, at_ns: u64) -> u64 {
        match (asleep.before, self.waits()) {
            (Some(before), Some(after)) => woken_ns(asleep.from_ns, at_ns, before, after),
            _ => at_ns,
        }
    }

    fn waits(&self) -> Option<Waits> {
        let mut bytes = [0; LONGEST];
        let length = self.account.as_ref()?.read_at(&mut bytes, 0).ok()?;
        Some(Waits { run_delay_ns: run_delay_ns(&bytes[..length])?, taken_off: taken_off() })
    }
}

/// Never before it fell asleep.
/// If it was preempted meanwhile, the share of the delay before that is unknown.
fn woken_ns(from_ns: u64, at_ns: u64, before: Waits, after: Waits) -> u64 {
    if after.taken_off != before.taken_off {
        return at_ns;
    }
    let delay_ns = after.run_delay_ns.saturating_sub(before.run_delay_ns);
    at_ns.saturating_sub(delay_ns).max(from_ns).min(at_ns)
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

    #[test]
    fn the_wait_for_a_cpu_is_no_part_of_what_is_measured() {
        assert_eq!(woken_ns(1000, 9000, waits(50, 3), waits(2050, 3)), 7000);
        assert_eq!(woken_ns(1000, 9000, waits(50, 3), waits(50, 3)), 9000);
    }

    #[test]
    fn nobody_is_woken_before_the_sleep_nor_after_it() {
        assert_eq!(woken_ns(8000, 9000, waits(0, 0), waits(2000, 0)), 8000);
        assert_eq!(woken_ns(9500, 9000, waits(0, 0), waits(2000, 0)), 9000);
        assert_eq!(woken_ns(1000, 9000, waits(2000, 0), waits(0, 0)), 9000);
    }

    #[test]
    fn a_wait_of_one_who_was_not_asleep_is_not_taken_off() {
        assert_eq!(woken_ns(1000, 9000, waits(50, 3), waits(2050, 4)), 9000);
    }

    #[test]
    fn the_run_delay_is_the_second_figure() {
        assert_eq!(run_delay_ns(b"123 456 7\n"), Some(456));
        assert_eq!(run_delay_ns(b"0 0 0\n"), Some(0));
        assert_eq!(run_delay_ns(b""), None);
        let without = Wakeups { account: None };
        assert_eq!(without.woken_ns(without.asleep(), 9000), 9000);
    }
}
