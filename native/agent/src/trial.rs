//! Carrying out a plan: the same steps on a host and in a guest.

use std::io::{self, Write};

use crate::clock;
use crate::event::{Accepted, Event, ReadBack, Role, Stage};
use crate::failure::{Failure, Stop, failure};
use crate::measurement::Measurement;
use crate::place::tunable;
use crate::plan::{self, Plan};
use crate::process::account;
use crate::process::interrupts::Interrupts;
use crate::process::surroundings::Surroundings;
use crate::safety::keeper::{Keeper, carry_out_write};
use crate::safety::system::ThisMachine;
use crate::scratch::Mounted;
use crate::stream::EventStream;

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
    /// Do all of it, from `accepted` to `end`.
    /// True if nothing failed; an error means that the reader is gone.
    ///
    /// A `keeper` puts all changes back before the end, in every case.
    pub fn carry_out<W: Write>(
        &self,
        mut keeper: Option<&mut Keeper>,
        stream: &mut EventStream<W>,
    ) -> io::Result<bool> {
        let accepted = stream.say(Event::Accepted(Accepted { at_ns: clock::raw_ns(), id: self.plan.id.clone() }));
        let done = accepted.map_err(Stop::from).and_then(|()| self.steps(keeper.as_deref_mut(), stream));
        say_failure(done, stream);
        for event in keeper.into_iter().flat_map(Keeper::put_back) {
            let _ = stream.say(event);
        }
        stream.end(&self.plan.id)
    }

    fn steps<W: Write>(&self, mut keeper: Option<&mut Keeper>, stream: &mut EventStream<W>) -> Result<(), Stop> {
        if let Some(mix) = self.mix {
            mix(self.plan.perturbation.entropy).map_err(failure(Stage::Boot))?;
        }
        for read in &self.plan.reads {
            stream.say(Event::Read(read_back(read)))?;
        }
        let mut say = |written| stream.say(Event::Written(written)).map_err(Stop::from);
        match &mut keeper {
            Some(keeper) => keeper.change(self.plan, &mut say)?,
            None => {
                for write in &self.plan.writes {
                    say(carry_out_write(write, &mut ThisMachine::default())?)?;
                }
            }
        }
        self.run_commands(keeper, stream)
    }

    /// Everything that is run, under the plan's settings.
    fn run_commands<W: Write>(&self, keeper: Option<&mut Keeper>, stream: &mut EventStream<W>) -> Result<(), Stop> {
        let Trial { plan, interrupts, .. } = *self;
        let roll = keeper.as_ref().and_then(|keeper| keeper.roll());
        let surroundings = &Surroundings { roll, ..*self.surroundings };
        let measurement = Measurement { plan, surroundings, interrupts };
        let scratch = plan.scratch.as_ref().map(|scratch| measurement.make_scratch(scratch)).transpose()?;
        let measured = self.run_in_order(&measurement, keeper, stream);
        let taken_down = scratch.map_or(Ok(()), Mounted::take_down);
        measured.and(taken_down.map_err(failure(Stage::Scratch)))
    }

    /// Run `after` commands in any case: they may undo what others did.
    fn run_in_order<W: Write>(
        &self,
        measurement: &Measurement,
        keeper: Option<&mut Keeper>,
        stream: &mut EventStream<W>,
    ) -> Result<(), Stop> {
        let Plan { before, workload, after, .. } = self.plan;
        let mut done = measurement.run_errands(Role::Before, before, stream);
        if let (Ok(()), Some(workload)) = (&done, workload) {
            done = measurement.carry_out(workload, stream);
        }
        say_failure(done, stream);
        // Some programs undo their changes when they are stopped.
        keeper.into_iter().for_each(Keeper::look);
        let after_done = measurement.run_errands(Role::After, after, stream);
        if !before.is_empty() || !after.is_empty() {
            account::kill_children(&[]);
            measurement.surroundings.roll.iter().for_each(|roll| roll.clear());
        }
        after_done
    }
}

fn say_failure<W: Write>(done: Result<(), Stop>, stream: &mut EventStream<W>) {
    if let Err(Stop::Failed(Failure { stage, message, tunable })) = done {
        let _ = stream.fail(stage, message, tunable.as_deref());
    }
}

fn read_back(read: &plan::Read) -> ReadBack {
    let (value, error) = match tunable::read(&read.location) {
        Ok(value) => (Some(value), None),
        Err(reason) => (None, Some(reason)),
    };
    ReadBack { at_ns: clock::raw_ns(), tunable: read.tunable.clone(), value, error }
}
