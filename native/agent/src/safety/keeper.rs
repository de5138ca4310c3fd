//! The keeper writes down what each plan will change, and puts it back afterwards.
//!
//! It has the session's journal and guardian; both begin with the first plan that changes something.
//!
//! The keeper owns what a plan changes while that plan is carried out.
//! It owns nothing between plans: a value set then by another program stays, and the next plan restores it.

use std::path::{Path, PathBuf};

use crate::clock;
use crate::event::{Event, Stage, Written};
use crate::failure::{Failure, Stop};
use crate::plan::{Attributes, Plan, Write};
use crate::process::cgroup;
use crate::safety::guardian::Guarded;
use crate::safety::record::Contents;
use crate::safety::registry::Registry;
use crate::safety::restore::{restore, Outcome, Places};
use crate::safety::session::Session;
use crate::safety::system::ThisMachine;
use crate::safety::undo::{Made, OldValue, Undo};
use crate::scratch::mount_point;
use crate::trace;

pub struct Keeper<S: Guarded = ThisMachine> {
    system: S,
    directory: PathBuf,
    registry: Registry<S>,
    roll: Option<S::Roll>,
    session: Option<Session<S>>,
    guardian: Option<S::Guardian>,
    /// Those in the journal.
    steps: Vec<Undo>,
    /// Places in `steps`: what the plan at hand changes.
    held: Vec<usize>,
    /// Places in `steps`: what could not be put back.
    unsettled: Vec<usize>,
}

impl<S: Guarded> Keeper<S> {
    /// One whose journal will be in `directory`, an absolute path.
    pub fn new(system: &S, directory: PathBuf, registry: Registry<S>) -> Keeper<S> {
        Keeper {
            system: system.clone(),
            directory,
            registry,
            roll: None,
            session: None,
            guardian: None,
            steps: Vec::new(),
            held: Vec::new(),
            unsettled: Vec::new(),
        }
    }

    /// Carry out the writes of `plan`, and report each.
    /// [`Keeper::put_back`] must follow in every case.
    pub fn change(&mut self, plan: &Plan, say: &mut dyn FnMut(Written) -> Result<(), Stop>) -> Result<(), Stop> {
        self.keep(plan)?;
        for write in &plan.writes {
            self.keep_place(write)?;
            say(carry_out_write(write, &mut self.system)?)?;
        }
        Ok(())
    }

    /// Have on disk what undoes all that `plan` will change.
    /// If this fails, nothing may be changed.
    fn keep(&mut self, plan: &Plan) -> Result<(), Failure> {
        // One that is not there (yet) is looked at again just before it is written.
        let mut steps = Vec::new();
        for write in &plan.writes {
            if self.system.is_there(&write.location) {
                steps.push(self.old_value(write, false)?);
            }
        }
        for write in &plan.writes {
            self.add_companions(write, &mut steps)?;
        }
        steps.extend(directories(plan)?);
        steps.extend(groups(plan));
        steps.extend(plan.trace.iter().map(|_| made(&trace::instance())));
        self.hold(steps)
    }

    /// The same for one write.
    /// Its place may have appeared with the writes before it.
    fn keep_place(&mut self, write: &Write) -> Result<(), Failure> {
        let is_held = |index: &usize| matches!(&self.steps[*index], Undo::Value(old) if old.location == write.location);
        if self.held.iter().any(is_held) {
            return Ok(());
        }
        let step = self.old_value(write, true)?;
        self.hold(vec![step])
    }

    fn old_value(&mut self, write: &Write, appeared: bool) -> Result<Undo, Failure> {
        let refused = |reason| Failure::of(&write.tunable, Stage::Write, reason);
        let before = self.system.keep(&write.location).map_err(refused)?;
        let (tunable, location) = (write.tunable.clone(), write.location.clone());
        Ok(Undo::Value(OldValue { tunable, location, before, companion: false, appeared }))
    }

    /// Those that are there.
    fn add_companions(&mut self, write: &Write, steps: &mut Vec<Undo>) -> Result<(), Failure> {
        let refused = |reason| Failure::of(&write.tunable, Stage::Journal, reason);
        for location in &write.companions {
            if self.system.is_there(location) {
                let before = self.system.keep(location).map_err(refused)?;
                let (tunable, location) = (write.tunable.clone(), location.clone());
                steps.push(Undo::Value(OldValue { tunable, location, before, companion: true, appeared: false }));
            }
        }
        Ok(())
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
        if let Some(session) = self.session.as_ref().filter(|_| !new.is_empty()) {
            session.append(&new).map_err(failed)?;
            self.steps.extend(new);
            self.roll.iter().for_each(|roll| self.system.note_steps(*roll, self.steps.len()));
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
        let session = match self.session.take() {
            Some(session) => session,
            None => Session::begin(&self.system, &self.directory, &self.registry)?,
        };
        let session = self.session.insert(session);
        let began = self.roll.is_none();
        let roll = match self.roll {
            Some(roll) => roll,
            None => *self.roll.insert(self.system.make_roll(session.owner())?),
        };
        if !self.guardian.as_ref().is_some_and(|guardian| self.system.is_guarded(guardian)) {
            self.guardian = Some(self.system.fork_guardian(session, roll)?);
        }
        if began {
            // Without the guardian, which is to outlive all that is in it.
            self.system.enter_enclosure(roll);
        }
        Ok(())
    }

    /// Where processes are entered while something is held.
    pub fn roll(&self) -> Option<S::Roll> {
        self.roll
    }

    /// Put back all that the plan at hand has changed.
    /// The events say what became of it.
    pub fn put_back(&mut self) -> Vec<Event> {
        let held = std::mem::take(&mut self.held);
        let steps: Vec<&Undo> = held.iter().map(|index| &self.steps[*index]).collect();
        let outcomes = restore(&steps, &mut self.system);
        let unsettled = held.iter().zip(&outcomes).filter(|(_, outcome)| !outcome.is_settled());
        self.unsettled.extend(unsettled.map(|(index, _)| *index));
        steps.iter().zip(&outcomes).rev().filter_map(|(step, outcome)| outcome.event(step)).collect()
    }

    /// The orderly end: no journal, no guardian.
    /// The error says what could not be put back; the journal then stays.
    pub fn finish(mut self) -> Result<(), String> {
        let steps: Vec<&Undo> = self.unsettled.iter().map(|index| &self.steps[*index]).collect();
        let outcomes = restore(&steps, &mut self.system);
        let open = |(index, outcome): (&usize, &Outcome)| (!outcome.is_settled()).then_some(*index);
        self.unsettled = self.unsettled.iter().zip(&outcomes).filter_map(open).collect();
        let result = self.close_journal();
        self.roll.iter().for_each(|roll| self.system.clear_enclosure(*roll));
        self.session.iter().for_each(|session| self.system.remove_roll(session.owner()));
        if let Some(guardian) = self.guardian.take() {
            self.system.dismiss(guardian);
        }
        result
    }

    fn close_journal(&self) -> Result<(), String> {
        let Some(session) = &self.session else { return Ok(()) };
        if self.unsettled.is_empty() {
            return session.close();
        }
        let settled: Vec<usize> = (0..self.steps.len()).filter(|index| !self.unsettled.contains(index)).collect();
        let journal = &session.journal;
        let contents = Contents { header: Some(session.header.clone()), ..Contents::default() };
        journal.mark_done(&contents, &settled)?;
        Err(format!("not everything could be put back; what remains is in {}", journal.shown().display()))
    }
}

/// Read, write once, read again.
pub fn carry_out_write(write: &Write, places: &mut impl Places) -> Result<Written, Failure> {
    let refused = |reason| Failure::of(&write.tunable, Stage::Write, reason);
    let before = places.read(&write.location).map_err(refused)?;
    places.write(&write.location, &write.value).map_err(refused)?;
    let after = places.read(&write.location).map_err(refused)?;
    let (tunable, asked) = (write.tunable.clone(), write.value.clone());
    Ok(Written { at_ns: clock::raw_ns(), tunable, asked, before, after })
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
