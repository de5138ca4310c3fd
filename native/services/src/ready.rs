//! When a service is ready.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use regex::Regex;

use crate::command;
use crate::log::Log;
use crate::port;

/// So long an attempt to connect may take.
const ATTEMPT: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub enum Ready {
    /// As soon as it runs.
    AtOnce,
    /// A process of it accepts connections to this port of the loopback.
    Port(u16),
    /// It accepts connections to this socket.
    Socket(PathBuf),
    /// A line of its output matches.
    Line(Regex),
    /// This command ends with exit code 0.
    Command(Vec<String>),
}

impl Ready {
    /// From the words of `--ready`.
    pub fn read(text: &str) -> Result<Ready, lexopt::Error> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        match (kind, rest) {
            ("none", "") => Ok(Ready::AtOnce),
            ("port", number) => match number.parse() {
                Ok(number) if number > 0 => Ok(Ready::Port(number)),
                _ => Err(format!("expected a port from 1 to 65535, not {number:?}").into()),
            },
            ("socket", path) if !path.is_empty() => Ok(Ready::Socket(path.into())),
            ("log", pattern) => match Regex::new(pattern) {
                Ok(pattern) => Ok(Ready::Line(pattern)),
                Err(error) => Err(format!("the pattern {pattern:?} is not a regular expression: {error}").into()),
            },
            ("command", words) => command::read(words).map(Ready::Command),
            _ => Err(format!("expected port:N, socket:PATH, log:PATTERN, command:[…] or none, not {text:?}").into()),
        }
    }

    /// For people: what is waited for.
    pub fn words(&self) -> String {
        match self {
            Ready::AtOnce => "it runs".to_owned(),
            Ready::Port(number) => format!("port {number} accepts connections"),
            Ready::Socket(path) => format!("{} accepts connections", path.display()),
            Ready::Line(pattern) => format!("a line of its log matches {:?}", pattern.as_str()),
            Ready::Command(words) => format!("{} succeeds", words.join(" ")),
        }
    }

    /// Whether it is ready now. No attempt goes on after the `deadline`. The error says why it never will be.
    pub fn is_so(&self, log: &mut Log, deadline: Instant) -> Result<bool, String> {
        Ok(match self {
            Ready::AtOnce => true,
            Ready::Port(number) => return port::is_served(*number, ATTEMPT),
            Ready::Socket(path) => UnixStream::connect(path).is_ok(),
            Ready::Line(pattern) => log.new_lines().iter().any(|line| pattern.is_match(line)),
            Ready::Command(words) => command::succeeds(words, deadline),
        })
    }

    /// The port that must be free before the start.
    pub fn port(&self) -> Option<u16> {
        match self {
            Ready::Port(number) => Some(*number),
            _ => None,
        }
    }
}
