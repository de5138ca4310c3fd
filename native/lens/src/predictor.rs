//! A predictor of conditional branches: gshare, a table of counters of two bits, found by the branch's address and what
//! the last branches did. Source: S. McFarling, Combining Branch Predictors (DEC WRL TN-36, 1993), section 7.

pub struct Predictor {
    /// 0 and 1: not taken; 2 and 3: taken.
    counters: Vec<u8>,
    history: u64,
}

const WEAKLY_NOT_TAKEN: u8 = 1;

impl Predictor {
    pub fn new(bits: u32) -> Predictor {
        Predictor { counters: vec![WEAKLY_NOT_TAKEN; 1 << bits], history: 0 }
    }

    /// A branch was taken or not. Returns whether that was predicted.
    pub fn learn(&mut self, address: u64, is_taken: bool) -> bool {
        let mask = self.counters.len() as u64 - 1;
        let counter = &mut self.counters[((address ^ self.history) & mask) as usize];
        let was_right = (*counter >= 2) == is_taken;
        *counter = if is_taken { (*counter + 1).min(3) } else { counter.saturating_sub(1) };
        self.history = (self.history << 1 | u64::from(is_taken)) & mask;
        was_right
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::tests::numbers;

    fn wrong(predictor: &mut Predictor, outcomes: impl Iterator<Item = bool>) -> usize {
        outcomes.filter(|is_taken| !predictor.learn(0x40_1000, *is_taken)).count()
    }

    #[test]
    fn a_pattern_within_the_history_is_learnt() {
        let mut predictor = Predictor::new(12);
        let loops = |count: usize| (0..count).map(|round| round % 7 != 6);
        wrong(&mut predictor, loops(700));
        assert_eq!(wrong(&mut predictor, loops(7_000)), 0);
    }

    #[test]
    fn a_longer_one_costs_one_branch_each_time() {
        let mut predictor = Predictor::new(4);
        let loops = |count: usize| (0..count).map(|round| round % 100 != 99);
        wrong(&mut predictor, loops(1_000));
        assert_eq!(wrong(&mut predictor, loops(10_000)), 100);
    }

    #[test]
    fn chance_is_wrong_half_of_the_time() {
        let mut predictor = Predictor::new(12);
        let wrong = wrong(&mut predictor, numbers(7).take(100_000).map(|number| number & 1 == 0));
        assert!((49_000..51_000).contains(&wrong), "{wrong}");
    }
}
