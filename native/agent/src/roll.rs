//! The roll: which process groups the agent has running, in memory that it shares with its guardian.
//!
//! The agent enters each process before it is released and strikes it out when it is reaped. Nobody is woken for it
//! and nothing is written to disk. When the agent is gone, the guardian reads it.

use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

/// More processes at once are not on the roll.
const PLACES: usize = 4096;

#[repr(C)]
struct Place {
    /// 0 if it is free. Set after the other, so that what is read belongs together.
    group: AtomicI32,
    started_ticks: AtomicU64,
}

/// Shared with every process that is forked after it was made, for as long as any of them lives.
#[derive(Clone, Copy)]
pub struct Roll(&'static [Place; PLACES]);

/// The leader of a process group, which may be gone while others of the group are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leader {
    pub pid: i32,
    pub started_ticks: u64,
}

impl Roll {
    pub fn create() -> std::io::Result<Roll> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        // SAFETY: new zeroed memory of the right size and alignment, never unmapped; zeros are free places.
        unsafe {
            let memory = libc::mmap(ptr::null_mut(), size_of::<[Place; PLACES]>(), protection, flags, -1, 0);
            if memory == libc::MAP_FAILED {
                return Err(std::io::Error::last_os_error());
            }
            Ok(Roll(&*memory.cast()))
        }
    }

    pub fn enter(&self, leader: Leader) {
        if let Some(place) = self.0.iter().find(|place| place.group.load(Ordering::Relaxed) == 0) {
            place.started_ticks.store(leader.started_ticks, Ordering::Relaxed);
            place.group.store(leader.pid, Ordering::Release);
        }
    }

    pub fn strike(&self, pid: i32) {
        if let Some(place) = self.0.iter().find(|place| place.group.load(Ordering::Relaxed) == pid) {
            place.group.store(0, Ordering::Release);
        }
    }

    /// Nobody is left.
    pub fn clear(&self) {
        for place in self.0 {
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
        self.0.iter().map(entered).filter(|leader| leader.pid != 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forked_process_reads_what_is_entered_later() {
        let roll = Roll::create().unwrap();
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        // SAFETY: the child only makes system calls and reads shared memory.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let _ = rustix::io::read(&reader, &mut [0; 1]);
            let seen = roll.0[0].group.load(Ordering::Acquire) == 7 && roll.0[1].group.load(Ordering::Acquire) == 0;
            unsafe { libc::_exit(i32::from(!seen)) };
        }
        roll.enter(Leader { pid: 7, started_ticks: 70 });
        roll.enter(Leader { pid: 8, started_ticks: 80 });
        roll.strike(8);
        assert_eq!(roll.leaders(), [Leader { pid: 7, started_ticks: 70 }]);
        rustix::io::write(&writer, &[1]).unwrap();
        assert_eq!(crate::process::reap(child).unwrap().exit_code, Some(0));
    }
}
