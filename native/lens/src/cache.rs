//! Caches as a textbook has them: set-associative, and of each set what was used least recently is replaced.

use std::ops::Range;

/// Something that a cache keeps, by its key.
pub trait Entry: Copy {
    /// No key is this one's.
    const EMPTY: Self;

    fn key(&self) -> u64;
}

/// Entries in sets, each with the time of its last use.
pub struct Lru<E> {
    sets: u64,
    ways: usize,
    entries: Vec<E>,
    used_at: Vec<u64>,
    now: u64,
    /// Where the entries of some keys are, so that nobody has to look through a set. Empty for a large cache.
    hints: Vec<Hint>,
}

#[derive(Clone, Copy)]
struct Hint {
    key: u64,
    place: u32,
}

const MOST_WITH_HINTS: usize = 1024;
const HINTS_PER_ENTRY: usize = 4;

impl<E: Entry> Lru<E> {
    pub fn new(sets: u64, ways: usize) -> Lru<E> {
        let count = sets as usize * ways;
        let hints = if count > MOST_WITH_HINTS { 0 } else { (count * HINTS_PER_ENTRY).next_power_of_two() };
        let hints = vec![Hint { key: E::EMPTY.key(), place: 0 }; hints];
        Lru { sets, ways, entries: vec![E::EMPTY; count], used_at: vec![0; count], now: 0, hints }
    }

    /// The places of the set of a key.
    fn set(&self, key: u64) -> Range<usize> {
        let set = if self.sets.is_power_of_two() { key & (self.sets - 1) } else { key % self.sets };
        let begin = set as usize * self.ways;
        begin..begin + self.ways
    }

    #[inline(always)]
    fn hint(&self, key: u64) -> usize {
        key as usize & (self.hints.len() - 1)
    }

    /// Inlined, as is all that most accesses of a guest are done with.
    #[inline(always)]
    fn find(&mut self, key: u64) -> Option<usize> {
        if !self.hints.is_empty() {
            let hint = self.hints[self.hint(key)];
            if hint.key == key {
                return Some(hint.place as usize);
            }
        }
        self.find_in_set(key)
    }

    fn find_in_set(&mut self, key: u64) -> Option<usize> {
        let set = self.set(key);
        let place = set.start + self.entries[set].iter().position(|entry| entry.key() == key)?;
        self.point_at(place, key);
        Some(place)
    }

    fn point_at(&mut self, place: usize, key: u64) {
        if !self.hints.is_empty() {
            let hint = self.hint(key);
            self.hints[hint] = Hint { key, place: place as u32 };
        }
    }

    fn forget(&mut self, key: u64) {
        if !self.hints.is_empty() {
            let hint = self.hint(key);
            if self.hints[hint].key == key {
                self.hints[hint].key = E::EMPTY.key();
            }
        }
    }

    #[inline(always)]
    fn use_now(&mut self, place: usize) {
        self.now += 1;
        self.used_at[place] = self.now;
    }

    /// Use the entry of a key, if it is there.
    #[inline(always)]
    pub fn used(&mut self, key: u64) -> Option<&mut E> {
        let place = self.find(key)?;
        self.use_now(place);
        Some(&mut self.entries[place])
    }

    /// Look at the entry of a key, as if nobody did.
    pub fn seen(&mut self, key: u64) -> Option<&mut E> {
        self.find(key).map(|place| &mut self.entries[place])
    }

    /// Put in an entry that is not there. Returns the one that had to leave.
    pub fn put(&mut self, entry: E) -> Option<E> {
        let set = self.set(entry.key());
        let (begin, times) = (set.start, &self.used_at[set]);
        let place = begin + (0..times.len()).min_by_key(|way| times[*way]).unwrap_or(0);
        let left = std::mem::replace(&mut self.entries[place], entry);
        self.forget(left.key());
        self.point_at(place, entry.key());
        self.use_now(place);
        (left.key() != E::EMPTY.key()).then_some(left)
    }

    fn empty(&mut self, place: usize) {
        self.forget(self.entries[place].key());
        self.entries[place] = E::EMPTY;
        self.used_at[place] = 0;
    }

    /// Take out the entry of a key. Returns whether it was there.
    pub fn remove(&mut self, key: u64) -> bool {
        let Some(place) = self.find(key) else { return false };
        self.empty(place);
        true
    }

    /// Take out all those that are not `kept`.
    pub fn keep(&mut self, kept: impl Fn(&E) -> bool) {
        for place in 0..self.entries.len() {
            if !kept(&self.entries[place]) {
                self.empty(place);
            }
        }
    }
}

/// A line of memory, by its number; its own if no other core may have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line(u64);

impl Line {
    pub fn new(number: u64, is_own: bool) -> Line {
        Line(number << 1 | u64::from(is_own))
    }

    pub fn is_own(self) -> bool {
        self.0 & 1 != 0
    }
}

impl Entry for Line {
    const EMPTY: Line = Line(u64::MAX - 1);

    fn key(&self) -> u64 {
        self.0 >> 1
    }
}

#[cfg(test)]
pub mod tests {
    use std::collections::HashMap;

    use super::*;

    /// Numbers that look random and are always the same. Source: Steele and others, SplitMix (OOPSLA 2014).
    pub fn numbers(mut seed: u64) -> impl Iterator<Item = u64> {
        std::iter::repeat_with(move || {
            seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        })
    }

    fn line(number: u64) -> Line {
        Line::new(number, false)
    }

    /// The same by the definition: of each line when it was used last.
    struct ByTime {
        sets: u64,
        ways: usize,
        used: HashMap<u64, usize>,
    }

    impl ByTime {
        /// Whether it was there.
        fn access(&mut self, number: u64, now: usize) -> bool {
            let was_there = self.used.insert(number, now).is_some();
            let set = number % self.sets;
            let others = self.used.iter().filter(|(known, _)| *known % self.sets == set);
            if others.clone().count() > self.ways {
                let oldest = *others.min_by_key(|(_, at)| **at).unwrap().0;
                self.used.remove(&oldest);
            }
            was_there
        }
    }

    #[test]
    fn what_was_used_least_recently_leaves() {
        for (sets, ways) in [(1, 1), (1, 4), (4, 2), (8, 8), (3, 5), (12, 1)] {
            let mut cache = Lru::new(sets, ways);
            let mut model = ByTime { sets, ways, used: HashMap::new() };
            let most = sets * ways as u64 * 2;
            for (now, number) in numbers(sets).take(5_000).map(|number| number % most).enumerate() {
                let is_there = cache.used(number).is_some();
                if !is_there {
                    cache.put(line(number));
                }
                assert_eq!(is_there, model.access(number, now), "{sets} sets of {ways}, access {now}");
            }
        }
    }

    #[test]
    fn what_is_removed_makes_room_and_changes_no_order() {
        let mut cache = Lru::new(1, 3);
        for number in 1..=3 {
            assert_eq!(cache.put(line(number)), None);
        }
        assert!(cache.remove(2) && !cache.remove(2));
        assert_eq!(cache.put(line(4)), None);
        assert!(cache.seen(1).is_some());
        assert_eq!(cache.put(line(5)), Some(line(1)));
    }

    #[test]
    fn those_that_are_kept_stay_in_order() {
        let mut cache = Lru::new(2, 4);
        for number in 0..8 {
            cache.put(line(number));
        }
        cache.keep(|line| line.key() % 4 < 2);
        cache.put(line(8));
        assert_eq!((cache.put(line(10)), cache.put(line(12))), (None, Some(line(0))));
        assert!(cache.seen(1).is_some() && cache.seen(2).is_none());
    }
}
