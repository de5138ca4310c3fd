//! Putting things back as a journal says they were.
//!
//! In reverse order, each place: read, compare, write where it differs, read again. Some places are coupled: writing
//! one changes another (`vm.dirty_ratio` zeroes `vm.dirty_bytes`, whose own 0 the kernel refuses), or a place is there
//! only while another has a certain value (the knobs of a block scheduler). So all of it is gone through again, until
//! every place reads as it did before, and what was refused on the way does not matter.
//!
//! The policy: what this agent has changed is put back, even if another program has changed it since. That program
//! cannot have known that the value was only there for a trial. The event says which value was found.

use std::time::Duration;

use crate::clock;
use crate::event::{Event, Failed, Restored, Stage};
use crate::plan::Location;
use crate::safety::undo::{Made, OldValue, Undo};

/// Two are needed for the couplings that are known.
const ROUNDS: usize = 4;
/// Before the last rounds, for what the kernel does a little later.
const PAUSE: Duration = Duration::from_millis(5);

/// Where values are and things are made: this machine, or one that is played.
pub trait Places {
    /// The value as a person knows it.
    fn read(&mut self, location: &Location) -> Result<String, String>;
    /// What would have to be written to get back to the current state.
    fn state(&mut self, location: &Location) -> Result<String, String>;
    /// The same, for a journal. The error says why there would be no way back to it.
    fn keep(&mut self, location: &Location) -> Result<String, String>;
    fn write(&mut self, location: &Location, value: &str) -> Result<(), String>;
    /// Whether the place is there at all.
    fn is_there(&mut self, location: &Location) -> bool;
    /// Remove what was made. That it is gone is no error.
    fn remove(&mut self, made: &Made) -> Result<(), String>;
    /// Wait for what the kernel does a little later.
    fn pause(&self, duration: Duration);
}

/// What became of one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is as it was; `found` was there at first.
    Restored { found: String, value: String },
    /// What was made is gone.
    Removed,
    /// The place is gone, and its value with it.
    Vanished(String),
    /// It is not as it was, and why.
    Changed(String),
}

impl Outcome {
    /// Whether nothing is left to do.
    pub fn is_settled(&self) -> bool {
        !matches!(self, Outcome::Changed(_))
    }

    /// What is to be said of it.
    /// Companions are only spoken of if they are not as they were, what is watched only if it was changed.
    pub fn event(&self, step: &Undo) -> Option<Event> {
        let at_ns = clock::raw_ns();
        let failed = |tunable: Option<String>, message: &String| {
            Some(Event::Failed(Failed { at_ns, stage: Stage::Restore, message: message.clone(), tunable }))
        };
        match (self, step) {
            (Outcome::Restored { found, value }, Undo::Value(old))
                if !(old.companion || old.watched && found == value) =>
            {
                let (tunable, found, value) = (old.tunable.clone(), found.clone(), value.clone());
                Some(Event::Restored(Restored { at_ns, tunable, found, value }))
            }
            (Outcome::Vanished(_), Undo::Value(old)) if old.companion || old.watched => None,
            (Outcome::Vanished(reason) | Outcome::Changed(reason), Undo::Value(old)) => {
                failed(Some(old.tunable.clone()), reason)
            }
            (Outcome::Vanished(reason) | Outcome::Changed(reason), Undo::Made(_)) => failed(None, reason),
            (Outcome::Restored { .. } | Outcome::Removed, _) => None,
        }
    }
}

/// Take all `steps` (in the order in which they were written down) back.
/// The outcomes are in the order of the steps.
pub fn restore(steps: &[&Undo], places: &mut impl Places) -> Vec<Outcome> {
    let mut values: Vec<Progress> = steps.iter().rev().filter_map(|step| Progress::of(step)).collect();
    // Before any write, which may change others.
    for value in &mut values {
        value.found = places.read(&value.old.location).ok();
    }
    for round in 0..ROUNDS {
        if round > 1 {
            places.pause(PAUSE);
        }
        for value in &mut values {
            value.put_back(places);
        }
        // Not by what each said after its own write: a later one may have changed it
        // again.
        let looks: Vec<bool> = values.iter_mut().map(|value| value.is_as_before(places)).collect();
        if looks.into_iter().all(|as_before| as_before) {
            break;
        }
    }
    let mut values = values.into_iter().rev();
    let mut outcomes: Vec<Option<Outcome>> = Vec::new();
    for step in steps {
        outcomes.push(match step {
            Undo::Value(_) => values.next().map(|value| value.outcome(places)),
            Undo::Made(_) => None,
        });
    }
    // Afterwards, and the last first: what was made may have others in it.
    for (step, outcome) in steps.iter().zip(&mut outcomes).rev() {
        if let Undo::Made(made) = step {
            *outcome = Some(places.remove(made).map_or_else(Outcome::Changed, |()| Outcome::Removed));
        }
    }
    outcomes.into_iter().flatten().collect()
}

/// How far a value has come.
struct Progress<'a> {
    old: &'a OldValue,
    found: Option<String>,
    now: Result<String, String>,
    refused: Option<String>,
}

impl<'a> Progress<'a> {
    fn of(step: &'a Undo) -> Option<Progress<'a>> {
        match step {
            Undo::Value(old) => Some(Progress { old, found: None, now: Err(String::new()), refused: None }),
            Undo::Made(_) => None,
        }
    }

    fn put_back(&mut self, places: &mut impl Places) {
        let before = &self.old.before;
        // If it cannot be read, it is not there yet, perhaps; the last look decides.
        let Ok(now) = places.state(&self.old.location) else { return };
        if now != *before {
            self.refused = places.write(&self.old.location, before).err();
        }
    }

    fn is_as_before(&mut self, places: &mut impl Places) -> bool {
        self.now = places.state(&self.old.location);
        match &self.now {
            Ok(now) => *now == self.old.before,
            Err(_) => self.old.appeared && !places.is_there(&self.old.location),
        }
    }

    fn outcome(self, places: &mut impl Places) -> Outcome {
        let OldValue { tunable, location, before, appeared, .. } = self.old;
        match self.now {
            Ok(value) if value == *before => {
                let value = places.read(location).unwrap_or(value);
                Outcome::Restored { found: self.found.unwrap_or(value.clone()), value }
            }
            Ok(value) => {
                let reason = self.refused.map_or_else(String::new, |reason| format!(": {reason}"));
                Outcome::Changed(format!("{tunable} is {value:?} and cannot be put back to {before:?}{reason}"))
            }
            Err(_) if *appeared && !places.is_there(location) => {
                let value = before.clone();
                Outcome::Restored { found: self.found.unwrap_or(value.clone()), value }
            }
            Err(reason) if !places.is_there(location) => {
                Outcome::Vanished(format!("{tunable} was {before:?} and is gone: {reason}"))
            }
            Err(reason) => Outcome::Changed(format!("{tunable} cannot be put back to {before:?}: {reason}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::FileLocation;
    use std::collections::BTreeMap;

    /// A machine whose places are coupled as some of Linux are.
    #[derive(Default)]
    struct Played {
        values: BTreeMap<String, String>,
        locked: Vec<String>,
        removed: Vec<String>,
        writes: usize,
    }

    fn name(location: &Location) -> &str {
        match location {
            Location::File(file) => &file.path,
            _ => panic!("only files are played"),
        }
    }

    impl Places for Played {
        fn read(&mut self, location: &Location) -> Result<String, String> {
            self.values.get(name(location)).cloned().ok_or_else(|| "No such file or directory".to_owned())
        }

        fn state(&mut self, location: &Location) -> Result<String, String> {
            self.read(location)
        }

        fn keep(&mut self, location: &Location) -> Result<String, String> {
            self.read(location)
        }

        fn pause(&self, _: Duration) {}

        fn write(&mut self, location: &Location, value: &str) -> Result<(), String> {
            let name = name(location).to_owned();
            self.writes += 1;
            if self.locked.contains(&name) || (name == "bytes" && value == "0") || !self.values.contains_key(&name) {
                return Err("Invalid argument".to_owned());
            }
            match name.as_str() {
                "bytes" => drop(self.values.insert("ratio".to_owned(), "0".to_owned())),
                "ratio" => drop(self.values.insert("bytes".to_owned(), "0".to_owned())),
                "scheduler" if value == "none" => drop(self.values.remove("depth")),
                "scheduler" => drop(self.values.insert("depth".to_owned(), "256".to_owned())),
                _ => {}
            }
            self.values.insert(name, value.to_owned());
            Ok(())
        }

        fn is_there(&mut self, location: &Location) -> bool {
            self.values.contains_key(name(location))
        }

        fn remove(&mut self, made: &Made) -> Result<(), String> {
            self.removed.push(made.path.clone());
            Ok(())
        }
    }

    fn machine(values: &[(&str, &str)]) -> Played {
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Played { values, ..Played::default() }
    }

    fn old(tunable: &str, before: &str) -> Undo {
        let location = Location::File(FileLocation { path: tunable.to_owned() });
        let (tunable, before) = (tunable.to_owned(), before.to_owned());
        Undo::Value(OldValue { tunable, location, before, companion: false, appeared: false, watched: false })
    }

    fn restored(found: &str, value: &str) -> Outcome {
        Outcome::Restored { found: found.to_owned(), value: value.to_owned() }
    }

    #[test]
    fn coupled_places_are_put_back_whichever_came_first() {
        for steps in [[old("bytes", "0"), old("ratio", "20")], [old("ratio", "20"), old("bytes", "0")]] {
            let mut machine = machine(&[("bytes", "8192"), ("ratio", "0")]);
            let outcomes = restore(&[&steps[0], &steps[1]], &mut machine);
            let both = [("8192", "0"), ("0", "20")].map(|(found, value)| restored(found, value));
            assert!(both.iter().all(|outcome| outcomes.contains(outcome)), "{outcomes:?}");
            assert_eq!((machine.values["bytes"].as_str(), machine.values["ratio"].as_str()), ("0", "20"));
        }
    }

    #[test]
    fn a_place_that_is_there_only_beside_another_gets_its_value_when_it_is_back() {
        let steps = [old("scheduler", "deadline"), old("depth", "64")];
        let mut machine = machine(&[("scheduler", "none")]);
        let outcomes = restore(&[&steps[0], &steps[1]], &mut machine);
        assert_eq!(outcomes, [restored("none", "deadline"), restored("64", "64")]);
    }

    #[test]
    fn a_place_that_appeared_may_be_gone_again() {
        let Undo::Value(mut depth) = old("depth", "256") else { unreachable!() };
        depth.appeared = true;
        let steps = [old("scheduler", "none"), Undo::Value(depth)];
        let mut machine = machine(&[("scheduler", "deadline"), ("depth", "9")]);
        let outcomes = restore(&[&steps[0], &steps[1]], &mut machine);
        assert_eq!(outcomes, [restored("deadline", "none"), restored("9", "256")]);
        assert!(!machine.values.contains_key("depth"));
    }

    #[test]
    fn what_is_as_it_was_is_not_written() {
        let mut machine = machine(&[("a", "1")]);
        assert_eq!(restore(&[&old("a", "1")], &mut machine), [restored("1", "1")]);
        assert_eq!(machine.writes, 0);
    }

    #[test]
    fn one_that_cannot_be_put_back_does_not_stop_the_others() {
        let made = Undo::Made(Made { path: "/sys/fs/cgroup/ajuste-1-0".to_owned() });
        let steps = [old("a", "1"), old("locked", "1"), made, old("gone", "1"), old("z", "1")];
        let mut machine = machine(&[("a", "2"), ("locked", "2"), ("z", "2")]);
        machine.locked.push("locked".to_owned());
        let outcomes = restore(&steps.iter().collect::<Vec<_>>(), &mut machine);
        assert_eq!(
            (&outcomes[0], &outcomes[2], &outcomes[4]),
            (&restored("2", "1"), &Outcome::Removed, &restored("2", "1"))
        );
        let said = "locked is \"2\" and cannot be put back to \"1\": Invalid argument";
        assert_eq!(outcomes[1], Outcome::Changed(said.to_owned()));
        assert!(matches!(outcomes[3], Outcome::Vanished(_)));
        assert_eq!(machine.removed, ["/sys/fs/cgroup/ajuste-1-0"]);
    }
}
