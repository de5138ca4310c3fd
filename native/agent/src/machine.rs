//! The machine that is measured, in the agent's first words.

use crate::clock;
use crate::disk::fs;
use crate::event::Hello;
use crate::plan::CONTRACT_VERSION;

/// Who speaks and from what machine.
pub fn hello(guest: bool) -> Hello {
    let names = rustix::system::uname();
    Hello {
        at_ns: clock::raw_ns(),
        version: CONTRACT_VERSION,
        agent: env!("CARGO_PKG_VERSION").to_owned(),
        kernel: names.release().to_string_lossy().into_owned(),
        build: names.version().to_string_lossy().into_owned(),
        machine: names.machine().to_string_lossy().into_owned(),
        cpus: online_cpus(),
        memory_bytes: memory_bytes(),
        guest,
    }
}

fn online_cpus() -> u64 {
    // SAFETY: sysconf(3) takes a number and gives one.
    unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }.max(1) as u64
}

/// MemTotal of proc_meminfo(5); 0 where /proc does not say.
fn memory_bytes() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kibibytes = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kibibytes.unwrap_or(0) * 1024
}
