//! How late sleeps end: the timer jitter, measured as cyclictest(8) does.
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
//! A percentile is the smallest delay that the percentage of sleeps (999 of a thousand for p999) does not exceed.

use std::io::Write;

use lexopt::prelude::*;

use crate::clock::{least_slack, now_ns, sleep_until};
use crate::percentile::said;
use crate::request::{Fault, number};

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
    let (min, max) = (delays[0], delays[delays.len() - 1]);
    writeln!(
        std::io::stdout(),
        "jitter sleeps={sleeps} interval_us={interval_us} min_ns={min} {} max_ns={max}",
        said(&delays)
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
