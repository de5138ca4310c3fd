//! A CPU burner for a fixed time of the clock: what it got of the CPU in that window is its share.

use std::time::{Duration, Instant};

use lexopt::prelude::*;

use crate::spin::burn;
use crate::{number, Fault};

/// Iterations between two looks at the clock: microseconds, so that the end is seen as soon as the CPU is there.
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
    Ok(())
}
