//! File operations, one by one, as the kernel has them.
//!
//! Code that must not lose a file goes through [`Disk`].
//! On a machine it is [`Local`]; in tests it is a disk that fails, tears and forgets at any operation.
//!
//! All other files of the agent are touched by [`fs`] and the functions below, so that a test meets a fault at each of
//! their operations, too ([`fault`]). In the ordinary build they are the system's, unchanged.

pub mod fault;
#[cfg(feature = "faults")]
mod faulty;

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, Dir, FlockOperation, Mode, OFlags, Stat, fchmod, fdatasync, flock, fstat, fsync, ftruncate, mkdir,
    openat, statat, unlinkat,
};
use rustix::io::Errno;

use fault::Operation;

pub use rustix::fs::{Access, FallocateFlags, MemfdFlags, inotify};

/// What this program takes of `std::fs`.
pub mod fs {
    #[cfg(feature = "faults")]
    pub use super::faulty::*;
    #[cfg(not(feature = "faults"))]
    pub use std::fs::{
        DirBuilder, File, Metadata, OpenOptions, Permissions, canonicalize, create_dir, create_dir_all, metadata, read,
        read_dir, read_to_string, remove_dir, remove_dir_all, remove_file, set_permissions, symlink_metadata, write,
    };
    #[cfg(not(feature = "faults"))]
    pub use std::os::unix::fs::{chown, fchown, symlink};

    /// Standard output, to which events go.
    #[cfg(not(feature = "faults"))]
    #[inline]
    pub fn stdout() -> std::io::StdoutLock<'static> {
        std::io::stdout().lock()
    }
}

/// How a file is opened. Links are not followed, and nothing is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    Read,
    /// For reading, and for appending.
    Append,
    /// For both, with its permissions; it must not be there yet.
    Create(u32),
}

/// What is known of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    pub size: u64,
    /// Whether it still has a name.
    pub is_named: bool,
    pub owner: u32,
    /// Type and permissions.
    pub mode: u32,
    pub device: u64,
    pub inode: u64,
}

impl About {
    pub fn is_plain_file(&self) -> bool {
        self.mode & libc::S_IFMT == libc::S_IFREG
    }

    pub fn is_directory(&self) -> bool {
        self.mode & libc::S_IFMT == libc::S_IFDIR
    }

    pub fn is_same(&self, other: &About) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

pub trait Disk {
    /// An open file or directory. Its lock goes with it.
    type File;

    fn open_directory(&self, path: &Path) -> Result<Self::File, Errno>;
    /// The file `name` in `directory`.
    fn open(&self, directory: &Self::File, name: &Path, opening: Opening) -> Result<Self::File, Errno>;
    fn about(&self, file: &Self::File) -> Result<About, Errno>;
    /// Of `name` in `directory`, itself if it is a link.
    fn about_named(&self, directory: &Self::File, name: &Path) -> Result<About, Errno>;
    /// Of what `path` means in the end.
    fn about_path(&self, path: &Path) -> Result<About, Errno>;
    /// Perhaps less than `buffer` takes; 0 at the end.
    fn read(&self, file: &Self::File, buffer: &mut [u8], offset: u64) -> Result<usize, Errno>;
    /// Perhaps less than all of `bytes`.
    fn append(&self, file: &Self::File, bytes: &[u8]) -> Result<usize, Errno>;
    fn truncate(&self, file: &Self::File, length: u64) -> Result<(), Errno>;
    /// fsync(2), of a directory too.
    fn sync(&self, file: &Self::File) -> Result<(), Errno>;
    /// fdatasync(2).
    fn sync_data(&self, file: &Self::File) -> Result<(), Errno>;
    /// flock(2), exclusive; `WOULDBLOCK` if another has it.
    fn lock(&self, file: &Self::File) -> Result<(), Errno>;
    fn unlink(&self, directory: &Self::File, name: &Path) -> Result<(), Errno>;
    /// With exactly these permissions. That it is there already is an error.
    fn make_directory(&self, path: &Path, mode: u32) -> Result<(), Errno>;
    /// The names in a directory, in no order.
    fn names(&self, path: &Path) -> Result<Vec<OsString>, Errno>;

    /// All of a file, or the error of the first read that failed.
    fn read_all(&self, file: &Self::File, limit: u64) -> Result<Vec<u8>, Errno> {
        let size = self.about(file)?.size;
        if size > limit {
            return Err(Errno::FBIG);
        }
        let mut bytes = vec![0; size as usize];
        let mut filled = 0;
        while filled < bytes.len() {
            match self.read(file, &mut bytes[filled..], filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }

    /// Create a file.
    /// If this fails, try to leave no file behind.
    fn create(&self, directory: &Self::File, name: &Path, mode: u32) -> Result<Self::File, Errno> {
        let created = self.open(directory, name, Opening::Create(mode));
        if created.as_ref().is_err_and(|error| *error != Errno::EXIST) {
            let _ = self.unlink(directory, name);
        }
        created
    }

    fn append_all(&self, file: &Self::File, mut bytes: &[u8]) -> Result<(), Errno> {
        while !bytes.is_empty() {
            match self.append(file, bytes) {
                Ok(0) => return Err(Errno::IO),
                Ok(count) => bytes = &bytes[count..],
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The files of the machine that this runs on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Local;

impl Disk for Local {
    type File = OwnedFd;

    fn open_directory(&self, path: &Path) -> Result<OwnedFd, Errno> {
        fault::next(Operation::Open)?;
        openat(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
    }

    fn open(&self, directory: &OwnedFd, name: &Path, opening: Opening) -> Result<OwnedFd, Errno> {
        let always = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        fault::next(if matches!(opening, Opening::Create(_)) { Operation::Create } else { Operation::Open })?;
        match opening {
            Opening::Read => openat(directory, name, OFlags::RDONLY | always, Mode::empty()),
            Opening::Append => openat(directory, name, OFlags::RDWR | OFlags::APPEND | always, Mode::empty()),
            Opening::Create(mode) => {
                let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL | always;
                let file = openat(directory, name, flags, Mode::from_raw_mode(mode))?;
                // In spite of the umask.
                fault::next(Operation::Mode)?;
                fchmod(&file, Mode::from_raw_mode(mode)).map(|()| file)
            }
        }
    }

    fn about(&self, file: &OwnedFd) -> Result<About, Errno> {
        fault::next(Operation::Stat)?;
        fstat(file).map(about)
    }

    fn about_named(&self, directory: &OwnedFd, name: &Path) -> Result<About, Errno> {
        fault::next(Operation::Stat)?;
        statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).map(about)
    }

    fn about_path(&self, path: &Path) -> Result<About, Errno> {
        fault::next(Operation::Stat)?;
        rustix::fs::stat(path).map(about)
    }

    fn read(&self, file: &OwnedFd, buffer: &mut [u8], offset: u64) -> Result<usize, Errno> {
        let length = fault::length(Operation::Read, buffer.len())?;
        rustix::io::pread(file, &mut buffer[..length], offset)
    }

    fn append(&self, file: &OwnedFd, bytes: &[u8]) -> Result<usize, Errno> {
        let length = fault::length(Operation::Write, bytes.len())?;
        rustix::io::write(file, &bytes[..length])
    }

    fn truncate(&self, file: &OwnedFd, length: u64) -> Result<(), Errno> {
        fault::next(Operation::Truncate)?;
        ftruncate(file, length)
    }

    fn sync(&self, file: &OwnedFd) -> Result<(), Errno> {
        fault::next(Operation::Sync)?;
        fsync(file)
    }

    fn sync_data(&self, file: &OwnedFd) -> Result<(), Errno> {
        fault::next(Operation::Sync)?;
        fdatasync(file)
    }

    fn lock(&self, file: &OwnedFd) -> Result<(), Errno> {
        fault::next(Operation::Lock)?;
        flock(file, FlockOperation::NonBlockingLockExclusive)
    }

    fn unlink(&self, directory: &OwnedFd, name: &Path) -> Result<(), Errno> {
        fault::next(Operation::Unlink)?;
        unlinkat(directory, name, AtFlags::empty())
    }

    fn make_directory(&self, path: &Path, mode: u32) -> Result<(), Errno> {
        fault::next(Operation::MakeDirectory)?;
        mkdir(path, Mode::from_raw_mode(mode))?;
        let directory = self.open_directory(path)?;
        fault::next(Operation::Mode)?;
        fchmod(directory, Mode::from_raw_mode(mode))
    }

    fn names(&self, path: &Path) -> Result<Vec<OsString>, Errno> {
        let mut names = Vec::new();
        for entry in Dir::new(self.open_directory(path)?)? {
            fault::next(Operation::List)?;
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(OsStr::from_bytes(&name).to_owned());
            }
        }
        Ok(names)
    }
}

/// A file for reading, for which nothing is waited.
#[inline]
pub fn open_at_once(path: &Path) -> Result<OwnedFd, Errno> {
    fault::next(Operation::Open)?;
    rustix::fs::open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())
}

/// A file in memory without a name.
#[inline]
pub fn memfd_create(name: &str, flags: MemfdFlags) -> Result<OwnedFd, Errno> {
    fault::next(Operation::Create)?;
    rustix::fs::memfd_create(name, flags)
}

#[inline]
pub fn fallocate(file: impl AsFd, flags: FallocateFlags, offset: u64, length: u64) -> Result<(), Errno> {
    fault::next(Operation::Allocate)?;
    rustix::fs::fallocate(file, flags, offset, length)
}

#[inline]
pub fn access(path: &Path, access: Access) -> Result<(), Errno> {
    fault::next(Operation::Access)?;
    rustix::fs::access(path, access)
}

/// One read(2) of what is read like a file: standard input.
#[inline]
pub fn read_some(file: impl AsFd, buffer: &mut [u8]) -> Result<usize, Errno> {
    let length = fault::length(Operation::Read, buffer.len())?;
    rustix::io::read(file, &mut buffer[..length])
}

/// sync(2): everything of every disk.
#[inline]
pub fn sync_everything() {
    let _ = fault::next(Operation::Sync);
    rustix::fs::sync();
}

fn about(stat: Stat) -> About {
    About {
        size: stat.st_size as u64,
        is_named: stat.st_nlink > 0,
        owner: stat.st_uid,
        mode: stat.st_mode,
        device: stat.st_dev,
        inode: stat.st_ino,
    }
}
