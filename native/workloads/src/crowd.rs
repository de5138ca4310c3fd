//! Many processes that compute, in a session of their own, as a build in another terminal is: what sched_autogroup
//! takes together (kernel/sched/autogroup.c: each session is a task group).

use std::io::Error;

use lexopt::prelude::*;

use crate::cpu_time;
use crate::spin::burn;
use crate::{number, Fault};

/// Iterations between two looks at the CPU time: some microseconds.
const BATCH: u32 = 1 << 13;

pub fn run(mut arguments: lexopt::Parser) -> Result<(), Fault> {
    let (mut processes, mut lifetime_ms) = (4, 0);
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("processes") => processes = number(&mut arguments, "processes", 1, 10_000)?,
            Long("lifetime-ms") => lifetime_ms = number(&mut arguments, "lifetime-ms", 0, 3_600_000)?,
            other => return Err(other.unexpected().into()),
        }
    }
    // Whoever leads a process group, as this process may, cannot have a session of its own (setsid(2)).
    let leader = child(&|| lead(processes, lifetime_ms))?;
    await_child(leader)?;
    Err(Fault::Run("the processes have ended".into()))
}

/// Begin a session, and keep so many processes in it computing.
fn lead(processes: u64, lifetime_ms: u64) -> Result<(), Fault> {
    // SAFETY: takes and gives numbers only.
    if unsafe { libc::setsid() } < 0 {
        return Err(failed("begin a session"));
    }
    let work = || compute(lifetime_ms);
    for _ in 0..processes {
        child(&work)?;
    }
    loop {
        await_child(-1)?;
        child(&work)?;
    }
}

fn compute(lifetime_ms: u64) -> Result<(), Fault> {
    while lifetime_ms == 0 || cpu_time::seconds() * 1000.0 < lifetime_ms as f64 {
        burn(BATCH);
    }
    Ok(())
}

/// A process that does `work` and is killed when this one ends, however that happens.
pub fn child(work: &dyn Fn() -> Result<(), Fault>) -> Result<libc::pid_t, Fault> {
    // SAFETY: this process has one thread.
    let parent = unsafe { libc::getpid() };
    match unsafe { libc::fork() } {
        -1 => Err(failed("start a process")),
        0 => {
            // SAFETY: takes numbers only.
            let bound = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == 0 && libc::getppid() == parent };
            let code = i32::from(!bound || work().is_err());
            // SAFETY: ends this process.
            unsafe { libc::_exit(code) }
        }
        started => Ok(started),
    }
}

fn await_child(which: libc::pid_t) -> Result<(), Fault> {
    // SAFETY: nothing is written.
    if unsafe { libc::waitpid(which, std::ptr::null_mut(), 0) } < 0 {
        return Err(failed("wait for a process"));
    }
    Ok(())
}

fn failed(what: &str) -> Fault {
    Fault::Run(format!("cannot {what}: {}", Error::last_os_error()))
}
