//! The commands for journals: list them, put back what they say, discard them.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::disk::{Disk, Local, Opening};
use crate::errno;
use crate::event::JournalState;
use crate::host::Outcome;
use crate::plan::Location;
use crate::safety::candidates::Scope;
use crate::safety::recovery::{Permit, Recovery, Verdict};
use crate::safety::registry::{self, Registry};
use crate::safety::system::ThisMachine;
use crate::safety::undo::Undo;
use crate::stream::EventStream;

const PERMIT_LIMIT_BYTES: u64 = 64 << 20;

const READ_ONLY: &str = "it cannot be removed: Read-only file system";

/// Which journals, and what they may write.
pub struct Work {
    pub registry: PathBuf,
    /// The file with the places.
    pub permit: Option<PathBuf>,
    pub scope: Scope,
}

impl Default for Work {
    fn default() -> Work {
        Work { registry: registry::DIRECTORY.into(), permit: None, scope: Scope::default() }
    }
}

impl Work {
    fn recovery(&self, permitted: Vec<Location>) -> Recovery<ThisMachine> {
        let system = ThisMachine::default();
        let directory = std::path::absolute(&self.registry).unwrap_or_else(|_| self.registry.clone());
        let registry = Registry::new(&system, &directory);
        Recovery { system, registry, permit: Permit::Only(permitted) }
    }

    fn permitted(&self) -> Result<Vec<Location>, String> {
        let Some(path) = &self.permit else { return Ok(Vec::new()) };
        let says = |reason: String| format!("{}: {reason}", path.display());
        let document = match path == Path::new("-") {
            true => {
                let mut document = Vec::new();
                let read = io::stdin().take(PERMIT_LIMIT_BYTES).read_to_end(&mut document);
                read.map(|_| document).map_err(errno::of)
            }
            false => read_file(path),
        };
        serde_json::from_slice(&document.map_err(says)?).map_err(|error| says(error.to_string()))
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, String> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().ok_or("it is no file")?;
    let read = Local.open_directory(folder).and_then(|directory| {
        let file = Local.open(&directory, Path::new(name), Opening::Read)?;
        Local.read_all(&file, PERMIT_LIMIT_BYTES)
    });
    read.map_err(errno::of)
}

/// A journal, in the list of them.
#[derive(Serialize)]
struct Listed {
    path: String,
    /// `left` for what [`restore`] would undo and remove; else what it would say.
    state: String,
    message: Option<String>,
    /// Of one that is left: what would be undone.
    steps: Vec<Undo>,
}

/// List the journals with their states.
/// True if nothing stands in the way of an experiment.
pub fn list(work: Work) -> io::Result<bool> {
    let recovery = work.recovery(Vec::new());
    let candidates = recovery.candidates(&work.scope);
    let mut out = io::stdout().lock();
    let mut say = |listed: Listed| {
        serde_json::to_writer(&mut out, &listed)?;
        out.write_all(b"\n")
    };
    let mut is_clear = true;
    for (path, reason) in candidates.problems {
        let state = state_word(JournalState::Unknown);
        say(Listed { path, state, message: Some(reason), steps: Vec::new() })?;
        is_clear = false;
    }
    for candidate in candidates.found {
        let (state, message, steps) = match recovery.examine(&candidate) {
            Verdict::Left(journal, contents) => {
                let steps = contents.open_steps().map(|step| step.back.clone()).collect();
                match (contents.damaged, journal.is_read_only()) {
                    (0, false) => ("left".to_owned(), None, steps),
                    (0, true) => (state_word(JournalState::Kept), Some(READ_ONLY.to_owned()), steps),
                    _ => (state_word(JournalState::Damaged), Some(contents.damage()), steps),
                }
            }
            Verdict::Settled(..) => ("left".to_owned(), Some("everything was put back".to_owned()), Vec::new()),
            Verdict::Void(_, why) => (state_word(JournalState::Void), Some(why.to_owned()), Vec::new()),
            Verdict::Other(state, message) => (state_word(state), message, Vec::new()),
        };
        is_clear &= ["void", "gone", "foreign"].contains(&state.as_str());
        say(Listed { path: candidate.path.to_string_lossy().into_owned(), state, message, steps })?;
    }
    Ok(is_clear)
}

fn state_word(state: JournalState) -> String {
    let word = serde_json::to_value(state).unwrap_or_default();
    word.as_str().unwrap_or_default().to_owned()
}

/// Undo what the journals say, and say what became of each on standard output.
pub fn restore(work: Work) -> io::Result<Outcome> {
    let permitted = match work.permitted() {
        Ok(permitted) => permitted,
        Err(reason) => {
            eprintln!("ajuste-agent: the list of permitted places is malformed: {reason}");
            return Ok(Outcome::Malformed);
        }
    };
    let recovery = work.recovery(permitted);
    let mut stream = EventStream::new(io::stdout().lock());
    let mut heard = Ok(());
    let all_done = recovery.restore(&work.scope, &mut |event| {
        // Everything is put back even without a reader.
        let said = stream.say(event);
        if heard.is_ok() {
            heard = said;
        }
    });
    heard.map(|()| Outcome::of(all_done))
}

/// Remove journals unread.
/// True if none is left.
pub fn discard(work: Work) -> io::Result<bool> {
    let recovery = work.recovery(Vec::new());
    let mut all_done = true;
    for path in &work.scope.places {
        if let Err(reason) = recovery.discard(path) {
            eprintln!("ajuste-agent: {}: {reason}", path.display());
            all_done = false;
        }
    }
    Ok(all_done)
}
