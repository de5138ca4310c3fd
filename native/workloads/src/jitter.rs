//! How late sleeps end: the timer jitter of this machine, measured as cyclictest(8) does.
//!
//! Sleeps until moments that are one interval apart (clock_nanosleep(2), CLOCK_MONOTONIC, TIMER_ABSTIME) and takes
//! how much later than asked each one ended. A moment that has passed already when its turn comes is not slept for: the
//! next ones are moved behind it, so that one long delay counts once. The kernel's slack for timers of ordinary
//! processes (50 µs) is set to the least, so that what is seen is delay and not thrift.
//!
//! Output, to be read by programs:
//! ```text
//! jitter sleeps=1000 interval_us=1000 min_ns=1890 p50_ns=2710 p90_ns=4120 p99_ns=9330 p999_ns=41200 max_ns=57313
//! ```
//! A percentile is the smallest delay that so many of a hundred (999 of a thousand for p999) do not exceed.

use std::io::Write;

use lexopt::prelude::*;

use crate::{number, Fault};

const A_SECOND_NS: i64 = 1_000_000_000;
const MOST_SLEEPS: u64 = 10_000_000;

pub fn run(mut arguments: lexopt::Parser) -> Result<(), Fault> {
    let (mut sleeps, mut interval_us) = (1000, 1000);
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("sleeps") => sleeps = number(&mut arguments, "sleeps", 1, MOST_SLEEPS)?,
            Long("interval-us") => interval_us = number(&mut arguments, "interval-us", 10, 1_000_000)?,
            other => return Err(other.unexpected().into()),
        }
    }
    least_slack()?;
    let mut delays = measure(sleeps as usize, interval_us as i64 * 1000)?;
    delays.sort_unstable();
    let said: Vec<String> = [("p50", 500), ("p90", 900), ("p99", 990), ("p999", 999)]
        .map(|(name, thousandths)| format!("{name}_ns={}", percentile(&delays, thousandths)))
        .into();
    let (min, max) = (delays[0], delays[delays.len() - 1]);
    writeln!(
        std::io::stdout(),
        "jitter sleeps={sleeps} interval_us={interval_us} min_ns={min} {} max_ns={max}",
        said.join(" ")
    )?;
    Ok(())
}

fn measure(sleeps: usize, interval_ns: i64) -> Result<Vec<i64>, Fault> {
    let mut delays = Vec::with_capacity(sleeps);
    let mut due_ns = now_ns() + interval_ns;
    for _ in 0..sleeps {
        sleep_until(due_ns)?;
        let now = now_ns();
        delays.push(now - due_ns);
        due_ns += interval_ns;
        if due_ns <= now {
            due_ns = now + interval_ns;
        }
    }
    Ok(delays)
}

/// The value at the rank ⌈n p⌉ of `sorted`, which is not empty.
fn percentile(sorted: &[i64], thousandths: usize) -> i64 {
    sorted[(sorted.len() * thousandths).div_ceil(1000).max(1) - 1]
}

fn now_ns() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the place is ours and of the right type.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec * A_SECOND_NS + time.tv_nsec
}

fn sleep_until(due_ns: i64) -> Result<(), Fault> {
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

fn least_slack() -> Result<(), Fault> {
    // SAFETY: takes a number only.
    if unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) } == 0 {
        return Ok(());
    }
    Err(Fault::Run(format!("cannot set the timer slack: {}", std::io::Error::last_os_error())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_smallest_value_that_so_many_do_not_exceed() {
        let hundred: Vec<i64> = (1..=100).collect();
        assert_eq!([500, 900, 990, 999].map(|p| percentile(&hundred, p)), [50, 90, 99, 100]);
        assert_eq!(percentile(&[7], 500), 7);
        assert_eq!(percentile(&[3, 8], 500), 3);
        assert_eq!(percentile(&[3, 8], 900), 8);
    }
}
