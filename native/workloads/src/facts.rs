//! Facts that the kernel tells programs but has no file for in /sys, /proc/sys.
//!
//! The coarse clock goes on with every timer tick (clock_getres(2), CLOCK_MONOTONIC_COARSE): its resolution is the
//! length of one, and so tells CONFIG_HZ. get_mempolicy(2) exists only in a kernel that knows nodes of memory.
//!
//! Output, to be read by programs:
//! ```text
//! facts tick_ns=4000000 memory_policies=yes pressure=yes build=#1 SMP PREEMPT_DYNAMIC …
//! ```

use std::io::{Error, Write};
use std::path::Path;

const PRESSURE: &str = "/proc/pressure/cpu";

use crate::request::Fault;

pub fn run(mut arguments: lexopt::Parser) -> Result<(), Fault> {
    if let Some(argument) = arguments.next()? {
        return Err(argument.unexpected().into());
    }
    let tick_ns = tick_ns()?;
    let policies = said(knows_memory_policies());
    let pressure = said(Path::new(PRESSURE).exists());
    let build = std::fs::read_to_string("/proc/sys/kernel/version")?;
    writeln!(
        std::io::stdout(),
        "facts tick_ns={tick_ns} memory_policies={policies} pressure={pressure} build={}",
        build.trim_end()
    )?;
    Ok(())
}

fn tick_ns() -> Result<i64, Fault> {
    let mut resolution = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the place is ours and of the right type.
    if unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, &raw mut resolution) } != 0 {
        return Err(Fault::Run(format!("cannot read the resolution of a clock: {}", Error::last_os_error())));
    }
    Ok(resolution.tv_sec * 1_000_000_000 + resolution.tv_nsec)
}

fn knows_memory_policies() -> bool {
    let nothing = std::ptr::null::<libc::c_void>();
    // SAFETY: asks for nothing, and so nothing is written.
    unsafe { libc::syscall(libc::SYS_get_mempolicy, nothing, nothing, 0, nothing, 0) == 0 }
}

fn said(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}
