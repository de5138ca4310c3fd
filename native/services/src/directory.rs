//! The directory of a service: its control socket, its data, and the template of these.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lexopt::prelude::*;

use crate::request::{Fault, directories};

/// Deeper directories are none of a service's.
const DEEPEST: usize = 200;

pub fn run(mut arguments: lexopt::Parser) -> Result<ExitCode, Fault> {
    let word = match arguments.next()? {
        Some(Value(word)) => word.string()?,
        _ => return Err(Fault::Request("expected make, keep or remove".into())),
    };
    match (word.as_str(), directories(arguments)?.as_slice()) {
        ("make", [directory]) => make(directory).and_then(|()| make_data(directory)),
        ("keep", [directory, template]) => keep(directory, template),
        ("remove", [directory]) => remove(directory),
        _ => Err(Fault::Request("expected make DIR, keep DIR TEMPLATE or remove DIR".into())),
    }
    .map(|()| ExitCode::SUCCESS)
}

pub fn socket(directory: &Path) -> PathBuf {
    directory.join("control")
}

pub fn data(directory: &Path) -> PathBuf {
    directory.join("data")
}

/// The directory, of this user and for nobody else. So is the one that it is in.
pub fn make(directory: &Path) -> Result<(), Fault> {
    let parent = directory.parent().ok_or_else(|| Fault::Run(format!("{} has no parent", directory.display())))?;
    own(parent).and_then(|()| own(directory))
}

fn own(directory: &Path) -> Result<(), Fault> {
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => fs::symlink_metadata(directory).and_then(|about| {
            let me = rustix::process::geteuid().as_raw();
            match about.is_dir() && about.uid() == me && about.mode() & 0o077 == 0 {
                true => Ok(()),
                false => Err(io::Error::other("is not a directory that only this user can use; remove it")),
            }
        }),
    }
    .map_err(Fault::of(directory.display()))
}

/// An empty directory for data.
pub fn make_data(directory: &Path) -> Result<(), Fault> {
    let data = data(directory);
    cleared(&data).and_then(|()| DirBuilder::new().mode(0o700).create(&data)).map_err(Fault::of(data.display()))
}

fn keep(directory: &Path, template: &Path) -> Result<(), Fault> {
    cleared(template).and_then(|()| fs::rename(data(directory), template)).map_err(Fault::of(template.display()))
}

/// A copy of `template` as data, on the disk: nothing of it is written back later, during the trial.
pub fn restore(directory: &Path, template: &Path) -> Result<(), Fault> {
    let data = data(directory);
    cleared(&data).map_err(Fault::of(data.display()))?;
    copy(template, &data, 0).map_err(Fault::of(format_args!("{} to {}", template.display(), data.display())))?;
    let copied = File::open(&data).and_then(|file| Ok(rustix::fs::syncfs(&file)?));
    copied.map_err(Fault::of(data.display()))
}

fn remove(directory: &Path) -> Result<(), Fault> {
    cleared(directory).map_err(Fault::of(directory.display()))?;
    // Other services may have theirs beside it.
    let _ = directory.parent().map(fs::remove_dir);
    Ok(())
}

fn cleared(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Files are shared with the original where the file system can do that (copy_file_range(2)).
fn copy(from: &Path, to: &Path, depth: usize) -> io::Result<()> {
    let about = fs::symlink_metadata(from)?;
    let kind = about.file_type();
    if kind.is_symlink() {
        return symlink(fs::read_link(from)?, to);
    }
    if kind.is_file() {
        return fs::copy(from, to).map(|_| ());
    }
    if kind.is_socket() || kind.is_fifo() {
        return Ok(()); // A server makes its own.
    }
    if !kind.is_dir() || depth > DEEPEST {
        return Err(io::Error::other(format!("{} cannot be copied", from.display())));
    }
    DirBuilder::new().mode(0o700).create(to)?;
    let mut names: Vec<_> =
        fs::read_dir(from)?.map(|entry| entry.map(|one| one.file_name())).collect::<Result<_, _>>()?;
    names.sort();
    names.iter().try_for_each(|name| copy(&from.join(name), &to.join(name), depth + 1))?;
    fs::set_permissions(to, about.permissions())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_files_links_and_modes() {
        let place = std::env::temp_dir().join(format!("ajuste-service-test-{}", std::process::id()));
        let directory = place.join("one");
        let template = directory.join("template");
        DirBuilder::new().mode(0o700).create(&place).unwrap();
        make(&directory).unwrap();
        make_data(&directory).unwrap();
        fs::create_dir(data(&directory).join("below")).unwrap();
        fs::write(data(&directory).join("below/file"), "text").unwrap();
        symlink("below/file", data(&directory).join("link")).unwrap();
        keep(&directory, &template).unwrap();
        for _ in 0..2 {
            restore(&directory, &template).unwrap();
            fs::write(data(&directory).join("more"), "").unwrap();
        }
        restore(&directory, &template).unwrap();
        assert_eq!(fs::read_to_string(data(&directory).join("link")).unwrap(), "text");
        assert!(!data(&directory).join("more").exists());
        assert_eq!(fs::metadata(data(&directory)).unwrap().mode() & 0o777, 0o700);
        remove(&directory).unwrap();
        assert!(!place.exists());
    }

    #[test]
    fn the_directory_of_somebody_else_is_not_taken() {
        let place = std::env::temp_dir().join(format!("ajuste-service-open-{}", std::process::id()));
        DirBuilder::new().mode(0o755).create(&place).unwrap();
        assert!(make(&place.join("one")).is_err());
        fs::remove_dir(&place).unwrap();
    }
}
