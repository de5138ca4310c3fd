//! A matrix product C = A B in double precision, in the loop order (i, k, j).
//!
//! All elements are small whole numbers (see [`left`] and [`right`]), so that every sum is exact in a double and the
//! checksum can be verified by any other program: the sum over all i, j of C\[i,j] ((i + 2 j) mod 7 + 1).

use std::hint::black_box;
use std::io::Write;

use lexopt::prelude::*;

use crate::request::{Fault, number};

/// The largest size with exact sums.
/// |C\[i,j]| ≤ 30 N, and the checksum is below 7 · 30 N³ < 2⁵³.
const LARGEST: u64 = 8192;

pub fn run(mut arguments: lexopt::Parser) -> Result<(), Fault> {
    let (mut size, mut repetitions) = (None, 1);
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("size") => size = Some(number(&mut arguments, "size", 1, LARGEST)?),
            Long("repetitions") => repetitions = number(&mut arguments, "repetitions", 1, u32::MAX.into())?,
            other => return Err(other.unexpected().into()),
        }
    }
    let size = size.ok_or(lexopt::Error::from("matrix needs --size"))? as usize;
    round_once();
    let (a, b) = (filled(size, left), filled(size, right));
    let mut c = vec![0.0; size * size];
    for _ in 0..repetitions {
        multiply(black_box(&a), black_box(&b), &mut c, size);
        black_box(&mut c);
    }
    let checksum = checksum(&c, size);
    writeln!(std::io::stdout(), "matrix size={size} repetitions={repetitions} checksum={checksum}")?;
    Ok(())
}

/// Let the CPU's flag "inexact" be set, which stays set.
///
/// All sums here are exact and would never set it. QEMU computes with the floating point of the host only for a task
/// that has the flag, and rounds to nearest; else in integers, which takes several times as long. Source: QEMU's
/// fpu/softfloat.c, `can_use_fpu`.
fn round_once() {
    black_box(black_box(1.0) / black_box(3.0));
}

/// A\[i,j], from −5 to 5.
fn left(row: usize, column: usize) -> f64 {
    ((7 * row + 3 * column) % 11) as f64 - 5.0
}

/// B\[i,j], from −6 to 6.
fn right(row: usize, column: usize) -> f64 {
    ((5 * row + 2 * column) % 13) as f64 - 6.0
}

fn filled(size: usize, element: fn(usize, usize) -> f64) -> Vec<f64> {
    (0..size * size).map(|place| element(place / size, place % size)).collect()
}

fn multiply(a: &[f64], b: &[f64], c: &mut [f64], size: usize) {
    c.fill(0.0);
    for (row_a, row_c) in a.chunks_exact(size).zip(c.chunks_exact_mut(size)) {
        for (factor, row_b) in row_a.iter().zip(b.chunks_exact(size)) {
            for (sum, element) in row_c.iter_mut().zip(row_b) {
                *sum += factor * element;
            }
        }
    }
}

fn checksum(c: &[f64], size: usize) -> f64 {
    let weight = |place: usize| ((place / size + 2 * (place % size)) % 7 + 1) as f64;
    c.iter().enumerate().map(|(place, element)| element * weight(place)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_worked_out_by_hand() {
        let mut c = vec![9.0; 4];
        multiply(&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.0], &mut c, 2);
        assert_eq!(c, [19.0, 22.0, 43.0, 50.0]);
        // Weights 1, 3, 2, 4.
        assert_eq!(checksum(&c, 2), 19.0 + 66.0 + 86.0 + 200.0);
    }
}
