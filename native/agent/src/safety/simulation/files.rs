//! The files of a simulated machine: each operation may fail, tear or be lost.

use std::ffi::OsString;
use std::path::Path;

use rustix::io::Errno;

use crate::disk::{About, Disk, Opening};
use crate::safety::simulation::process::{Open, Process};
use crate::safety::simulation::volume::Volume;
use crate::safety::simulation::world::{Fault, Planted, World, Wrong};

impl Disk for Process {
    type File = Open;

    fn open_directory(&self, path: &Path) -> Result<Open, Errno> {
        let volume = self.volume(path);
        self.whole("open_directory", |world| {
            match world.volumes[volume].directories.iter().any(|directory| directory == path) {
                true => Ok(self.opened(world, volume, None, path)),
                false => Err(Errno::NOENT),
            }
        })
    }

    fn open(&self, directory: &Open, name: &Path, opening: Opening) -> Result<Open, Errno> {
        let path = directory.path.join(name);
        self.whole("open", |world| {
            let volume = &mut world.volumes[directory.volume];
            let found = volume.names.get(&path).copied();
            let inode = match (opening, found) {
                (Opening::Read, Some(inode)) => inode,
                (Opening::Read | Opening::Append, None) => return Err(Errno::NOENT),
                _ if volume.is_read_only => return Err(Errno::ROFS),
                (Opening::Append, Some(inode)) => inode,
                (Opening::Create(_), Some(_)) => return Err(Errno::EXIST),
                (Opening::Create(mode), None) => volume.create(&path, mode, self.machine),
            };
            Ok(self.opened(world, directory.volume, Some(inode), &path))
        })
    }

    fn about(&self, file: &Open) -> Result<About, Errno> {
        self.whole("about", |world| {
            world.flush_deferred();
            Ok(about(&world.volumes[file.volume], file.volume, file.inode))
        })
    }

    fn about_named(&self, directory: &Open, name: &Path) -> Result<About, Errno> {
        self.whole("about_named", |world| {
            let volume = &world.volumes[directory.volume];
            let inode = volume.names.get(&directory.path.join(name)).ok_or(Errno::NOENT)?;
            Ok(about(volume, directory.volume, Some(*inode)))
        })
    }

    fn about_path(&self, path: &Path) -> Result<About, Errno> {
        let number = self.volume(path);
        self.whole("about_path", |world| {
            let volume = &world.volumes[number];
            match volume.names.get(path) {
                Some(inode) => Ok(about(volume, number, Some(*inode))),
                None if volume.directories.iter().any(|one| one == path) => Ok(about(volume, number, None)),
                None => Err(Errno::NOENT),
            }
        })
    }

    fn read(&self, file: &Open, buffer: &mut [u8], offset: u64) -> Result<usize, Errno> {
        let fault = self.operation("read")?;
        let mut world = self.world.borrow_mut();
        world.flush_deferred();
        if matches!(fault, Some(Fault::Killed { .. } | Fault::Torn)) {
            if fault != Some(Fault::Torn) {
                world.kill(self.pid);
            }
            return Err(Errno::IO);
        }
        let data = &world.volumes[file.volume].inodes[file.inode.ok_or(Errno::ISDIR)?].data;
        let rest = data.get(offset as usize..).unwrap_or_default();
        let most = if fault == Some(Fault::Short) { rest.len().div_ceil(2) } else { rest.len() };
        let count = most.min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn append(&self, file: &Open, bytes: &[u8]) -> Result<usize, Errno> {
        let fault = self.operation("append")?;
        let mut world = self.world.borrow_mut();
        let inode = file.inode.ok_or(Errno::ISDIR)?;
        if world.volumes[file.volume].is_read_only {
            return Err(Errno::ROFS);
        }
        let is_step = file.path.extension().is_some_and(|word| word == "journal");
        let has_header = !world.volumes[file.volume].inodes[inode].data.is_empty();
        if world.planted == Planted::WriteFirst && fault.is_none() && is_step && has_header {
            world.deferred.push((file.volume, inode, bytes.to_vec()));
            return Ok(bytes.len());
        }
        let count = match fault {
            Some(Fault::Short | Fault::Torn) => bytes.len().div_ceil(2),
            _ => bytes.len(),
        };
        world.volumes[file.volume].inodes[inode].data.extend(&bytes[..count]);
        match fault {
            Some(Fault::Torn) => Err(Errno::NOSPC),
            Some(Fault::Killed { .. }) => {
                world.kill(self.pid);
                Err(Errno::IO)
            }
            _ => Ok(count),
        }
    }

    fn truncate(&self, file: &Open, length: u64) -> Result<(), Errno> {
        self.whole("truncate", |world| {
            let volume = &mut world.volumes[file.volume];
            if volume.is_read_only {
                return Err(Errno::ROFS);
            }
            volume.inodes[file.inode.ok_or(Errno::ISDIR)?].data.resize(length as usize, 0);
            Ok(())
        })
    }

    fn sync(&self, file: &Open) -> Result<(), Errno> {
        self.whole("sync", |world| synced(world, file))
    }

    fn sync_data(&self, file: &Open) -> Result<(), Errno> {
        self.whole("sync_data", |world| synced(world, file))
    }

    fn lock(&self, file: &Open) -> Result<(), Errno> {
        self.whole("lock", |world| {
            let key = (file.volume, file.inode.ok_or(Errno::ISDIR)?);
            match world.locks.get(&key) {
                Some((number, machine))
                    if *number != file.number && (world.locks_are_shared || *machine == self.machine) =>
                {
                    Err(Errno::WOULDBLOCK)
                }
                _ => {
                    world.locks.insert(key, (file.number, self.machine));
                    Ok(())
                }
            }
        })
    }

    fn unlink(&self, directory: &Open, name: &Path) -> Result<(), Errno> {
        let path = directory.path.join(name);
        self.whole("unlink", |world| {
            let volume = &mut world.volumes[directory.volume];
            if volume.is_read_only {
                return Err(Errno::ROFS);
            }
            let inode = volume.names.remove(&path).ok_or(Errno::NOENT)?;
            if volume.inodes[inode].maker != self.machine {
                let note = format!("{} of another machine was removed", path.display());
                world.wrong.push(Wrong::Another(note));
            }
            Ok(())
        })
    }

    fn make_directory(&self, path: &Path, _: u32) -> Result<(), Errno> {
        let volume = self.volume(path);
        self.whole("make_directory", |world| {
            let volume = &mut world.volumes[volume];
            if volume.is_read_only {
                return Err(Errno::ROFS);
            }
            volume.directories.push(path.to_owned());
            Ok(())
        })
    }

    fn names(&self, path: &Path) -> Result<Vec<OsString>, Errno> {
        let volume = self.volume(path);
        self.whole("names", |world| Ok(world.volumes[volume].list(path)))
    }
}

fn about(volume: &Volume, device: usize, inode: Option<usize>) -> About {
    let (kind, mode, size) = match inode {
        Some(inode) => (libc::S_IFREG, volume.inodes[inode].mode, volume.inodes[inode].data.len()),
        None => (libc::S_IFDIR, 0o755, 0),
    };
    let is_named = inode.is_none_or(|inode| volume.is_named(inode));
    let number = inode.map_or(0, |inode| inode as u64 + 1);
    About { size: size as u64, is_named, owner: 0, mode: kind | mode, device: device as u64, inode: number }
}

fn synced(world: &mut World, file: &Open) -> Result<(), Errno> {
    if world.planted == Planted::NoSync {
        return Ok(());
    }
    let volume = &mut world.volumes[file.volume];
    match file.inode {
        Some(inode) if !volume.sync(inode) => return Err(Errno::IO),
        Some(_) => {}
        None if !volume.sync_directory(&file.path) => return Err(Errno::IO),
        None => {}
    }
    Ok(())
}
