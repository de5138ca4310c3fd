//! Whether a background load is there: whether its processes, and what they use of the CPUs, have settled.
//!
//! It has settled when in two windows of time, one after the other, it has as many processes, and they have used the
//! CPUs alike. A window lasts until each process that wants to run has run: one that waits for a CPU may start others.
//! What comes later (a load that sleeps first, or reads its data) does not show in that.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::clock;
use crate::process::account;

/// The least length of a window.
pub const WINDOW: Duration = Duration::from_millis(20);
/// Uses of the CPUs are alike within this share of the greater one, or within that part of a CPU.
const ALIKE_SHARE: f64 = 0.25;
const ALIKE_CPUS: f64 = 0.25;

/// The processes of a load, window by window.
pub struct Load {
    /// Children of the agent that are none of it.
    others: Vec<i32>,
    /// CPU time so far, by process.
    used_ns: BTreeMap<i32, u64>,
    looked_ns: u64,
    last: Option<Window>,
}

/// What was seen in a window of time.
#[derive(Clone, Copy, Debug)]
struct Window {
    processes: usize,
    /// CPUs in use on average.
    cpus: f64,
}

impl Load {
    /// Of all children of the agent but these `others`, and all that they start.
    pub fn besides(others: Vec<i32>) -> Load {
        Load { others, used_ns: BTreeMap::new(), looked_ns: clock::raw_ns(), last: None }
    }

    /// Whether the window that ends now is like the one before it.
    pub fn has_settled(&mut self) -> bool {
        self.window().is_some_and(|now| self.last.replace(now).is_some_and(|last| now.is_like(last)))
    }

    /// How many processes there were in the last window.
    pub fn processes(&self) -> usize {
        self.used_ns.len()
    }

    /// The window that ends now. `None` if it goes on.
    fn window(&mut self) -> Option<Window> {
        let leaders: Vec<i32> = account::children().into_iter().filter(|pid| !self.others.contains(pid)).collect();
        let processes = account::descendants(&leaders);
        let now_ns = clock::raw_ns();
        let used_ns: BTreeMap<i32, u64> =
            processes.into_iter().filter_map(|pid| Some((pid, account::cpu_ns(pid)?))).collect();
        let before = |pid: &i32| self.used_ns.get(pid).copied().unwrap_or(0);
        let more_ns = |(pid, ns): (&i32, &u64)| ns.saturating_sub(before(pid));
        if used_ns.iter().any(|one| more_ns(one) == 0 && account::is_runnable(*one.0)) {
            return None;
        }
        let window = Window {
            processes: used_ns.len(),
            cpus: used_ns.iter().map(more_ns).sum::<u64>() as f64 / now_ns.saturating_sub(self.looked_ns).max(1) as f64,
        };
        (self.used_ns, self.looked_ns) = (used_ns, now_ns);
        Some(window)
    }
}

impl Window {
    fn is_like(self, other: Window) -> bool {
        let difference = (self.cpus - other.cpus).abs();
        let most = ALIKE_CPUS.max(ALIKE_SHARE * self.cpus.max(other.cpus));
        self.processes == other.processes && difference <= most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn window(processes: usize, cpus: f64) -> Window {
        Window { processes, cpus }
    }

    #[test]
    fn windows_are_alike_with_the_same_processes_that_use_the_cpus_alike() {
        assert!(window(11, 1.7).is_like(window(11, 2.0)));
        assert!(window(1, 0.0).is_like(window(1, 0.2)));
        assert!(!window(11, 2.0).is_like(window(10, 2.0)));
        assert!(!window(11, 1.0).is_like(window(11, 2.0)));
    }
}
