//! Percentiles of what was measured.

/// The value at the rank ⌈n p⌉ of `sorted`, which is not empty.
pub fn percentile(sorted: &[i64], thousandths: usize) -> i64 {
    sorted[(sorted.len() * thousandths).div_ceil(1000).max(1) - 1]
}

/// `p50_ns=… p90_ns=… p99_ns=… p999_ns=…`
pub fn said(sorted: &[i64]) -> String {
    [("p50", 500), ("p90", 900), ("p99", 990), ("p999", 999)]
        .map(|(name, thousandths)| format!("{name}_ns={}", percentile(sorted, thousandths)))
        .join(" ")
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
