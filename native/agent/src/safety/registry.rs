//! The registry of all sessions of this machine with an unsettled journal.
//!
//! One file a session, in a directory that only root writes: on disk before the journal is made, and removed after it.
//! So an experiment can be refused because of another home's journal, a journal that was deleted is missed, and one of
//! another boot is known as this machine's: a home may be shared with others.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::disk::{Disk, Opening};
use crate::errno;
use crate::safety::journal::check_owner;
use crate::safety::record::{self, Header};
use crate::safety::system::System;

pub const DIRECTORY: &str = "/var/lib/ajuste/journals";
const EXTENSION: &str = "unsettled";
const VERSION: u32 = 1;
const LIMIT_BYTES: u64 = 16 << 20;
/// How the names of a server's settings begin.
const POSTGRESQL: &str = "postgresql.";

/// The first line of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Beginning {
    registry: u32,
    /// Its absolute path.
    journal: PathBuf,
    session: String,
    boot: String,
    machine: Option<String>,
}

/// A later line.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum More {
    /// What the session is about to change, by name, and how many steps its journal has then.
    Tunables {
        tunables: Vec<String>,
        #[serde(default)]
        steps: Option<usize>,
    },
    /// The journal is there: from now on something may be changed.
    Begun { begun: bool },
    /// Everything was put back: the journal may be removed.
    Settled { settled: bool },
}

/// A session whose journal is not settled, or is about to be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub journal: PathBuf,
    pub session: String,
    pub boot: String,
    pub tunables: Vec<String>,
    /// How many steps the journal has, as far as that was noted.
    pub steps: Option<usize>,
    /// The journal was made.
    pub begun: bool,
    /// Everything was put back.
    pub settled: bool,
    file: OsString,
}

impl Entry {
    /// Whether a value that it names is one that outlives the boot, if the journal cannot say where it is.
    pub fn may_outlive_boot(&self) -> bool {
        self.tunables.iter().any(|tunable| tunable.starts_with(POSTGRESQL))
    }
}

/// What is in the registry.
#[derive(Debug, Default)]
pub struct Entries {
    pub entries: Vec<Entry>,
    /// Unfinished files.
    /// Their sessions have changed nothing, and do not while these are unfinished.
    pub unfinished: Vec<PathBuf>,
    /// Files that cannot be read, and why.
    pub unknown: Vec<(PathBuf, String)>,
}

#[derive(Clone)]
pub struct Registry<S: System> {
    system: S,
    directory: PathBuf,
}

impl<S: System> Registry<S> {
    pub fn new(system: &S, directory: &Path) -> Registry<S> {
        Registry { system: system.clone(), directory: directory.to_owned() }
    }

    /// Have on disk that the session of `header` has its journal at `journal`.
    /// The error names the file.
    pub fn enter(&self, header: &Header, journal: &Path) -> Result<(), String> {
        self.make_directory()?;
        let name = file_name(&header.session);
        let says = |error: Errno| format!("{}: {}", self.directory.join(&name).display(), errno::of(error));
        let beginning = Beginning {
            registry: VERSION,
            journal: journal.to_owned(),
            session: header.session.clone(),
            boot: header.boot.clone(),
            machine: header.machine.clone(),
        };
        let line = record::sealed(&header.boot, &beginning)?;
        let disk = self.system.disk();
        let directory = disk.open_directory(&self.directory).map_err(says)?;
        let file = disk.create(&directory, name.as_ref(), 0o644).map_err(says)?;
        let entered = disk
            .append_all(&file, &line)
            .and_then(|()| disk.sync_data(&file))
            .and_then(|()| disk.sync(&directory))
            .map_err(says);
        if entered.is_err() {
            let _ = disk.unlink(&directory, name.as_ref());
        }
        entered
    }

    /// Have on disk that a session's journal has `steps` steps, with the names of the new ones.
    /// So one whose end is lost is known as such.
    pub fn add(&self, header: &Header, tunables: Vec<String>, steps: usize) -> Result<(), String> {
        self.append(&header.session, &header.boot, &More::Tunables { tunables, steps: Some(steps) })
    }

    /// Have on disk that the journal of a session is there.
    pub fn begin(&self, header: &Header) -> Result<(), String> {
        self.append(&header.session, &header.boot, &More::Begun { begun: true })
    }

    /// Everything of the session was put back, and its journal goes next.
    pub fn settle(&self, session: &str, boot: &str) -> Result<(), String> {
        let settled = self.append(session, boot, &More::Settled { settled: true });
        // A missing entry is no error.
        match settled {
            Err(_) if self.entry_of(session) == Ok(None) => Ok(()),
            settled => settled,
        }
    }

    fn append(&self, session: &str, boot: &str, more: &More) -> Result<(), String> {
        let name = file_name(session);
        let disk = self.system.disk();
        // In case that the last line is cut off.
        let line = [b"\n", &record::sealed(boot, more)?[..]].concat();
        let appended = disk.open_directory(&self.directory).and_then(|directory| {
            let file = disk.open(&directory, name.as_ref(), Opening::Append)?;
            disk.append_all(&file, &line)?;
            disk.sync_data(&file)
        });
        appended.map_err(errno::at(self.directory.join(name).display()))
    }

    /// The journal of the session is gone. That the entry is gone, too, is no error.
    pub fn remove(&self, session: &str) -> Result<(), String> {
        self.remove_file(&file_name(session))
    }

    /// See [`Registry::remove`].
    pub fn remove_entry(&self, entry: &Entry) -> Result<(), String> {
        self.remove_file(&entry.file)
    }

    fn remove_file(&self, name: &OsString) -> Result<(), String> {
        let disk = self.system.disk();
        let removed = disk.open_directory(&self.directory).and_then(|directory| {
            disk.unlink(&directory, name.as_ref())?;
            disk.sync(&directory)
        });
        match removed {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(format!("{}: {}", self.directory.join(name).display(), errno::of(error))),
        }
    }

    #[cfg(test)]
    pub fn seen_by(&self, system: &S) -> Registry<S> {
        Registry::new(system, &self.directory)
    }

    /// The entry of a session, if it has one.
    /// The error says why that is unknown.
    pub fn entry_of(&self, session: &str) -> Result<Option<Entry>, String> {
        let disk = self.system.disk();
        match disk.open_directory(&self.directory) {
            Ok(directory) => Ok(self.read(&directory, &file_name(session))?.map(|(_, entry)| entry)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(errno::of(error)),
        }
    }

    /// An entry as it is now; `None` if it is gone.
    pub fn again(&self, entry: &Entry) -> Option<Entry> {
        let disk = self.system.disk();
        let read = match disk.open_directory(&self.directory) {
            Ok(directory) => self.read(&directory, &entry.file),
            Err(error) => Err(errno::of(error)),
        };
        // What was known of it is better than nothing.
        read.map_or_else(|_| Some(entry.clone()), |read| read.map(|(_, entry)| entry))
    }

    /// Remove the file at `path` if it is an entry, readable or not.
    pub fn discard(&self, path: &Path) -> Option<Result<(), String>> {
        let name = path.file_name().filter(|_| path.parent() == Some(&self.directory))?;
        is_named_so(name).then(|| self.remove_file(&name.to_owned()))
    }

    /// All of it, the oldest first.
    /// The error says why it cannot be read; that there is none is no error.
    pub fn entries(&self) -> Result<Entries, String> {
        let says = |error: Errno| format!("{}: {}", self.directory.display(), errno::of(error));
        let disk = self.system.disk();
        let directory = match disk.open_directory(&self.directory) {
            Err(Errno::NOENT) => return Ok(Entries::default()),
            opened => opened.map_err(says)?,
        };
        self.check_directory(&directory)?;
        let machine = self.system.machine_id();
        let mut names = disk.names(&self.directory).map_err(says)?;
        names.retain(|name| is_named_so(name));
        names.sort();
        let mut found = Entries::default();
        for name in names {
            match self.read(&directory, &name) {
                // Another machine has the same directory: its entries are none of ours.
                Ok(Some((beginning, _))) if beginning.machine != machine => {}
                Ok(Some((_, entry))) => found.entries.push(entry),
                Ok(None) => found.unfinished.push(self.directory.join(&name)),
                Err(reason) => found.unknown.push((self.directory.join(&name), reason)),
            }
        }
        Ok(found)
    }

    /// `None` for one that is gone or unfinished: its session has changed nothing.
    fn read(&self, directory: &<S::Disk as Disk>::File, name: &OsString) -> Result<Option<(Beginning, Entry)>, String> {
        let disk = self.system.disk();
        let file = match disk.open(directory, name.as_ref(), Opening::Read) {
            Err(Errno::NOENT) => return Ok(None),
            opened => opened.map_err(errno::of)?,
        };
        check_owner(&disk.about(&file).map_err(errno::of)?, self.system.own_user())?;
        let bytes = disk.read_all(&file, LIMIT_BYTES).map_err(errno::of)?;
        let lines = record::lines(&bytes);
        let Some((first, rest)) = lines.split_first() else { return Ok(None) };
        let beginning = match record::unsealed_header(first, |beginning: &Beginning| &beginning.boot) {
            Some(beginning) => beginning,
            // Its end may have got to the disk before its beginning.
            // That something was begun is said after it.
            None if bytes.len() == first.len() + 1 => return Ok(None),
            None => return Err("its first line cannot be read".to_owned()),
        };
        let Beginning { journal, session, boot, .. } = beginning.clone();
        let (tunables, file) = (Vec::new(), name.clone());
        let mut entry = Entry { journal, session, boot, tunables, steps: None, begun: false, settled: false, file };
        for line in rest {
            match record::unsealed(&entry.boot, line) {
                Some(More::Tunables { tunables, steps }) => {
                    entry.tunables.extend(tunables);
                    entry.steps = steps;
                }
                Some(More::Begun { begun }) => entry.begun |= begun,
                Some(More::Settled { settled }) => entry.settled |= settled,
                // Cut off.
                None => {}
            }
        }
        Ok(Some((beginning, entry)))
    }

    fn make_directory(&self) -> Result<(), String> {
        let disk = self.system.disk();
        let says = |path: &Path, error: Errno| format!("{}: {}", path.display(), errno::of(error));
        let above: Vec<&Path> = self.directory.ancestors().filter(|path| !path.as_os_str().is_empty()).collect();
        for path in above.into_iter().rev().skip(1) {
            match disk.about_path(path) {
                Ok(_) => continue,
                Err(Errno::NOENT) => {}
                Err(error) => return Err(says(path, error)),
            }
            match disk.make_directory(path, 0o755) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(says(path, error)),
            }
            let parent = path.parent().unwrap_or(Path::new("/"));
            let directory = disk.open_directory(parent).map_err(|error| says(parent, error))?;
            disk.sync(&directory).map_err(|error| says(parent, error))?;
        }
        let directory = disk.open_directory(&self.directory).map_err(|error| says(&self.directory, error))?;
        self.check_directory(&directory)
    }

    fn check_directory(&self, directory: &<S::Disk as Disk>::File) -> Result<(), String> {
        let says = |reason: String| format!("{}: {reason}", self.directory.display());
        let about = self.system.disk().about(directory).map_err(|error| says(errno::of(error)))?;
        match about {
            about if ![0, self.system.own_user()].contains(&about.owner) => {
                Err(says(format!("it belongs to the user {}, neither to root nor to the caller", about.owner)))
            }
            about if about.mode & 0o022 != 0 => Err(says("others may write it".to_owned())),
            _ => Ok(()),
        }
    }
}

fn is_named_so(name: &OsStr) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == EXTENSION)
}

fn file_name(session: &str) -> OsString {
    format!("{session}.{EXTENSION}").into()
}
