//! A CPU burner without system calls.

use std::hint::black_box;

use lexopt::prelude::*;

use crate::cpu_time;

/// Iterations between two looks at the clock, if there is an end: about a millisecond.
const BATCH: u32 = 1 << 20;

pub fn run(mut arguments: lexopt::Parser) -> Result<(), lexopt::Error> {
    let mut milliseconds = None;
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("milliseconds") => milliseconds = Some(arguments.value()?.parse::<u64>()?),
            other => return Err(other.unexpected()),
        }
    }
    match milliseconds {
        Some(milliseconds) => spin_for(milliseconds),
        None => loop {
            burn();
        },
    }
    Ok(())
}

fn spin_for(milliseconds: u64) {
    while cpu_time::seconds() * 1000.0 < milliseconds as f64 {
        burn();
    }
}

fn burn() {
    for step in 0..BATCH {
        black_box(step);
    }
}
