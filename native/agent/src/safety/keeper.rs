//! The keeper writes down what each plan will change, and puts it back afterwards.
//!
//! It has the session's journal and guardian; both begin with the first plan that changes something.
//!
//! The keeper owns what a plan changes while that plan is carried out.
//! It owns nothing between plans: a value set then by another program stays, and the next plan restores it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::clock;
use crate::event::{Event, Failed, Stage, Written};
use crate::failure::{Failure, Stop};
use crate::plan::{Attributes, Location, Plan, Read, Write};
use crate::process::cgroup;
use crate::safety::guardian::Guarded;
use crate::safety::record::Contents;
use crate::safety::registry::Registry;
use crate::safety::restore::{Outcome, Places, restore};
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
    /// Which of `steps` are of a place.
    of_place: HashMap<Location, Vec<usize>>,
    /// Places in `steps`: what the plan at hand changes.
    held: Vec<usize>,
    /// Places in `steps`: what could not be put back.
    unsettled: Vec<usize>,
    /// What was otherwise when it was looked at, by its place in `steps`.
    seen: BTreeMap<usize, String>,
    /// What the plan at hand keeps and could not put back.
    irretrievable: Vec<Irretrievable>,
}

/// A value to which there is no way back.
struct Irretrievable {
    read: Read,
    before: String,
    /// Why there is none.
    reason: String,
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
            of_place: HashMap::new(),
            held: Vec::new(),
            unsettled: Vec::new(),
            seen: BTreeMap::new(),
            irretrievable: Vec::new(),
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
        for read in &plan.keeps {
            self.watch(read, &mut steps)?;
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
        Ok(Undo::Value(OldValue { tunable, location, before, companion: false, appeared, watched: false }))
    }

    /// Those that are there.
    fn add_companions(&mut self, write: &Write, steps: &mut Vec<Undo>) -> Result<(), Failure> {
        let refused = |reason| Failure::of(&write.tunable, Stage::Journal, reason);
        for location in &write.companions {
            if self.system.is_there(location) {
                let before = self.system.keep(location).map_err(refused)?;
                let (tunable, location) = (write.tunable.clone(), location.clone());
                steps.push(Undo::Value(OldValue {
                    tunable,
                    location,
                    before,
                    companion: true,
                    appeared: false,
                    watched: false,
                }));
            }
        }
        Ok(())
    }

    /// The same for what another program may change.
    fn watch(&mut self, read: &Read, steps: &mut Vec<Undo>) -> Result<(), Failure> {
        let Read { tunable, location } = read.clone();
        match self.system.keep(&location) {
            Ok(before) => {
                let old = OldValue { tunable, location, before, companion: false, appeared: false, watched: true };
                steps.push(Undo::Value(old));
            }
            Err(reason) if location.is_file() && self.system.is_there(&location) => {
                return Err(Failure::of(&tunable, Stage::Journal, reason));
            }
            Err(reason) => {
                // One without a state is not there, or its device cannot change it.
                let before = self.system.state(&location).ok();
                let lost = before.map(|before| Irretrievable { read: read.clone(), before, reason });
                self.irretrievable.extend(lost);
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
        let mut named: HashSet<Location> = HashSet::new();
        for step in steps {
            let is_first = step.location().is_none_or(|location| named.insert(location.clone()));
            match self.known(&step) {
                Some(index) => held.push(index),
                None if is_first => {
                    held.push(self.steps.len() + new.len());
                    new.push(step);
                }
                None => {}
            }
        }
        self.begin().map_err(failed)?;
        if let Some(session) = self.session.as_ref().filter(|_| !new.is_empty()) {
            session.append(&new).map_err(failed)?;
            for (index, step) in new.iter().enumerate() {
                if let Some(location) = step.location() {
                    self.of_place.entry(location.clone()).or_default().push(self.steps.len() + index);
                }
            }
            self.steps.extend(new);
            self.roll.iter().for_each(|roll| self.system.note_steps(*roll, self.steps.len()));
        }
        let mut before: HashSet<usize> = self.held.iter().copied().collect();
        self.held.extend(held.into_iter().filter(|index| before.insert(*index)));
        Ok(())
    }

    /// Where the journal has `step`, if what it says last of that place is the same.
    fn known(&self, step: &Undo) -> Option<usize> {
        let Some(location) = step.location() else { return self.steps.iter().position(|known| known == step) };
        let of_place = self.of_place.get(location)?;
        let same = self.steps[*of_place.last()?].same_end(step);
        of_place.iter().copied().find(|index| self.steps[*index] == *step).filter(|_| same)
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

    /// Look at what is kept while others may have changed it: they may undo that themselves.
    pub fn look(&mut self) {
        for index in &self.held {
            let Undo::Value(old) = &self.steps[*index] else { continue };
            if old.watched && self.system.state(&old.location).is_ok_and(|state| state != old.before) {
                self.seen.extend(self.system.read(&old.location).ok().map(|found| (*index, found)));
            }
        }
    }

    /// Put back all that the plan at hand has changed.
    /// The events say what became of it.
    pub fn put_back(&mut self) -> Vec<Event> {
        let held = std::mem::take(&mut self.held);
        let mut seen = std::mem::take(&mut self.seen);
        let irretrievable = std::mem::take(&mut self.irretrievable);
        let steps: Vec<&Undo> = held.iter().map(|index| &self.steps[*index]).collect();
        let mut outcomes = restore(&steps, &mut self.system);
        for (index, outcome) in held.iter().zip(&mut outcomes) {
            match outcome {
                Outcome::Restored { found, value } if found == value => {
                    seen.remove(index).into_iter().for_each(|value| *found = value);
                }
                _ => {}
            }
        }
        let unsettled = held.iter().zip(&outcomes).filter(|(_, outcome)| !outcome.is_settled());
        self.unsettled.extend(unsettled.map(|(index, _)| *index));
        let said = steps.iter().zip(&outcomes).rev().filter_map(|(step, outcome)| outcome.event(step));
        let lost = irretrievable.iter().filter_map(|one| one.lost(&mut self.system));
        said.chain(lost).collect()
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
        if result.is_ok() {
            // What it notes of a journal that stays is for a later restore.
            self.session.iter().for_each(|session| self.system.remove_roll(session.owner()));
        }
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

impl Irretrievable {
    /// What is to be said of it, if it was changed.
    fn lost(&self, places: &mut impl Places) -> Option<Event> {
        let Irretrievable { read: Read { tunable, location }, before, reason } = self;
        let now = places.state(location).ok().filter(|now| now != before)?;
        let message = format!("{tunable} was {before:?} and is {now:?}; put it back by hand: {reason}");
        let (at_ns, tunable) = (clock::raw_ns(), Some(tunable.clone()));
        Some(Event::Failed(Failed { at_ns, stage: Stage::Restore, message, tunable }))
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
