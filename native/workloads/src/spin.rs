//! Burns CPU without system calls; with an end it reads its CPU time sometimes.

use std::hint::black_box;

use lexopt::prelude::*;

use crate::clock::cpu_seconds;
use crate::request::{Fault, number};

/// Rounds between two looks at the clock: about a millisecond.
const BATCH: u32 = 1 << 19;
/// Rounds without a jump.
const STRETCH: u32 = 16;
const A_YEAR_MS: u64 = 366 * 86_400_000;

pub fn run(mut arguments: lexopt::Parser) -> Result<(), Fault> {
    let mut milliseconds = None;
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("milliseconds") => milliseconds = Some(number(&mut arguments, "milliseconds", 0, A_YEAR_MS)?),
            other => return Err(other.unexpected().into()),
        }
    }
    let mut state = black_box(1);
    while milliseconds.is_none_or(|limit| cpu_seconds() * 1000.0 < limit as f64) {
        state = black_box(mixed(state));
    }
    Ok(())
}

/// Mix `state` for a batch of rounds, in registers: a load that runs beside others is emulated in long stretches, where
/// each jump and each access to memory would cost the emulator, and what it counts, more than all else.
///
/// Source: G. Marsaglia, "Xorshift RNGs", Journal of Statistical Software 8 (14), 2003.
fn mixed(mut state: u64) -> u64 {
    for _ in 0..BATCH / STRETCH {
        for _ in 0..STRETCH {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
        }
    }
    state
}

/// Do nothing, `steps` times.
pub fn burn(steps: u32) {
    for step in 0..steps {
        black_box(step);
    }
}
