//! Many processes in a separate session, as a build in another terminal.
//! sched_autogroup makes each session a task group (kernel/sched/autogroup.c).
//!
//! They compute, write, or use memory, like the background loads of Con Kolivas's interbench: `write` fills a file of
//! its own in the working directory and has it written to the disk, over and over; `memory` takes memory from the kernel,
//! touches every page of it and gives it back.

use std::fs::File;
use std::io::{Error, Seek, SeekFrom, Write};

use lexopt::prelude::*;

use crate::clock::cpu_seconds;
use crate::request::{Fault, number};
use crate::spin::burn;

/// Iterations between two looks at the CPU time: some microseconds.
const BATCH: u32 = 1 << 13;
const CHUNK: usize = 1 << 16;
const FILE: usize = 1 << 23;
const MEMORY: usize = 1 << 24;
const PAGE: usize = 1 << 12;

#[derive(Clone, Copy, PartialEq)]
enum Work {
    Compute,
    Write,
    Memory,
}

pub fn run(mut arguments: lexopt::Parser) -> Result<(), Fault> {
    let (mut processes, mut lifetime_ms, mut work) = (4, 0, Work::Compute);
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("processes") => processes = number(&mut arguments, "processes", 1, 10_000)?,
            Long("work") => work = work_of(&arguments.value()?.string()?)?,
            Long("lifetime-ms") => lifetime_ms = number(&mut arguments, "lifetime-ms", 0, 3_600_000)?,
            other => return Err(other.unexpected().into()),
        }
    }
    if lifetime_ms > 0 && work != Work::Compute {
        return Err(Fault::Request("--lifetime-ms is for processes that compute".into()));
    }
    // A process group leader, as this process may be, cannot make a session (setsid(2)).
    let leader = child(&|| lead(processes, &|| labour(work, lifetime_ms)))?;
    await_child(leader)?;
    Err(Fault::Run("the processes have ended".into()))
}

fn work_of(name: &str) -> Result<Work, lexopt::Error> {
    match name {
        "compute" => Ok(Work::Compute),
        "write" => Ok(Work::Write),
        "memory" => Ok(Work::Memory),
        _ => Err(format!("--work must be compute, write or memory, not {name:?}").into()),
    }
}

/// Begin a session, and keep `processes` in it doing `work`.
fn lead(processes: u64, work: &dyn Fn() -> Result<(), Fault>) -> Result<(), Fault> {
    // SAFETY: takes and gives numbers only.
    if unsafe { libc::setsid() } < 0 {
        return Err(failed("begin a session"));
    }
    for _ in 0..processes {
        child(work)?;
    }
    loop {
        // One that failed would fail again.
        if await_child(-1)? != 0 {
            return Err(Fault::Run("a process failed".into()));
        }
        child(work)?;
    }
}

fn labour(work: Work, lifetime_ms: u64) -> Result<(), Fault> {
    match work {
        Work::Compute => compute(lifetime_ms),
        Work::Write => write(),
        Work::Memory => use_memory(),
    }
}

/// Fill an unnamed file and write it to the disk, for ever.
fn write() -> Result<(), Fault> {
    let name = format!("crowd-{}", std::process::id());
    let mut file = File::create_new(&name)?;
    std::fs::remove_file(&name)?;
    let chunk = vec![0x5a; CHUNK];
    loop {
        file.seek(SeekFrom::Start(0))?;
        for _ in 0..FILE / CHUNK {
            file.write_all(&chunk)?;
        }
        file.sync_data()?;
    }
}

/// For ever: memory from the kernel, touched and given back.
fn use_memory() -> Result<(), Fault> {
    loop {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: new memory, at a place that the kernel chooses.
        let memory = unsafe { libc::mmap(std::ptr::null_mut(), MEMORY, access, kind, -1, 0) };
        if memory == libc::MAP_FAILED {
            return Err(failed("take memory"));
        }
        for page in 0..MEMORY / PAGE {
            // SAFETY: within what was taken.
            unsafe { memory.cast::<u8>().add(page * PAGE).write_volatile(1) };
        }
        // SAFETY: nothing refers to it.
        unsafe { libc::munmap(memory, MEMORY) };
    }
}

fn compute(lifetime_ms: u64) -> Result<(), Fault> {
    while lifetime_ms == 0 || cpu_seconds() * 1000.0 < lifetime_ms as f64 {
        burn(BATCH);
    }
    Ok(())
}

/// A process that does `work` and is killed when this one ends.
pub fn child(work: &dyn Fn() -> Result<(), Fault>) -> Result<libc::pid_t, Fault> {
    // SAFETY: takes nothing.
    let parent = unsafe { libc::getpid() };
    // SAFETY: this process has one thread.
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

/// The status (waitpid(2)) of a process that has ended.
fn await_child(which: libc::pid_t) -> Result<i32, Fault> {
    let mut status = 0;
    // SAFETY: the place is ours and of the right type.
    if unsafe { libc::waitpid(which, &mut status, 0) } < 0 {
        return Err(failed("wait for a process"));
    }
    Ok(status)
}

fn failed(what: &str) -> Fault {
    Fault::Run(format!("cannot {what}: {}", Error::last_os_error()))
}
