//! Which instructions a fault has ended, so that they are begun again.
//!
//! QEMU does not count an instruction that faults until it is begun again and finished. The lens counts what is begun.
//! A page fault ends an instruction where data is missing; where code is missing, the one before it was finished. In
//! the kernel no code is ever missing. In user space the counter shows what was not finished; a fault comes from there
//! if the kernel exchanges GS at once.

use crate::counters::Counts;
use crate::symbols::Vector;

/// The kernel exchanges GS within so many instructions after an entry from user space.
const AT_ONCE: u64 = 64;

/// A fault of which it is not known yet where it came from.
#[derive(Clone, Copy, Debug)]
struct Open {
    entered: Counts,
    /// Whether the last instruction of user space is one that does not show whether it was finished.
    is_doubtful: bool,
}

/// What is not known yet of a CPU's last fault.
#[derive(Debug, Default)]
pub struct Doubts {
    open: Option<Open>,
    /// What was counted in user space when the last such instruction began.
    begun: Option<u64>,
}

impl Doubts {
    /// An instruction of user space begins that does not show whether it is finished.
    pub fn begin(&mut self, counts: &Counts) {
        self.begun = Some(counts.user);
    }

    /// It was seen that it is finished.
    pub fn end(&mut self) {
        self.begun = None;
    }

    /// A fault. Returns how many instructions are known now to have been begun in vain.
    pub fn fault(&mut self, vector: Vector, was_open: bool, counts: &Counts) -> u64 {
        let before = self.settle(counts);
        if was_open || vector == Vector::Division {
            return before + 1;
        }
        // The instruction itself is counted right after it was told of.
        let is_doubtful = vector == Vector::Page && self.begun.is_some_and(|begun| counts.user == begun + 1);
        self.open = Some(Open { entered: *counts, is_doubtful });
        before
    }

    /// The kernel exchanges GS.
    pub fn exchange(&mut self, counts: &Counts) -> u64 {
        match self.open {
            Some(open) if counts.kernel - open.entered.kernel <= AT_ONCE => {
                self.open = None;
                u64::from(open.is_doubtful)
            }
            _ => self.settle(counts),
        }
    }

    /// A fault that did not come from user space came from the kernel.
    pub fn settle(&mut self, _counts: &Counts) -> u64 {
        u64::from(self.open.take().is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(user: u64, kernel: u64) -> Counts {
        Counts { user, kernel, ..Counts::default() }
    }

    #[test]
    fn a_fault_within_a_block_of_user_space_ends_an_instruction() {
        let mut doubts = Doubts::default();
        assert_eq!(doubts.fault(Vector::Page, true, &counts(9, 0)), 1);
        assert_eq!(doubts.exchange(&counts(9, 20)), 0);
    }

    #[test]
    fn missing_code_ends_none() {
        let mut doubts = Doubts::default();
        assert_eq!(doubts.fault(Vector::Page, false, &counts(9, 100)), 0);
        assert_eq!(doubts.exchange(&counts(9, 130)), 0);
        assert_eq!(doubts.settle(&counts(9, 500)), 0);
    }

    #[test]
    fn a_fault_in_the_kernel_ends_one() {
        let mut doubts = Doubts::default();
        assert_eq!(doubts.fault(Vector::Page, false, &counts(9, 100)), 0);
        assert_eq!(doubts.exchange(&counts(9, 900)), 1);
        assert_eq!(doubts.fault(Vector::Page, false, &counts(9, 1000)), 0);
        assert_eq!(doubts.fault(Vector::Page, true, &counts(19, 1000)), 2);
    }

    #[test]
    fn a_step_of_a_string_instruction_is_taken_for_the_one_that_faults() {
        let mut doubts = Doubts::default();
        doubts.begin(&counts(8, 100));
        assert_eq!(doubts.fault(Vector::Page, false, &counts(9, 100)), 0);
        assert_eq!(doubts.exchange(&counts(9, 130)), 1);
        assert_eq!(doubts.fault(Vector::Page, false, &counts(10, 200)), 0);
        assert_eq!(doubts.exchange(&counts(10, 230)), 0);
        doubts.begin(&counts(10, 300));
        doubts.end();
        assert_eq!(doubts.fault(Vector::Page, false, &counts(11, 300)), 0);
        assert_eq!(doubts.exchange(&counts(11, 330)), 0);
    }
}
