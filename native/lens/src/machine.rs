//! The description of a modelled machine, as `machine_text` of `packages/guest/src/ajuste_guest/executor/lens.py` writes it.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::misses::Misses;

/// Of a cache or a memory of translations.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Geometry {
    pub sets: u64,
    pub ways: usize,
}

/// What a cache holds of what is in those between it and the core.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Contents {
    /// All of it: what leaves it leaves them, too.
    Inclusive,
    /// All that was fetched, whether it is there or not.
    NonInclusive,
    /// What left them: a victim cache.
    Exclusive,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Outer {
    pub sets: u64,
    pub ways: usize,
    pub contents: Contents,
    /// So many cores have one together.
    pub cores: usize,
}

impl Outer {
    pub fn geometry(&self) -> Geometry {
        Geometry { sets: self.sets, ways: self.ways }
    }
}

/// CPUs with memory of their own; a node may have none of them.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Node {
    pub cpus: usize,
    pub memory_bytes: u64,
}

/// Where a CPU or a core is: caches are shared by neighbours in one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub node: usize,
    pub index: usize,
}

/// How long things take, where the guest's time is that of the machine: in fs, of which a ns has a million.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Times {
    pub quantum_ns: i64,
    pub pause_ns: i64,
    /// One that misses nothing.
    pub instruction_fs: u64,
    /// What each miss adds, by where its line is found.
    pub second_fs: u64,
    pub last_fs: u64,
    pub memory_fs: u64,
    /// ... a translation that the second level has, a walk, and a branch predicted wrongly.
    pub translation_fs: u64,
    pub walk_fs: u64,
    pub branch_fs: u64,
}

impl Times {
    /// What so many misses add: the formula of `ModelledMachine.parts` of `src/ajuste/model/modelled.py`.
    pub fn of(&self, misses: &Misses) -> u64 {
        (misses.l1i + misses.l1d - misses.l2) * self.second_fs
            + (misses.l2 - misses.llc) * self.last_fs
            + misses.llc * self.memory_fs
            + misses.distance * self.memory_fs / NEAREST
            + (misses.tlb - misses.walks) * self.translation_fs
            + misses.walks * self.walk_fs
            - misses.skipped_levels * self.walk_fs / LEVELS_OF_WALK
            + misses.branches * self.branch_fs
    }

    fn are_possible(&self) -> bool {
        let all = [self.second_fs, self.last_fs, self.memory_fs, self.translation_fs, self.walk_fs, self.branch_fs];
        let fits = |fs: u64| fs <= LONGEST_FS;
        self.quantum_ns > 0
            && self.pause_ns >= 0
            && self.instruction_fs > 0
            && fits(self.instruction_fs)
            && all.into_iter().all(fits)
    }
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    pub line_bytes: u64,
    /// The guest's memory, by which it is found in that of QEMU.
    pub memory_bytes: u64,
    pub l1i: Geometry,
    pub l1d: Geometry,
    pub l2: Option<Outer>,
    pub llc: Option<Outer>,
    /// Of how many pages a core's prefetcher follows the lines; none if it has no prefetcher.
    pub streams: Option<usize>,
    pub itlb: Geometry,
    pub dtlb: Geometry,
    /// For pages larger than 4 KiB, where the first level has them apart.
    pub large_itlb: Option<Geometry>,
    pub large_dtlb: Option<Geometry>,
    /// The second level for instructions and for data, or for both.
    pub l2_itlb: Option<Geometry>,
    pub l2_dtlb: Option<Geometry>,
    pub l2_tlb: Option<Geometry>,
    /// How many branches the predictor looks back; its table has as many bits of address.
    pub history_bits: Option<u32>,
    /// Of each core; they share its caches.
    pub threads: usize,
    /// The guest's nodes, each of which is such a machine; none if all is in one.
    pub nodes: Vec<Node>,
    /// From each node to each, as ACPI's table SLIT has them: 10 is the nearest.
    pub distances: Vec<Vec<u64>>,
    /// None where it is not asked for time.
    pub times: Option<Times>,
}

pub const NEAREST: u64 = 10;
/// A walk to a page of 4 KiB reads so many tables.
const LEVELS_OF_WALK: u64 = 4;
/// A ms.
const LONGEST_FS: u64 = 1_000_000_000_000;
const MOST_ENTRIES: u64 = 1 << 26;

impl Machine {
    /// Read the description. The error says what is wrong with the file.
    pub fn read(file: &Path) -> Result<Machine, String> {
        let says = |reason: String| format!("{}: {reason}", file.display());
        let content = fs::read(file).map_err(|error| says(error.to_string()))?;
        let machine: Machine = serde_json::from_slice(&content).map_err(|error| says(error.to_string()))?;
        machine.check().map_err(says)?;
        Ok(machine)
    }

    fn check(&self) -> Result<(), String> {
        let [l2, llc] = [self.l2, self.llc].map(|outer| outer.map(|outer| outer.geometry()));
        let outer = [l2, llc, self.large_itlb, self.large_dtlb, self.l2_itlb, self.l2_dtlb, self.l2_tlb];
        let all = [self.l1i, self.l1d, self.itlb, self.dtlb].into_iter().chain(outer.into_iter().flatten());
        for one in all {
            if one.sets == 0 || one.ways == 0 || one.sets.saturating_mul(one.ways as u64) > MOST_ENTRIES {
                return Err(format!("a cache has {} sets of {}", one.sets, one.ways));
            }
        }
        if !self.line_bytes.is_power_of_two() || self.line_bytes < 8 {
            return Err(format!("lines have {} bytes", self.line_bytes));
        }
        if [self.l2, self.llc].into_iter().flatten().any(|outer| outer.cores == 0) {
            return Err("a cache has no core".to_owned());
        }
        let count = self.nodes.len();
        let is_square = self.distances.len() == count && self.distances.iter().all(|row| row.len() == count);
        if !is_square || self.distances.iter().flatten().any(|distance| *distance < NEAREST) {
            return Err(format!("{count} nodes have other distances"));
        }
        if count > 0 && self.nodes.iter().map(|node| node.memory_bytes).sum::<u64>() != self.memory_bytes {
            return Err(format!("the nodes have other memory than {} bytes", self.memory_bytes));
        }
        if self.times.is_some_and(|times| !times.are_possible()) {
            return Err("something takes no time, or more than a ms".to_owned());
        }
        if self.threads == 0 || self.nodes.iter().any(|node| node.cpus % self.threads != 0) {
            return Err(format!("cores have {} threads", self.threads));
        }
        if self.streams.is_some_and(|streams| streams == 0 || streams > 1 << 10) || self.line_bytes > 4096 {
            return Err("the prefetcher follows no page, or too many".to_owned());
        }
        match self.history_bits {
            Some(bits) if bits == 0 || bits > 24 => Err(format!("the predictor looks back {bits} branches")),
            _ => Ok(()),
        }
    }

    /// The guest's CPUs are numbered from node to node.
    pub fn place(&self, cpu: usize) -> Place {
        let mut index = cpu;
        for (number, node) in self.nodes.iter().enumerate() {
            if index < node.cpus {
                return Place { node: number, index };
            }
            index -= node.cpus;
        }
        Place { node: 0, index: cpu }
    }

    /// The core that a CPU is a thread of: its number in the machine.
    pub fn core(&self, cpu: usize) -> usize {
        cpu / self.threads
    }

    /// Where the core is that a CPU is the first thread of; none if it is another one.
    pub fn place_of_core(&self, cpu: usize) -> Option<Place> {
        let Place { node, index } = self.place(cpu);
        (cpu % self.threads == 0).then_some(Place { node, index: index / self.threads })
    }

    /// Where memory of each node ends.
    pub fn ends(&self) -> Vec<u64> {
        let mut end = 0;
        let add = |node: &Node| {
            end += node.memory_bytes;
            end
        };
        self.nodes.iter().map(add).collect()
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// The textbook's: two ways of two lines, and four of four behind them; four pages, and sixteen.
    pub fn small() -> Machine {
        serde_json::from_str(SMALL).unwrap()
    }

    const SMALL: &str = r#"{"line_bytes": 64, "memory_bytes": 1048576, "l1i": {"sets": 2, "ways": 2},
        "l1d": {"sets": 2, "ways": 2}, "l2": null,
        "llc": {"sets": 4, "ways": 4, "contents": "non-inclusive", "cores": 2}, "streams": null,
        "itlb": {"sets": 1, "ways": 4}, "dtlb": {"sets": 1, "ways": 4}, "large_itlb": null, "large_dtlb": null, "l2_itlb": null,
        "l2_dtlb": null, "l2_tlb": {"sets": 4, "ways": 4}, "history_bits": 4, "threads": 1, "nodes": [], "distances": []}"#;

    /// 4 GHz, 2 instructions a cycle; 3, 10 and 100 ns, and 1, 5 and 4 ns.
    pub const TIMES: Times = Times {
        quantum_ns: 200,
        pause_ns: 35,
        instruction_fs: 125_000,
        second_fs: 3_000_000,
        last_fs: 10_000_000,
        memory_fs: 100_000_000,
        translation_fs: 1_000_000,
        walk_fs: 5_000_000,
        branch_fs: 4_000_000,
    };

    #[test]
    fn each_miss_takes_what_the_level_that_serves_it_takes() {
        let ns = |misses: Misses| TIMES.of(&misses) as f64 / 1e6;
        assert_eq!(ns(Misses::default()), 0.0);
        assert_eq!(ns(Misses { l1i: 1, l1d: 2, ..Misses::default() }), 9.0);
        assert_eq!(ns(Misses { l1d: 3, l2: 2, llc: 1, ..Misses::default() }), 113.0);
        assert_eq!(ns(Misses { l1d: 1, l2: 1, llc: 1, remote: 1, distance: 21, ..Misses::default() }), 310.0);
        assert_eq!(ns(Misses { tlb: 3, walks: 1, branches: 2, ..Misses::default() }), 15.0);
        // Of four tables a walk to 2 MiB reads three, and one to 1 GiB two.
        assert_eq!(ns(Misses { tlb: 2, walks: 2, skipped_levels: 1 + 2, ..Misses::default() }), 6.25);
    }

    /// Two such machines: cores 0 and 1 with 256 KiB, core 2 with the rest.
    pub fn of_two_nodes() -> Machine {
        let nodes = vec![Node { cpus: 2, memory_bytes: 1 << 18 }, Node { cpus: 1, memory_bytes: 3 << 18 }];
        Machine { nodes, distances: vec![vec![10, 31], vec![21, 10]], ..small() }
    }

    #[test]
    fn cores_are_in_the_nodes_that_have_their_cpus() {
        let machine = of_two_nodes();
        assert_eq!(machine.check(), Ok(()));
        assert_eq!(machine.place(1), Place { node: 0, index: 1 });
        assert_eq!(machine.place(2), Place { node: 1, index: 0 });
        assert_eq!(small().place(5), Place { node: 0, index: 5 });
        assert_eq!(machine.ends(), [1 << 18, 1 << 20]);
    }

    #[test]
    fn threads_are_of_the_core_of_the_first() {
        let machine = Machine { threads: 2, ..small() };
        assert_eq!([0, 1, 2, 5].map(|cpu| machine.core(cpu)), [0, 0, 1, 2]);
        assert_eq!(machine.place_of_core(1), None);
        assert_eq!(machine.place_of_core(4), Some(Place { node: 0, index: 2 }));
        let nodes = vec![Node { cpus: 2, memory_bytes: 1 << 18 }, Node { cpus: 2, memory_bytes: 3 << 18 }];
        let machine = Machine { nodes, ..Machine { threads: 2, ..of_two_nodes() } };
        assert_eq!(machine.check(), Ok(()));
        assert_eq!(machine.place_of_core(2), Some(Place { node: 1, index: 0 }));
    }

    #[test]
    fn a_description_that_makes_no_sense_is_refused() {
        assert_eq!(small().check(), Ok(()));
        let wrong = [
            Machine { line_bytes: 48, ..small() },
            Machine { l1d: Geometry { sets: 0, ways: 1 }, ..small() },
            Machine { itlb: Geometry { sets: 1 << 40, ways: 1 << 40 }, ..small() },
            Machine { history_bits: Some(60), ..small() },
            Machine { threads: 0, ..small() },
            Machine { threads: 2, ..of_two_nodes() },
            Machine { distances: vec![vec![10, 31]], ..of_two_nodes() },
            Machine { distances: vec![vec![10, 9], vec![20, 10]], ..of_two_nodes() },
            Machine { memory_bytes: 1 << 21, ..of_two_nodes() },
            Machine { times: Some(Times { instruction_fs: 0, ..TIMES }), ..small() },
            Machine { times: Some(Times { memory_fs: u64::MAX, ..TIMES }), ..small() },
        ];
        assert!(wrong.iter().all(|machine| machine.check().is_err()));
        assert!(serde_json::from_str::<Machine>(&SMALL.replace("l2_dtlb", "l3_dtlb")).is_err());
        assert!(Machine::read(Path::new("/does/not/exist")).unwrap_err().starts_with("/does/not/exist: "));
    }
}
