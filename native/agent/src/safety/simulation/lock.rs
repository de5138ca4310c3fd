//! The machine's lock for experiments and restores (`ajuste.executor.host.machine_lock`).
//!
//! Each user has a lock, which the processes of an experiment inherit, and beside it a status, which names the owner of
//! the machine. A newcomer takes its user's lock, writes its status, and then reads the others' statuses.

use crate::safety::simulation::process::Process;
use crate::safety::simulation::world::{Planted, USERS, UserLock, World, run_guardians};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    Experiment,
    Restoration,
}

impl Process {
    /// Take the machine as `user`. False if it is in use: then nothing may be done.
    pub fn lock_machine(&self, user: u64, what: Use) -> bool {
        if self.world.borrow().planted == Planted::NoLock {
            return true;
        }
        let entered = self.take(user) && self.say(user) && self.look_at_others(user, what);
        if !entered {
            self.unlock_machine(user);
        }
        entered
    }

    /// What inherited the lock still has the machine, and the status stays true.
    pub fn unlock_machine(&self, user: u64) {
        self.of(user, |_, lock| {
            if lock.holders.remove(&self.pid) && lock.holders.is_empty() && lock.status == Some(self.pid) {
                lock.status = None;
            }
        });
    }

    fn take(&self, user: u64) -> bool {
        self.pass("the lock is taken");
        // What an orchestrator that is dead has started is waited for.
        run_guardians(&self.world);
        self.is_running() && self.of(user, |_, lock| lock.holders.is_empty() && lock.holders.insert(self.pid))
    }

    fn say(&self, user: u64) -> bool {
        self.pass("the status is written");
        self.is_running()
            && self.of(user, |world, lock| {
                let is_others = lock.status.is_some_and(|pid| pid != self.pid && world.is_alive(pid));
                if !is_others {
                    lock.status = Some(self.pid);
                }
                !is_others
            })
    }

    fn look_at_others(&self, user: u64, what: Use) -> bool {
        self.pass("the others' statuses are read");
        let is_free = |other: u64| self.of(other, |world, lock| !lock.status.is_some_and(|pid| world.is_alive(pid)));
        // Another user's status never blocks a restore.
        self.is_running() && (what == Use::Restoration || (0..USERS).filter(|other| *other != user).all(is_free))
    }

    /// Others may come in between, and the process may end.
    pub fn pass(&self, name: &'static str) {
        let _ = self.whole(name, |_| Ok(()));
    }

    fn of<T>(&self, user: u64, work: impl FnOnce(&World, &mut UserLock) -> T) -> T {
        let mut world = self.world.borrow_mut();
        let mut lock = std::mem::take(&mut world.machines[self.machine].locks.0[user as usize]);
        let done = work(&world, &mut lock);
        world.machines[self.machine].locks.0[user as usize] = lock;
        done
    }
}
