//! Caches as a textbook has them: set-associative, and of each set what was used least recently is replaced.

/// Something that a cache keeps, by its key.
pub trait Entry: Copy {
    /// No key is this one's.
    const EMPTY: Self;

    fn key(&self) -> u64;
}

/// Entries in sets, each set in the order of last use.
pub struct Lru<E> {
    sets: u64,
    ways: usize,
    entries: Vec<E>,
}

impl<E: Entry> Lru<E> {
    pub fn new(sets: u64, ways: usize) -> Lru<E> {
        Lru { sets, ways, entries: vec![E::EMPTY; sets as usize * ways] }
    }

    fn set(&mut self, key: u64) -> &mut [E] {
        let set = if self.sets.is_power_of_two() { key & (self.sets - 1) } else { key % self.sets };
        let begin = set as usize * self.ways;
        &mut self.entries[begin..begin + self.ways]
    }

    /// Use the entry of a key, if it is there.
    pub fn used(&mut self, key: u64) -> Option<&mut E> {
        let set = self.set(key);
        if set[0].key() != key {
            let place = set.iter().position(|entry| entry.key() == key)?;
            set[..=place].rotate_right(1);
        }
        Some(&mut set[0])
    }

    /// Look at the entry of a key, as if nobody did.
    pub fn seen(&mut self, key: u64) -> Option<&mut E> {
        self.set(key).iter_mut().find(|entry| entry.key() == key)
    }

    /// Put in an entry that is not there. Returns the one that had to leave.
    pub fn put(&mut self, entry: E) -> Option<E> {
        let set = self.set(entry.key());
        set.rotate_right(1);
        let left = std::mem::replace(&mut set[0], entry);
        (left.key() != E::EMPTY.key()).then_some(left)
    }

    /// Take out the entry of a key. Returns whether it was there.
    pub fn remove(&mut self, key: u64) -> bool {
        let set = self.set(key);
        let Some(place) = set.iter().position(|entry| entry.key() == key) else { return false };
        set[place..].rotate_left(1);
        set[set.len() - 1] = E::EMPTY;
        true
    }

    /// Take out all those that are not `kept`.
    pub fn keep(&mut self, kept: impl Fn(&E) -> bool) {
        for set in self.entries.chunks_mut(self.ways) {
            let mut stays = 0;
            for place in 0..set.len() {
                if set[place].key() != E::EMPTY.key() && kept(&set[place]) {
                    set.swap(stays, place);
                    stays += 1;
                }
            }
            set[stays..].fill(E::EMPTY);
        }
    }
}

/// A line of memory, by its number; `is_own` if no other core may have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    pub number: u64,
    pub is_own: bool,
}

impl Entry for Line {
    const EMPTY: Line = Line { number: u64::MAX, is_own: false };

    fn key(&self) -> u64 {
        self.number
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
        Line { number, is_own: false }
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
        cache.keep(|line| line.number % 4 < 2);
        cache.put(line(8));
        assert_eq!((cache.put(line(10)), cache.put(line(12))), (None, Some(line(0))));
        assert!(cache.seen(1).is_some() && cache.seen(2).is_none());
    }
}
