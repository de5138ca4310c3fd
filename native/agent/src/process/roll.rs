//! The roll: the agent's process groups and the number of valid journal steps.
//! It is in memory that the agent shares with its guardian.
//!
//! The agent enters each process before its release and strikes it out when it is reaped. That wakes no process and
//! writes nothing to disk. After the agent's end the guardian reads it, or a later restore if the guardian is gone too.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU64, Ordering};

use crate::disk::{Disk, Local, Opening};

/// Files in memory: gone with the boot, as the processes are.
const DIRECTORY: &str = "/dev/shm";
/// More processes at once are not on the roll.
const PLACES: usize = 4096;

/// A longer path of an enclosure is not on it.
const PATH_BYTES: usize = 1024;

const LENGTH: usize = size_of::<Shared>();

#[repr(C)]
struct Shared {
    places: [Place; PLACES],
    /// The path of the session's enclosure, and zeros.
    enclosure: [AtomicU8; PATH_BYTES],
    /// How many steps of the journal were on disk when the agent last went on.
    steps: AtomicU64,
}

#[repr(C)]
struct Place {
    /// 0 if it is free. Set after the other, so that what is read belongs together.
    group: AtomicI32,
    started_ticks: AtomicU64,
}

/// Shared memory for all processes forked later, and a file of a tmpfs.
#[derive(Clone, Copy)]
pub struct Roll(&'static Shared);

/// The leader of a process group.
/// It may have ended before the others of the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leader {
    pub pid: i32,
    pub started_ticks: u64,
}

impl Roll {
    /// That of the agent `owner`, which is this process.
    /// Where there is no `/dev/shm`, it is the guardian's only.
    pub fn create(owner: Leader) -> io::Result<Roll> {
        let file = Local.open_directory(Path::new(DIRECTORY)).and_then(|directory| {
            let file = Local.open(&directory, &name(owner), Opening::Create(0o600))?;
            Local.truncate(&file, LENGTH as u64).map(|()| file)
        });
        match &file {
            Ok(file) => map(libc::MAP_SHARED, file.as_raw_fd()),
            Err(_) => map(libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1),
        }
    }

    /// What is left of that of the agent `owner`.
    /// Only one that root or the caller has made is trusted.
    pub fn left_by(owner: Leader) -> Option<Roll> {
        let directory = Local.open_directory(Path::new(DIRECTORY)).ok()?;
        let file = Local.open(&directory, &name(owner), Opening::Append).ok()?;
        let about = Local.about(&file).ok()?;
        let caller = rustix::process::geteuid().as_raw();
        let trusted = about.is_plain_file() && [0, caller].contains(&about.owner) && about.mode & 0o077 == 0;
        (trusted && about.size == LENGTH as u64).then(|| map(libc::MAP_SHARED, file.as_raw_fd()).ok()).flatten()
    }

    /// Remove that of the agent `owner`.
    pub fn remove(owner: Leader) {
        let directory = Local.open_directory(Path::new(DIRECTORY));
        let _ = directory.and_then(|directory| Local.unlink(&directory, &name(owner)));
    }

    pub fn enter(&self, leader: Leader) {
        if let Some(place) = self.0.places.iter().find(|place| place.group.load(Ordering::Relaxed) == 0) {
            place.started_ticks.store(leader.started_ticks, Ordering::Relaxed);
            place.group.store(leader.pid, Ordering::Release);
        }
    }

    pub fn strike(&self, pid: i32) {
        if let Some(place) = self.0.places.iter().find(|place| place.group.load(Ordering::Relaxed) == pid) {
            place.group.store(0, Ordering::Release);
        }
    }

    /// Enter the group that all processes are in.
    pub fn enclose(&self, path: &Path) {
        let bytes = path.as_os_str().as_bytes();
        if bytes.len() < PATH_BYTES {
            self.0.enclosure.iter().zip(bytes).for_each(|(place, byte)| place.store(*byte, Ordering::Release));
        }
    }

    pub fn enclosure(&self) -> Option<PathBuf> {
        let bytes = self.0.enclosure.iter().map(|byte| byte.load(Ordering::Acquire)).take_while(|byte| *byte != 0);
        let bytes: Vec<u8> = bytes.collect();
        (!bytes.is_empty()).then(|| PathBuf::from(std::ffi::OsString::from_vec(bytes)))
    }

    /// Note that the first `steps` of the journal are on disk.
    /// Their places may be changed from now on.
    pub fn note_steps(&self, steps: usize) {
        self.0.steps.store(steps as u64, Ordering::Release);
    }

    pub fn steps(&self) -> usize {
        self.0.steps.load(Ordering::Acquire) as usize
    }

    /// Strike out all processes.
    pub fn clear(&self) {
        for place in &self.0.places {
            if place.group.load(Ordering::Relaxed) != 0 {
                place.group.store(0, Ordering::Release);
            }
        }
    }

    pub fn leaders(&self) -> Vec<Leader> {
        let entered = |place: &Place| Leader {
            pid: place.group.load(Ordering::Acquire),
            started_ticks: place.started_ticks.load(Ordering::Relaxed),
        };
        self.0.places.iter().map(entered).filter(|leader| leader.pid != 0).collect()
    }
}

fn name(owner: Leader) -> PathBuf {
    PathBuf::from(format!("ajuste-{}-{}", owner.pid, owner.started_ticks))
}

fn map(flags: libc::c_int, file: RawFd) -> io::Result<Roll> {
    // SAFETY: memory of the right size and alignment, never unmapped; zeros are free
    // places.
    unsafe {
        let memory = libc::mmap(ptr::null_mut(), LENGTH, libc::PROT_READ | libc::PROT_WRITE, flags, file, 0);
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Roll(&*memory.cast()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forked_process_reads_what_is_entered_later() {
        let owner = Leader { pid: std::process::id() as i32, started_ticks: 1 };
        let roll = Roll::create(owner).unwrap();
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        // SAFETY: the child only makes system calls and reads shared memory.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let _ = rustix::io::read(&reader, &mut [0; 1]);
            let seen = roll.0.places[0].group.load(Ordering::Acquire) == 7
                && roll.0.places[1].group.load(Ordering::Acquire) == 0;
            // SAFETY: it ends the child.
            unsafe { libc::_exit(i32::from(!seen)) };
        }
        roll.enter(Leader { pid: 7, started_ticks: 70 });
        roll.enter(Leader { pid: 8, started_ticks: 80 });
        roll.strike(8);
        assert_eq!(roll.leaders(), [Leader { pid: 7, started_ticks: 70 }]);
        roll.note_steps(5);
        let left = Roll::left_by(owner).unwrap();
        assert_eq!((left.leaders(), left.steps()), (roll.leaders(), 5));
        Roll::remove(owner);
        assert!(Roll::left_by(owner).is_none());
        rustix::io::write(&writer, &[1]).unwrap();
        assert_eq!(crate::process::account::reap(child).unwrap().exit_code, Some(0));
    }
}
