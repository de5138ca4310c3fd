//! The clock that never goes back (CLOCK_MONOTONIC), sleeping by it, and CPU time.

use crate::request::Fault;

pub const A_SECOND_NS: i64 = 1_000_000_000;

pub fn now_ns() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the place is ours and of the right type.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec * A_SECOND_NS + time.tv_nsec
}

/// Sleep until a moment of `now_ns`; returns at once if it has passed.
pub fn sleep_until(due_ns: i64) -> Result<(), Fault> {
    let due = libc::timespec { tv_sec: due_ns / A_SECOND_NS, tv_nsec: due_ns % A_SECOND_NS };
    loop {
        // SAFETY: the time is ours; nothing is written for an absolute sleep.
        match unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &due, std::ptr::null_mut()) } {
            0 => return Ok(()),
            libc::EINTR => {}
            error => {
                return Err(Fault::Run(format!("cannot sleep: {}", std::io::Error::from_raw_os_error(error))));
            }
        }
    }
}

/// The CPU time of this process, user and system (CLOCK_PROCESS_CPUTIME_ID).
pub fn cpu_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the place is ours and of the right type.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Make timers of this process exact.
/// An ordinary timer may be 50 µs late to save power.
pub fn least_slack() -> Result<(), Fault> {
    // SAFETY: takes a number only.
    if unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) } == 0 {
        return Ok(());
    }
    Err(Fault::Run(format!("cannot set the timer slack: {}", std::io::Error::last_os_error())))
}
