//! The caches of all cores, from the first level to the memory.
//!
//! A store takes the line from all other cores. Nothing is written back. Where the machine has a prefetcher, L2 fetches the
//! next line of a page ahead once two neighbours were asked for.

use std::collections::HashSet;

use crate::cache::{Entry, Line, Lru};
use crate::machine::{Contents, Geometry, Machine, Outer, Place};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Fetch,
    Load,
    Store,
}

/// Where an access found its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    First,
    Second,
    Last,
    Memory,
}

struct Core {
    l1i: Lru<Line>,
    l1d: Lru<Line>,
    streams: Lru<Stream>,
    /// Lines that another core took from it, and that it did not access since.
    lost: HashSet<u64>,
}

/// A page of which lines were asked for, and which line was the last one.
#[derive(Clone, Copy)]
struct Stream {
    page: u64,
    last: u64,
}

impl Entry for Stream {
    const EMPTY: Stream = Stream { page: u64::MAX, last: u64::MAX };

    fn key(&self) -> u64 {
        self.page
    }
}

/// Caches of one level behind the first: one for each group of cores.
struct Level {
    outer: Outer,
    /// Which one each core has.
    groups: Vec<usize>,
    caches: Vec<Lru<Line>>,
}

pub struct Hierarchy {
    /// Whether the last miss was of a line that the core had lost.
    was_lost: bool,
    first: [Geometry; 2],
    /// How many pages each core's prefetcher knows; of so many lines each.
    streams: Option<usize>,
    lines_of_page: u64,
    cores: Vec<Core>,
    second: Option<Level>,
    last: Option<Level>,
}

/// Prefetchers do not cross pages of that size. Source: Intel's optimization manual, streamer of L2.
const PAGE: u64 = 4096;

fn cache(geometry: Geometry) -> Lru<Line> {
    Lru::new(geometry.sets, geometry.ways)
}

impl Level {
    fn new(outer: Outer) -> Level {
        Level { outer, groups: Vec::new(), caches: Vec::new() }
    }

    fn of(&mut self, core: usize) -> &mut Lru<Line> {
        &mut self.caches[self.groups[core]]
    }

    fn is(&self, contents: Contents) -> bool {
        self.outer.contents == contents
    }

    /// Whether two cores have the same one.
    fn is_common(&self, core: usize, other: usize) -> bool {
        self.groups[core] == self.groups[other]
    }

    /// There is one more core, which comes after those of its node that are there.
    fn add(&mut self, place: Place) {
        if place.index % self.outer.cores == 0 {
            self.caches.push(cache(self.outer.geometry()));
        }
        self.groups.push(self.caches.len() - 1);
    }

    /// Use a line, which leaves a victim cache.
    fn take(&mut self, core: usize, line: u64) -> bool {
        if self.is(Contents::Exclusive) { self.of(core).remove(line) } else { self.of(core).used(line).is_some() }
    }

    /// A line that comes from further out. Returns what leaves.
    fn fill(&mut self, core: usize, line: u64) -> Option<u64> {
        if self.is(Contents::Exclusive) {
            return None;
        }
        self.of(core).put(Line::new(line, false)).map(|left| left.key())
    }

    /// A line that left a level further in. Returns what leaves.
    fn catch(&mut self, core: usize, line: u64) -> Option<u64> {
        if !self.is(Contents::Exclusive) || self.of(core).used(line).is_some() {
            return None;
        }
        self.of(core).put(Line::new(line, false)).map(|left| left.key())
    }
}

impl Hierarchy {
    pub fn new(machine: &Machine) -> Hierarchy {
        Hierarchy {
            was_lost: false,
            first: [machine.l1i, machine.l1d],
            streams: machine.streams,
            lines_of_page: PAGE / machine.line_bytes,
            cores: Vec::new(),
            second: machine.l2.map(Level::new),
            last: machine.llc.map(Level::new),
        }
    }

    /// There is one more core. Those of a node come one after the other.
    pub fn add(&mut self, place: Place) {
        let [l1i, l1d] = self.first;
        let streams = Lru::new(1, self.streams.unwrap_or(1));
        self.cores.push(Core { l1i: cache(l1i), l1d: cache(l1d), streams, lost: HashSet::new() });
        for level in self.second.iter_mut().chain(&mut self.last) {
            level.add(place);
        }
    }

    /// A core accesses a line.
    #[inline(always)]
    pub fn access(&mut self, core: usize, number: u64, access: Access) -> Found {
        let own = &mut self.cores[core];
        let first = if access == Access::Fetch { &mut own.l1i } else { &mut own.l1d };
        if let Some(line) = first.used(number) {
            if access == Access::Store && !line.is_own() {
                *line = Line::new(number, true);
                self.claim(core, number);
            }
            return Found::First;
        }
        self.miss(core, number, access)
    }

    /// A core has loaded a line again that its first level may still have.
    pub fn touch(&mut self, core: usize, number: u64) {
        self.cores[core].l1d.used(number);
    }

    /// Whether what was missed last was there before another core stored to it (a coherence miss).
    pub fn was_lost(&self) -> bool {
        self.was_lost
    }

    /// What the first level does not have.
    #[inline(never)]
    fn miss(&mut self, core: usize, number: u64, access: Access) -> Found {
        self.was_lost = self.cores[core].lost.remove(&number);
        let is_near = self.cores.len() > 1 && self.share(core, number);
        let mut found = self.look_further(core, number);
        if found == Found::Memory && is_near {
            found = Found::Last;
        }
        let line = Line::new(number, access == Access::Store);
        let own = &mut self.cores[core];
        let left = if access == Access::Fetch { own.l1i.put(line) } else { own.l1d.put(line) };
        if let Some(left) = left {
            self.leave_first(core, left.key());
        }
        if access == Access::Store {
            self.claim(core, number);
        }
        if self.streams.is_some() {
            self.fetch_ahead(core, number);
        }
        found
    }

    /// Bring the line to L2 that comes next if lines of a page are asked for one after the other, up or down.
    fn fetch_ahead(&mut self, core: usize, number: u64) {
        let page = number / self.lines_of_page;
        let streams = &mut self.cores[core].streams;
        let Some(stream) = streams.used(page) else {
            streams.put(Stream { page, last: number });
            return;
        };
        let before = std::mem::replace(&mut stream.last, number);
        let next = match number.wrapping_sub(before) {
            1 => number + 1,
            u64::MAX => number.wrapping_sub(1),
            _ => return,
        };
        let own = &mut self.cores[core];
        let is_there =
            next / self.lines_of_page != page || own.l1d.seen(next).is_some() || own.l1i.seen(next).is_some();
        if is_there || self.second.as_mut().is_some_and(|level| level.of(core).seen(next).is_some()) {
            return;
        }
        self.cores[core].lost.remove(&next);
        if self.cores.len() > 1 {
            self.share(core, next);
        }
        self.look_further(core, next);
    }

    /// Bring a line to the core from the nearest level that has it.
    fn look_further(&mut self, core: usize, line: u64) -> Found {
        if self.second.as_mut().is_some_and(|level| level.take(core, line)) {
            return Found::Second;
        }
        let is_last = self.last.as_mut().is_some_and(|level| level.take(core, line));
        if !is_last {
            if let Some(left) = self.last.as_mut().and_then(|level| level.fill(core, line)) {
                self.leave_last(core, left);
            }
        }
        if let Some(left) = self.second.as_mut().and_then(|level| level.fill(core, line)) {
            self.leave_second(core, left);
        }
        if is_last { Found::Last } else { Found::Memory }
    }

    fn leave_first(&mut self, core: usize, line: u64) {
        match &mut self.second {
            Some(level) => {
                if let Some(left) = level.catch(core, line) {
                    self.leave_second(core, left);
                }
            }
            None => {
                if let Some(left) = self.last.as_mut().and_then(|level| level.catch(core, line)) {
                    self.leave_last(core, left);
                }
            }
        }
    }

    fn leave_second(&mut self, core: usize, line: u64) {
        let Some(second) = &self.second else { return };
        if second.is(Contents::Inclusive) {
            for (number, other) in self.cores.iter_mut().enumerate() {
                if second.is_common(core, number) {
                    other.l1i.remove(line);
                    other.l1d.remove(line);
                }
            }
        }
        if let Some(left) = self.last.as_mut().and_then(|level| level.catch(core, line)) {
            self.leave_last(core, left);
        }
    }

    fn leave_last(&mut self, core: usize, line: u64) {
        let Some(last) = &self.last else { return };
        if !last.is(Contents::Inclusive) {
            return;
        }
        for number in 0..self.cores.len() {
            if last.is_common(core, number) {
                self.cores[number].l1i.remove(line);
                self.cores[number].l1d.remove(line);
                if let Some(second) = &mut self.second {
                    second.of(number).remove(line);
                }
            }
        }
    }

    /// No other core may store to the line any more without saying so. Returns whether one that is behind the same last
    /// level has it.
    fn share(&mut self, core: usize, line: u64) -> bool {
        let mut is_near = false;
        for number in (0..self.cores.len()).filter(|number| *number != core) {
            let mut is_there = false;
            if let Some(shared) = self.cores[number].l1d.seen(line) {
                *shared = Line::new(line, false);
                is_there = true;
            }
            is_there |= self.second.as_mut().is_some_and(|level| level.of(number).seen(line).is_some());
            is_near |= is_there && self.last.as_ref().is_some_and(|level| level.is_common(core, number));
        }
        is_near
    }

    /// Take a line from all other cores.
    fn claim(&mut self, core: usize, line: u64) {
        for number in (0..self.cores.len()).filter(|number| *number != core) {
            let other = &mut self.cores[number];
            let mut is_lost = other.l1i.remove(line) | other.l1d.remove(line);
            for level in self.second.iter_mut().chain(&mut self.last) {
                if !level.is_common(core, number) {
                    is_lost |= level.of(number).remove(line);
                }
            }
            if is_lost {
                self.cores[number].lost.insert(line);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::tests::numbers;

    const LINE_BYTES: u64 = 64;

    fn outer(kib: u64, ways: usize, contents: Contents, cores: usize) -> Outer {
        Outer { sets: (kib << 10) / LINE_BYTES / ways as u64, ways, contents, cores }
    }

    /// L1 of 4 KiB, L2 of 32 KiB, LLC of 256 KiB for two cores.
    fn hierarchy(contents: Contents, cores: usize) -> Hierarchy {
        let first = Geometry { sets: 16, ways: 4 };
        let mut made = Hierarchy {
            was_lost: false,
            first: [first, first],
            streams: None,
            lines_of_page: PAGE / LINE_BYTES,
            cores: Vec::new(),
            second: Some(Level::new(outer(32, 8, Contents::Inclusive, 1))),
            last: Some(Level::new(outer(256, 16, contents, 2))),
        };
        (0..cores).for_each(|index| made.add(Place { node: 0, index }));
        made
    }

    /// In which level each of the lines of a chase of that size is found, once all were accessed before.
    fn chase(hierarchy: &mut Hierarchy, kib: u64) -> [usize; 4] {
        let mut order: Vec<u64> = (0..(kib << 10) / LINE_BYTES).collect();
        for (place, chance) in (1..order.len()).rev().zip(numbers(kib)) {
            order.swap(place, chance as usize % (place + 1));
        }
        let mut counts = [0; 4];
        for round in 0..3 {
            for line in &order {
                let found = hierarchy.access(0, *line, Access::Load);
                counts[found as usize] += usize::from(round == 2);
            }
        }
        counts
    }

    #[test]
    fn the_steps_of_a_chase_are_where_the_sizes_say() {
        for contents in [Contents::Inclusive, Contents::NonInclusive] {
            let found = |kib: u64| chase(&mut hierarchy(contents, 1), kib);
            assert_eq!(found(4), [64, 0, 0, 0]);
            assert_eq!(found(32), [32 * 16 - found(32)[1], found(32)[1], 0, 0]);
            assert!(found(32)[1] > 400);
            assert_eq!(found(256)[3], 0);
            assert!(found(256)[2] > 3_500);
            assert!(found(288)[3] > 0);
            assert!(found(1024)[3] > 15_000);
        }
    }

    #[test]
    fn a_victim_cache_adds_its_size_to_that_of_the_level_before() {
        let both = |contents: Contents| chase(&mut hierarchy(contents, 1), 280)[3];
        assert!(both(Contents::Exclusive) < both(Contents::NonInclusive) / 2);
    }

    #[test]
    fn a_stream_misses_once_for_each_line() {
        let mut hierarchy = hierarchy(Contents::NonInclusive, 1);
        let lines = (4 << 20) / LINE_BYTES;
        let mut misses = 0;
        for word in 0..(4 << 20) / 8 {
            for (first, access) in [(0, Access::Load), (lines, Access::Store)] {
                misses += u64::from(hierarchy.access(0, first + word * 8 / LINE_BYTES, access) != Found::First);
            }
        }
        assert_eq!(misses, 2 * lines);
    }

    #[test]
    fn the_next_line_of_a_stream_is_fetched_ahead_and_no_other() {
        let found = |lines: &mut dyn Iterator<Item = u64>| {
            let mut hierarchy = hierarchy(Contents::NonInclusive, 0);
            hierarchy.streams = Some(16);
            hierarchy.add(Place { node: 0, index: 0 });
            let mut counts = [0; 4];
            lines.for_each(|line| counts[hierarchy.access(0, line, Access::Load) as usize] += 1);
            counts
        };
        let lines = 64 * 64;
        // Of each page the first two lines come from memory.
        assert_eq!(found(&mut (0..lines)), [0, 62 * 64, 0, 2 * 64]);
        assert_eq!(found(&mut (0..lines).rev()), [0, 62 * 64, 0, 2 * 64]);
        assert_eq!(found(&mut (0..lines / 2).map(|line| 2 * line)), [0, 0, 0, 64 * 32]);
        let mixed = numbers(7).take(2_000).map(|number| number % (1 << 20));
        assert!(found(&mut { mixed })[3] > 1_980);
        // Sixteen streams at once are known, and a seventeenth drives one out.
        let side_by_side =
            |streams: u64| found(&mut (0..64).flat_map(|line| (0..streams).map(move |page| page * 64 + line)));
        assert_eq!(side_by_side(16)[3], 16 * 2);
        assert_eq!(side_by_side(17)[3], 17 * 64);
    }

    #[test]
    fn a_line_that_is_fetched_ahead_is_shared() {
        let mut hierarchy = hierarchy(Contents::NonInclusive, 0);
        hierarchy.streams = Some(16);
        (0..2).for_each(|index| hierarchy.add(Place { node: 0, index }));
        hierarchy.access(1, 2, Access::Store);
        hierarchy.access(0, 0, Access::Load);
        hierarchy.access(0, 1, Access::Load);
        assert_eq!(hierarchy.access(0, 2, Access::Load), Found::Second);
        assert_eq!(hierarchy.access(1, 2, Access::Store), Found::First);
        assert_eq!(hierarchy.access(0, 2, Access::Load), Found::Last);
        assert!(hierarchy.was_lost());
    }

    #[test]
    fn what_leaves_an_inclusive_level_leaves_those_before() {
        for (contents, expected) in [(Contents::Inclusive, Found::Memory), (Contents::NonInclusive, Found::First)] {
            let mut hierarchy = hierarchy(contents, 2);
            hierarchy.access(0, 0, Access::Load);
            for round in 1..=16 {
                // The other core fills the set of the last level that has the line.
                hierarchy.access(1, round * 256, Access::Load);
            }
            assert_eq!(hierarchy.access(0, 0, Access::Load), expected);
        }
    }

    #[test]
    fn a_store_takes_the_line_from_the_other_cores() {
        let mut hierarchy = hierarchy(Contents::Exclusive, 4);
        for core in 0..4 {
            hierarchy.access(core, 7, Access::Load);
        }
        assert_eq!(hierarchy.access(1, 7, Access::Store), Found::First);
        assert!(!hierarchy.was_lost());
        // Behind the same last level it comes from there, else from memory.
        assert_eq!(hierarchy.access(0, 7, Access::Load), Found::Last);
        assert!(hierarchy.was_lost());
        assert_eq!(hierarchy.access(0, 9, Access::Load), Found::Memory);
        assert!(!hierarchy.was_lost());
        assert_eq!(hierarchy.access(2, 7, Access::Load), Found::Memory);
        assert!(hierarchy.was_lost());
        assert_eq!(hierarchy.access(1, 7, Access::Load), Found::First);
        assert_eq!(hierarchy.access(1, 7, Access::Store), Found::First);
        assert_ne!(hierarchy.access(0, 7, Access::Load), Found::First);
    }

    #[test]
    fn each_node_has_caches_of_its_own() {
        let mut hierarchy = hierarchy(Contents::NonInclusive, 0);
        (0..2).for_each(|node| hierarchy.add(Place { node, index: 0 }));
        hierarchy.access(0, 7, Access::Load);
        assert_eq!(hierarchy.access(1, 7, Access::Load), Found::Memory);
    }

    #[test]
    fn cores_that_share_a_line_falsely_miss_each_time() {
        let mut hierarchy = hierarchy(Contents::NonInclusive, 2);
        let mut missed = |lines: [u64; 2]| {
            (0..1_000)
                .filter(|round| hierarchy.access(round % 2, lines[round % 2], Access::Store) != Found::First)
                .count()
        };
        assert_eq!(missed([5, 5]), 1_000);
        assert_eq!(missed([6, 7]), 2);
    }
}
