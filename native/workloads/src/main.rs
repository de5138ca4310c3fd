//! `ajuste-workloads NAME …`: small, deterministic workloads, one file each.

mod cpu_time;
mod spin;

use std::process::ExitCode;

use lexopt::prelude::*;

const USAGE: &str = "\
Small, deterministic workloads.

Usage: ajuste-workloads spin [--milliseconds N]   keep a CPU busy for N ms of CPU time, or for ever
";

fn main() -> ExitCode {
    let mut arguments = lexopt::Parser::from_env();
    let result = match arguments.next() {
        Ok(Some(Value(name))) if name == "spin" => spin::run(arguments),
        Ok(Some(other)) => Err(other.unexpected()),
        _ => Err("no name".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ajuste-workloads: {error}\n\n{USAGE}");
            ExitCode::from(2)
        }
    }
}
