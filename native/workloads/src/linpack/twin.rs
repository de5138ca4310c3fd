//! The same work in C: native/module/linpack/solve.c, as in the kernel module.

use crate::linpack::solve::{LEADING, N};

unsafe extern "C" {
    fn linpack_generate(a: *mut f64, b: *mut f64);
    fn linpack_dgefa(a: *mut f64, pivots: *mut u32);
    fn linpack_dgesl(a: *const f64, pivots: *const u32, b: *mut f64);
}

pub fn generate(a: &mut [f64], b: &mut [f64; N]) {
    assert_eq!(a.len(), N * LEADING);
    // SAFETY: the places have the sizes of solve.h.
    unsafe { linpack_generate(a.as_mut_ptr(), b.as_mut_ptr()) }
}

pub fn dgefa(a: &mut [f64], pivots: &mut [u32; N]) {
    assert_eq!(a.len(), N * LEADING);
    // SAFETY: the places have the sizes of solve.h.
    unsafe { linpack_dgefa(a.as_mut_ptr(), pivots.as_mut_ptr()) }
}

/// `pivots` are of [`dgefa`], which keeps them below N.
pub fn dgesl(a: &[f64], pivots: &[u32; N], b: &mut [f64; N]) {
    assert_eq!(a.len(), N * LEADING);
    assert!(pivots.iter().all(|&pivot| (pivot as usize) < N));
    // SAFETY: the places have the sizes of solve.h, and the pivots are within them.
    unsafe { linpack_dgesl(a.as_ptr(), pivots.as_ptr(), b.as_mut_ptr()) }
}
