//! `ajuste-agent`: see [`USAGE`]. As the first process of a guest it takes no arguments.

use std::process::ExitCode;

use ajuste_agent::{guest, host, sweep};
use lexopt::prelude::*;

const USAGE: &str = "\
Carries out one plan on this machine and says what happened, as JSON lines.

Usage: ajuste-agent run [--plan FILE]    carry out the plan in FILE (-, the default, is standard input)
       ajuste-agent sweep DIR            wait for the end of standard input, then remove the session in DIR
       ajuste-agent --version

Exit status: 0 all done, 1 something failed, 2 a wrong request or a malformed plan.
";

enum Request {
    Run { plan: String },
    Sweep { directory: String },
    Help,
    Version,
}

fn main() -> ExitCode {
    if guest::is_init() {
        guest::run()
    }
    match parse() {
        Ok(request) => carry_out(request),
        Err(error) => {
            eprintln!("ajuste-agent: {error} (see ajuste-agent --help)");
            ExitCode::from(2)
        }
    }
}

fn parse() -> Result<Request, lexopt::Error> {
    let mut arguments = lexopt::Parser::from_env();
    let request = match arguments.next()? {
        Some(Value(word)) if word == "run" => parse_run(&mut arguments)?,
        Some(Value(word)) if word == "sweep" => Request::Sweep { directory: arguments.value()?.string()? },
        Some(Long("help") | Short('h')) => Request::Help,
        Some(Long("version") | Short('V')) => Request::Version,
        Some(other) => return Err(other.unexpected()),
        None => return Err("expected run, sweep or --version".into()),
    };
    match arguments.next()? {
        Some(other) => Err(other.unexpected()),
        None => Ok(request),
    }
}

fn parse_run(arguments: &mut lexopt::Parser) -> Result<Request, lexopt::Error> {
    let mut plan = "-".to_owned();
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("plan") => plan = arguments.value()?.string()?,
            other => return Err(other.unexpected()),
        }
    }
    Ok(Request::Run { plan })
}

fn carry_out(request: Request) -> ExitCode {
    match request {
        Request::Help => print!("{USAGE}"),
        Request::Version => println!("ajuste-agent {}", env!("CARGO_PKG_VERSION")),
        Request::Run { plan } => match host::run(&plan) {
            Ok(outcome) => return ExitCode::from(outcome as u8),
            Err(error) => return failed(&format!("cannot say events: {error}")),
        },
        Request::Sweep { directory } => {
            if let Err(reason) = sweep::run(&directory) {
                return failed(&reason);
            }
        }
    }
    ExitCode::SUCCESS
}

fn failed(reason: &str) -> ExitCode {
    eprintln!("ajuste-agent: {reason}");
    ExitCode::FAILURE
}
