//! The journal: what undoes everything that a session changes on this machine, on disk before it is changed.
//!
//! One file a session, of JSON lines: a header that says whose it is, then one line for each [`Undo`]. All that a plan
//! needs is appended with one write and one fsync(2), and only then is the first value written; a step that is there
//! already is not written again. So a last line that is cut off (a crash, a full disk) belongs to a change that was
//! never made.
//!
//! A place may be there twice, if it was found with another value by a later plan: somebody else changed it while the
//! session was not holding it, and the later value is the one to go back to.
//!
//! Whoever has the file open and locked (flock(2)) may undo what it says: the session itself, its guardian, which has
//! inherited the lock, or, when both are gone, whoever comes next.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{flock, fsync, openat, statat, unlinkat, AtFlags, FlockOperation, Mode, OFlags, CWD};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::errno;
use crate::process::account;
use crate::safety::roll::Leader;
use crate::safety::undo::Undo;

pub const JOURNAL_VERSION: u32 = 1;
pub const EXTENSION: &str = "journal";

/// More than this nobody has written.
const LIMIT_BYTES: u64 = 256 << 20;
const HEADER_LIMIT_BYTES: u64 = 4096;
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Whose journal it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    pub journal: u32,
    pub session: String,
    pub boot: String,
    pub pid: i32,
    /// Of the process, in clock ticks since the boot: the number alone may be used again.
    pub started_ticks: u64,
    /// Seconds since 1970.
    pub began_s: u64,
}

/// A line after the header.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Line {
    /// The step at this place among all steps, counted from 0, is done for good.
    Done {
        done: usize,
    },
    Step(Undo),
}

/// What a journal says.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// `None` if not even that was written: then nothing was changed.
    pub header: Option<Header>,
    pub steps: Vec<Undo>,
    pub done: Vec<bool>,
}

impl Header {
    /// The agent whose session it is.
    pub fn owner(&self) -> Leader {
        Leader { pid: self.pid, started_ticks: self.started_ticks }
    }
}

impl Contents {
    /// The steps that count: not done, and the last ones of their place.
    pub fn open_steps(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.steps.len()).filter(|index| {
            let step = &self.steps[*index];
            !self.done[*index] && !self.steps[index + 1..].iter().any(|later| later.same_place(step))
        })
    }
}

/// The header of a journal, `None` if there is none yet.
fn parse_header(bytes: &[u8]) -> Result<Option<(Header, &[u8])>, String> {
    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else { return Ok(None) };
    let header: Header = serde_json::from_slice(&bytes[..end]).map_err(|error| format!("line 1: {error}"))?;
    match header.journal {
        JOURNAL_VERSION => Ok(Some((header, &bytes[end + 1..]))),
        version => Err(format!("it is of version {version}, this agent understands {JOURNAL_VERSION}")),
    }
}

/// Whose journal the file at `path` is, if that can be told. Nothing is changed because of it.
pub fn header_of(path: &Path) -> Option<Header> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = File::options().read(true).custom_flags(flags).open(path).ok()?;
    let mut beginning = Vec::new();
    file.take(HEADER_LIMIT_BYTES).read_to_end(&mut beginning).ok()?;
    parse_header(&beginning).ok()?.map(|(header, _)| header)
}

/// Parse a journal of the boot with the id `boot`; of one of another boot only the header. The error names the line.
pub fn parse(bytes: &[u8], boot: &str) -> Result<Contents, String> {
    let mut contents = Contents::default();
    let Some((header, rest)) = parse_header(bytes)? else { return Ok(contents) };
    let lines = if header.boot == boot { rest } else { &[] };
    contents.header = Some(header);
    let mut lines: Vec<&[u8]> = lines.split(|byte| *byte == b'\n').collect();
    // Empty, or cut off.
    lines.pop();
    for (index, line) in lines.into_iter().enumerate() {
        let number = index + 2;
        match serde_json::from_slice(line).map_err(|error| format!("line {number}: {error}"))? {
            Line::Step(step) => {
                contents.steps.push(step);
                contents.done.push(false);
            }
            Line::Done { done } => match contents.done.get_mut(done) {
                Some(place) => *place = true,
                None => return Err(format!("line {number}: there is no step {done}")),
            },
        }
    }
    Ok(contents)
}

/// The id of this boot. Another one means that all settings are the kernel's own again.
pub fn boot_id() -> Result<String, String> {
    let text = std::fs::read_to_string(BOOT_ID).map_err(|error| format!("{BOOT_ID}: {}", errno::of(error)))?;
    Ok(text.trim().to_owned())
}

/// A journal that is open and locked.
pub struct Journal {
    file: File,
    directory: OwnedFd,
    name: PathBuf,
    shown: PathBuf,
    /// Of one that was made here.
    owner: Option<Leader>,
}

/// Why a journal cannot be had.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused {
    /// Somebody has it: the session or its guardian.
    Held,
    /// It is not there (any more).
    Gone,
    Unfit(String),
}

impl Journal {
    /// A new one in `directory`, with its header on disk. The error names the file.
    pub fn create(directory: &Path) -> Result<Journal, String> {
        let pid = std::process::id() as i32;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let session = format!("{:x}-{pid}", now.as_nanos());
        let started_ticks = account::start_ticks(pid).unwrap_or(0);
        let header =
            Header { journal: JOURNAL_VERSION, session, boot: boot_id()?, pid, started_ticks, began_s: now.as_secs() };
        let name = PathBuf::from(format!("{}.{EXTENSION}", header.session));
        let shown = directory.join(&name);
        let refused = |error: Errno| format!("{}: {}", shown.display(), errno::of(error));
        let directory = open_directory(directory).map_err(refused)?;
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&directory, &name, flags, Mode::RUSR | Mode::WUSR).map_err(refused)?;
        let journal = Journal { file: file.into(), directory, name, shown, owner: Some(header.owner()) };
        let begun = flock(&journal.file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|error| journal.says(error))
            .and_then(|()| journal.write_lines(&[header]))
            .and_then(|()| fsync(&journal.directory).map_err(|error| journal.says(error)));
        match begun {
            Ok(()) => Ok(journal),
            Err(reason) => {
                let _ = journal.remove();
                Err(reason)
            }
        }
    }

    /// One that somebody has left, locked. It must be a plain file of root's or of the caller's that nobody else
    /// can write.
    pub fn open(path: &Path) -> Result<Journal, Refused> {
        let unfit = |error: Errno| match error {
            Errno::NOENT => Refused::Gone,
            error => Refused::Unfit(errno::of(error)),
        };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let name = PathBuf::from(path.file_name().ok_or_else(|| Refused::Unfit("it is no file".to_owned()))?);
        let directory = open_directory(folder).map_err(unfit)?;
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file: File = openat(&directory, &name, flags, Mode::empty()).map_err(unfit)?.into();
        let about = file.metadata().map_err(|error| Refused::Unfit(errno::of(error)))?;
        check_owner(&about).map_err(Refused::Unfit)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(Refused::Held),
            Err(error) => return Err(unfit(error)),
        }
        let journal = Journal { file, directory, name, shown: path.to_owned(), owner: None };
        if journal.is_removed() {
            return Err(Refused::Gone);
        }
        Ok(journal)
    }

    /// Read it again from the disk.
    pub fn contents(&self) -> Result<Contents, String> {
        let size = self.file.metadata().map_err(errno::of)?.len();
        if size > LIMIT_BYTES {
            return Err(format!("it is longer than {LIMIT_BYTES} bytes"));
        }
        let mut bytes = vec![0; size as usize];
        self.file.read_exact_at(&mut bytes, 0).map_err(errno::of)?;
        parse(&bytes, &boot_id()?)
    }

    /// Have `steps` on disk. If that fails, none of them is there.
    pub fn append(&self, steps: &[Undo]) -> Result<(), String> {
        self.write_lines(steps)
    }

    /// Have on disk that the steps at these places are done.
    pub fn mark_done(&self, places: &[usize]) -> Result<(), String> {
        let lines: Vec<Line> = places.iter().map(|place| Line::Done { done: *place }).collect();
        self.write_lines(&lines)
    }

    fn write_lines<T: Serialize>(&self, lines: &[T]) -> Result<(), String> {
        let mut text = Vec::new();
        for line in lines {
            serde_json::to_writer(&mut text, line).map_err(|error| error.to_string())?;
            text.push(b'\n');
        }
        let mut file = &self.file;
        let length = file.metadata().map_err(|error| self.says(error))?.len();
        file.write_all(&text).and_then(|()| file.sync_data()).map_err(|error| {
            // What comes next must not be glued to half a line.
            match file.set_len(length).and_then(|()| file.sync_data()) {
                Ok(()) => self.says(error),
                Err(second) => format!("{}, and then {}", self.says(error), errno::of(second)),
            }
        })
    }

    /// Everything is undone: no journal any more. That it is gone already is no error.
    pub fn remove(&self) -> Result<(), String> {
        if self.is_removed() || !self.is_still_there() {
            return Ok(());
        }
        match unlinkat(&self.directory, &self.name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => fsync(&self.directory).map_err(|error| self.says(error)),
            Err(error) => Err(self.says(error)),
        }
    }

    fn is_removed(&self) -> bool {
        self.file.metadata().is_ok_and(|about| about.nlink() == 0)
    }

    /// Whether its name still means this very file.
    fn is_still_there(&self) -> bool {
        let named = statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW);
        let here = self.file.metadata();
        matches!((named, here), (Ok(named), Ok(here)) if (named.st_dev, named.st_ino) == (here.dev(), here.ino()))
    }

    pub fn descriptors(&self) -> [&dyn std::os::fd::AsRawFd; 2] {
        [&self.file, &self.directory]
    }

    /// The agent that has made it, if that is this one.
    pub fn owner(&self) -> Option<Leader> {
        self.owner
    }

    pub fn shown(&self) -> &Path {
        &self.shown
    }

    fn says(&self, error: impl Into<io::Error>) -> String {
        format!("{}: {}", self.shown.display(), errno::of(error))
    }
}

fn open_directory(path: &Path) -> Result<OwnedFd, Errno> {
    openat(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

fn check_owner(about: &std::fs::Metadata) -> Result<(), String> {
    let caller = rustix::process::geteuid().as_raw();
    if !about.is_file() {
        return Err("it is no plain file".to_owned());
    }
    if ![0, caller].contains(&about.uid()) {
        return Err(format!("it belongs to the user {}, neither to root nor to the caller", about.uid()));
    }
    if about.mode() & 0o022 != 0 {
        return Err("others may write it".to_owned());
    }
    Ok(())
}

/// Whether a file in a directory of journals is one, by its name.
pub fn is_named_so(path: &Path) -> bool {
    path.extension() == Some(OsStr::new(EXTENSION))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{FileLocation, Location};
    use crate::safety::undo::OldValue;

    fn step(name: &str, before: &str) -> Undo {
        let location = Location::File(FileLocation { path: format!("/proc/sys/{name}") });
        let (tunable, before) = (name.to_owned(), before.to_owned());
        Undo::Value(OldValue { tunable, location, before, companion: false, appeared: false })
    }

    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("ajuste-journal-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn what_was_appended_is_read_again_and_the_last_of_a_place_counts() {
        let folder = folder("append");
        let journal = Journal::create(&folder).unwrap();
        journal.append(&[step("a", "1"), step("b", "2\t3")]).unwrap();
        journal.append(&[step("a", "4")]).unwrap();
        let contents = journal.contents().unwrap();
        assert_eq!(contents.steps, [step("a", "1"), step("b", "2\t3"), step("a", "4")]);
        assert_eq!(contents.open_steps().collect::<Vec<_>>(), [1, 2]);
        journal.mark_done(&[2]).unwrap();
        assert_eq!(journal.contents().unwrap().open_steps().collect::<Vec<_>>(), [1]);
        journal.remove().unwrap();
        journal.remove().unwrap();
        std::fs::remove_dir(folder).unwrap();
    }

    #[test]
    fn it_is_nobody_elses() {
        let folder = folder("owner");
        let journal = Journal::create(&folder).unwrap();
        let path = journal.shown().to_owned();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(Journal::open(&path).err(), Some(Refused::Held));
        drop(journal);
        let left = Journal::open(&path).unwrap();
        left.remove().unwrap();
        assert_eq!(Journal::open(&path).err(), Some(Refused::Gone));
        std::fs::remove_dir(folder).unwrap();
    }

    #[test]
    fn one_of_another_boot_is_not_read_beyond_its_header() {
        let text = br#"{"journal":1,"session":"s","boot":"b","pid":1,"started_ticks":2,"began_s":3}
no step
"#;
        assert!(parse(text, "b").unwrap_err().starts_with("line 2: "));
        let contents = parse(text, "c").unwrap();
        assert_eq!((contents.header.unwrap().boot.as_str(), contents.steps.len()), ("b", 0));
    }

    #[test]
    fn wherever_it_is_cut_off_the_whole_lines_count() {
        let header = r#"{"journal":1,"session":"s","boot":"b","pid":1,"started_ticks":2,"began_s":3}"#;
        let steps = [step("a", "1"), step("b", "é")].map(|step| serde_json::to_string(&step).unwrap());
        let text = format!("{header}\n{}\n{}\n", steps[0], steps[1]);
        for length in 0..=text.len() {
            let whole = text.as_bytes()[..length].iter().filter(|byte| **byte == b'\n').count();
            let contents = parse(&text.as_bytes()[..length], "b").unwrap();
            assert_eq!(contents.header.is_some(), whole > 0);
            assert_eq!(contents.steps.len(), whole.saturating_sub(1));
        }
    }
}
