//! When tasks of user space access memory that they share: there an unlucky moment changes what comes out.
//!
//! Memory is told apart by its virtual address, in words of eight bytes: threads have the same ones, and so do processes
//! that were forked. A word counts if one task has stored to it and another one has accessed it.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::PathBuf;

use crate::task::TaskId;

const WORD_BYTES: u64 = 8;
/// Accesses of one word that are kept.
const MOST_OF_WORD: usize = 4096;
/// Of these, the first ones by one instruction on one CPU: some wait for a word in a loop.
const MOST_ALIKE: usize = 64;
const MOST_WORDS: usize = 1 << 20;
const MOST_WRITTEN: usize = 100_000;

#[derive(Default)]
struct Word {
    first: Option<TaskId>,
    is_shared: bool,
    is_stored: bool,
    /// When, of which CPU, and by which instruction.
    accesses: Vec<(u64, usize, u64)>,
}

pub struct Sharing {
    file: PathBuf,
    began_ns: u64,
    words: HashMap<u64, Word>,
}

impl Sharing {
    pub fn new(file: PathBuf) -> Sharing {
        Sharing { file, began_ns: 0, words: HashMap::new() }
    }

    /// The window begins, from which times count.
    pub fn open(&mut self, at_ns: u64) {
        self.began_ns = at_ns;
    }

    /// A task accesses an address by the instruction at `by`; `ended_ns`, when it has done so, is asked only where that is
    /// kept.
    pub fn access(
        &mut self,
        (task, cpu): (TaskId, usize),
        (address, by): (u64, u64),
        is_store: bool,
        ended_ns: impl Fn() -> u64,
    ) {
        let number = address / WORD_BYTES;
        if self.words.len() >= MOST_WORDS && !self.words.contains_key(&number) {
            return;
        }
        let word = self.words.entry(number).or_default();
        word.is_stored |= is_store;
        word.is_shared |= *word.first.get_or_insert(task) != task;
        let alike = || word.accesses.iter().filter(|(_, of, at)| (*of, *at) == (cpu, by)).count();
        let is_rare = word.accesses.len() < MOST_ALIKE || alike() < MOST_ALIKE;
        if is_rare && word.accesses.len() < MOST_OF_WORD {
            word.accesses.push((ended_ns().saturating_sub(self.began_ns), cpu, by));
        }
    }

    /// The accesses of words that are shared, in the order of their time, each moment of a CPU once.
    fn moments(&self) -> Vec<(u64, usize, u64)> {
        let shared = self.words.values().filter(|word| word.is_shared && word.is_stored);
        let mut moments: Vec<(u64, usize, u64)> = shared.flat_map(|word| word.accesses.iter().copied()).collect();
        moments.sort_unstable();
        moments.dedup();
        moments.truncate(MOST_WRITTEN);
        moments
    }

    /// Write it all at once.
    pub fn write(&self) -> io::Result<()> {
        let mut text = String::new();
        for (at_ns, cpu, by) in self.moments() {
            let _ = writeln!(text, "{cpu} {at_ns} {by}");
        }
        let new = self.file.with_extension("new");
        fs::write(&new, text)?;
        fs::rename(new, &self.file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_counts_that_one_task_stores_and_another_accesses() {
        let mut sharing = Sharing::new(PathBuf::new());
        sharing.open(1000);
        let mut access = |task, cpu, address, is_store, now_ns| {
            sharing.access((task, cpu), (address, 7), is_store, || now_ns);
        };
        access(1, 0, 0x1000, true, 1010); // stored by one and loaded by another one
        access(2, 1, 0x1004, false, 1030);
        access(1, 0, 0x2000, true, 1020); // its own
        access(1, 1, 0x2000, false, 1021);
        access(1, 0, 0x3000, false, 1022); // only loaded
        access(2, 1, 0x3000, false, 1023);
        assert_eq!(sharing.moments(), [(10, 0, 7), (30, 1, 7)]);
    }

    #[test]
    fn a_loop_that_waits_for_a_word_leaves_room_for_what_others_do_with_it() {
        let mut sharing = Sharing::new(PathBuf::new());
        for now_ns in 0..100_000 {
            sharing.access((1, 0), (0x1000, 7), false, || now_ns);
        }
        sharing.access((2, 1), (0x1000, 9), true, || 100_000);
        let moments = sharing.moments();
        assert_eq!(moments.len(), MOST_ALIKE + 1);
        assert_eq!(moments.last(), Some(&(100_000, 1, 9)));
    }
}
