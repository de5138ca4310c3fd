//! The tasks of a guest: who made them, for what, and what they cost.

use std::collections::{BTreeMap, HashMap};

use crate::block::Block;
use crate::counters::Counts;
use crate::misses::BySpace;
use crate::tree::{Stack, Tree};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Workload,
    Background,
    Agent,
    Before,
    After,
    Idle,
    Kernel,
}

impl Role {
    pub fn word(self) -> &'static str {
        match self {
            Role::Workload => "workload",
            Role::Background => "background",
            Role::Agent => "agent",
            Role::Before => "before",
            Role::After => "after",
            Role::Idle => "idle",
            Role::Kernel => "kernel",
        }
    }

    /// Of a process that the agent starts, in its own words.
    pub fn of_process(word: &str) -> Option<Role> {
        [Role::Workload, Role::Background, Role::Before, Role::After].into_iter().find(|role| role.word() == word)
    }
}

pub type TaskId = usize;

#[derive(Default)]
pub struct Task {
    pub parent: Option<TaskId>,
    /// What the agent or the kernel's own code said that it is.
    pub role: Option<Role>,
    pub counts: Counts,
    pub modelled: BySpace,
    pub switches_in: u64,
    /// Whether it was ever in user space.
    pub is_user: bool,
    pub entry: Option<u64>,
    /// It has executed a program and not begun it yet.
    pub is_new_program: bool,
    pub tree: Tree,
    pub stack: Stack,
    /// For each interrupt, exception and system call on the stack the block that it came after.
    pub interrupted: Vec<Option<&'static Block>>,
    /// The first bytes of functions in user space.
    pub code: BTreeMap<u64, Vec<u8>>,
}

#[derive(Default)]
pub struct Tasks {
    all: Vec<Task>,
    by_address: HashMap<u64, TaskId>,
}

impl Tasks {
    pub fn all(&self) -> &[Task] {
        &self.all
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Task> {
        self.all.iter_mut()
    }

    pub fn get_mut(&mut self, task: TaskId) -> &mut Task {
        &mut self.all[task]
    }

    /// A task whose `task_struct` is not known yet.
    pub fn add(&mut self, parent: Option<TaskId>) -> TaskId {
        self.all.push(Task { parent, ..Task::default() });
        self.all.len() - 1
    }

    /// A new task at `address`, where another one may have been before.
    pub fn made(&mut self, address: u64, parent: TaskId) {
        let task = self.add(Some(parent));
        self.by_address.insert(address, task);
    }

    /// The task at `address`, which is new if none was seen there.
    pub fn at(&mut self, address: u64) -> TaskId {
        match self.by_address.get(&address) {
            Some(task) => *task,
            None => {
                let task = self.add(None);
                self.by_address.insert(address, task);
                task
            }
        }
    }

    /// The task at `address`, if one was seen there.
    pub fn known(&self, address: u64) -> Option<TaskId> {
        self.by_address.get(&address).copied()
    }

    /// `task` is at `address`, unless another one is known to be.
    pub fn found(&mut self, task: TaskId, address: u64) {
        self.by_address.entry(address).or_insert(task);
    }

    /// The youngest task that `parent` made.
    pub fn youngest_of(&self, parent: TaskId) -> Option<TaskId> {
        self.all.iter().rposition(|task| task.parent == Some(parent))
    }

    /// Its own role, or that of the nearest task that made it; others are the agent's, or the kernel's if they were
    /// never in user space.
    pub fn role(&self, task: TaskId) -> Role {
        let mut at = Some(task);
        while let Some(some) = at {
            if let Some(role) = self.all[some].role {
                return role;
            }
            at = self.all[some].parent;
        }
        if self.all[task].is_user { Role::Agent } else { Role::Kernel }
    }

    /// Those that did something, and those that made them.
    pub fn seen(&self) -> Vec<bool> {
        let mut seen: Vec<bool> = self.all.iter().map(|task| task.counts.instructions() > 0).collect();
        // A task is younger than the one that made it.
        for task in (0..seen.len()).rev() {
            if let Some(parent) = self.all[task].parent.filter(|_| seen[task]) {
                seen[parent] = true;
            }
        }
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_is_inherited() {
        let mut tasks = Tasks::default();
        let agent = tasks.at(0x1000);
        tasks.get_mut(agent).role = Some(Role::Agent);
        tasks.made(0x2000, agent);
        let workload = tasks.youngest_of(agent).unwrap();
        tasks.made(0x3000, workload);
        let child = tasks.at(0x3000);
        assert_eq!(tasks.role(child), Role::Agent);
        tasks.get_mut(workload).role = Some(Role::Workload);
        assert_eq!((tasks.role(child), tasks.role(agent)), (Role::Workload, Role::Agent));
    }

    #[test]
    fn an_address_is_used_again() {
        let mut tasks = Tasks::default();
        let first = tasks.at(0x1000);
        tasks.made(0x1000, first);
        assert_ne!(tasks.at(0x1000), first);
        tasks.found(first, 0x1000);
        assert_ne!(tasks.at(0x1000), first);
    }

    #[test]
    fn what_was_never_in_user_space_is_the_kernel() {
        let mut tasks = Tasks::default();
        let (thread, other) = (tasks.at(1), tasks.at(2));
        tasks.get_mut(other).is_user = true;
        assert_eq!((tasks.role(thread), tasks.role(other)), (Role::Kernel, Role::Agent));
    }

    #[test]
    fn who_made_a_task_that_ran_is_seen_too() {
        let mut tasks = Tasks::default();
        let (parent, _) = (tasks.at(1), tasks.at(2));
        tasks.made(3, parent);
        let child = tasks.at(3);
        tasks.get_mut(child).counts.kernel = 1;
        assert_eq!(tasks.seen(), [true, false, true]);
    }
}
