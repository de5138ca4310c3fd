//! Burns CPU without system calls; with an end it reads its CPU time sometimes.

use std::hint::black_box;

use lexopt::prelude::*;

use crate::clock::cpu_seconds;
use crate::request::{Fault, number};

/// Iterations between two looks at the clock: about a millisecond.
const BATCH: u32 = 1 << 20;
const A_YEAR_MS: u64 = 366 * 86_400_000;

pub fn run(mut arguments: lexopt::Parser) -> Result<(), Fault> {
    let mut milliseconds = None;
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("milliseconds") => milliseconds = Some(number(&mut arguments, "milliseconds", 0, A_YEAR_MS)?),
            other => return Err(other.unexpected().into()),
        }
    }
    while milliseconds.is_none_or(|limit| cpu_seconds() * 1000.0 < limit as f64) {
        burn(BATCH);
    }
    Ok(())
}

/// Do nothing, `steps` times.
pub fn burn(steps: u32) {
    for step in 0..steps {
        black_box(step);
    }
}
