//! Candidates: the journals in the registry and in named places.

use std::path::{Path, PathBuf};

use crate::disk::Disk;
use crate::errno;
use crate::safety::journal;
use crate::safety::registry::{Entry, Registry};
use crate::safety::system::System;

/// A journal, and its entry in the registry if it has one there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub path: PathBuf,
    pub entry: Option<Entry>,
}

/// What is to be looked at, and what cannot be looked at (a path, and why).
#[derive(Debug, Default)]
pub struct Candidates {
    pub found: Vec<Candidate>,
    pub problems: Vec<(String, String)>,
    /// Entries of the registry that mean nothing.
    pub unfinished: Vec<PathBuf>,
}

/// Where to look for journals: in `places`, and with `all` in the whole registry.
/// A place is a journal or a directory of journals.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    pub places: Vec<PathBuf>,
    pub all: bool,
}

impl Scope {
    /// The oldest first: their names begin with the time.
    pub fn candidates<S: System>(&self, system: &S, registry: &Registry<S>) -> Candidates {
        let mut found = Candidates::default();
        let entries = match registry.entries() {
            Ok(entries) => {
                let unknown = entries.unknown.into_iter().filter(|_| self.all);
                found.problems.extend(unknown.map(|(path, reason)| (path.to_string_lossy().into_owned(), reason)));
                found.unfinished = entries.unfinished;
                entries.entries
            }
            Err(reason) => {
                found.problems.push(("the registry of journals".to_owned(), reason));
                Vec::new()
            }
        };
        let mut paths: Vec<PathBuf> = Vec::new();
        for place in &self.places {
            let absolute = std::path::absolute(place).unwrap_or_else(|_| place.clone());
            match journals(system, &absolute) {
                Ok(listed) => paths.extend(listed),
                Err(reason) => found.problems.push((place.to_string_lossy().into_owned(), reason)),
            }
        }
        paths.extend(entries.iter().filter(|entry| self.includes(entry)).map(|entry| entry.journal.clone()));
        paths.sort_by(|one, other| (one.file_name(), one).cmp(&(other.file_name(), other)));
        paths.dedup();
        found.found.extend(paths.into_iter().map(|path| {
            let name = path.file_stem().map(|name| name.to_string_lossy().into_owned());
            let is_of = |entry: &&Entry| entry.journal == path || Some(&entry.session) == name.as_ref();
            Candidate { entry: entries.iter().find(is_of).cloned(), path }
        }));
        found
    }

    fn includes(&self, entry: &Entry) -> bool {
        let is_in = |place: &PathBuf| {
            let place = std::path::absolute(place).unwrap_or_else(|_| place.clone());
            entry.journal == place || entry.journal.parent() == Some(&place)
        };
        self.all || self.places.iter().any(is_in)
    }
}

/// The journals in a directory, or the one that `place` itself is.
fn journals<S: System>(system: &S, place: &Path) -> Result<Vec<PathBuf>, String> {
    let disk = system.disk();
    if !disk.about_path(place).map_err(errno::of)?.is_directory() {
        return Ok(vec![place.to_owned()]);
    }
    let names = disk.names(place).map_err(errno::of)?;
    Ok(names.iter().map(|name| place.join(name)).filter(|path| journal::is_named_so(path)).collect())
}
