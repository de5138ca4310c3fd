//! Times at which CPUs stand still, as they do on real machines while firmware or a hypervisor has them.

use std::cell::Cell;
use std::ffi::{c_uint, c_void};
use std::fs;
use std::path::Path;
use std::ptr;
use std::sync::{Mutex, OnceLock};

use crate::instruction::{Shape, shape};
use crate::interface;
use crate::mark::{Mark, Marks};
use crate::parallel;
use crate::symbols::is_kernel;
use crate::task::Role;

static MARKS: OnceLock<Mutex<Marks>> = OnceLock::new();

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
    pub fn are_none(&self) -> bool {
        self.listed.is_empty()
    }

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
    if MARKS.get().is_none() || block.instructions().next().is_none_or(|first| is_kernel(first.address())) {
        return;
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
