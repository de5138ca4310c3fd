//! The way of a CPU through blocks of code, as calls and returns of its tasks.

use crate::block::{Block, Flow};
use crate::misses::Misses;
use crate::symbols::is_kernel;
use crate::task::Task;
use crate::tree::{Entry, Kind, NodeId};

/// Where a CPU is.
#[derive(Default)]
pub struct Walk {
    before: Option<&'static Block>,
    /// What the CPU had counted when that block began.
    began: u64,
    /// ... and when it was last charged to a frame.
    charged: u64,
}

impl Walk {
    /// Charge what was carried out until `now` to the frame on top.
    pub fn charge(&mut self, task: &mut Task, now: u64) {
        let more = now - self.charged;
        self.charged = now;
        if more > 0 {
            let top = task.top();
            task.tree.charge(top, more);
        }
    }

    /// `block` comes next on a CPU that has counted `now`.
    pub fn go_on(&mut self, task: &mut Task, block: &'static Block, now: u64) {
        self.charge(task, now);
        let before = self.before.filter(|before| now - self.began == before.instructions);
        self.began = now;
        self.before = Some(block);
        if task.is_new_program && !block.is_kernel() {
            task.is_new_program = false;
            task.entry = Some(block.start);
            task.stack.clear();
            task.interrupted.clear();
        } else if let Some(kind) = block.entered_by(before.is_some(), task.stack.top().map(|top| top.address)) {
            return task.enter(kind, block, before);
        } else if let Some(before) = before {
            task.follow(before, block);
        }
        task.arrive(block);
    }
}

impl Task {
    /// The frame on top.
    fn top(&mut self) -> NodeId {
        match self.stack.top() {
            Some(entry) => entry.node,
            None => self.begin(0),
        }
    }

    pub fn charge_misses(&mut self, missed: Misses) {
        let top = self.top();
        self.tree.charge_misses(top, missed);
    }

    /// The first frame of a tree.
    fn begin(&mut self, address: u64) -> NodeId {
        let node = self.tree.enter(None, address, Kind::Start, 1);
        self.stack.push(Entry { node, address, kind: Kind::Start, back: 0, is_borrowed: false });
        node
    }

    /// Hardware enters the kernel; `before` was finished.
    fn enter(&mut self, kind: Kind, block: &'static Block, before: Option<&'static Block>) {
        let above = self.stack.top().map(|entry| entry.node);
        let address = block.function();
        let node = self.tree.enter(above, address, kind, 1);
        self.stack.push(Entry { node, address, kind, back: 0, is_borrowed: false });
        self.interrupted.push(before);
    }

    /// Do what the last instruction of `before` does, which leads to `block`.
    fn follow(&mut self, before: &'static Block, block: &'static Block) {
        match before.flow {
            Flow::On => {}
            Flow::Jump => self.jump(block),
            Flow::Call if before.jumps_inside(block) => {}
            Flow::Call => self.call(before.end, block),
            Flow::Return => self.return_to(block, before.is_thunk()),
            Flow::Leave => self.leave(block),
        }
    }

    /// Return from the last interrupt, exception or system call to `block`.
    fn leave(&mut self, block: &'static Block) {
        let left = self.stack.leave_gate();
        let interrupted = left.and_then(|_| self.interrupted.pop().flatten());
        // What was interrupted at its end goes on behind it; else it is begun again.
        let Some(before) = interrupted.filter(|before| !(before.start..before.end).contains(&block.start)) else {
            return;
        };
        match before.flow {
            Flow::Call => self.call(before.end, block),
            Flow::Return => self.return_to(block, before.is_thunk()),
            // A signal's handler begins, or is over.
            Flow::On if left == Some(Kind::Syscall) && block.start != before.end => self.go_on_in(block),
            Flow::Jump => self.jump(block),
            Flow::On | Flow::Leave => {}
        }
    }

    fn return_to(&mut self, block: &'static Block, is_thunk: bool) {
        if !self.stack.unwind(block.start, is_thunk) {
            self.go_on_in(block);
        }
    }

    /// In user space, a jump to where a call returns to is its return: so runtimes change between their stacks.
    fn jump(&mut self, block: &'static Block) {
        if !block.is_kernel() {
            self.stack.jump_back(block.start);
        }
    }

    /// A function of user space goes on where nothing on this stack has called: it was on another stack, or interrupted
    /// by a signal. Its frame has the address where it goes on: the symbols say later which function that is.
    fn go_on_in(&mut self, block: &'static Block) {
        let is_user = |top: &Entry| top.kind == Kind::Call && !is_kernel(top.address);
        if !block.is_kernel() && self.stack.top().is_some_and(is_user) {
            let node = self.frame(self.stack.caller(), block.start, Kind::Call, block);
            self.stack.replace_top(node, block.start);
        }
    }

    fn call(&mut self, back: u64, block: &'static Block) {
        let (kind, address) = (Kind::Call, block.function());
        let above = self.stack.top().map(|entry| entry.node);
        let entry = match above {
            Some(node) if block.is_thunk() => Entry { node, address, kind, back, is_borrowed: true },
            _ => Entry { node: self.frame(above, address, kind, block), address, kind, back, is_borrowed: false },
        };
        self.stack.push(entry);
    }

    /// See to it that the frame on top is that of `block`.
    fn arrive(&mut self, block: &'static Block) {
        while self.stack.top().is_some_and(|top| is_kernel(top.address)) && !block.is_kernel() {
            self.interrupted.pop();
            if self.stack.leave_gate().is_none() {
                self.stack.clear();
            }
        }
        let Some(top) = self.stack.top().copied() else {
            let address = block.function();
            let node = self.frame(None, address, Kind::Start, block);
            return self.stack.push(Entry { node, address, kind: Kind::Start, back: 0, is_borrowed: false });
        };
        if !block.is_kernel() || block.is_thunk() || top.kind.is_gate() || top.address == block.function() {
            return;
        }
        if !is_kernel(top.address) {
            return self.enter(Kind::Exception, block, None);
        }
        // A jump to another function is its call in the place of a return (a tail call), or goes back to one.
        let function = block.function();
        let left = if top.is_borrowed { None } else { self.tree.jumped_from(top.node, self.stack.caller(), function) };
        let node = left.unwrap_or_else(|| self.tree.enter(Some(top.node), function, Kind::Call, 1));
        self.stack.replace_top(node, function);
    }

    /// A frame, with the code of its function if that is in user space.
    fn frame(&mut self, parent: Option<NodeId>, address: u64, kind: Kind, block: &'static Block) -> NodeId {
        if !block.is_kernel() {
            self.code.entry(address).or_insert_with(|| block.code.clone());
        }
        self.tree.enter(parent, address, kind, 1)
    }

    /// Count anew: of the tree only the calls stay that were not returned from.
    pub fn begin_tree(&mut self) {
        self.tree = Default::default();
        let kept: Vec<u64> = self.stack.entries_mut().iter().map(|entry| entry.address).collect();
        self.code.retain(|address, _| kept.contains(address));
        let mut above = None;
        for entry in self.stack.entries_mut() {
            if !entry.is_borrowed || above.is_none() {
                above = Some(self.tree.enter(above, entry.address, entry.kind, 0));
            }
            entry.node = above.unwrap_or(0);
        }
    }
}
