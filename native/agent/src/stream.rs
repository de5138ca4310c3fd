//! The stream of events: JSON lines, counted from `accepted`.

use std::io::{self, BufWriter, Write};

use crate::clock;
use crate::event;
use crate::event::{Event, Failed, Stage};

/// Of the key before each line in a guest.
pub const KEY_BYTES: usize = 32;

/// The host's secret for one trial: a line without it is not the agent's.
/// The agent copies it and never looks at it, so its value changes nothing in a guest.
pub type Key = [u8; KEY_BYTES];

/// Where events go: standard output on a host, a port in a guest.
pub struct EventStream<W: Write> {
    sink: BufWriter<W>,
    key: Option<Key>,
    gathers: bool,
    counted: Option<u64>,
    failed: bool,
    deaf: bool,
}

impl<W: Write> EventStream<W> {
    /// Deliver each event at once.
    pub fn new(sink: W) -> Self {
        EventStream { sink: BufWriter::new(sink), key: None, gathers: false, counted: None, failed: false, deaf: false }
    }

    /// Deliver events in groups, with each event that is awaited.
    /// Waking the reader for each event would take CPU time beside what is measured.
    pub fn gathering(sink: W) -> Self {
        EventStream { gathers: true, ..EventStream::new(sink) }
    }

    /// Put `key` before each line from now on.
    pub fn seal(&mut self, key: Key) {
        self.key = Some(key);
    }

    /// Write one event.
    /// An error means that the reader is gone. It is reported once; later events are dropped, so that the cleanup is
    /// the same with and without a reader.
    pub fn say(&mut self, event: Event) -> io::Result<()> {
        if self.deaf {
            return Ok(());
        }
        let said = self.put(event);
        self.deaf = said.is_err();
        said
    }

    fn put(&mut self, event: Event) -> io::Result<()> {
        self.failed |= matches!(event, Event::Failed(_));
        if matches!(event, Event::Accepted(_)) {
            self.counted = Some(0);
            self.failed = false;
        }
        if let Some(counted) = &mut self.counted {
            *counted += 1;
        }
        if let Some(key) = &self.key {
            self.sink.write_all(key)?;
        }
        serde_json::to_writer(&mut self.sink, &event)?;
        self.sink.write_all(b"\n")?;
        if self.gathers && !is_awaited(&event) {
            return Ok(());
        }
        self.sink.flush()
    }

    /// Say that something could not be done.
    pub fn fail(&mut self, stage: Stage, message: impl Into<String>, tunable: Option<&str>) -> io::Result<()> {
        let tunable = tunable.map(str::to_owned);
        self.say(Event::Failed(Failed { at_ns: clock::raw_ns(), stage, message: message.into(), tunable }))
    }

    /// Write the last event of a plan.
    /// True if nothing failed; an error if the reader did not get all events.
    pub fn end(&mut self, id: &str) -> io::Result<bool> {
        if self.deaf {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let ok = !self.failed;
        let events = self.counted.unwrap_or(0);
        self.say(Event::End(event::End { at_ns: clock::raw_ns(), id: id.to_owned(), ok, events }))?;
        Ok(ok)
    }
}

fn is_awaited(event: &Event) -> bool {
    matches!(event, Event::Hello(_) | Event::Started(_) | Event::Failed(_) | Event::End(_))
}
