//! `ajuste-watch …`: lasts as long as a slice of a live experiment.
//!
//! It is the workload of the slice, so that the agent restores everything when it ends. It ends at the end of the slice,
//! as soon as it is told to, and when the program that checks the guards is silent for too long: killed, hung or stopped.
//! An agent that is stopped then is killed, so that its guardian restores.

mod parent;
mod request;
mod vigil;

use std::process::ExitCode;

use request::{Asked, Fault};
use vigil::{Ending, watch};

const USAGE: &str = "\
Lasts as long as a slice of a live experiment.

Usage: ajuste-watch --for MS --silence MS FIFO
           last for so long, and exit with 0
           a byte `.` comes through FIFO from time to time: exit with 4 after so long without one, or when nobody can
           write to it any more
           any other line ends the slice: it is printed, and the exit status is 3
       ajuste-watch --version
";

fn main() -> ExitCode {
    match run(lexopt::Parser::from_env()) {
        Ok(code) => code,
        Err(fault) => {
            eprintln!("ajuste-watch: {fault}");
            ExitCode::from(if matches!(fault, Fault::Request(_)) { 2 } else { 1 })
        }
    }
}

fn run(arguments: lexopt::Parser) -> Result<ExitCode, Fault> {
    let request = match request::read(arguments)? {
        Asked::Watch(request) => request,
        Asked::Help => {
            print!("{USAGE}");
            return Ok(ExitCode::SUCCESS);
        }
        Asked::Version => {
            println!("ajuste-watch {}", env!("CARGO_PKG_VERSION"));
            return Ok(ExitCode::SUCCESS);
        }
    };
    let parent = parent::Parent::of_this_process();
    let ending = watch(&request).map_err(|error| Fault::Run(format!("{}: {error}", request.fifo.display())))?;
    parent.end_if_stopped();
    println!("{ending}");
    Ok(ExitCode::from(match ending {
        Ending::Over => 0,
        Ending::Told(_) => 3,
        Ending::Silence => 4,
    }))
}
