//! Undoes what sessions left behind.
//! The guardian of a session does it, or `ajuste-agent restore` later.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::clock;
use crate::event::{Event, Failed, JournalState, Left, Stage};
use crate::plan::Location;
use crate::safety::candidates::{Candidate, Candidates, Scope};
use crate::safety::journal::{self, Journal, Refused};
use crate::safety::record::{self, Contents};
use crate::safety::registry::{Entry, Registry};
use crate::safety::restore::{Outcome, restore};
use crate::safety::session;
use crate::safety::system::System;
use crate::safety::undo::Undo;

/// For a guardian that is at work to be done.
const PATIENCE: Duration = Duration::from_secs(60);
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// Which places a journal may write.
pub enum Permit {
    /// A guardian has its journal from its own agent.
    Everything,
    /// The places of the catalogue, as the caller knows them.
    /// A journal is a file and may say anything.
    Only(Vec<Location>),
}

impl Permit {
    fn refuses(&self, step: &Undo) -> bool {
        match (self, step) {
            (Permit::Only(places), Undo::Value(old)) => !places.contains(&old.location),
            // What may be removed is checked where it is removed.
            _ => false,
        }
    }
}

/// What a journal is, before anything is done with it.
pub enum Verdict<S: System> {
    /// Its steps are to be undone: of an earlier boot those that outlive it.
    Left(Journal<S>, Contents),
    /// Of this boot, and everything was put back.
    Settled(Journal<S>, Contents),
    /// There is nothing to undo; the journal, if it can be opened.
    Void(Option<Journal<S>>, &'static str),
    /// There is nothing to do about it, or nothing that can be done.
    Other(JournalState, Option<String>),
}

impl<S: System> Verdict<S> {
    fn held() -> Verdict<S> {
        Verdict::Other(JournalState::Held, Some(Refused::Held.to_string()))
    }
}

pub struct Recovery<S: System> {
    pub system: S,
    pub registry: Registry<S>,
    pub permit: Permit,
}

impl<S: System> Recovery<S> {
    pub fn candidates(&self, scope: &Scope) -> Candidates {
        scope.candidates(&self.system, &self.registry)
    }

    /// Undo what the journals say, and say what became of each.
    /// True if nothing is left to do.
    pub fn restore(&self, scope: &Scope, say: &mut dyn FnMut(Event)) -> bool {
        let candidates = self.candidates(scope);
        let mut all_done = candidates.problems.is_empty();
        let mut problems = candidates.problems;
        let is_beginning = |path: &PathBuf| {
            path.file_stem().and_then(|name| name.to_str()).is_some_and(|session| self.is_owner_alive(session))
        };
        for path in candidates.unfinished.into_iter().filter(|path| !is_beginning(path)) {
            problems.extend(self.registry.discard(&path).and_then(Result::err).map(|reason| (String::new(), reason)));
        }
        for (path, reason) in problems {
            let message = if path.is_empty() { reason } else { format!("{path}: {reason}") };
            say(Event::Failed(Failed { at_ns: clock::raw_ns(), stage: Stage::Journal, message, tunable: None }));
        }
        for candidate in candidates.found {
            all_done &= is_done(self.carry_out(&candidate, say));
        }
        all_done
    }

    /// Look at a journal; nothing is changed.
    pub fn examine(&self, candidate: &Candidate) -> Verdict<S> {
        let boot = match self.system.boot_id() {
            Ok(boot) => boot,
            Err(reason) => return Verdict::Other(JournalState::Unknown, Some(reason)),
        };
        let opened = Journal::open(&self.system, &candidate.path);
        // A guardian may have been at work since it was listed.
        let entry = candidate.entry.as_ref().and_then(|entry| self.registry.again(entry));
        let entry = entry.as_ref();
        let is_before = entry.is_some_and(|entry| entry.boot != boot && !entry.may_outlive_boot());
        let read = match opened.map(|journal| (journal.contents(), journal)) {
            Ok((Ok(contents), journal)) => Ok((journal, contents)),
            // Not even its header got to the disk; that it is ours is known from the registry.
            Ok((Err(_), journal)) if entry.is_some_and(|entry| entry.journal == candidate.path && is_before) => {
                return Verdict::Void(Some(journal), EARLIER);
            }
            Ok((Err(_), journal)) if entry.is_some_and(|entry| entry.journal == candidate.path && !entry.begun) => {
                return Verdict::Void(Some(journal), "nothing was changed yet");
            }
            Ok((Err(refused), _)) | Err(refused) => Err(refused),
        };
        let (journal, mut contents) = match read.map(|(journal, contents)| (journal, self.compared(contents, entry))) {
            Ok(read) => read,
            Err(Refused::Held) => return Verdict::held(),
            // In any case the boot took the changes with it.
            Err(_) if is_before => return Verdict::Void(None, EARLIER),
            Err(Refused::Gone) if entry.is_some_and(|entry| self.is_beginning(entry)) => return Verdict::held(),
            Err(Refused::Gone) => return missing(entry),
            Err(Refused::Unfit(reason)) => return Verdict::Other(JournalState::Malformed, Some(reason)),
            Err(Refused::Unread(reason)) => {
                let message = format!("{reason}; {}", what_is_at_stake(entry));
                return Verdict::Other(JournalState::Unknown, Some(message));
            }
        };
        let Some(header) = &contents.header else {
            return match entry {
                // Those of another boot do not fit.
                _ if !contents.steps.is_empty() => Verdict::Left(journal, contents),
                Some(_) if is_before => Verdict::Void(Some(journal), EARLIER),
                Some(entry) if self.is_beginning(entry) => Verdict::held(),
                Some(entry) if !entry.begun => Verdict::Void(Some(journal), "nothing was changed yet"),
                Some(entry) if entry.settled => Verdict::Settled(journal, contents),
                Some(_) => {
                    let message = format!("it is empty; {}", what_is_at_stake(entry));
                    Verdict::Other(JournalState::Unknown, Some(message))
                }
                None => Verdict::Other(JournalState::Foreign, Some("it is empty, and left alone".to_owned())),
            };
        };
        let is_registered = entry.is_some_and(|entry| entry.session == header.session && entry.boot == header.boot);
        match header.boot == boot {
            false if is_registered => {
                contents.steps.retain(|step| step.back.location().is_some_and(Location::outlives_boot));
                let is_open = entry.is_some_and(|entry| !entry.settled) && contents.open_steps().next().is_some();
                match is_open {
                    true => Verdict::Left(journal, contents),
                    false => Verdict::Void(Some(journal), EARLIER),
                }
            }
            false => Verdict::Other(JournalState::Foreign, Some(FOREIGN.to_owned())),
            // It is a copy of one that is in use.
            true if self.system.is_alive(header.owner()) => Verdict::held(),
            true if is_registered && entry.is_some_and(|entry| entry.settled) => Verdict::Settled(journal, contents),
            true => Verdict::Left(journal, contents),
        }
    }

    /// What a journal says, with what the registry knows of it: steps that are gone are damage.
    /// The agent's own note is in memory, and more exact while it is there.
    fn compared(&self, mut contents: Contents, entry: Option<&Entry>) -> Contents {
        let Some(header) = contents.header.as_ref() else { return contents };
        let is_its_own = |entry: &&Entry| entry.session == header.session && entry.boot == header.boot;
        if let Some(entry) = entry.filter(is_its_own).filter(|_| self.system.noted_steps(header.owner()).is_none()) {
            contents.compare(entry);
        }
        contents
    }

    /// Whether the session is just being begun.
    fn is_beginning(&self, entry: &Entry) -> bool {
        !entry.begun && self.is_owner_alive(&entry.session)
    }

    fn is_owner_alive(&self, session: &str) -> bool {
        session::owner_of(session).is_some_and(|owner| self.system.is_alive(owner))
    }

    /// Undo what a journal says, and remove it if nothing is left to do.
    /// The events say what became of it; the state and the message come in the last.
    pub fn carry_out(&self, candidate: &Candidate, say: &mut dyn FnMut(Event)) -> JournalState {
        let (state, message) = match self.examine_patiently(candidate) {
            Verdict::Other(state, message) => {
                let entry = candidate.entry.as_ref().filter(|_| state == JournalState::Gone);
                self.forgotten(entry, (state, message))
            }
            Verdict::Void(journal, why) => {
                let removed = journal.map_or(Ok(()), |journal| journal.remove());
                match removed {
                    Ok(()) => self.forgotten(candidate.entry.as_ref(), (JournalState::Void, Some(why.to_owned()))),
                    Err(reason) => (JournalState::Kept, Some(format!("{why}, but it cannot be removed: {reason}"))),
                }
            }
            Verdict::Settled(journal, contents) => self.closed(&journal, &contents, candidate, JournalState::Restored),
            Verdict::Left(journal, contents) => {
                let boot = self.system.boot_id().unwrap_or_default();
                if let Some(header) = contents.header.as_ref().filter(|header| header.boot == boot) {
                    // Its guardian has died with it, and what they have left is still there.
                    self.system.kill_left_by(header.owner());
                }
                self.undo(&journal, &contents, candidate, say)
            }
        };
        let path = candidate.path.to_string_lossy().into_owned();
        say(Event::Journal(Left { at_ns: clock::raw_ns(), path, state, message }));
        state
    }

    /// Give up what a journal says. The error says why it is still there.
    pub fn discard(&self, path: &Path) -> Result<(), String> {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        if let Some(removed) = self.registry.discard(&path) {
            return removed;
        }
        let entries = self.registry.entries()?.entries;
        let entry = entries.iter().find(|entry| entry.journal == path);
        match Journal::open(&self.system, &path) {
            Ok(journal) => {
                let header = journal.contents().ok().and_then(|contents| contents.header);
                if header.as_ref().is_some_and(|header| self.system.is_alive(header.owner())) {
                    return Err(Refused::Held.to_string());
                }
                journal.remove()?;
                header.into_iter().for_each(|header| self.system.remove_roll(header.owner()));
            }
            Err(Refused::Gone | Refused::Unread(_)) if entry.is_some() => {}
            Err(refused) => return Err(refused.to_string()),
        }
        entry.map_or(Ok(()), |entry| self.registry.remove_entry(entry))
    }

    /// Like [`Self::examine`], but wait for a guardian at work.
    fn examine_patiently(&self, candidate: &Candidate) -> Verdict<S> {
        let deadline = self.system.steady_clock() + PATIENCE;
        loop {
            match self.examine(candidate) {
                Verdict::Other(JournalState::Held, _)
                    if self.system.steady_clock() < deadline && !self.is_session_alive(candidate) =>
                {
                    self.system.pause(BETWEEN_LOOKS);
                }
                verdict => return verdict,
            }
        }
    }

    fn is_session_alive(&self, candidate: &Candidate) -> bool {
        journal::header_of(&self.system, &candidate.path).is_some_and(|header| self.system.is_alive(header.owner()))
            || candidate.entry.as_ref().is_some_and(|entry| self.is_owner_alive(&entry.session))
    }

    fn undo(
        &self,
        journal: &Journal<S>,
        contents: &Contents,
        candidate: &Candidate,
        say: &mut dyn FnMut(Event),
    ) -> (JournalState, Option<String>) {
        let undone = undo_steps(&self.system, contents, &self.permit, say);
        if undone.unsettled == 0 && contents.damaged == 0 {
            return self.closed(journal, contents, candidate, JournalState::Restored);
        }
        let marked = journal.mark_done(contents, &undone.settled).err();
        let left = match (undone.unsettled, contents.damaged) {
            (0, _) => None,
            _ => Some("not everything could be put back".to_owned()),
        };
        let damaged = (contents.damaged > 0).then(|| contents.damage());
        let message: Vec<String> = [left, damaged, marked].into_iter().flatten().collect();
        let state = if contents.damaged > 0 { JournalState::Damaged } else { JournalState::Kept };
        (state, Some(message.join("; ")))
    }

    fn closed(
        &self,
        journal: &Journal<S>,
        contents: &Contents,
        candidate: &Candidate,
        state: JournalState,
    ) -> (JournalState, Option<String>) {
        let closed = session::close(&self.system, &self.registry, journal, contents.header.as_ref());
        match closed {
            Ok(()) => self.forgotten(candidate.entry.as_ref(), (state, None)),
            Err(reason) => {
                let message = format!("everything was put back, but the journal cannot be removed: {reason}");
                (JournalState::Kept, Some(message))
            }
        }
    }

    /// Without an entry in the registry.
    fn forgotten(
        &self,
        entry: Option<&Entry>,
        so_far: (JournalState, Option<String>),
    ) -> (JournalState, Option<String>) {
        // The journal must be gone for good first.
        // After a crash it might come back without an owner.
        let forgotten = entry.map_or(Ok(()), |entry| {
            journal::sync_directory_of(&self.system, &entry.journal)?;
            self.registry.remove_entry(entry)
        });
        match forgotten {
            Ok(()) => so_far,
            Err(reason) => (JournalState::Kept, Some(format!("nothing remains changed, but {reason}"))),
        }
    }
}

/// Whether the journal can cause no more changes on this machine.
pub fn is_done(state: JournalState) -> bool {
    matches!(state, JournalState::Restored | JournalState::Void | JournalState::Gone | JournalState::Foreign)
}

const EARLIER: &str = "it is of an earlier boot: the settings are the kernel's own again";
const FOREIGN: &str = "it is of another machine, or of an earlier boot that is not known here; left alone";

/// There is no file; `entry` says whether there should be one.
fn missing<S: System>(entry: Option<&Entry>) -> Verdict<S> {
    match entry {
        None => Verdict::Other(JournalState::Gone, None),
        Some(entry) if entry.settled || !entry.begun => Verdict::Other(JournalState::Gone, None),
        Some(_) => {
            let message = format!("it was deleted; {}", what_is_at_stake(entry));
            Verdict::Other(JournalState::Unknown, Some(message))
        }
    }
}

fn what_is_at_stake(entry: Option<&Entry>) -> String {
    match entry.map(|entry| entry.tunables.as_slice()) {
        None | Some([]) => "values may still be changed".to_owned(),
        Some(names) => format!("these values may still be changed: {}", record::listed(names)),
    }
}

/// The steps that are settled now, by their numbers, and how many are not.
struct Undone {
    settled: Vec<usize>,
    unsettled: usize,
}

/// Undo the permitted open steps of a journal.
fn undo_steps<S: System>(system: &S, contents: &Contents, permit: &Permit, say: &mut dyn FnMut(Event)) -> Undone {
    let (refused, open): (Vec<_>, Vec<_>) = contents.open_steps().partition(|step| permit.refuses(&step.back));
    let steps: Vec<&Undo> = open.iter().map(|step| &step.back).collect();
    let outcomes = restore(&steps, &mut system.clone());
    for (step, outcome) in steps.iter().zip(&outcomes).rev() {
        outcome.event(step).into_iter().for_each(&mut *say);
    }
    for step in &refused {
        let name = step.back.tunable().unwrap_or_default();
        let reason = format!("{name} is not written: the catalogue has no such tunable at that place in this kernel");
        Outcome::Changed(reason).event(&step.back).into_iter().for_each(&mut *say);
    }
    let settled = open.iter().zip(&outcomes).filter(|(_, outcome)| outcome.is_settled());
    let settled: Vec<usize> = settled.map(|(step, _)| step.number).collect();
    Undone { unsettled: refused.len() + open.len() - settled.len(), settled }
}

/// Undo all that the session of a dead agent has left, by its guardian.
/// What cannot be undone stays in the journal and in the registry.
pub fn take_over<S: System>(session: &session::Session<S>) {
    // After an orderly end, or in the middle of it.
    // A deleted journal must still be undone.
    if session.journal.is_removed() == Ok(true) {
        match session.registry.entry_of(&session.header.session) {
            Ok(None) => return,
            Ok(Some(entry)) if entry.settled => {
                let _ = session.close();
                return;
            }
            _ => {}
        }
    }
    let Ok(mut contents) = session.journal.contents() else { return };
    if session.system.noted_steps(session.owner()).is_none() {
        let entry = session.registry.entry_of(&session.header.session).unwrap_or_default();
        entry.iter().for_each(|entry| contents.compare(entry));
    }
    let undone = undo_steps(&session.system, &contents, &Permit::Everything, &mut |_| {});
    let _ = match undone.unsettled == 0 && contents.damaged == 0 {
        true => session.close(),
        false => session.journal.mark_done(&contents, &undone.settled),
    };
}
