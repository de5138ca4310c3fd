//! `ajuste-workloads NAME …`: small, deterministic workloads, one file each.

mod clock;
mod crowd;
mod facts;
mod frames;
mod hog;
mod jitter;
mod linpack;
mod matrix;
mod pages;
mod paths;
mod percentile;
mod request;
mod scheduler;
mod spin;

use std::process::ExitCode;

use lexopt::prelude::*;

use request::Fault;

const USAGE: &str = "\
Small, deterministic workloads.

Usage: ajuste-workloads matrix --size N [--repetitions R]
           multiply two N x N matrices R times (1) and print a checksum
       ajuste-workloads spin [--milliseconds N]
           keep a CPU busy without system calls, for N ms of CPU time or for ever
       ajuste-workloads hog [--milliseconds N]
           keep a CPU busy until N ms (1000) have passed by the clock; print how much of it that was, and how often
           it was interrupted
       ajuste-workloads linpack [--first N] [--longest N] | [--repetitions N] [--code rust|c|kernel] [--interrupts]
           solve 200 x 200 linear systems in rows of doubling repetitions, from --first (1) to
           --longest (128), or in one row; print a table in KFLOPS and check the residual
           (--reps-from and --reps-to are other names of --first and --longest); --code kernel has the kernel do it
           with interrupts off (a module), --interrupts says how many interrupts the CPU had
       ajuste-workloads jitter [--sleeps N] [--interval-us U]
           sleep N times (1000) until moments U microseconds (1000) apart; print how late the sleeps ended
       ajuste-workloads frames [--profile audio|video|drag|game] [--milliseconds N]
           draw frames that need CPU time and have a deadline, for N ms (5000); print how many were late, and how long
           they took
       ajuste-workloads crowd [--processes N] [--work compute|write|memory] [--lifetime-ms L]
           keep N processes (4) working for ever in a session of their own: computing, writing to the disk, or taking
           and touching memory; with L > 0 each that computes ends after L ms of CPU time and another takes its place
       ajuste-workloads pages [--policy local|remote|interleave|default] [--mib N] [--rounds R]
           from a CPU of the first node, fill N MiB (64) that the policy places, and read them R times (4); print on
           which nodes the pages are
       ajuste-workloads paths [--protocol tcp|mptcp] [--rate-kbit N] [--delay-ms N]
                              [--second-rate-kbit N] [--second-delay-ms N] [--milliseconds N] [--lost-after-ms N]
           send over one link, or over two, between two network namespaces for N ms (5000); print what arrived,
           and by which link
       ajuste-workloads scheduler load PROGRAM | unload [--class DIRECTORY]
           start the program of a BPF scheduler (sched_ext) and leave it running once the kernel has it; end it again,
           unless the kernel has ejected it meanwhile
       ajuste-workloads facts
           print what the kernel tells its programs and has no file for
       ajuste-workloads --version
";

fn main() -> ExitCode {
    let Err(fault) = run(lexopt::Parser::from_env()) else { return ExitCode::SUCCESS };
    eprintln!("ajuste-workloads: {fault}");
    ExitCode::from(if matches!(fault, Fault::Request(_)) { 2 } else { 1 })
}

fn run(mut arguments: lexopt::Parser) -> Result<(), Fault> {
    let name = match arguments.next()? {
        Some(Value(name)) => name.string()?,
        Some(Long("help") | Short('h')) => {
            print!("{USAGE}");
            return Ok(());
        }
        Some(Long("version") | Short('V')) => {
            println!("ajuste-workloads {}", env!("CARGO_PKG_VERSION"));
            return Ok(());
        }
        Some(other) => return Err(other.unexpected().into()),
        None => return Err(Fault::Request(
            "expected a workload: matrix, spin, hog, linpack, jitter, frames, crowd, pages, paths, scheduler or facts"
                .into(),
        )),
    };
    match name.as_str() {
        "matrix" => matrix::run(arguments),
        "spin" => spin::run(arguments),
        "hog" => hog::run(arguments),
        "linpack" => linpack::run(arguments),
        "jitter" => jitter::run(arguments),
        "frames" => frames::run(arguments),
        "crowd" => crowd::run(arguments),
        "pages" => pages::run(arguments),
        "paths" => paths::run(arguments),
        "scheduler" => scheduler::run(arguments),
        "facts" => facts::run(arguments),
        _ => Err(Fault::Request(
            format!(
                "unknown workload {name:?}; known are matrix, spin, hog, linpack, jitter, frames, crowd, pages, paths, \
                 scheduler, facts"
            )
            .into(),
        )),
    }
}
