//! The agent's priority: before all that it measures, and asleep meanwhile.
//!
//! Without it, a real-time load on the same CPU would keep the agent from enforcing time limits, and the end of a
//! workload would be seen only when the load's time slice is over.

use std::io;

use crate::errno;

/// Run at the highest real-time priority.
/// What is forked afterwards starts as an ordinary process again.
pub fn lift() -> Result<(), String> {
    // SAFETY: sched_get_priority_max(2) takes a number and gives one.
    let highest = unsafe { libc::sched_get_priority_max(libc::SCHED_FIFO) };
    let parameters = libc::sched_param { sched_priority: highest };
    // SAFETY: the structure is what sched_setscheduler(2) reads.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &parameters) };
    match result {
        -1 => Err(format!("cannot run before the load: {}", errno::of(io::Error::last_os_error()))),
        _ => Ok(()),
    }
}

/// Be an ordinary process again.
pub fn lower() {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: as above.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &parameters) };
}
