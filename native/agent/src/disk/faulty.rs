//! What this program takes of `std::fs`, asking [`fault`] first.
//! Not part of the ordinary build.

use std::fs;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::fault::{self, Operation};

pub use std::fs::{Metadata, Permissions};

#[derive(Debug)]
pub struct File(fs::File);

impl File {
    pub fn open(path: impl AsRef<Path>) -> io::Result<File> {
        fault::next(Operation::Open)?;
        fs::File::open(path).map(File)
    }

    pub fn metadata(&self) -> io::Result<Metadata> {
        fault::next(Operation::Stat)?;
        self.0.metadata()
    }

    pub fn set_len(&self, size: u64) -> io::Result<()> {
        fault::next(Operation::Truncate)?;
        self.0.set_len(size)
    }

    pub fn sync_all(&self) -> io::Result<()> {
        fault::next(Operation::Sync)?;
        self.0.sync_all()
    }
}

impl Read for File {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = fault::length(Operation::Read, buffer.len())?;
        self.0.read(&mut buffer[..length])
    }
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = fault::length(Operation::Write, bytes.len())?;
        self.0.write(&bytes[..length])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Seek for File {
    fn seek(&mut self, place: SeekFrom) -> io::Result<u64> {
        fault::next(Operation::Seek)?;
        self.0.seek(place)
    }
}

impl FileExt for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let length = fault::length(Operation::Read, buffer.len())?;
        self.0.read_at(&mut buffer[..length], offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let length = fault::length(Operation::Write, bytes.len())?;
        self.0.write_at(&bytes[..length], offset)
    }
}

impl AsFd for File {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for File {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl FromRawFd for File {
    unsafe fn from_raw_fd(descriptor: RawFd) -> File {
        // SAFETY: as the caller has promised.
        File(unsafe { fs::File::from_raw_fd(descriptor) })
    }
}

impl From<OwnedFd> for File {
    fn from(descriptor: OwnedFd) -> File {
        File(descriptor.into())
    }
}

#[derive(Clone, Debug)]
pub struct OpenOptions {
    options: fs::OpenOptions,
    creates: bool,
}

impl OpenOptions {
    #[allow(clippy::new_without_default)]
    pub fn new() -> OpenOptions {
        OpenOptions { options: fs::OpenOptions::new(), creates: false }
    }

    pub fn read(&mut self, is_on: bool) -> &mut OpenOptions {
        self.options.read(is_on);
        self
    }

    pub fn write(&mut self, is_on: bool) -> &mut OpenOptions {
        self.options.write(is_on);
        self
    }

    pub fn create_new(&mut self, is_on: bool) -> &mut OpenOptions {
        self.options.create_new(is_on);
        self.creates |= is_on;
        self
    }

    pub fn open(&self, path: impl AsRef<Path>) -> io::Result<File> {
        fault::next(if self.creates { Operation::Create } else { Operation::Open })?;
        self.options.open(path).map(File)
    }
}

impl OpenOptionsExt for OpenOptions {
    fn mode(&mut self, mode: u32) -> &mut OpenOptions {
        self.options.mode(mode);
        self
    }

    fn custom_flags(&mut self, flags: i32) -> &mut OpenOptions {
        self.options.custom_flags(flags);
        self.creates |= flags & libc::O_TMPFILE == libc::O_TMPFILE;
        self
    }
}

#[derive(Debug)]
pub struct DirBuilder(fs::DirBuilder);

impl DirBuilder {
    #[allow(clippy::new_without_default)]
    pub fn new() -> DirBuilder {
        DirBuilder(fs::DirBuilder::new())
    }

    pub fn create(&self, path: impl AsRef<Path>) -> io::Result<()> {
        fault::next(Operation::MakeDirectory)?;
        self.0.create(path)
    }
}

impl DirBuilderExt for DirBuilder {
    fn mode(&mut self, mode: u32) -> &mut DirBuilder {
        self.0.mode(mode);
        self
    }
}

pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

pub fn read_to_string(path: impl AsRef<Path>) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.read_to_string(&mut text)?;
    Ok(text)
}

pub fn write(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    fault::next(Operation::Create)?;
    let mut file = File(fs::File::create(path)?);
    file.write_all(bytes.as_ref())
}

pub fn canonicalize(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    fault::next(Operation::Resolve)?;
    fs::canonicalize(path)
}

pub fn metadata(path: impl AsRef<Path>) -> io::Result<Metadata> {
    fault::next(Operation::Stat)?;
    fs::metadata(path)
}

pub fn symlink_metadata(path: impl AsRef<Path>) -> io::Result<Metadata> {
    fault::next(Operation::Stat)?;
    fs::symlink_metadata(path)
}

pub fn set_permissions(path: impl AsRef<Path>, permissions: Permissions) -> io::Result<()> {
    fault::next(Operation::Mode)?;
    fs::set_permissions(path, permissions)
}

pub fn chown(path: impl AsRef<Path>, user: Option<u32>, group: Option<u32>) -> io::Result<()> {
    fault::next(Operation::Owner)?;
    std::os::unix::fs::chown(path, user, group)
}

pub fn fchown(file: impl AsFd, user: Option<u32>, group: Option<u32>) -> io::Result<()> {
    fault::next(Operation::Owner)?;
    std::os::unix::fs::fchown(file, user, group)
}

pub fn symlink(target: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
    fault::next(Operation::Link)?;
    std::os::unix::fs::symlink(target, link)
}

pub fn create_dir(path: impl AsRef<Path>) -> io::Result<()> {
    fault::next(Operation::MakeDirectory)?;
    fs::create_dir(path)
}

pub fn create_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    fault::next(Operation::MakeDirectory)?;
    fs::create_dir_all(path)
}

pub fn remove_file(path: impl AsRef<Path>) -> io::Result<()> {
    fault::next(Operation::Unlink)?;
    fs::remove_file(path)
}

pub fn remove_dir(path: impl AsRef<Path>) -> io::Result<()> {
    fault::next(Operation::RemoveDirectory)?;
    fs::remove_dir(path)
}

pub fn remove_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    fault::next(Operation::RemoveDirectory)?;
    fs::remove_dir_all(path)
}

/// Each entry may be an error, as well as the first of all.
pub fn read_dir(path: impl AsRef<Path>) -> io::Result<impl Iterator<Item = io::Result<fs::DirEntry>>> {
    fault::next(Operation::List)?;
    Ok(fs::read_dir(path)?.map(|entry| fault::next(Operation::List).map_err(io::Error::from).and(entry)))
}

/// Standard output, to which events go.
pub fn stdout() -> impl Write {
    struct Output(io::StdoutLock<'static>);

    impl Write for Output {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let length = fault::length(Operation::Write, bytes.len())?;
            self.0.write(&bytes[..length])
        }

        fn flush(&mut self) -> io::Result<()> {
            self.0.flush()
        }
    }

    Output(io::stdout().lock())
}
