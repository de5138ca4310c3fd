//! The journal: how to undo what a session changes, on disk before the change.
//!
//! One file a session: a header that says whose it is, then one line for each [`Undo`] (see [`record`]). All that a plan
//! needs is appended and synced with fdatasync(2), and only then is the first value written; a step that is there
//! already is not written again. So a last line that is cut off (a crash, a full disk) belongs to a change that was
//! never made.
//!
//! A place may be there twice, if a later plan found it with another value.
//! Another program changed it while the session did not hold it, and the later value is the one to restore.
//!
//! The holder of the lock (flock(2)) may undo what it says: the session, its guardian, which has inherited the lock, or
//! a later restore when both are gone.

use std::cell::Cell;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use thiserror::Error;

use crate::disk::{About, Disk, Opening};
use crate::errno;
use crate::safety::record::{self, Contents, Header, JOURNAL_VERSION};
use crate::safety::system::System;
use crate::safety::undo::Undo;

const EXTENSION: &str = "journal";

/// No journal is longer.
const LIMIT_BYTES: u64 = 256 << 20;
const HEADER_LIMIT_BYTES: usize = 4096;
/// For a read that failed: a disk or a server may come back.
const READS: usize = 5;
const BETWEEN_READS: Duration = Duration::from_millis(100);

/// A journal that is open and locked.
pub struct Journal<S: System> {
    system: S,
    file: File<S>,
    directory: File<S>,
    name: PathBuf,
    shown: PathBuf,
    /// Of one that was made here.
    header: Option<Header>,
    /// The length of its whole lines.
    /// The rest of a failed write is cut off before the next line.
    whole: Cell<u64>,
    appended: Cell<usize>,
    is_read_only: bool,
}

pub type File<S> = <<S as System>::Disk as Disk>::File;

/// Why a journal cannot be opened and read.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Refused {
    /// The session or its guardian has the lock.
    #[error("its session is still at work")]
    Held,
    #[error("there is no such journal")]
    Gone,
    /// It is no journal, or not one that can be trusted.
    #[error("{0}")]
    Unfit(String),
    /// It cannot be read: nothing is known about changed values.
    #[error("{0}")]
    Unread(String),
}

impl<S: System> Journal<S> {
    /// The one of `header` in `directory`, with that on disk. The error names the file.
    pub fn create(system: &S, directory: &Path, header: Header) -> Result<Journal<S>, String> {
        let line = record::sealed(&header.boot, &header)?;
        let name = file_name(&header.session);
        let shown = directory.join(&name);
        let refused = |error: Errno| format!("{}: {}", shown.display(), errno::of(error));
        let disk = system.disk();
        let directory = disk.open_directory(directory).map_err(refused)?;
        let file = disk.create(&directory, &name, 0o600).map_err(refused)?;
        let (whole, appended) = (Cell::new(0), Cell::new(0));
        let (system, header) = (system.clone(), Some(header));
        let journal = Journal { system, file, directory, name, shown, header, whole, appended, is_read_only: false };
        let disk = journal.system.disk();
        let begun = disk
            .lock(&journal.file)
            .map_err(|error| journal.says(error))
            .and_then(|()| journal.write(&line))
            .and_then(|()| disk.sync(&journal.directory).map_err(|error| journal.says(error)));
        match begun {
            Ok(()) => Ok(journal),
            Err(reason) => {
                let _ = journal.remove();
                Err(reason)
            }
        }
    }

    /// Open and lock a journal that was left behind.
    /// It must be a plain file of root's or of the caller's that no other user can write. On a read-only file system it
    /// is only read.
    pub fn open(system: &S, path: &Path) -> Result<Journal<S>, Refused> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let name = PathBuf::from(path.file_name().ok_or_else(|| Refused::Unfit("it is no file".to_owned()))?);
        let disk = system.disk();
        let directory = disk.open_directory(folder).map_err(refused)?;
        let (file, is_read_only) = match disk.open(&directory, &name, Opening::Append) {
            Err(Errno::ROFS) => (disk.open(&directory, &name, Opening::Read).map_err(refused)?, true),
            opened => (opened.map_err(refused)?, false),
        };
        let about = disk.about(&file).map_err(refused)?;
        check_owner(&about, system.own_user()).map_err(Refused::Unfit)?;
        match disk.lock(&file) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(Refused::Held),
            Err(error) => return Err(refused(error)),
        }
        let (whole, appended) = (Cell::new(about.size), Cell::new(0));
        let (system, shown) = (system.clone(), path.to_owned());
        let journal = Journal { system, file, directory, name, shown, header: None, whole, appended, is_read_only };
        if journal.is_removed().map_err(refused)? {
            return Err(Refused::Gone);
        }
        Ok(journal)
    }

    /// Read it again from the disk; a read that fails is tried again.
    pub fn contents(&self) -> Result<Contents, Refused> {
        let mut tried = 0;
        let bytes = loop {
            tried += 1;
            match self.system.disk().read_all(&self.file, LIMIT_BYTES) {
                Ok(bytes) => break bytes,
                Err(Errno::FBIG) => return Err(Refused::Unfit(format!("it is longer than {LIMIT_BYTES} bytes"))),
                Err(error) if tried == READS => return Err(refused(error)),
                Err(_) => self.system.pause(BETWEEN_READS),
            }
        };
        // Of a guardian: others have written since it was forked.
        self.whole.set(bytes.len() as u64);
        let boot = self.system.boot_id().map_err(Refused::Unread)?;
        let mut contents = record::parse(&bytes, &boot).map_err(Refused::Unfit)?;
        let owner = contents.header.as_ref().filter(|header| header.boot == boot).map(Header::owner);
        if let Some(noted) = owner.and_then(|owner| self.system.noted_steps(owner)) {
            contents.count_missing(noted);
        }
        Ok(contents)
    }

    /// Have `steps` on disk. If that fails, none of them is there.
    pub fn append(&self, steps: &[Undo]) -> Result<(), String> {
        let boot = self.header.as_ref().map_or("", |header| &header.boot);
        self.write(&record::step_lines(boot, self.appended.get(), steps)?)?;
        self.appended.set(self.appended.get() + steps.len());
        Ok(())
    }

    /// How many steps were appended to one that was made here.
    pub fn appended(&self) -> usize {
        self.appended.get()
    }

    /// Have on disk that the steps with these numbers are done.
    /// The journal has these `contents`.
    pub fn mark_done(&self, contents: &Contents, numbers: &[usize]) -> Result<(), String> {
        let (version, boot) = match contents.header.as_ref() {
            Some(header) => (header.journal, header.boot.clone()),
            None => (JOURNAL_VERSION, self.system.boot_id()?),
        };
        match self.is_read_only {
            true => Err(self.says(Errno::ROFS)),
            false => self.write(&record::done_lines(version, &boot, numbers)?),
        }
    }

    fn write(&self, lines: &[u8]) -> Result<(), String> {
        if lines.is_empty() {
            return Ok(());
        }
        let disk = self.system.disk();
        let cut = || disk.truncate(&self.file, self.whole.get()).and_then(|()| disk.sync_data(&self.file));
        if disk.about(&self.file).map_err(|error| self.says(error))?.size != self.whole.get() {
            cut().map_err(|error| self.says(error))?;
        }
        match disk.append_all(&self.file, lines).and_then(|()| disk.sync_data(&self.file)) {
            Ok(()) => {
                self.whole.set(self.whole.get() + lines.len() as u64);
                Ok(())
            }
            // What comes next must not be glued to half a line.
            Err(error) => Err(match cut() {
                Ok(()) => self.says(error),
                Err(second) => format!("{}, and then {}", self.says(error), errno::of(second)),
            }),
        }
    }

    /// Remove it: everything is undone.
    /// That it is gone already is no error.
    pub fn remove(&self) -> Result<(), String> {
        let says = |error| self.says(error);
        let disk = self.system.disk();
        let here = disk.about(&self.file).map_err(says)?;
        let named = match disk.about_named(&self.directory, &self.name) {
            Err(Errno::NOENT) => None,
            named => Some(named.map_err(says)?),
        };
        // Its name may mean another file by now.
        if named.is_some_and(|named| here.is_same(&named)) {
            match disk.unlink(&self.directory, &self.name) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(says(error)),
            }
        }
        disk.sync(&self.directory).map_err(says)
    }

    /// Whether its name was removed.
    pub fn is_removed(&self) -> Result<bool, Errno> {
        Ok(!self.system.disk().about(&self.file)?.is_named)
    }

    #[cfg(test)]
    pub fn seen_by(&self, system: &S, file: File<S>, directory: File<S>) -> Journal<S> {
        let (name, shown) = (self.name.clone(), self.shown.clone());
        let (whole, appended, header) = (self.whole.clone(), self.appended.clone(), self.header.clone());
        Journal { system: system.clone(), file, directory, name, shown, header, whole, appended, is_read_only: false }
    }

    /// Whether it is on a file system where nothing can be written.
    pub fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    pub fn descriptors(&self) -> [&File<S>; 2] {
        [&self.file, &self.directory]
    }

    /// Of one that was made here.
    pub fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    pub fn shown(&self) -> &Path {
        &self.shown
    }

    fn says(&self, error: Errno) -> String {
        format!("{}: {}", self.shown.display(), errno::of(error))
    }
}

fn refused(error: Errno) -> Refused {
    match error {
        Errno::NOENT => Refused::Gone,
        Errno::LOOP => Refused::Unfit("it is a link".to_owned()),
        Errno::NXIO | Errno::NOTDIR | Errno::ISDIR => Refused::Unfit(errno::of(error)),
        error => Refused::Unread(errno::of(error)),
    }
}

/// Whether what is in the file can only come from root or the caller.
pub fn check_owner(about: &About, caller: u32) -> Result<(), String> {
    if !about.is_plain_file() {
        return Err("it is no plain file".to_owned());
    }
    if ![0, caller].contains(&about.owner) {
        return Err(format!("it belongs to the user {}, neither to root nor to the caller", about.owner));
    }
    if about.mode & 0o022 != 0 {
        return Err("others may write it".to_owned());
    }
    Ok(())
}

/// The header of the file at `path`, if it can be read.
/// Nothing is changed because of it.
pub fn header_of<S: System>(system: &S, path: &Path) -> Option<Header> {
    let disk = system.disk();
    let directory = disk.open_directory(path.parent()?).ok()?;
    let file = disk.open(&directory, Path::new(path.file_name()?), Opening::Read).ok()?;
    let mut beginning = [0; HEADER_LIMIT_BYTES];
    let count = disk.read(&file, &mut beginning, 0).ok()?;
    let first = *record::lines(&beginning[..count]).first()?;
    record::parse(&[first, b"\n"].concat(), "").ok()?.header
}

/// Have on disk that the file at `path` is gone. The error names it.
pub fn sync_directory_of<S: System>(system: &S, path: &Path) -> Result<(), String> {
    let disk = system.disk();
    let folder = path.parent().unwrap_or(Path::new("/"));
    match disk.open_directory(folder).and_then(|directory| disk.sync(&directory)) {
        // It went with its directory.
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(format!("{}: {}", path.display(), errno::of(error))),
    }
}

/// That of the journal of a session.
pub fn file_name(session: &str) -> PathBuf {
    PathBuf::from(format!("{session}.{EXTENSION}"))
}

/// Whether a file in a directory of journals is one, by its name.
pub fn is_named_so(path: &Path) -> bool {
    path.extension() == Some(OsStr::new(EXTENSION))
}
