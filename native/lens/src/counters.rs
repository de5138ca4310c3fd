//! The counters that translated code adds to, and what is read from them.
//!
//! Each is 64 bits wide. Instructions in user space have their count in the lower bits; above them is how many blocks
//! were begun and not yet finished: it is not zero where a fault ended one.

pub const USER: usize = 0;
pub const KERNEL: usize = 1;
pub const LOADS: usize = 2;
pub const STORES: usize = 3;
pub const BRANCHES: usize = 4;
/// What is added to this one does not matter.
pub const NOTHING: usize = 5;
/// How many counters each CPU has.
pub const FIELDS: usize = 6;

/// One block that was begun.
pub const OPEN: u64 = 1 << 48;
/// One block that was finished.
pub const CLOSE: u64 = OPEN.wrapping_neg();

/// What one CPU has counted so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub user: u64,
    pub kernel: u64,
    pub loads: u64,
    pub stores: u64,
    pub branches: u64,
}

impl Counts {
    pub fn of(fields: &[u64; FIELDS]) -> Counts {
        Counts {
            user: fields[USER] & (OPEN - 1),
            kernel: fields[KERNEL],
            loads: fields[LOADS],
            stores: fields[STORES],
            branches: fields[BRANCHES],
        }
    }

    pub fn instructions(&self) -> u64 {
        self.user + self.kernel
    }

    /// What was counted since `before`.
    pub fn since(&self, before: &Counts) -> Counts {
        Counts {
            user: self.user - before.user,
            kernel: self.kernel - before.kernel,
            loads: self.loads - before.loads,
            stores: self.stores - before.stores,
            branches: self.branches - before.branches,
        }
    }

    pub fn add(&mut self, more: &Counts) {
        self.user += more.user;
        self.kernel += more.kernel;
        self.loads += more.loads;
        self.stores += more.stores;
        self.branches += more.branches;
    }
}

/// Whether a block of user space was begun and not finished.
pub fn is_open(fields: &[u64; FIELDS]) -> bool {
    fields[USER] >= OPEN
}

/// Forget that.
pub fn close(fields: &mut [u64; FIELDS]) {
    fields[USER] &= OPEN - 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_that_a_fault_ends_stays_open() {
        let mut fields = [0_u64; FIELDS];
        fields[USER] = fields[USER].wrapping_add(3 + OPEN).wrapping_add(CLOSE.wrapping_add(2));
        assert!(!is_open(&fields));
        fields[USER] = fields[USER].wrapping_add(4 + OPEN);
        assert!(is_open(&fields));
        assert_eq!(Counts::of(&fields).user, 9);
        close(&mut fields);
        assert!(!is_open(&fields));
        assert_eq!(Counts::of(&fields).user, 9);
    }

    #[test]
    fn counts_are_added_and_subtracted_one_by_one() {
        let before = Counts { user: 1, kernel: 2, loads: 3, stores: 4, branches: 5 };
        let mut after = before;
        after.add(&before);
        assert_eq!(after.since(&before), before);
        assert_eq!(after.instructions(), 6);
    }
}
