//! Undoing what sessions have left behind: by the guardian of a session, or later by `ajuste-agent restore`.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::clock;
use crate::errno;
use crate::event::{Event, JournalState, Left, Stage};
use crate::process::account;
use crate::safety::journal::{self, Header, Journal, Refused};
use crate::safety::leftovers;
use crate::safety::restore::{restore, Machine, Outcome};
use crate::safety::roll::Roll;
use crate::stream::EventStream;

/// For a guardian that is at work to be done.
const PATIENCE: Duration = Duration::from_secs(60);
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// Undo all that `journal` has open, and remove it if nothing is left to do. The places that cannot be put back stay in
/// it. True if none of them is left. The error says what is wrong with the journal.
pub fn undo_all(journal: &Journal, say: &mut dyn FnMut(Event)) -> Result<bool, String> {
    let contents = journal.contents()?;
    let open: Vec<usize> = contents.open_steps().collect();
    let steps: Vec<_> = open.iter().map(|index| &contents.steps[*index]).collect();
    let outcomes = restore(&steps, &mut Machine);
    for (step, outcome) in steps.iter().zip(&outcomes).rev() {
        outcome.event(step).into_iter().for_each(&mut *say);
    }
    if outcomes.iter().all(Outcome::is_settled) {
        return journal.remove().map(|()| true);
    }
    let settled = open.iter().zip(&outcomes).filter(|(_, outcome)| outcome.is_settled());
    let settled: Vec<usize> = settled.map(|(index, _)| *index).collect();
    journal.mark_done(&settled).map(|()| false)
}

/// Carry out the journals in `places`, each a journal or a directory of them, and say what became of each on standard
/// output. True if nothing is left to do.
pub fn run(places: &[String]) -> io::Result<bool> {
    let mut stream = EventStream::new(io::stdout().lock());
    let mut all_done = true;
    for place in places {
        match journals(Path::new(place)) {
            Ok(paths) => {
                for path in paths {
                    all_done &= carry_out(&path, &mut stream)?;
                }
            }
            Err(reason) => {
                stream.fail(Stage::Journal, format!("{place}: {reason}"), None)?;
                all_done = false;
            }
        }
    }
    Ok(all_done)
}

/// The oldest first: their names begin with the time.
fn journals(place: &Path) -> Result<Vec<PathBuf>, String> {
    if !fs::metadata(place).map_err(errno::of)?.is_dir() {
        return Ok(vec![place.to_owned()]);
    }
    let entries = fs::read_dir(place).map_err(errno::of)?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()).map_err(errno::of));
    let mut paths: Vec<PathBuf> = paths.collect::<Result<_, _>>()?;
    paths.retain(|path| journal::is_named_so(path));
    paths.sort();
    Ok(paths)
}

fn carry_out<W: Write>(path: &Path, stream: &mut EventStream<W>) -> io::Result<bool> {
    let mut said = Vec::new();
    let (state, message) = match open(path) {
        Ok(journal) => undo(&journal, &mut said),
        Err(Refused::Held) => (JournalState::Held, Some("its session is still at work".to_owned())),
        Err(Refused::Gone) => (JournalState::Gone, None),
        Err(Refused::Unfit(reason)) => (JournalState::Malformed, Some(reason)),
    };
    for event in said {
        stream.say(event)?;
    }
    let path = path.to_string_lossy().into_owned();
    stream.say(Event::Journal(Left { at_ns: clock::raw_ns(), path, state, message }))?;
    Ok(matches!(state, JournalState::Restored | JournalState::Void | JournalState::Gone))
}

/// Somebody who has it and is about to end is waited for: a guardian at work.
fn open(path: &Path) -> Result<Journal, Refused> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match Journal::open(path) {
            Err(Refused::Held) if Instant::now() < deadline && !is_session_alive(path) => clock::sleep(BETWEEN_LOOKS),
            result => return result,
        }
    }
}

fn is_session_alive(path: &Path) -> bool {
    journal::header_of(path).is_some_and(|header| is_alive(&header))
}

fn is_alive(header: &Header) -> bool {
    account::start_ticks(header.pid) == Some(header.started_ticks)
}

fn undo(journal: &Journal, said: &mut Vec<Event>) -> (JournalState, Option<String>) {
    let contents = match journal.contents() {
        Ok(contents) => contents,
        Err(reason) => return (JournalState::Malformed, Some(reason)),
    };
    let removed = |state: JournalState, note: &str| match journal.remove() {
        Ok(()) => (state, Some(note.to_owned())),
        Err(reason) => (JournalState::Kept, Some(reason)),
    };
    match contents.header {
        None => return removed(JournalState::Void, "nothing was written in it, so nothing was changed"),
        Some(header) if journal::boot_id().as_ref() != Ok(&header.boot) => {
            return removed(JournalState::Void, "it is of an earlier boot: the settings are the kernel's own again")
        }
        // It is a copy of one that is in use.
        Some(header) if is_alive(&header) => {
            return (JournalState::Held, Some("its session is still at work".to_owned()))
        }
        // Its guardian has died with it, and what they have left is still there.
        Some(header) => {
            Roll::left_by(header.owner()).into_iter().for_each(leftovers::kill);
            Roll::remove(header.owner());
        }
    }
    match undo_all(journal, &mut |event| said.push(event)) {
        Ok(true) => (JournalState::Restored, None),
        Ok(false) => (JournalState::Kept, Some("not everything could be put back".to_owned())),
        Err(reason) => (JournalState::Kept, Some(reason)),
    }
}
