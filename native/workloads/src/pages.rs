//! Where a machine with several nodes places memory, and what reading it costs.
//!
//! The process keeps to the CPUs of the first node that has any, asks for memory by a policy (set_mempolicy(2)), fills
//! it, reads one word of every cache line of it again and again, and asks the kernel on which node each page is
//! (move_pages(2) without a destination). `remote` is the node that is farthest away. A kernel without nodes of memory
//! has one place for all: the policy is then not asked for, and `nodes=0` says so.
//!
//! Output, to be read by programs:
//! ```text
//! pages policy=remote nodes=2 pages=16384 local=0 remote=16384 unknown=0 fill_ns=… read_ns=… sum=…
//! ```

use std::fs;
use std::io::{Error, Write};

use lexopt::prelude::*;

use crate::clock::now_ns;
use crate::request::{Fault, number};

const NODES: &str = "/sys/devices/system/node";
const PAGE_BYTES: usize = 4096;
const LINE_WORDS: usize = 8;
const MIB: usize = 1 << 20;
/// Pages asked about in one call.
const BATCH: usize = 1024;
const MOST_NODES: usize = 64;
/// linux/mempolicy.h: with this a place outside of the mask is refused, not chosen.
const MPOL_BIND: i32 = 2;
const MPOL_INTERLEAVE: i32 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Policy {
    Default,
    Local,
    Remote,
    Interleave,
}

/// The nodes with memory, the node of the CPUs, and the distances from it.
#[derive(Debug, PartialEq, Eq)]
struct Layout {
    home: usize,
    distances: Vec<(usize, u32)>,
}

/// How many pages are where.
#[derive(Debug, Default, PartialEq, Eq)]
struct Places {
    local: usize,
    remote: usize,
    unknown: usize,
}

pub fn run(arguments: lexopt::Parser) -> Result<(), Fault> {
    let (policy, name, mib, rounds) = read(arguments)?;
    let layout = layout()?;
    if let Some(layout) = &layout {
        keep_to(&cpus_of(layout.home)?)?;
        place_by(policy, layout)?;
    }
    let mut memory = Area::new(mib * MIB)?;
    let began_ns = now_ns();
    memory.fill();
    let filled_ns = now_ns();
    let sum = memory.read(rounds);
    let read_ns = now_ns() - filled_ns;
    let pages = memory.bytes / PAGE_BYTES;
    let places = match &layout {
        Some(layout) => memory.places(layout.home)?,
        None => Places { unknown: pages, ..Places::default() },
    };
    writeln!(
        std::io::stdout(),
        "pages policy={name} nodes={} pages={pages} local={} remote={} unknown={} fill_ns={} read_ns={read_ns} \
         sum={sum}",
        layout.map_or(0, |layout| layout.distances.len()),
        places.local,
        places.remote,
        places.unknown,
        filled_ns - began_ns,
    )?;
    Ok(())
}

fn read(mut arguments: lexopt::Parser) -> Result<(Policy, String, usize, u64), Fault> {
    let (mut policy, mut name, mut mib, mut rounds) = (Policy::Default, "default".to_owned(), 64, 4);
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("policy") => {
                name = arguments.value()?.string()?;
                policy = Policy::named(&name)?;
            }
            Long("mib") => mib = number(&mut arguments, "mib", 1, 1 << 20)? as usize,
            Long("rounds") => rounds = number(&mut arguments, "rounds", 0, 1_000_000)?,
            other => return Err(other.unexpected().into()),
        }
    }
    Ok((policy, name, mib, rounds))
}

impl Policy {
    fn named(name: &str) -> Result<Policy, Fault> {
        Ok(match name {
            "default" => Policy::Default,
            "local" => Policy::Local,
            "remote" => Policy::Remote,
            "interleave" => Policy::Interleave,
            _ => {
                let expected = format!("--policy is local, remote, interleave or default, not {name:?}");
                return Err(Fault::Request(expected.into()));
            }
        })
    }
}

/// The nodes with memory, seen from the first with CPUs.
/// `None` where the kernel knows no nodes.
fn layout() -> Result<Option<Layout>, Fault> {
    let Ok(with_memory) = fs::read_to_string(format!("{NODES}/has_memory")) else {
        return Ok(None);
    };
    let with_cpus = listed(&read_file(&format!("{NODES}/has_cpu"))?);
    let home = *with_cpus.first().ok_or(Fault::Run("no node has a CPU".into()))?;
    let numbers = listed(&read_file(&format!("{NODES}/online"))?);
    let row = read_file(&format!("{NODES}/node{home}/distance"))?;
    let far: Vec<u32> = row.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let with_memory = listed(&with_memory);
    let all = numbers.into_iter().zip(far).filter(|(node, _)| with_memory.contains(node));
    Ok(Some(Layout { home, distances: all.collect() }))
}

/// Have the memory to come placed by the policy.
/// One that this machine cannot follow is an error.
fn place_by(policy: Policy, layout: &Layout) -> Result<(), Fault> {
    let (mode, nodes) = match policy {
        Policy::Default => return Ok(()),
        Policy::Local => (MPOL_BIND, vec![layout.home]),
        Policy::Remote => (MPOL_BIND, vec![farthest(layout)?]),
        Policy::Interleave => (MPOL_INTERLEAVE, layout.distances.iter().map(|(node, _)| *node).collect()),
    };
    if nodes.iter().any(|node| *node >= MOST_NODES) {
        return Err(Fault::Run(format!("a node's number is above {}", MOST_NODES - 1)));
    }
    let mask = nodes.iter().fold(0_u64, |mask, node| mask | 1 << node);
    // SAFETY: the kernel reads this many bits of one word of ours.
    if unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, &raw const mask, MOST_NODES + 1) } != 0 {
        return Err(failed("set the memory policy"));
    }
    Ok(())
}

/// The first of the nodes with memory farthest from the process.
fn farthest(layout: &Layout) -> Result<usize, Fault> {
    let others = layout.distances.iter().filter(|(node, _)| *node != layout.home);
    let found = others.max_by_key(|(node, distance)| (*distance, usize::MAX - node));
    found.map(|(node, _)| *node).ok_or(Fault::Run("this machine has no other node with memory".into()))
}

fn cpus_of(node: usize) -> Result<Vec<usize>, Fault> {
    Ok(listed(&read_file(&format!("{NODES}/node{node}/cpulist"))?))
}

fn keep_to(cpus: &[usize]) -> Result<(), Fault> {
    // SAFETY: a set of ours, filled within its bounds.
    let kept = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        cpus.iter().filter(|cpu| **cpu < libc::CPU_SETSIZE as usize).for_each(|cpu| libc::CPU_SET(*cpu, &mut set));
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set) == 0
    };
    if kept {
        return Ok(());
    }
    Err(failed("keep to the CPUs of a node"))
}

/// Private memory.
struct Area {
    start: *mut u64,
    bytes: usize,
}

impl Area {
    fn new(bytes: usize) -> Result<Area, Fault> {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: new memory, not at a place of ours.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, kind, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(failed("get memory"));
        }
        // Every page is asked for by itself, and counted by itself.
        // SAFETY: memory of ours.
        unsafe { libc::madvise(start, bytes, libc::MADV_NOHUGEPAGE) };
        Ok(Area { start: start.cast(), bytes })
    }

    fn words(&mut self) -> &mut [u64] {
        // SAFETY: a private mapping for reading and writing, zeroed by the kernel.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.bytes / size_of::<u64>()) }
    }

    fn fill(&mut self) {
        self.words().iter_mut().step_by(LINE_WORDS).enumerate().for_each(|(number, word)| *word = number as u64);
    }

    fn read(&mut self, rounds: u64) -> u64 {
        let words = &*self.words();
        (0..rounds).fold(0, |sum, round| {
            let read = words.iter().step_by(LINE_WORDS).fold(round, |sum, word| sum.wrapping_add(*word));
            sum ^ std::hint::black_box(read)
        })
    }

    fn places(&self, home: usize) -> Result<Places, Fault> {
        let mut places = Places::default();
        let pages: Vec<usize> =
            (0..self.bytes).step_by(PAGE_BYTES).map(|offset| self.start as usize + offset).collect();
        for batch in pages.chunks(BATCH) {
            let mut nodes = vec![0_i32; batch.len()];
            let nowhere = std::ptr::null::<i32>();
            // SAFETY: the count is that of the addresses and answers; nothing is moved.
            let asked = unsafe {
                libc::syscall(libc::SYS_move_pages, 0, batch.len(), batch.as_ptr(), nowhere, nodes.as_mut_ptr(), 0)
            };
            if asked != 0 {
                return Err(failed("ask where pages are"));
            }
            nodes.into_iter().for_each(|node| places.count(node, home));
        }
        Ok(places)
    }
}

impl Places {
    fn count(&mut self, node: i32, home: usize) {
        match usize::try_from(node) {
            Ok(node) if node == home => self.local += 1,
            Ok(_) => self.remote += 1,
            // An error's number: a page that is not there.
            Err(_) => self.unknown += 1,
        }
    }
}

/// The numbers of a list such as `0-2,5` (admin-guide/cputopology.rst).
fn listed(text: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse().ok()?..=last.trim().parse::<usize>().ok()?)
    };
    text.trim().split(',').filter_map(range).flatten().collect()
}

fn read_file(path: &str) -> Result<String, Fault> {
    fs::read_to_string(path).map_err(|error| Fault::Run(format!("cannot read {path}: {error}")))
}

fn failed(what: &str) -> Fault {
    Fault::Run(format!("cannot {what}: {}", Error::last_os_error()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_the_kernel_are_numbers_and_ranges() {
        assert_eq!(listed("0-2,5\n"), [0, 1, 2, 5]);
        assert_eq!(listed("\n"), [0; 0]);
    }

    #[test]
    fn the_farthest_node_is_another_one() {
        let layout = Layout { home: 1, distances: vec![(0, 20), (1, 10), (2, 31), (3, 31)] };
        assert_eq!(farthest(&layout).ok(), Some(2));
        assert!(farthest(&Layout { home: 0, distances: vec![(0, 10)] }).is_err());
    }

    #[test]
    fn an_error_is_no_place() {
        let mut places = Places::default();
        [0, 1, 1, -2].into_iter().for_each(|node| places.count(node, 0));
        assert_eq!(places, Places { local: 1, remote: 2, unknown: 1 });
    }
}
