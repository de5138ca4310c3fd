//! The gate: a guest stops here, and any number of trials start here.
//!
//! Where the machine's clock counts instructions, it must stop *asleep*, or the same boot does not always arrive at the
//! same instant: now and then one is up to a timer tick late ([`Ports::arm_watchdog`] says why). A
//! sleeping machine can be stopped anywhere in its sleep, and wakes up at the same instant.

use std::time::Duration;

use rustix::io::Errno;
use rustix::thread::{ClockId, clock_nanosleep_absolute};
use rustix::time::{ClockId as ReadableClock, clock_gettime};

use crate::clock;
use crate::disk::fs;
use crate::ports::Ports;

/// The watchdog goes off after half of it.
const SLEEP_SECONDS: i64 = 4;

/// The machine counts as idle when only this thread wants to run so often in a row, …
const IDLE_LOOKS: u32 = 5;
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);
/// … and as often it is looked at before the trial begins anyway (10 s).
const MOST_LOOKS: u32 = 1000;

/// Stop the machine. Returns when it was resumed.
pub fn stop(ports: &Ports, quiet: bool) {
    if !quiet {
        return ports.pause_machine();
    }
    let mut until = clock_gettime(ReadableClock::Monotonic);
    until.tv_sec += SLEEP_SECONDS;
    ports.arm_watchdog();
    while clock_nanosleep_absolute(ClockId::Monotonic, &until) == Err(Errno::INTR) {}
}

/// Wait until the kernel has finished its deferred work.
/// Some kernels test their ciphers for seconds after they have started the first process, which takes CPU time from a
/// workload.
pub fn await_idle() {
    let mut idle_looks = 0;
    for _ in 0..MOST_LOOKS {
        idle_looks = if runnable() <= 1 { idle_looks + 1 } else { 0 };
        if idle_looks == IDLE_LOOKS {
            return;
        }
        clock::sleep(BETWEEN_LOOKS);
    }
}

/// How many threads want to run now, including this one.
/// The fourth field of /proc/loadavg (proc_loadavg(5)).
fn runnable() -> u32 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let field = text.split_whitespace().nth(3).and_then(|field| field.split('/').next());
    field.and_then(|number| number.parse().ok()).unwrap_or(1)
}
