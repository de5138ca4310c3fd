//! Burns CPU for a fixed wall time, and prints its share and interruptions.
//! The interruptions show how long its turns are.
//!
//! Output, to be read by programs (getrusage(2)):
//! ```text
//! hog milliseconds=1000 cpu_ms=498.31 voluntary=0 involuntary=83
//! ```

use std::io::Write;
use std::time::{Duration, Instant};

use lexopt::prelude::*;

use crate::clock::cpu_seconds;
use crate::request::{Fault, number};
use crate::spin::burn;

/// Iterations between two looks at the clock.
/// They take microseconds, so that it ends on time.
const BATCH: u32 = 1 << 13;
const A_DAY_MS: u64 = 86_400_000;

pub fn run(mut arguments: lexopt::Parser) -> Result<(), Fault> {
    let mut milliseconds = 1000;
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("milliseconds") => milliseconds = number(&mut arguments, "milliseconds", 1, A_DAY_MS)?,
            other => return Err(other.unexpected().into()),
        }
    }
    let (start, window) = (Instant::now(), Duration::from_millis(milliseconds));
    while start.elapsed() < window {
        burn(BATCH);
    }
    let (voluntary, involuntary) = switches();
    writeln!(
        std::io::stdout(),
        "hog milliseconds={milliseconds} cpu_ms={:.2} voluntary={voluntary} involuntary={involuntary}",
        cpu_seconds() * 1000.0
    )?;
    Ok(())
}

/// Voluntary and involuntary context switches of this process.
fn switches() -> (i64, i64) {
    // SAFETY: a structure of numbers, for which all zeroes are a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the place is ours and of the right type.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
    (usage.ru_nvcsw, usage.ru_nivcsw)
}
