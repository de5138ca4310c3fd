//! How many interrupts a CPU had: /proc/interrupts (proc(5)).

use std::fs;

const PLACE: &str = "/proc/interrupts";
/// Rows with one figure for the whole machine.
const OF_ALL: [&str; 2] = ["ERR", "MIS"];

/// A CPU, and how many interrupts it had by then.
pub struct Count {
    pub cpu: usize,
    sum: u64,
}

impl Count {
    /// Of the CPU where we are.
    pub fn here() -> Result<Count, String> {
        // SAFETY: it takes nothing.
        let cpu = usize::try_from(unsafe { libc::sched_getcpu() })
            .map_err(|_| format!("which CPU this is: {}", std::io::Error::last_os_error()))?;
        Ok(Count { cpu, sum: count(cpu)? })
    }

    /// How many the same CPU had since.
    pub fn since(&self) -> Result<u64, String> {
        Ok(count(self.cpu)?.saturating_sub(self.sum))
    }
}

fn count(cpu: usize) -> Result<u64, String> {
    let table = fs::read_to_string(PLACE).map_err(|error| format!("{PLACE}: {error}"))?;
    sum_of(&table, cpu).ok_or_else(|| format!("{PLACE} has no CPU {cpu}"))
}

fn sum_of(table: &str, cpu: usize) -> Option<u64> {
    let mut lines = table.lines();
    let column = lines.next()?.split_whitespace().position(|name| name == format!("CPU{cpu}"))?;
    let figures = lines.filter_map(|line| {
        let (name, rest) = line.split_once(':')?;
        if OF_ALL.contains(&name.trim()) {
            return None;
        }
        rest.split_whitespace().nth(column)?.parse::<u64>().ok()
    });
    Some(figures.sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "           CPU0       CPU3       \n  4:         57          2   IO-APIC   4-edge      ttyS0\n \
                         LOC:       1000         30   Local timer interrupts\n ERR:          7\n MIS:          8\n";

    #[test]
    fn the_column_of_a_cpu_without_what_is_of_the_whole_machine() {
        assert_eq!(sum_of(TABLE, 0), Some(1057));
        assert_eq!(sum_of(TABLE, 3), Some(32));
        assert_eq!(sum_of(TABLE, 1), None);
        assert_eq!(sum_of("", 0), None);
    }
}
