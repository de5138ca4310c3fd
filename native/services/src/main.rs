//! `ajuste-service …`: the services of a trial, such as the database that a workload asks.
//!
//! `start` leaves a keeper running, which is the parent of the service; `begin` and `stop` ask the keepers.

mod account;
mod command;
mod directory;
mod keeper;
mod log;
mod port;
mod ready;
mod report;
mod request;
mod start;
mod stop;

use std::process::ExitCode;

use lexopt::prelude::*;

use request::Fault;

const USAGE: &str = "\
The services of a trial.

Usage: ajuste-service start --name NAME --directory DIR [OPTION]... -- PROGRAM [ARGUMENT]...
           start PROGRAM and leave it running, once it is ready
           --ready port:N | socket:PATH | log:PATTERN | command:[\"PROGRAM\", ...] | none
                             when it is ready (default: none, as soon as it runs)
           --port N          a port that must be free before it starts (repeatable)
           --within MS       how long it may take to be ready (default: 30000)
           --settle MS       how long to wait after that (default: 0)
           --data            make the directory DIR/data anew before it starts
           --restore TEMPLATE
                             make it a copy of the directory TEMPLATE
           --stop SIGNAL | command:[\"PROGRAM\", ...]
                             how it is asked to end (default: TERM)
           --patience MS     how long that may take before it is killed (default: 10000)
       ajuste-service begin DIR...
           begin the accounts of the services that were started there
       ajuste-service stop DIR...
           end their accounts, stop them, the last one first, and print the accounts as one line of JSON
       ajuste-service data make DIR | keep DIR TEMPLATE | remove DIR
           make DIR/data anew and empty; keep it as TEMPLATE; remove DIR
       ajuste-service --version
";

fn main() -> ExitCode {
    match run(lexopt::Parser::from_env()) {
        Ok(code) => code,
        Err(fault) => {
            eprintln!("ajuste-service: {fault}");
            ExitCode::from(if matches!(fault, Fault::Request(_)) { 2 } else { 1 })
        }
    }
}

fn run(mut arguments: lexopt::Parser) -> Result<ExitCode, Fault> {
    let name = match arguments.next()? {
        Some(Value(name)) => name.string()?,
        Some(Long("help") | Short('h')) => {
            print!("{USAGE}");
            return Ok(ExitCode::SUCCESS);
        }
        Some(Long("version") | Short('V')) => {
            println!("ajuste-service {}", env!("CARGO_PKG_VERSION"));
            return Ok(ExitCode::SUCCESS);
        }
        Some(other) => return Err(other.unexpected().into()),
        None => return Err(Fault::Request("expected start, begin, stop or data".into())),
    };
    match name.as_str() {
        "start" => start::run(request::start(arguments)?),
        "begin" => stop::begin(&request::directories(arguments)?),
        "stop" => stop::stop(&request::directories(arguments)?),
        "data" => directory::run(arguments),
        _ => Err(Fault::Request(format!("unknown command {name:?}; known are start, begin, stop, data").into())),
    }
}
