//! Carrying out a plan: the same steps on a host and in a guest.

use std::io::{self, Write};

use crate::event::{Accepted, Event, ReadBack, Stage, Written};
use crate::failure::{failure, Failure, Stop};
use crate::interrupts::Interrupts;
use crate::measurement::Measurement;
use crate::plan::{self, Plan};
use crate::scratch::Mounted;
use crate::stream::EventStream;
use crate::surroundings::Surroundings;
use crate::{clock, tunable};

/// A plan and the machine that it is carried out on.
pub struct Trial<'a> {
    pub plan: &'a Plan,
    pub surroundings: &'a Surroundings,
    /// Of a host: signals that end the trial.
    pub interrupts: Option<&'a Interrupts>,
    /// Of a guest: mixes a seed into the kernel's random pool.
    pub mix: Option<fn(u64) -> Result<(), String>>,
}

impl Trial<'_> {
    /// Do all of it, from `accepted` to `end`. True if nothing failed; an error means that nobody listens.
    pub fn carry_out<W: Write>(&self, stream: &mut EventStream<W>) -> io::Result<bool> {
        stream.say(Event::Accepted(Accepted { at_ns: clock::raw_ns(), id: self.plan.id.clone() }))?;
        match self.steps(stream) {
            Ok(()) => {}
            Err(Stop::Deaf(error)) => return Err(error),
            Err(Stop::Failed(failure)) => {
                stream.fail(failure.stage, failure.message, failure.tunable.as_deref())?;
            }
        }
        stream.end(&self.plan.id)
    }

    fn steps<W: Write>(&self, stream: &mut EventStream<W>) -> Result<(), Stop> {
        if let Some(mix) = self.mix {
            mix(self.plan.perturbation.entropy).map_err(failure(Stage::Boot))?;
        }
        for read in &self.plan.reads {
            stream.say(Event::Read(read_back(read)))?;
        }
        for write in &self.plan.writes {
            stream.say(Event::Written(carry_out_write(write)?))?;
        }
        let Trial { plan, surroundings, interrupts, .. } = *self;
        let measurement = Measurement { plan, surroundings, interrupts };
        let scratch = plan.scratch.as_ref().map(|scratch| measurement.make_scratch(scratch)).transpose()?;
        let measured = match &plan.workload {
            Some(workload) => measurement.carry_out(workload, stream),
            None => Ok(()),
        };
        let taken_down = scratch.map_or(Ok(()), Mounted::take_down);
        measured.and(taken_down.map_err(failure(Stage::Scratch)))
    }
}

fn read_back(read: &plan::Read) -> ReadBack {
    let (value, error) = match tunable::read(&read.location) {
        Ok(value) => (Some(value), None),
        Err(reason) => (None, Some(reason)),
    };
    ReadBack { at_ns: clock::raw_ns(), tunable: read.tunable.clone(), value, error }
}

/// Read, write once, read again.
fn carry_out_write(write: &plan::Write) -> Result<Written, Failure> {
    let refused = |reason| Failure::of(&write.tunable, Stage::Write, reason);
    let before = tunable::read(&write.location).map_err(refused)?;
    tunable::write(&write.location, &write.value).map_err(refused)?;
    let after = tunable::read(&write.location).map_err(refused)?;
    let (tunable, asked) = (write.tunable.clone(), write.value.clone());
    Ok(Written { at_ns: clock::raw_ns(), tunable, asked, before, after })
}
