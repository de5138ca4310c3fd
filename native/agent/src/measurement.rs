//! The measured part of a trial: background load, workload, and their figures.

mod errand;
mod formatter;

use std::io::Write;
use std::time::Duration;

use crate::clock;
use crate::counters::{self, OpenCounter};
use crate::errno;
use crate::event::{Event, Exited, Loaded, Output, Role, Stage, Started, Stream, Traced};
use crate::failure::{Stop, failure};
use crate::plan::{Command, Plan, Ready};
use crate::process::account;
use crate::process::interrupts::Interrupts;
use crate::process::launch::{Launched, launch};
use crate::process::load::{self, Load};
use crate::process::pauses::Pauses;
use crate::process::supervise::{Supervision, Woken};
use crate::process::surroundings::Surroundings;
use crate::sampling::sampler::Samplers;
use crate::stream::EventStream;
use crate::trace::Recorder;

/// What is measured, and how its processes are run.
pub struct Measurement<'a> {
    pub plan: &'a Plan,
    pub surroundings: &'a Surroundings,
    pub interrupts: Option<&'a Interrupts>,
}

impl Measurement<'_> {
    /// Run `workload` beside the plan's background load, to the end of both.
    pub fn carry_out<W: Write>(&self, workload: &Command, stream: &mut EventStream<W>) -> Result<(), Stop> {
        let spared = if self.plan.before.is_empty() { Vec::new() } else { account::children() };
        let mut recorder = self.plan.trace.as_ref().map(|trace| Recorder::prepare(trace.buffer_bytes));
        let mut supervision = Supervision::new(self.interrupts, spared.clone());
        for (index, command) in self.plan.background.iter().enumerate() {
            self.start_background(index, command, &mut supervision, stream)?;
        }
        let loaded = self.await_load(&mut supervision, spared)?;

        let padding = self.plan.perturbation.environment_bytes;
        let launched = self.launch(workload, "workload", padding).map_err(failure(Stage::Workload))?;
        let counters = counters::open(&self.plan.counters, launched.pid);
        pause(&mut supervision, self.plan.perturbation.start_delay_ns)?;
        supervision.sample(Samplers::start(&self.plan.samplers, launched.pid));
        if !self.plan.background.is_empty() {
            stream.say(Event::Loaded(Loaded { at_ns: clock::raw_ns(), used_ns: supervision.cpu_ns(), ..loaded }))?;
        }
        stream.say(started(Role::Workload, 0, &launched))?;
        let background: Vec<i32> = supervision.processes().map(|(_, _, launched)| launched.pid).collect();
        go_on(&mut recorder, |recorder| recorder.begin(launched.pid, &background));
        let leader = supervision.start(Role::Workload, 0, launched);
        let woken = supervision.wait(Some(leader), self.patience());
        go_on(&mut recorder, Recorder::end);
        if woken != Woken::Ended {
            supervision.end(leader, woken == Woken::Elapsed);
        }
        supervision.stop().map_err(failure(Stage::Workload))?;
        supervision.launched(leader).await_exec(Duration::ZERO).map_err(failure(Stage::Workload))?;
        let observed = match woken {
            Woken::Interrupted(reason) => Err(failure(Stage::Workload)(reason.to_owned())),
            _ => pause(&mut supervision, self.plan.observe_ns),
        };
        let samplers = supervision.take_samplers();
        let pauses = supervision.take_pauses();
        report(&supervision, counters, stream)?;
        for event in samplers.into_iter().flat_map(Samplers::events) {
            stream.say(event)?;
        }
        if let Some(recorder) = recorder {
            stream.say(traced(recorder))?;
        }
        for event in pauses.into_iter().flat_map(Pauses::events) {
            stream.say(event)?;
        }
        observed
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

    /// Wait until every background load is there, for `settle_ns` at least.
    /// One that does not settle in time is reported; one that does not do what is waited for is a failure.
    fn await_load(&self, supervision: &mut Supervision<'_>, mut others: Vec<i32>) -> Result<Loaded, Stop> {
        let begin_ns = clock::raw_ns();
        let limit = Duration::from_nanos(self.plan.ready_timeout_ns);
        let waited = || Duration::from_nanos(clock::raw_ns().saturating_sub(begin_ns));
        let mut must_settle = false;
        for place in 0..self.plan.background.len() {
            match self.plan.ready.get(place).unwrap_or(&Ready::Settled) {
                Ready::Settled => must_settle = true,
                explicit => {
                    others.push(supervision.launched(place).pid);
                    while !self.is_ready(place, explicit, supervision)? {
                        if waited() >= limit {
                            return Err(failure(Stage::Background)(unready(place, explicit, limit)));
                        }
                        pause(supervision, load::WINDOW.as_nanos() as u64)?;
                    }
                }
            }
        }
        let rest = Duration::from_nanos(self.plan.settle_ns).saturating_sub(waited());
        pause(supervision, rest.as_nanos() as u64)?;
        let mut loaded = Loaded { at_ns: 0, settled: true, waited_ns: 0, processes: 0, used_ns: Vec::new() };
        if must_settle {
            let mut load = Load::besides(others);
            loop {
                pause(supervision, load::WINDOW.as_nanos() as u64)?;
                loaded.settled = load.has_settled();
                if loaded.settled || waited() >= limit {
                    break;
                }
            }
            loaded.processes = load.processes();
        }
        Ok(Loaded { waited_ns: waited().as_nanos() as u64, ..loaded })
    }

    fn is_ready(&self, place: usize, ready: &Ready, supervision: &Supervision<'_>) -> Result<bool, Stop> {
        match ready {
            Ready::Settled | Ready::Started => Ok(true),
            Ready::Output { text } => {
                let launched = supervision.launched(place);
                let printed = [Stream::Stdout, Stream::Stderr].map(|kind| launched.capture(kind).text());
                Ok(printed.into_iter().flatten().any(|(printed, _)| printed.contains(text)))
            }
            Ready::Command { command } => self.succeeds(&format!("ready-{place}"), command),
        }
    }

    pub fn launch(&self, command: &Command, name: &str, padding_bytes: usize) -> Result<Launched, String> {
        launch(command, name, self.surroundings, padding_bytes, self.plan.output_limit_bytes, self.patience())
    }

    pub fn patience(&self) -> Duration {
        Duration::from_nanos(self.plan.timeout_ns)
    }
}

/// One step more, unless one before it went wrong.
fn go_on(recorder: &mut Option<Result<Recorder, String>>, step: impl FnOnce(&mut Recorder) -> Result<(), String>) {
    if let Some(own) = recorder {
        if let Some(reason) = own.as_mut().ok().and_then(|recorder| step(recorder).err()) {
            *own = Err(reason);
        }
    }
}

fn traced(recorder: Result<Recorder, String>) -> Event {
    let recording = recorder.and_then(|recorder| recorder.recording());
    let at_ns = clock::raw_ns();
    let (recording, not_supported) = match recording {
        Ok(recording) => (Some(recording), None),
        Err(reason) => (None, Some(reason)),
    };
    Event::Traced(Box::new(Traced { at_ns, recording, not_supported }))
}

fn unready(place: usize, ready: &Ready, limit: Duration) -> String {
    let what = match ready {
        Ready::Output { text } => format!("it has not printed {text:?}"),
        Ready::Command { command } => format!("{} does not succeed", command.argv.join(" ")),
        Ready::Settled | Ready::Started => "it does not run".to_owned(),
    };
    format!("load {} is not ready after {} s: {what}", place + 1, limit.as_secs_f64())
}

fn pause(supervision: &mut Supervision<'_>, nanoseconds: u64) -> Result<(), Stop> {
    if nanoseconds == 0 {
        return Ok(());
    }
    match supervision.wait(None, Duration::from_nanos(nanoseconds)) {
        Woken::Interrupted(reason) => Err(failure(Stage::Workload)(reason.to_owned())),
        _ => Ok(()),
    }
}

pub fn started(role: Role, index: usize, launched: &Launched) -> Event {
    Event::Started(Started { at_ns: clock::raw_ns(), role, index, pid: launched.pid })
}

/// Report what is known after the end.
/// Exits, outputs, counters; the workload first.
pub fn report<W: Write>(
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
            if role != Role::Workload && text.is_empty() && dropped_bytes == 0 {
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
