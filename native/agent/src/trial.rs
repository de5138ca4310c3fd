//! Carrying out a plan: the same steps on a host and in a guest.

use std::io::{self, Write};
use std::time::Duration;

use crate::counters::{self, OpenCounter};
use crate::event::{Accepted, Event, Exited, Output, ReadBack, Role, Stage, Started, Stream, Written};
use crate::interrupts::Interrupts;
use crate::launch::{launch, Launched};
use crate::plan::{self, Command, Plan};
use crate::stream::EventStream;
use crate::supervise::{Supervision, Woken};
use crate::surroundings::Surroundings;
use crate::{clock, errno, tunable};

/// A plan and the machine that it is carried out on.
pub struct Trial<'a> {
    pub plan: &'a Plan,
    pub surroundings: &'a Surroundings,
    /// Of a host: signals that end the trial.
    pub interrupts: Option<&'a Interrupts>,
    /// Of a guest: mixes a seed into the kernel's random pool.
    pub mix: Option<fn(u64) -> Result<(), String>>,
}

/// Why a trial stopped early, to be said as a `failed` event.
struct Failure {
    stage: Stage,
    message: String,
    tunable: Option<String>,
}

/// Nobody listens any more, or the plan cannot be carried out.
enum Stop {
    Deaf(io::Error),
    Failed(Failure),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        Stop::Deaf(error)
    }
}

fn failure(stage: Stage) -> impl Fn(String) -> Stop {
    move |message| Stop::Failed(Failure { stage, message, tunable: None })
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
            let (value, error) = match tunable::read(&read.location) {
                Ok(value) => (Some(value), None),
                Err(reason) => (None, Some(reason)),
            };
            let tunable = read.tunable.clone();
            stream.say(Event::Read(ReadBack { at_ns: clock::raw_ns(), tunable, value, error }))?;
        }
        for write in &self.plan.writes {
            let written = carry_out_write(write).map_err(|message| {
                Stop::Failed(Failure { stage: Stage::Write, message, tunable: Some(write.tunable.clone()) })
            })?;
            stream.say(Event::Written(written))?;
        }
        match &self.plan.workload {
            Some(workload) => self.measure(workload, stream),
            None => Ok(()),
        }
    }

    fn measure<W: Write>(&self, workload: &Command, stream: &mut EventStream<W>) -> Result<(), Stop> {
        let mut supervision = Supervision::new(self.interrupts);
        for (index, command) in self.plan.background.iter().enumerate() {
            self.start_background(index, command, &mut supervision, stream)?;
        }
        pause(&mut supervision, self.plan.settle_ns)?;

        let padding = self.plan.perturbation.environment_bytes;
        let launched = self.launch(workload, "workload", padding).map_err(failure(Stage::Workload))?;
        let counters = counters::open(&self.plan.counters, launched.pid);
        pause(&mut supervision, self.plan.perturbation.start_delay_ns)?;
        stream.say(started(Role::Workload, 0, &launched))?;
        let leader = supervision.start(Role::Workload, 0, launched);
        let woken = supervision.wait(Some(leader), self.patience());
        if woken != Woken::Ended {
            supervision.end(leader, woken == Woken::Elapsed);
        }
        supervision.stop().map_err(failure(Stage::Workload))?;
        supervision.launched(leader).await_exec(Duration::ZERO).map_err(failure(Stage::Workload))?;
        report(&supervision, counters, stream)?;
        match woken {
            Woken::Interrupted => Err(failure(Stage::Workload)(INTERRUPTED.to_owned())),
            _ => Ok(()),
        }
    }

    fn start_background<W: Write>(
        &self,
        index: usize,
        command: &Command,
        supervision: &mut Supervision<'_>,
        stream: &mut EventStream<W>,
    ) -> Result<(), Stop> {
        let launched = self.launch(command, &index.to_string(), 0).map_err(failure(Stage::Background))?;
        let place = supervision.start(Role::Background, index, launched);
        let launched = supervision.launched(place);
        launched.await_exec(self.patience()).map_err(failure(Stage::Background))?;
        stream.say(started(Role::Background, index, launched))?;
        Ok(())
    }

    fn launch(&self, command: &Command, name: &str, padding_bytes: usize) -> Result<Launched, String> {
        launch(command, name, self.surroundings, padding_bytes, self.plan.output_limit_bytes, self.patience())
    }

    fn patience(&self) -> Duration {
        Duration::from_nanos(self.plan.timeout_ns)
    }
}

const INTERRUPTED: &str = "a signal asked the agent to stop";

fn pause(supervision: &mut Supervision<'_>, nanoseconds: u64) -> Result<(), Stop> {
    if nanoseconds > 0 && supervision.wait(None, Duration::from_nanos(nanoseconds)) == Woken::Interrupted {
        return Err(failure(Stage::Workload)(INTERRUPTED.to_owned()));
    }
    Ok(())
}

/// Read, write once, read again.
fn carry_out_write(write: &plan::Write) -> Result<Written, String> {
    let before = tunable::read(&write.location)?;
    tunable::write(&write.location, &write.value)?;
    let after = tunable::read(&write.location)?;
    let (tunable, asked) = (write.tunable.clone(), write.value.clone());
    Ok(Written { at_ns: clock::raw_ns(), tunable, asked, before, after })
}

fn started(role: Role, index: usize, launched: &Launched) -> Event {
    Event::Started(Started { at_ns: clock::raw_ns(), role, index, pid: launched.pid })
}

/// Everything that is known after the end: exits, outputs, counters; the workload first.
fn report<W: Write>(
    supervision: &Supervision<'_>,
    counters: Vec<OpenCounter>,
    stream: &mut EventStream<W>,
) -> Result<(), Stop> {
    let mut exits = supervision.exits();
    exits.sort_by_key(|exited| exited.role == Role::Background);
    for exited in exits {
        stream.say(Event::Exited(Exited { at_ns: clock::raw_ns(), ..exited }))?;
    }
    let mut processes: Vec<_> = supervision.processes().collect();
    processes.sort_by_key(|(role, _, _)| *role == Role::Background);
    for (role, index, launched) in processes {
        for kind in [Stream::Stdout, Stream::Stderr] {
            let text = launched.capture(kind).text();
            let (text, dropped_bytes) = text.map_err(|error| failure(Stage::Workload)(errno::of(error)))?;
            if role == Role::Background && text.is_empty() && dropped_bytes == 0 {
                continue;
            }
            let at_ns = clock::raw_ns();
            stream.say(Event::Output(Output { at_ns, role, index, stream: kind, text, dropped_bytes }))?;
        }
    }
    for counter in counters {
        stream.say(Event::Counter(counter.read()))?;
    }
    Ok(())
}
