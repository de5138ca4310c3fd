//! What the modelled machine counts: accesses and misses.

use std::ops::{Add, AddAssign, Sub};

use serde::Serialize;

/// What was not where it would have been fast: at each level how often it had to be looked for further out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Misses {
    pub l1i: u64,
    pub l1d: u64,
    pub l2: u64,
    pub llc: u64,
    /// Translations that the first level did not have.
    pub tlb: u64,
    /// ... and the second level did not, either.
    pub walks: u64,
    pub branches: u64,
    /// Lines from the memory of another node, and by how much that was further than the nearest, in all.
    pub remote: u64,
    pub distance: u64,
    /// Lines that were there until another core stored to them.
    pub lost: u64,
    /// Levels of page tables that walks to larger pages did not have to read.
    pub skipped_levels: u64,
}

impl Misses {
    pub fn figures(&self) -> [u64; 11] {
        let Misses { l1i, l1d, l2, llc, tlb, walks, branches, remote, distance, lost, skipped_levels } = *self;
        [l1i, l1d, l2, llc, tlb, walks, branches, remote, distance, lost, skipped_levels]
    }

    fn of(figures: [u64; 11]) -> Misses {
        let [l1i, l1d, l2, llc, tlb, walks, branches, remote, distance, lost, skipped_levels] = figures;
        Misses { l1i, l1d, l2, llc, tlb, walks, branches, remote, distance, lost, skipped_levels }
    }

    pub fn is_zero(&self) -> bool {
        *self == Misses::default()
    }
}

impl Add for Misses {
    type Output = Misses;

    fn add(self, other: Misses) -> Misses {
        let (mut sum, more) = (self.figures(), other.figures());
        sum.iter_mut().zip(more).for_each(|(figure, more)| *figure += more);
        Misses::of(sum)
    }
}

impl AddAssign for Misses {
    fn add_assign(&mut self, other: Misses) {
        *self = *self + other;
    }
}

impl Sub for Misses {
    type Output = Misses;

    fn sub(self, other: Misses) -> Misses {
        let (mut rest, less) = (self.figures(), other.figures());
        rest.iter_mut().zip(less).for_each(|(figure, less)| *figure -= less);
        Misses::of(rest)
    }
}

/// What was accessed in one space, and what of it missed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Modelled {
    pub loads: u64,
    pub stores: u64,
    #[serde(serialize_with = "as_list")]
    pub misses: Misses,
}

fn as_list<S: serde::Serializer>(misses: &Misses, serializer: S) -> Result<S::Ok, S::Error> {
    misses.figures().serialize(serializer)
}

/// Of user space and of the kernel.
pub type BySpace = [Modelled; 2];

/// Add what happened between `before` and `now`.
pub fn add_since(sum: &mut BySpace, now: &BySpace, before: &BySpace) {
    for ((sum, now), before) in sum.iter_mut().zip(now).zip(before) {
        sum.loads += now.loads - before.loads;
        sum.stores += now.stores - before.stores;
        sum.misses += now.misses - before.misses;
    }
}
