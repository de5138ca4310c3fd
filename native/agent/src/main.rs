//! `ajuste-agent`: see [`USAGE`].
//! As the first process of a guest it takes no arguments.

use std::process::ExitCode;

use ajuste_agent::errno;
use ajuste_agent::guest;
use ajuste_agent::host;
use ajuste_agent::host::{Custody, Outcome};
use ajuste_agent::journals::{self, Work};
use ajuste_agent::serve;
use ajuste_agent::sweep;
use lexopt::prelude::*;

const USAGE: &str = "\
Carries out plans on this machine and says what happened, as JSON lines.

Usage: ajuste-agent run [--plan FILE] [OPTION]   carry out the plan in FILE (-, the default, is standard input)
       ajuste-agent serve [OPTION]               carry out each line of standard input as a plan
       ajuste-agent journals [OPTION] [PLACE...] say which journals sessions have left behind, as JSON lines
       ajuste-agent restore [OPTION] [PLACE...]  put back what sessions have left behind, from their journals
       ajuste-agent discard [OPTION] JOURNAL...  give up what these journals say, and remove them
       ajuste-agent sweep DIR                    wait for the end of standard input, then remove the session in DIR
       ajuste-agent --version

Options: --journal DIR   write down in DIR what undoes every change; without it nothing on this machine is changed
         --registry DIR  the registry of all journals of this machine (default /var/lib/ajuste/journals)
         --permit FILE   a JSON list of the places that journals may write (- is standard input); without it none
         --all           every journal of the registry, besides those in PLACE (a journal or a directory of them)
         --hold-fd N     keep the inherited descriptor N open until everything is put back

Exit status: 0 all done, 1 something failed, 2 a wrong request or a malformed plan.
";

enum Request {
    Run { plan: String, custody: Custody },
    Serve { custody: Custody },
    Journals(Work),
    Restore(Work),
    Discard(Work),
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
        Some(Value(word)) if word == "serve" => Request::Serve { custody: parse_custody(&mut arguments, None)? },
        Some(Value(word)) if word == "journals" => Request::Journals(parse_work(&mut arguments)?),
        Some(Value(word)) if word == "restore" => Request::Restore(parse_work(&mut arguments)?),
        Some(Value(word)) if word == "discard" => Request::Discard(parse_work(&mut arguments)?),
        Some(Value(word)) if word == "sweep" => Request::Sweep { directory: arguments.value()?.string()? },
        Some(Long("help") | Short('h')) => Request::Help,
        Some(Long("version") | Short('V')) => Request::Version,
        Some(other) => return Err(other.unexpected()),
        None => return Err("expected run, serve, journals, restore, discard, sweep or --version".into()),
    };
    match arguments.next()? {
        Some(other) => Err(other.unexpected()),
        None => Ok(request),
    }
}

fn parse_run(arguments: &mut lexopt::Parser) -> Result<Request, lexopt::Error> {
    let mut plan = "-".to_owned();
    let custody = parse_custody(arguments, Some(&mut plan))?;
    Ok(Request::Run { plan, custody })
}

fn parse_custody(arguments: &mut lexopt::Parser, mut plan: Option<&mut String>) -> Result<Custody, lexopt::Error> {
    let mut custody = Custody::default();
    while let Some(argument) = arguments.next()? {
        match (argument, &mut plan) {
            (Long("plan"), Some(plan)) => **plan = arguments.value()?.string()?,
            (Long("journal"), _) => custody.journal = Some(arguments.value()?.into()),
            (Long("registry"), _) => custody.registry = arguments.value()?.into(),
            (Long("hold-fd"), _) => custody.held = Some(arguments.value()?.parse_with(inherited_descriptor)?),
            (other, _) => return Err(other.unexpected()),
        }
    }
    Ok(custody)
}

fn inherited_descriptor(text: &str) -> Result<i32, String> {
    let number = text.parse().ok().filter(|number| *number > 2);
    number.ok_or_else(|| format!("{text:?} is no number of an inherited descriptor"))
}

fn parse_work(arguments: &mut lexopt::Parser) -> Result<Work, lexopt::Error> {
    let mut work = Work::default();
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("registry") => work.registry = arguments.value()?.into(),
            Long("permit") => work.permit = Some(arguments.value()?.into()),
            Long("all") => work.scope.all = true,
            Value(place) => work.scope.places.push(place.into()),
            other => return Err(other.unexpected()),
        }
    }
    match work.scope.all || !work.scope.places.is_empty() {
        true => Ok(work),
        false => Err("expected journals, directories of them, or --all".into()),
    }
}

fn carry_out(request: Request) -> ExitCode {
    match request {
        Request::Help => print!("{USAGE}"),
        Request::Version => println!("ajuste-agent {}", env!("CARGO_PKG_VERSION")),
        Request::Run { plan, custody } => return ended(host::run(&plan, custody)),
        Request::Serve { custody } => return ended(serve::run(custody)),
        Request::Journals(work) => return ended(journals::list(work).map(Outcome::of)),
        Request::Restore(work) => return ended(journals::restore(work)),
        Request::Discard(work) => return ended(journals::discard(work).map(Outcome::of)),
        Request::Sweep { directory } => {
            if let Err(reason) = sweep::run(&directory) {
                return failed(&reason);
            }
        }
    }
    ExitCode::SUCCESS
}

fn ended(outcome: std::io::Result<Outcome>) -> ExitCode {
    match outcome {
        Ok(outcome) => ExitCode::from(outcome as u8),
        Err(error) => failed(&format!("cannot go on: {}", errno::of(error))),
    }
}

fn failed(reason: &str) -> ExitCode {
    eprintln!("ajuste-agent: {reason}");
    ExitCode::FAILURE
}
