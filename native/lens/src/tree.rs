//! The tree of calls of one task, and its shadow stack: the calls that it has not returned from.
//!
//! Every instruction belongs to the frame on top of the stack. So the sums are exact, whatever a program does with its
//! real stack; only where an instruction is shown may be wrong then.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::misses::Misses;
use crate::symbols::is_kernel;

/// How a frame was entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Call,
    Interrupt,
    Exception,
    Syscall,
    Start,
}

impl Kind {
    pub fn word(self) -> &'static str {
        match self {
            Kind::Call => "call",
            Kind::Interrupt => "interrupt",
            Kind::Exception => "exception",
            Kind::Syscall => "syscall",
            Kind::Start => "start",
        }
    }

    /// Whether hardware entered it, so that it is left in another way than by a return.
    pub fn is_gate(self) -> bool {
        matches!(self, Kind::Interrupt | Kind::Exception | Kind::Syscall)
    }
}

pub type NodeId = u32;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub parent: Option<NodeId>,
    pub address: u64,
    pub kind: Kind,
    pub calls: u64,
    pub instructions: u64,
    depth: u32,
}

/// Deeper calls are counted in the deepest frame that has a node.
const DEEPEST: u32 = 192;
/// Further frames of one task are counted in their callers.
const MOST_NODES: usize = 50_000;

/// A cheap hash: its keys are numbers of the lens's own.
#[derive(Default)]
struct Mixing(u64);

impl Hasher for Mixing {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u8(&mut self, number: u8) {
        self.write_u64(number.into());
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    fn write_isize(&mut self, number: isize) {
        self.write_u64(number as u64);
    }
}

type Key = (u32, u64, Kind);

#[derive(Default)]
pub struct Tree {
    nodes: Vec<Node>,
    /// Of the first nodes; the others have none.
    misses: Vec<Misses>,
    places: HashMap<Key, NodeId, BuildHasherDefault<Mixing>>,
}

impl Tree {
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// What each frame carried out, with all that it called.
    pub fn inclusive(&self) -> Vec<u64> {
        let mut sums: Vec<u64> = self.nodes.iter().map(|node| node.instructions).collect();
        for node in (0..sums.len()).rev() {
            if let Some(parent) = self.nodes[node].parent {
                sums[parent as usize] += sums[node];
            }
        }
        sums
    }

    pub fn charge(&mut self, node: NodeId, instructions: u64) {
        self.nodes[node as usize].instructions += instructions;
    }

    pub fn charge_misses(&mut self, node: NodeId, missed: Misses) {
        let node = node as usize;
        if self.misses.len() <= node {
            self.misses.resize(node + 1, Misses::default());
        }
        self.misses[node] += missed;
    }

    /// What each frame missed itself.
    pub fn misses(&self) -> impl Iterator<Item = Misses> + '_ {
        self.misses.iter().copied().chain(std::iter::repeat(Misses::default()))
    }

    /// The frame of a function that jumped, perhaps through others, to that of `node`: one of those below its `caller`.
    pub fn jumped_from(&self, node: NodeId, caller: Option<NodeId>, address: u64) -> Option<NodeId> {
        let mut at = Some(node);
        while let Some(some) = at.filter(|some| Some(*some) != caller) {
            let frame = &self.nodes[some as usize];
            if frame.address == address {
                return at;
            }
            at = frame.parent;
        }
        None
    }

    /// The frame of a function below `parent`, which is made if need be; `calls` times more it was entered.
    pub fn enter(&mut self, parent: Option<NodeId>, address: u64, kind: Kind, calls: u64) -> NodeId {
        let key = (parent.map_or(u32::MAX, |node| node), address, kind);
        if let Some(known) = self.places.get(&key) {
            self.nodes[*known as usize].calls += calls;
            return *known;
        }
        let depth = parent.map_or(0, |node| self.nodes[node as usize].depth + 1);
        if let Some(parent) = parent.filter(|_| depth > DEEPEST || self.nodes.len() >= MOST_NODES) {
            return parent;
        }
        let number = self.nodes.len() as NodeId;
        self.nodes.push(Node { parent, address, kind, calls, instructions: 0, depth });
        self.places.insert(key, number);
        number
    }
}

/// A call that was not returned from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub node: NodeId,
    pub address: u64,
    pub kind: Kind,
    /// Where it returns to; 0 where that is not known.
    pub back: u64,
    /// Whether its node is its caller's: a thunk, which calls or is left for the real target.
    pub is_borrowed: bool,
}

/// Calls beyond are counted, but not kept.
const DEEPEST_STACK: usize = 1 << 14;
/// A return to a caller further down is taken for a jump.
const FARTHEST: usize = 256;
/// ... and a jump to where a call further down returns to for one inside a function.
const NEAR: usize = 16;

#[derive(Default)]
pub struct Stack {
    entries: Vec<Entry>,
    beyond: u64,
}

impl Stack {
    pub fn top(&self) -> Option<&Entry> {
        self.entries.last()
    }

    /// The frame of the function that called the one on top.
    pub fn caller(&self) -> Option<NodeId> {
        self.entries.iter().rev().nth(1).map(|entry| entry.node)
    }

    pub fn push(&mut self, entry: Entry) {
        if self.entries.len() < DEEPEST_STACK {
            self.entries.push(entry);
        } else {
            self.beyond += 1;
        }
    }

    /// Return to `target`: to the caller, or one of its callers (longjmp(3)). What is no return to any of them is a
    /// jump that takes its target from the stack. In the kernel that leaves one call, or none if a thunk does so; false
    /// in user space, where it may be a stack of its own.
    pub fn unwind(&mut self, target: u64, is_thunk: bool) -> bool {
        if self.beyond > 0 {
            self.beyond -= 1;
            return true;
        }
        let leaves = match self.calls_back(target, FARTHEST) {
            Some(calls) => calls,
            None if is_thunk => 0,
            None if !is_kernel(target) => return false,
            None => usize::from(self.top().is_some_and(|entry| entry.kind == Kind::Call)),
        };
        self.entries.truncate(self.entries.len() - leaves);
        true
    }

    /// Jump to `target`, which may be where one of the last calls returns to.
    pub fn jump_back(&mut self, target: u64) {
        let leaves = if self.beyond > 0 { None } else { self.calls_back(target, NEAR) };
        self.entries.truncate(self.entries.len() - leaves.unwrap_or(0));
    }

    /// How many calls are left by a return to `target`, if that is one of the last `most`.
    fn calls_back(&self, target: u64, most: usize) -> Option<usize> {
        let calls = self.entries.iter().rev().take_while(|entry| !entry.kind.is_gate());
        calls.take(most).position(|entry| entry.back == target).map(|place| place + 1)
    }

    /// Leave the last interrupt, exception or system call; which of these it was, if there is one.
    pub fn leave_gate(&mut self) -> Option<Kind> {
        let place = self.entries.iter().rposition(|entry| entry.kind.is_gate())?;
        let kind = self.entries[place].kind;
        self.entries.truncate(place);
        self.beyond = 0;
        Some(kind)
    }

    /// Another function goes on in the place of the one on top.
    pub fn replace_top(&mut self, node: NodeId, address: u64) {
        if let Some(top) = self.entries.last_mut() {
            *top = Entry { node, address, is_borrowed: false, ..*top };
        }
    }

    pub fn clear(&mut self) {
        self.entries.clear();
        self.beyond = 0;
    }

    pub fn entries_mut(&mut self) -> &mut [Entry] {
        &mut self.entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbols::KERNEL_SPACE;

    fn call(node: NodeId, back: u64) -> Entry {
        Entry { node, address: u64::from(node), kind: Kind::Call, back, is_borrowed: false }
    }

    fn gate(node: NodeId) -> Entry {
        Entry { kind: Kind::Interrupt, back: 0, ..call(node, 0) }
    }

    fn tops(stack: &Stack) -> Option<NodeId> {
        stack.top().map(|entry| entry.node)
    }

    #[test]
    fn a_function_has_one_frame_below_each_caller() {
        let mut tree = Tree::default();
        let root = tree.enter(None, 1, Kind::Start, 1);
        let first = tree.enter(Some(root), 2, Kind::Call, 1);
        assert_eq!(tree.enter(Some(root), 2, Kind::Call, 1), first);
        assert_ne!(tree.enter(Some(first), 2, Kind::Call, 1), first);
        assert_ne!(tree.enter(Some(root), 2, Kind::Interrupt, 1), first);
        tree.charge(first, 7);
        assert_eq!((tree.nodes()[1].calls, tree.nodes()[1].instructions), (2, 7));
    }

    #[test]
    fn a_jump_back_finds_the_frame_that_jumped() {
        let mut tree = Tree::default();
        let caller = tree.enter(None, 1, Kind::Start, 1);
        let first = tree.enter(Some(caller), 2, Kind::Call, 1);
        let second = tree.enter(Some(first), 3, Kind::Call, 1);
        assert_eq!(tree.jumped_from(second, Some(caller), 2), Some(first));
        assert_eq!(tree.jumped_from(second, Some(caller), 3), Some(second));
        assert_eq!(tree.jumped_from(second, Some(caller), 1), None);
        assert_eq!(tree.jumped_from(second, None, 1), Some(caller));
    }

    #[test]
    fn deep_recursion_ends_in_one_frame() {
        let mut tree = Tree::default();
        let mut node = tree.enter(None, 1, Kind::Start, 1);
        for _ in 0..10_000 {
            node = tree.enter(Some(node), 1, Kind::Call, 1);
        }
        assert_eq!(tree.nodes().len(), DEEPEST as usize + 1);
    }

    #[test]
    fn returns_leave_the_calls_above() {
        let mut stack = Stack::default();
        for entry in [call(0, 100), call(1, 200), call(2, 300)] {
            stack.push(entry);
        }
        stack.unwind(300, false);
        assert_eq!(tops(&stack), Some(1));
        stack.push(call(3, 400));
        stack.unwind(100, false); // longjmp
        assert_eq!(tops(&stack), None);
        stack.unwind(100, false);
        assert_eq!(tops(&stack), None);
    }

    #[test]
    fn a_return_to_another_stack_leaves_no_call() {
        let mut stack = Stack::default();
        for entry in [call(0, 100), call(1, 200)] {
            stack.push(entry);
        }
        assert!(!stack.unwind(777, false));
        assert_eq!(tops(&stack), Some(1));
        assert!(stack.unwind(KERNEL_SPACE + 777, false)); // in the kernel it leaves one
        assert_eq!(tops(&stack), Some(0));
    }

    #[test]
    fn a_jump_to_where_a_call_returns_is_its_return() {
        let mut stack = Stack::default();
        for entry in [call(0, 100), call(1, 200), call(2, 300)] {
            stack.push(entry);
        }
        stack.jump_back(777);
        assert_eq!(tops(&stack), Some(2));
        stack.jump_back(200);
        assert_eq!(tops(&stack), Some(0));
    }

    #[test]
    fn no_return_crosses_an_interrupt() {
        let mut stack = Stack::default();
        for entry in [call(0, KERNEL_SPACE + 100), gate(1), call(2, 300)] {
            stack.push(entry);
        }
        stack.unwind(KERNEL_SPACE + 100, false);
        assert_eq!(tops(&stack), Some(1));
        stack.unwind(KERNEL_SPACE + 100, false);
        assert_eq!(tops(&stack), Some(1));
        assert_eq!(stack.leave_gate(), Some(Kind::Interrupt));
        assert_eq!(tops(&stack), Some(0));
        assert_eq!(stack.leave_gate(), None);
    }

    #[test]
    fn a_stack_without_end_is_not_kept() {
        let mut stack = Stack::default();
        for level in 0..2 * DEEPEST_STACK {
            stack.push(call(level as NodeId, 8));
        }
        for _ in 0..DEEPEST_STACK {
            assert!(stack.unwind(8, false));
        }
        assert_eq!(tops(&stack), Some(DEEPEST_STACK as NodeId - 1));
        (0..DEEPEST_STACK).for_each(|_| assert!(stack.unwind(8, false)));
        assert_eq!(tops(&stack), None);
    }
}
