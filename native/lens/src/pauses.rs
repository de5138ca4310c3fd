//! Times at which CPUs stand still, as they do on real machines while firmware or a hypervisor has them.

use std::cell::Cell;
use std::collections::HashSet;
use std::ffi::{c_uint, c_void};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};

use crate::instruction::{Shape, shape};
use crate::interface;
use crate::mark::{Mark, Marks};
use crate::parallel;
use crate::symbols::is_image;
use crate::task::Role;

static MARKS: OnceLock<Mutex<Marks>> = OnceLock::new();
static ARE_WANTED: AtomicBool = AtomicBool::new(false);
static SITES: OnceLock<Mutex<Sites>> = OnceLock::new();

/// Places of a program after which CPUs stand still, by chance: where pauses were, is written to `log`.
///
/// The first line of their file has the seed, how many of a thousand times one stands still, the shortest and the longest
/// pause, and the sum of all; each other line the address of an instruction.
struct Sites {
    addresses: HashSet<u64>,
    log: File,
    state: u64,
    of_thousand: u64,
    shortest: f64,
    longest: f64,
    left: i64,
}

impl Sites {
    fn parse(text: &str, log: File) -> Option<Sites> {
        let mut lines = text.lines();
        let numbers: Vec<u64> = lines.next()?.split(' ').map_while(|word| word.parse().ok()).collect();
        let [seed, of_thousand, shortest, longest, left] = numbers[..] else { return None };
        let addresses = lines.map(|line| line.parse().ok()).collect::<Option<HashSet<u64>>>()?;
        let (shortest, longest) = (shortest as f64, longest as f64);
        let state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        Some(Sites { addresses, log, state, of_thousand, shortest, longest, left: i64::try_from(left).ok()? })
    }

    /// Marsaglia's xorshift of 64 bits.
    fn random(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }

    /// For how long a CPU stands still that has come to one of the places.
    fn draw(&mut self) -> Option<i64> {
        if self.random() % 1000 >= self.of_thousand {
            return None;
        }
        let share = (self.random() >> 11) as f64 / (1_u64 << 53) as f64;
        let length = (self.shortest * (self.longest / self.shortest).powf(share)) as i64;
        if length > self.left {
            return None;
        }
        self.left -= length;
        Some(length.max(1))
    }
}

/// Read the places, and where to log. The error says what is wrong.
pub fn read_sites(file: &Path) -> Result<(), String> {
    let says = |error: std::io::Error| format!("{}: {error}", file.display());
    let text = fs::read_to_string(file).map_err(says)?;
    let log = File::create(file.with_extension("made")).map_err(says)?;
    let sites = Sites::parse(&text, log).ok_or_else(|| format!("{}: no places", file.display()))?;
    let _ = SITES.set(Mutex::new(sites));
    Ok(())
}

pub fn want() {
    ARE_WANTED.store(true, Relaxed);
}

pub fn are_wanted() -> bool {
    ARE_WANTED.load(Relaxed)
}

/// A pause was made.
pub fn made(cpu: usize, at: i64, length: i64) {
    if let Some(Ok(mut sites)) = SITES.get().map(Mutex::lock) {
        let _ = writeln!(sites.log, "{cpu} {at} {length}");
    }
}

extern "C" fn reached(_: c_uint, _: *mut c_void) {
    let Some(Ok(mut sites)) = SITES.get().map(Mutex::lock) else { return };
    if let Some(length) = sites.draw() {
        drop(sites);
        parallel::pause_after(length);
    }
}

/// A CPU stands still from `at` on for so long, in ns since the agent said that the workload has started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pause {
    pub at: i64,
    pub length: i64,
}

/// The pauses of one CPU, and which of them is next.
#[derive(Debug, Default)]
pub struct Pauses {
    listed: Vec<Pause>,
    next: Cell<usize>,
}

impl Pauses {
    /// When a CPU that would go on at `time` goes on, and until when nothing stops it then.
    pub fn after(&self, mut time: i64) -> (i64, i64) {
        while let Some(pause) = self.listed.get(self.next.get()).filter(|pause| pause.at <= time) {
            time = time.max(pause.at + pause.length);
            self.next.set(self.next.get() + 1);
        }
        (time, self.listed.get(self.next.get()).map_or(i64::MAX, |pause| pause.at))
    }
}

/// Begin with the workload, which the agent's events tell of; where the lens looks deeper, it reads them itself.
pub fn await_start(marks: Marks) {
    let _ = MARKS.set(Mutex::new(marks));
}

/// To be called for each block that is translated.
pub fn watch(block: &interface::Block) {
    if MARKS.get().is_none() || block.instructions().next().is_none_or(|first| is_image(first.address())) {
        return;
    }
    if let Some(Ok(sites)) = SITES.get().map(Mutex::lock) {
        if block.instructions().any(|instruction| sites.addresses.contains(&instruction.address())) {
            block.on_execution(reached, ptr::null_mut());
        }
    }
    for instruction in block.instructions().filter(|instruction| shape(&instruction.bytes()) == Shape::Output) {
        instruction.on_execution(output, ptr::null_mut());
    }
}

extern "C" fn output(_: c_uint, _: *mut c_void) {
    let Some(Ok(mut marks)) = MARKS.get().map(Mutex::lock) else { return };
    if marks.news().contains(&Mark::Started(Role::Workload)) {
        parallel::begin_pauses();
    }
}

/// Read the pauses of so many CPUs. The error says which line is wrong.
pub fn read(file: &Path, cpus: usize) -> Result<Vec<Pauses>, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    parse(&text, cpus).map_err(|problem| format!("{}: {problem}", file.display()))
}

/// Each line has the number of a CPU, the time and the length.
fn parse(text: &str, cpus: usize) -> Result<Vec<Pauses>, String> {
    let mut lists = vec![Vec::new(); cpus];
    for line in text.lines() {
        let wrong = || format!("{line:?} is no pause; expected CPU, time and length in ns");
        let numbers: Result<Vec<i64>, _> = line.split(' ').map(str::parse).collect();
        let [cpu, at, length] = numbers.map_err(|_| wrong())?[..] else { return Err(wrong()) };
        let list = usize::try_from(cpu).ok().and_then(|cpu| lists.get_mut(cpu)).ok_or_else(wrong)?;
        if at < 0 || length <= 0 || at.checked_add(length).is_none() {
            return Err(wrong());
        }
        list.push(Pause { at, length });
    }
    lists.iter_mut().for_each(|list| list.sort());
    Ok(lists.into_iter().map(|listed| Pauses { listed, next: Cell::new(0) }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_goes_on_after_a_pause_that_has_begun() {
        let of_cpus = parse("1 500 50\n0 100 20\n1 100 300\n1 390 30\n", 2).unwrap();
        assert_eq!(of_cpus[0].after(99), (99, 100));
        assert_eq!(of_cpus[0].after(110), (120, i64::MAX));
        // One pause ends within the next one.
        assert_eq!(of_cpus[1].after(200), (420, 500));
        assert_eq!(of_cpus[1].after(600), (600, i64::MAX), "it slept through the last one");
    }

    #[test]
    fn what_is_no_pause_is_refused() {
        for line in ["2 1 1", "-1 1 1", "0 -1 1", "0 1 0", "0 1", "0 1 1 1", "a 1 1", "0 1 9223372036854775807", " "] {
            assert!(parse(line, 2).unwrap_err().contains("expected CPU, time and length"), "{line}");
        }
        assert!(parse("", 1).unwrap()[0].listed.is_empty());
    }
}
