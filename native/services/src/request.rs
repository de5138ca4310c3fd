//! What is asked for, and why it was not done.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use lexopt::prelude::*;
use thiserror::Error;

use crate::command;
use crate::ready::Ready;

/// Why something was not done.
#[derive(Debug, Error)]
pub enum Fault {
    /// The request was wrong: exit status 2.
    #[error("{0} (see ajuste-service --help)")]
    Request(#[from] lexopt::Error),
    /// Exit status 1.
    #[error("{0}")]
    Run(String),
}

impl Fault {
    /// From what the system said of `what`.
    pub fn of(what: impl std::fmt::Display) -> impl FnOnce(std::io::Error) -> Fault {
        move |error| Fault::Run(format!("{what}: {error}"))
    }
}

/// How a service is asked to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    Signal(i32),
    Command(Vec<String>),
}

/// A service to start.
#[derive(Clone, Debug)]
pub struct Start {
    pub name: String,
    pub directory: PathBuf,
    pub ready: Ready,
    pub ports: Vec<u16>,
    pub within: Duration,
    pub settle: Duration,
    pub makes_data: bool,
    pub template: Option<PathBuf>,
    pub ending: Ending,
    pub patience: Duration,
    pub command: Vec<OsString>,
}

pub fn start(mut arguments: lexopt::Parser) -> Result<Start, Fault> {
    let mut start = Start {
        name: String::new(),
        directory: PathBuf::new(),
        ready: Ready::AtOnce,
        ports: Vec::new(),
        within: Duration::from_secs(30),
        settle: Duration::ZERO,
        makes_data: false,
        template: None,
        ending: Ending::Signal(libc::SIGTERM),
        patience: Duration::from_secs(10),
        command: Vec::new(),
    };
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("name") => start.name = arguments.value()?.string()?,
            Long("directory") => start.directory = arguments.value()?.into(),
            Long("ready") => start.ready = Ready::read(&arguments.value()?.string()?)?,
            Long("port") => start.ports.push(arguments.value()?.parse()?),
            Long("within") => start.within = milliseconds(&mut arguments)?,
            Long("settle") => start.settle = milliseconds(&mut arguments)?,
            Long("data") => start.makes_data = true,
            Long("restore") => start.template = Some(arguments.value()?.into()),
            Long("stop") => start.ending = ending(&arguments.value()?.string()?)?,
            Long("patience") => start.patience = milliseconds(&mut arguments)?,
            Value(program) => {
                start.command.push(program);
                start.command.extend(arguments.raw_args()?);
            }
            _ => return Err(argument.unexpected().into()),
        }
    }
    if start.name.is_empty() || start.command.is_empty() || !start.directory.is_absolute() {
        return Err(Fault::Request("expected --name, an absolute --directory, and a program".into()));
    }
    Ok(start)
}

pub fn directories(mut arguments: lexopt::Parser) -> Result<Vec<PathBuf>, Fault> {
    let mut found = Vec::new();
    while let Some(argument) = arguments.next()? {
        match argument {
            Value(path) => found.push(path.into()),
            _ => return Err(argument.unexpected().into()),
        }
    }
    Ok(found)
}

fn milliseconds(arguments: &mut lexopt::Parser) -> Result<Duration, lexopt::Error> {
    Ok(Duration::from_millis(arguments.value()?.parse()?))
}

fn ending(text: &str) -> Result<Ending, lexopt::Error> {
    if let Some(words) = text.strip_prefix("command:") {
        return command::read(words).map(Ending::Command);
    }
    let signal = match text {
        "TERM" => libc::SIGTERM,
        "INT" => libc::SIGINT,
        "QUIT" => libc::SIGQUIT,
        "HUP" => libc::SIGHUP,
        "USR1" => libc::SIGUSR1,
        "USR2" => libc::SIGUSR2,
        _ => return Err(format!("expected TERM, INT, QUIT, HUP, USR1, USR2 or command:[…], not {text:?}").into()),
    };
    Ok(Ending::Signal(signal))
}
