//! Gaussian elimination with partial pivoting on a matrix stored by columns.
//! (*LINPACK Users' Guide*, chapter 1: SGEFA, SGESL, in double precision.)

pub const N: usize = 200;
/// Elements of a column, of which the last is not used.
pub const LEADING: usize = N + 1;

/// Factor `a` in place into L and U.
/// It has columns of `leading` elements, as many as there are pivots. The multipliers are stored negated, as LINPACK
/// does. A zero pivot is left, and shows in the solution.
pub fn dgefa(a: &mut [f64], leading: usize, pivots: &mut [usize]) {
    let n = pivots.len();
    for k in 0..n {
        let (before, after) = a.split_at_mut((k + 1) * leading);
        let column = &mut before[k * leading..k * leading + n];
        let pivot = k + idamax(&column[k..]);
        pivots[k] = pivot;
        if column[pivot] == 0.0 {
            continue;
        }
        column.swap(pivot, k);
        dscal(-1.0 / column[k], &mut column[k + 1..]);
        for other in after.chunks_exact_mut(leading).take(n - k - 1) {
            other.swap(pivot, k);
            let factor = other[k];
            daxpy(factor, &column[k + 1..], &mut other[k + 1..n]);
        }
    }
}

/// Solve with the factors of [`dgefa`]: `b` becomes x.
pub fn dgesl(a: &[f64], leading: usize, pivots: &[usize], b: &mut [f64]) {
    let n = pivots.len();
    for k in 0..n.saturating_sub(1) {
        b.swap(pivots[k], k);
        let factor = b[k];
        daxpy(factor, &a[k * leading + k + 1..k * leading + n], &mut b[k + 1..]);
    }
    for k in (0..n).rev() {
        b[k] /= a[k * leading + k];
        let x = b[k];
        daxpy(-x, &a[k * leading..k * leading + k], &mut b[..k]);
    }
}

/// y ← y + factor · x
fn daxpy(factor: f64, x: &[f64], y: &mut [f64]) {
    if factor == 0.0 {
        return;
    }
    for (sum, element) in y.iter_mut().zip(x) {
        *sum += factor * element;
    }
}

/// x ← factor · x
fn dscal(factor: f64, x: &mut [f64]) {
    for element in x {
        *element *= factor;
    }
}

/// Where the first element of the largest size is.
fn idamax(x: &[f64]) -> usize {
    let mut place = 0;
    for (index, element) in x.iter().enumerate() {
        if element.abs() > x[place].abs() {
            place = index;
        }
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_that_needs_pivoting() {
        // Columns of [[0, 2, 1], [1, 1, 1], [2, 0, 4]], each with one element of padding;
        // x = (1, 2, 3).
        let mut a = vec![0.0, 1.0, 2.0, 9.0, 2.0, 1.0, 0.0, 9.0, 1.0, 1.0, 4.0, 9.0];
        let mut b = [7.0, 6.0, 14.0];
        let mut pivots = [0; 3];
        dgefa(&mut a, 4, &mut pivots);
        dgesl(&a, 4, &pivots, &mut b);
        for (x, right) in b.iter().zip([1.0, 2.0, 3.0]) {
            assert!((x - right).abs() < 1e-14);
        }
        assert_eq!(pivots[0], 2);
    }
}
