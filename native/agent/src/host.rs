//! A plan on the machine that the agent was started on.

use std::fs::File;
use std::io::{self, Read, Write};

use crate::event::{Accepted, Event, Stage};
use crate::interrupts::Interrupts;
use crate::plan::{Attributes, Plan, PLAN_LIMIT_BYTES};
use crate::stream::EventStream;
use crate::surroundings::Surroundings;
use crate::trial::Trial;
use crate::{clock, errno, lifted, machine, process};

const NO_JOURNAL: &str = "writing on this machine needs the journal, which this version does not have";

/// How a run ended; the number is the exit status of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done = 0,
    Failed = 1,
    Malformed = 2,
}

/// Carry out the plan in `source` (`-` is standard input) and say the events on standard output.
pub fn run(source: &str) -> io::Result<Outcome> {
    let mut stream = EventStream::new(io::stdout().lock());
    stream.say(Event::Hello(machine::hello(false)))?;
    let plan = match document(source).and_then(|document| Plan::parse(&document)) {
        Ok(plan) => plan,
        Err(reason) => {
            eprintln!("ajuste-agent: the plan {source} is malformed: {reason}");
            stream.fail(Stage::Plan, reason, None)?;
            return Ok(Outcome::Malformed);
        }
    };
    let ok = if plan.writes.is_empty() { carry_out(&plan, &mut stream)? } else { refuse(&plan, &mut stream)? };
    Ok(if ok { Outcome::Done } else { Outcome::Failed })
}

fn document(source: &str) -> Result<Vec<u8>, String> {
    let input: Box<dyn Read> = match source {
        "-" => Box::new(io::stdin()),
        path => Box::new(File::open(path).map_err(errno::of)?),
    };
    let mut document = Vec::new();
    input.take(PLAN_LIMIT_BYTES as u64 + 1).read_to_end(&mut document).map_err(errno::of)?;
    Ok(document)
}

fn refuse<W: Write>(plan: &Plan, stream: &mut EventStream<W>) -> io::Result<bool> {
    stream.say(Event::Accepted(Accepted { at_ns: clock::raw_ns(), id: plan.id.clone() }))?;
    let tunable = plan.writes.first().map(|write| write.tunable.as_str());
    stream.fail(Stage::Write, NO_JOURNAL, tunable)?;
    stream.end(&plan.id)
}

fn carry_out<W: Write>(plan: &Plan, stream: &mut EventStream<W>) -> io::Result<bool> {
    let interrupts = Interrupts::catch()?;
    process::adopt_orphans();
    let realtime = |attributes: &Attributes| attributes.is_realtime();
    let nice = if plan.commands().any(|command| realtime(&command.attributes)) { lift_above() } else { None };
    let surroundings = Surroundings { event_port: None, die_with_agent: true, nice };
    Trial { plan, surroundings: &surroundings, interrupts: Some(&interrupts), mix: None }.carry_out(stream)
}

/// Get before real-time processes, where that is permitted (where it is not, they are not either). Returns the nice
/// value that processes would have had from the agent otherwise.
fn lift_above() -> Option<i32> {
    let nice = rustix::process::getpriority_process(None).ok()?;
    lifted::lift().ok().map(|()| nice)
}
