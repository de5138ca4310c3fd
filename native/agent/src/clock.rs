//! The clock of everything that is reported, and sleeping by it.

use std::time::Duration;

use rustix::thread::NanosleepRelativeResult;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// CLOCK_MONOTONIC_RAW in nanoseconds: no adjustment by NTP.
pub fn raw_ns() -> u64 {
    let now = clock_gettime(ClockId::MonotonicRaw);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Sleep for `duration`, through all signals.
pub fn sleep(duration: Duration) {
    if duration.is_zero() {
        return;
    }
    let mut rest = timespec(duration);
    while let NanosleepRelativeResult::Interrupted(remaining) = rustix::thread::nanosleep(&rest) {
        rest = remaining;
    }
}

/// `duration` as the kernel takes it.
pub fn timespec(duration: Duration) -> Timespec {
    Timespec { tv_sec: duration.as_secs().min(i64::MAX as u64) as i64, tv_nsec: duration.subsec_nanos().into() }
}
