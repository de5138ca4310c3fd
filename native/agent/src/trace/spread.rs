//! Distributions of durations.
//! Exact quantiles, and a histogram whose classes are an eighth to a fourth wide.

use serde::{Deserialize, Serialize};

/// Durations as they come.
#[derive(Debug, Default)]
pub struct Durations(Vec<u64>);

/// All there is to know of some durations in nanoseconds; zeros if there are none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    pub count: u64,
    pub total_ns: u64,
    pub p50_ns: u64,
    pub p95_ns: u64,
    pub p99_ns: u64,
    pub max_ns: u64,
    /// The least of each class that has any, and how many it has.
    pub histogram: Vec<(u64, u64)>,
}

impl Durations {
    pub fn add(&mut self, duration_ns: u64) {
        self.0.push(duration_ns);
    }

    pub fn spread(mut self) -> Spread {
        self.0.sort_unstable();
        let mut histogram: Vec<(u64, u64)> = Vec::new();
        for duration in &self.0 {
            let least = class(*duration);
            match histogram.last_mut() {
                Some((last, count)) if *last == least => *count += 1,
                _ => histogram.push((least, 1)),
            }
        }
        Spread {
            count: self.0.len() as u64,
            total_ns: self.0.iter().sum(),
            p50_ns: self.quantile(50),
            p95_ns: self.quantile(95),
            p99_ns: self.quantile(99),
            max_ns: self.0.last().copied().unwrap_or(0),
            histogram,
        }
    }

    /// The smallest one that at least `per_cent` of all do not exceed.
    fn quantile(&self, per_cent: usize) -> u64 {
        let rank = (self.0.len() * per_cent).div_ceil(100);
        self.0.get(rank.saturating_sub(1)).copied().unwrap_or(0)
    }
}

/// The least of the class of a duration: there are four in every doubling.
pub fn class(duration_ns: u64) -> u64 {
    match duration_ns.checked_ilog2() {
        Some(octave @ 2..) => duration_ns >> (octave - 2) << (octave - 2),
        _ => duration_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(durations: impl IntoIterator<Item = u64>) -> Spread {
        Durations(durations.into_iter().collect()).spread()
    }

    #[test]
    fn quantiles_are_values_that_occurred() {
        let found = spread((1..=200).rev());
        assert_eq!((found.p50_ns, found.p95_ns, found.p99_ns, found.max_ns), (100, 190, 198, 200));
        assert_eq!((found.count, found.total_ns), (200, 20_100));
        assert_eq!(spread([]), Spread::default());
        assert_eq!(spread([7]).p99_ns, 7);
    }

    #[test]
    fn every_duration_is_in_one_class() {
        assert_eq!([0, 1, 3, 4, 7, 8, 9, 10, 1000].map(class), [0, 1, 3, 4, 7, 8, 8, 10, 896]);
        assert_eq!(class(u64::MAX), 7 << 61);
        let found = spread((0..10_000).map(|number| number * number));
        assert_eq!(found.histogram.iter().map(|(_, count)| count).sum::<u64>(), 10_000);
        assert!(found.histogram.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
