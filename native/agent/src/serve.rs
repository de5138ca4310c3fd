//! Many plans, one after the other: each line of standard input is one.
//!
//! The end of standard input means that no more plans will come.
//! Those that were sent are carried out, then everything is closed in good order. A signal or the end of the reader
//! ends the current plan and all that follow.

use std::io;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::disk::{self, fs};
use crate::event::{Event, Stage};
use crate::host::{Custody, Host, Outcome, complain};
use crate::machine;
use crate::plan::{PLAN_LIMIT_BYTES, Plan};
use crate::process::interrupts::Interrupts;
use crate::stream::EventStream;

/// As much is read at once.
const CHUNK_BYTES: usize = 65536;

/// Carry out the plans on standard input and say the events on standard output.
pub fn run(custody: Custody) -> io::Result<Outcome> {
    let mut stream = EventStream::gathering(fs::stdout());
    stream.say(Event::Hello(machine::hello(false)))?;
    let mut host = Host::prepare(custody)?;
    let outcome = carry_out_all(&mut host, &mut stream);
    let all_put_back = complain(host.finish());
    match outcome? {
        Outcome::Done => Ok(Outcome::of(all_put_back)),
        outcome => Ok(outcome),
    }
}

fn carry_out_all<W: io::Write>(host: &mut Host, stream: &mut EventStream<W>) -> io::Result<Outcome> {
    let mut lines = Lines::default();
    let mut all_ok = true;
    loop {
        let line = match lines.next(&host.interrupts) {
            Next::Line(line) => line,
            Next::End => return Ok(Outcome::of(all_ok)),
            Next::Interrupted(reason) => {
                stream.fail(Stage::Plan, reason, None)?;
                return Ok(Outcome::Failed);
            }
        };
        match Plan::parse(&line) {
            Ok(plan) => all_ok &= host.carry_out(&plan, stream)?,
            Err(reason) => {
                eprintln!("ajuste-agent: a plan is malformed: {reason}");
                stream.fail(Stage::Plan, reason, None)?;
                return Ok(Outcome::Malformed);
            }
        }
    }
}

/// Standard input, line by line.
#[derive(Default)]
struct Lines {
    buffer: Vec<u8>,
    /// The length of the buffer's part without an end of line.
    searched: usize,
    ended: bool,
}

enum Next {
    Line(Vec<u8>),
    End,
    Interrupted(&'static str),
}

impl Lines {
    /// The next line, waited for.
    /// One that is too long for a plan comes in part, which is too long, too.
    fn next(&mut self, interrupts: &Interrupts) -> Next {
        loop {
            if let Some(reason) = interrupts.take() {
                return Next::Interrupted(reason);
            }
            if let Some(line) = self.take_line() {
                return Next::Line(line);
            }
            if self.ended {
                return Next::End;
            }
            self.read_some(interrupts);
        }
    }

    fn take_line(&mut self) -> Option<Vec<u8>> {
        let end = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n');
        let length = match end {
            Some(offset) => self.searched + offset + 1,
            None if self.buffer.len() > PLAN_LIMIT_BYTES || (self.ended && !self.buffer.is_empty()) => {
                self.buffer.len()
            }
            None => {
                self.searched = self.buffer.len();
                return None;
            }
        };
        self.searched = 0;
        Some(self.buffer.drain(..length).collect())
    }

    /// Wait for more, or for a reason to stop.
    fn read_some(&mut self, interrupts: &Interrupts) {
        let input = rustix::stdio::stdin();
        let mut waiting = vec![PollFd::from_borrowed_fd(input, PollFlags::IN)];
        waiting.extend(interrupts.waiting().map(|(descriptor, flags)| PollFd::from_borrowed_fd(descriptor, flags)));
        if poll(&mut waiting, None).is_err() || waiting[0].revents().is_empty() {
            return;
        }
        let mut chunk = [0; CHUNK_BYTES];
        match disk::read_some(input, &mut chunk) {
            Ok(0) => self.ended = true,
            Ok(count) => self.buffer.extend_from_slice(&chunk[..count]),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => self.ended = true,
        }
    }
}
