//! What is asked for, and why it was not done.

use std::path::PathBuf;
use std::time::Duration;

use lexopt::prelude::*;
use thiserror::Error;

/// Why something was not done.
#[derive(Debug, Error)]
pub enum Fault {
    /// The request was wrong: exit status 2.
    #[error("{0} (see ajuste-watch --help)")]
    Request(#[from] lexopt::Error),
    /// Exit status 1.
    #[error("{0}")]
    Run(String),
}

/// A slice to watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub length: Duration,
    pub silence: Duration,
    pub fifo: PathBuf,
}

/// What the arguments ask for.
#[derive(Debug, PartialEq, Eq)]
pub enum Asked {
    Watch(Request),
    Help,
    Version,
}

pub fn read(mut arguments: lexopt::Parser) -> Result<Asked, lexopt::Error> {
    let (mut length, mut silence, mut fifo) = (None, None, None);
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("for") => length = Some(milliseconds(&mut arguments)?),
            Long("silence") => silence = Some(milliseconds(&mut arguments)?),
            Long("help") | Short('h') => return Ok(Asked::Help),
            Long("version") | Short('V') => return Ok(Asked::Version),
            Value(path) if fifo.is_none() => fifo = Some(path.into()),
            other => return Err(other.unexpected()),
        }
    }
    match (length, silence, fifo) {
        (Some(length), Some(silence), Some(fifo)) => Ok(Asked::Watch(Request { length, silence, fifo })),
        _ => Err("expected --for MS, --silence MS and FIFO".into()),
    }
}

fn milliseconds(arguments: &mut lexopt::Parser) -> Result<Duration, lexopt::Error> {
    Ok(Duration::from_millis(arguments.value()?.parse()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_needs_all_of_it() {
        let asked = read(lexopt::Parser::from_args(["--for", "500", "--silence", "100", "/x"])).unwrap();
        let (length, silence) = (Duration::from_millis(500), Duration::from_millis(100));
        assert_eq!(asked, Asked::Watch(Request { length, silence, fifo: "/x".into() }));
        for wrong in [&["--for", "500", "/x"][..], &["--for", "x", "--silence", "1", "/x"], &["/x", "/y"]] {
            assert!(read(lexopt::Parser::from_args(wrong)).is_err());
        }
    }
}
