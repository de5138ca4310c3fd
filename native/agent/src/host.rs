//! Plans on the machine that the agent was started on.

use std::io::{self, Read, Write};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::path::{self, PathBuf};
use std::rc::Rc;

use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};

use crate::clock;
use crate::counters::Standby;
use crate::disk::fs::{self, File};
use crate::errno;
use crate::event::{Accepted, Event, Stage};
use crate::machine;
use crate::plan::{Attributes, PLAN_LIMIT_BYTES, Plan, Scratch};
use crate::process::account;
use crate::process::interrupts::Interrupts;
use crate::process::lifted;
use crate::process::surroundings::Surroundings;
use crate::safety::keeper::Keeper;
use crate::safety::registry::{self, Registry};
use crate::safety::system::ThisMachine;
use crate::scratch::mount_point;
use crate::stream::EventStream;
use crate::trial::Trial;

const NO_JOURNAL: &str = "writing on this machine needs a journal: --journal DIR";

/// How a run ended; the number is the exit status of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done = 0,
    Failed = 1,
    Malformed = 2,
}

impl Outcome {
    pub fn of(ok: bool) -> Outcome {
        if ok { Outcome::Done } else { Outcome::Failed }
    }
}

/// What is kept, and where.
#[derive(Debug)]
pub struct Custody {
    /// The directory of journals. Without one nothing is written.
    pub journal: Option<PathBuf>,
    /// The directory of the registry of journals.
    pub registry: PathBuf,
    /// The lock of the machine, an inherited descriptor.
    /// The agent and its guardian keep it open until they end; no workload inherits it.
    pub held: Option<RawFd>,
}

impl Default for Custody {
    fn default() -> Custody {
        Custody { journal: None, registry: registry::DIRECTORY.into(), held: None }
    }
}

/// This machine, between plans.
pub struct Host {
    pub interrupts: Interrupts,
    keeper: Option<Keeper>,
    standby: Standby,
    _held: Option<Rc<OwnedFd>>,
}

impl Host {
    pub fn prepare(custody: Custody) -> io::Result<Host> {
        let interrupts = Interrupts::catch(rustix::stdio::stdout())?;
        account::adopt_orphans();
        let held = custody.held.map(take_over).transpose()?;
        let held = held.map(Rc::new);
        let system = ThisMachine { held: held.clone() };
        let registry = Registry::new(&system, &path::absolute(custody.registry)?);
        let journal = custody.journal.map(path::absolute).transpose()?;
        let keeper = journal.map(|directory| Keeper::new(&system, directory, registry));
        Ok(Host { interrupts, keeper, standby: Standby::default(), _held: held })
    }

    /// Carry out one plan, and put everything back.
    /// True if nothing failed; an error means that the reader is gone.
    pub fn carry_out<W: Write>(&mut self, plan: &Plan, stream: &mut EventStream<W>) -> io::Result<bool> {
        if self.keeper.is_none() && changes_settings(plan) {
            return refuse(plan, stream);
        }
        self.standby.keep(&plan.counters);
        let realtime = |attributes: &Attributes| attributes.is_realtime();
        let nice = if plan.commands().any(|(_, command)| realtime(&command.attributes)) { lift_above() } else { None };
        let surroundings = Surroundings { event_port: None, die_with_agent: true, nice, roll: None };
        let trial = Trial { plan, surroundings: &surroundings, interrupts: Some(&self.interrupts), mix: None };
        let result = trial.carry_out(self.keeper.as_mut(), stream);
        if nice.is_some() {
            lifted::lower();
        }
        result
    }

    /// The orderly end. The error says what could not be put back.
    pub fn finish(self) -> Result<(), String> {
        self.keeper.map_or(Ok(()), Keeper::finish)
    }
}

/// Carry out the plan in `source` and write the events to standard output.
/// `-` is standard input.
pub fn run(source: &str, custody: Custody) -> io::Result<Outcome> {
    let mut stream = EventStream::gathering(fs::stdout());
    stream.say(Event::Hello(machine::hello(false)))?;
    let plan = match document(source).and_then(|document| Plan::parse(&document)) {
        Ok(plan) => plan,
        Err(reason) => {
            eprintln!("ajuste-agent: the plan {source} is malformed: {reason}");
            stream.fail(Stage::Plan, reason, None)?;
            return Ok(Outcome::Malformed);
        }
    };
    let mut host = Host::prepare(custody)?;
    let ok = host.carry_out(&plan, &mut stream);
    Ok(Outcome::of(complain(host.finish()) && ok?))
}

/// Say on standard error why something is not as it should be. True if it is.
pub fn complain(result: Result<(), String>) -> bool {
    if let Err(reason) = &result {
        eprintln!("ajuste-agent: {reason}");
    }
    result.is_ok()
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

/// Whether a killed agent would leave something behind without a journal.
fn changes_settings(plan: &Plan) -> bool {
    let is_made = |scratch: &Scratch| mount_point::missing(&scratch.mount).is_ok_and(|missing| !missing.is_empty());
    !plan.writes.is_empty()
        || !plan.keeps.is_empty()
        || plan.trace.is_some()
        || plan.scratch.as_ref().is_some_and(is_made)
}

fn refuse<W: Write>(plan: &Plan, stream: &mut EventStream<W>) -> io::Result<bool> {
    stream.say(Event::Accepted(Accepted { at_ns: clock::raw_ns(), id: plan.id.clone() }))?;
    let tunable = plan.writes.first().map(|write| write.tunable.as_str());
    let stage = if tunable.is_some() { Stage::Write } else { Stage::Scratch };
    stream.fail(stage, NO_JOURNAL, tunable)?;
    stream.end(&plan.id)
}

/// Take over an inherited descriptor; programs that we start do not inherit it.
fn take_over(descriptor: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the parent gave us the descriptor; the next call checks that it is open.
    let owned = unsafe { OwnedFd::from_raw_fd(descriptor) };
    match fcntl_getfd(&owned) {
        Ok(flags) => fcntl_setfd(&owned, flags | FdFlags::CLOEXEC).map(|()| owned).map_err(Into::into),
        Err(error) => {
            std::mem::forget(owned);
            Err(error.into())
        }
    }
}

/// Run before real-time processes, where that is permitted.
/// Where it is not, their policies are not permitted either. Returns the nice value that processes would otherwise have
/// had from the agent.
fn lift_above() -> Option<i32> {
    let nice = rustix::process::getpriority_process(None).ok()?;
    lifted::lift().ok().map(|()| nice)
}
