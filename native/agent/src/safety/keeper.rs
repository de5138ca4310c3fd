//! The keeper of a machine's settings: writes down what each plan will change, and puts it back afterwards.
//!
//! It has the session's journal and guardian; both begin with the first plan that changes something.
//!
//! While a plan is carried out, what it changes is the keeper's. Between plans nothing is: a value that somebody else
//! sets then is theirs, and the next plan goes back to it.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use crate::errno;
use crate::event::{Event, Stage};
use crate::failure::Failure;
use crate::place::tunable;
use crate::plan::{Attributes, Plan, Write};
use crate::process::{cgroup, enclosure};
use crate::safety::guardian::Guardian;
use crate::safety::journal::Journal;
use crate::safety::restore::{restore, Machine, Outcome};
use crate::safety::roll::Roll;
use crate::safety::undo::{Made, OldValue, Undo};
use crate::scratch::mount_point;
use crate::trace;

pub struct Keeper {
    directory: PathBuf,
    /// Kept open by the agent and its guardian until both have ended: the lock of the machine.
    lock: Option<OwnedFd>,
    roll: Option<Roll>,
    journal: Option<Journal>,
    guardian: Option<Guardian>,
    /// Those in the journal.
    steps: Vec<Undo>,
    /// Places in `steps`: what the plan at hand changes.
    held: Vec<usize>,
    /// Places in `steps`: what could not be put back.
    unsettled: Vec<usize>,
}

impl Keeper {
    /// One whose journal will be in `directory`.
    pub fn new(directory: PathBuf, lock: Option<OwnedFd>) -> Keeper {
        Keeper {
            directory,
            lock,
            roll: None,
            journal: None,
            guardian: None,
            steps: Vec::new(),
            held: Vec::new(),
            unsettled: Vec::new(),
        }
    }

    /// Have on disk what undoes all that `plan` will change. If this fails, nothing may be changed.
    pub fn keep(&mut self, plan: &Plan) -> Result<(), Failure> {
        // One that is not there (yet) is looked at again just before it is written.
        let there = plan.writes.iter().filter(|write| tunable::is_there(&write.location));
        let mut steps = there.map(|write| old_value(write, false)).collect::<Result<Vec<_>, _>>()?;
        for write in &plan.writes {
            steps.extend(companions(write)?);
        }
        steps.extend(directories(plan)?);
        steps.extend(groups(plan));
        steps.extend(plan.trace.iter().map(|_| made(&trace::instance())));
        self.hold(steps)
    }

    /// The same for one write, whose place may have come into being with the writes before it.
    pub fn keep_place(&mut self, write: &Write) -> Result<(), Failure> {
        let is_held = |index: &usize| matches!(&self.steps[*index], Undo::Value(old) if old.location == write.location);
        if self.held.iter().any(is_held) {
            return Ok(());
        }
        self.hold(vec![old_value(write, true)?])
    }

    fn hold(&mut self, steps: Vec<Undo>) -> Result<(), Failure> {
        if steps.is_empty() {
            return Ok(());
        }
        let failed = |message| Failure { stage: Stage::Journal, message, tunable: None };
        if let Some(index) = self.unsettled.first() {
            let message = "nothing more is changed, because this could not be put back".to_owned();
            return Err(Failure { tunable: self.steps[*index].tunable().map(str::to_owned), ..failed(message) });
        }
        let mut held = Vec::new();
        let mut new: Vec<Undo> = Vec::new();
        for step in steps {
            match self.known(&step) {
                Some(index) => held.push(index),
                None if new.iter().any(|one| one.same_place(&step)) => {}
                None => {
                    held.push(self.steps.len() + new.len());
                    new.push(step);
                }
            }
        }
        self.begin().map_err(failed)?;
        if let Some(journal) = self.journal.as_ref().filter(|_| !new.is_empty()) {
            journal.append(&new).map_err(failed)?;
            self.steps.extend(new);
        }
        for index in held {
            if !self.held.contains(&index) {
                self.held.push(index);
            }
        }
        Ok(())
    }

    /// Where the journal has `step`, if what it says last of that place is the same.
    fn known(&self, step: &Undo) -> Option<usize> {
        let last = self.steps.iter().rfind(|known| known.same_place(step))?;
        let same = last.same_end(step);
        self.steps.iter().position(|known| known == step).filter(|_| same)
    }

    /// Have a journal and a living guardian.
    fn begin(&mut self) -> Result<(), String> {
        let journal = match self.journal.take() {
            Some(journal) => journal,
            None => Journal::create(&self.directory)?,
        };
        let journal = self.journal.insert(journal);
        let mut made = None;
        if let (None, Some(owner)) = (self.roll, journal.owner()) {
            let roll = self.roll.insert(Roll::create(owner).map_err(errno::of)?);
            made = enclosure::create(&format!("{}-{}", owner.pid, owner.started_ticks));
            made.iter().for_each(|path| roll.enclose(path));
        }
        let Some(roll) = self.roll else { return Err("there is no roll of processes".to_owned()) };
        if !self.guardian.as_ref().is_some_and(Guardian::is_alive) {
            self.guardian = Some(Guardian::fork(journal, roll, self.lock.as_ref().map(AsRawFd::as_raw_fd))?);
        }
        // Without the guardian, which is to outlive all that is in it.
        made.iter().for_each(|path| enclosure::enter(path));
        Ok(())
    }

    /// Where processes are entered while something is held.
    pub fn roll(&self) -> Option<Roll> {
        self.roll
    }

    /// Put back all that the plan at hand has changed. The events say what became of it.
    pub fn put_back(&mut self) -> Vec<Event> {
        let held = std::mem::take(&mut self.held);
        let steps: Vec<&Undo> = held.iter().map(|index| &self.steps[*index]).collect();
        let outcomes = restore(&steps, &mut Machine);
        let unsettled = held.iter().zip(&outcomes).filter(|(_, outcome)| !outcome.is_settled());
        self.unsettled.extend(unsettled.map(|(index, _)| *index));
        steps.iter().zip(&outcomes).rev().filter_map(|(step, outcome)| outcome.event(step)).collect()
    }

    /// The orderly end: no journal, no guardian. The error says what could not be put back; the journal then stays.
    pub fn finish(mut self) -> Result<(), String> {
        let steps: Vec<&Undo> = self.unsettled.iter().map(|index| &self.steps[*index]).collect();
        let outcomes = restore(&steps, &mut Machine);
        let open = |(index, outcome): (&usize, &Outcome)| (!outcome.is_settled()).then_some(*index);
        self.unsettled = self.unsettled.iter().zip(&outcomes).filter_map(open).collect();
        let result = self.close_journal();
        self.roll.and_then(|roll| roll.enclosure()).iter().for_each(|path| {
            enclosure::clear(path);
        });
        self.journal.iter().filter_map(Journal::owner).for_each(Roll::remove);
        if let Some(guardian) = self.guardian.take() {
            guardian.dismiss();
        }
        result
    }

    fn close_journal(&self) -> Result<(), String> {
        let Some(journal) = &self.journal else { return Ok(()) };
        if self.unsettled.is_empty() {
            return journal.remove();
        }
        let settled: Vec<usize> = (0..self.steps.len()).filter(|index| !self.unsettled.contains(index)).collect();
        journal.mark_done(&settled)?;
        Err(format!("not everything could be put back; what remains is in {}", journal.shown().display()))
    }
}

fn old_value(write: &Write, appeared: bool) -> Result<Undo, Failure> {
    let refused = |reason| Failure::of(&write.tunable, Stage::Write, reason);
    let before = tunable::keep(&write.location).map_err(refused)?;
    let (tunable, location) = (write.tunable.clone(), write.location.clone());
    Ok(Undo::Value(OldValue { tunable, location, before, companion: false, appeared }))
}

/// Those that are there.
fn companions(write: &Write) -> Result<Vec<Undo>, Failure> {
    let there = write.companions.iter().filter(|location| tunable::is_there(location));
    let kept = there.map(|location| {
        let refused = |reason| Failure::of(&write.tunable, Stage::Journal, reason);
        let before = tunable::keep(location).map_err(refused)?;
        let (tunable, location) = (write.tunable.clone(), location.clone());
        Ok(Undo::Value(OldValue { tunable, location, before, companion: true, appeared: false }))
    });
    kept.collect()
}

/// The directories that are made to mount the plan's scratch file system on.
fn directories(plan: &Plan) -> Result<Vec<Undo>, Failure> {
    let refused = |message| Failure { stage: Stage::Scratch, message, tunable: None };
    let missing = plan.scratch.as_ref().map_or(Ok(Vec::new()), |scratch| mount_point::missing(&scratch.mount));
    Ok(missing.map_err(refused)?.iter().map(|path| made(path)).collect())
}

fn made(path: &Path) -> Undo {
    Undo::Made(Made { path: path.to_string_lossy().into_owned() })
}

/// The control groups that the processes of `plan` will get.
fn groups(plan: &Plan) -> Vec<Undo> {
    let wanted = |attributes: &Attributes| attributes.cgroup_weight.is_some() || !attributes.cgroup_limits.is_empty();
    let named = plan.commands().filter(|(_, command)| wanted(&command.attributes));
    named.map(|(name, _)| made(&cgroup::path(&name))).collect()
}
