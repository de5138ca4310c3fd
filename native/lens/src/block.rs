//! Blocks of instructions, as they were translated.

use std::collections::HashMap;

use crate::symbols::{Place, Special, is_kernel};
use crate::tree::Kind;

/// How a block goes on to the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flow {
    On,
    /// To where a register says.
    Jump,
    Call,
    Return,
    Leave,
}

/// As many bytes of a function are kept.
pub const CODE_BYTES: usize = 16;

/// What must be known of a block each time that it is carried out. It lives for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    pub start: u64,
    pub end: u64,
    pub instructions: u64,
    pub flow: Flow,
    pub place: Place,
    pub code: Vec<u8>,
}

impl Block {
    pub fn is_kernel(&self) -> bool {
        is_kernel(self.start)
    }

    /// How hardware enters the kernel here, after a block that was finished or not, in a frame of the function `top`.
    pub fn entered_by(&self, was_finished: bool, top: Option<u64>) -> Option<Kind> {
        let is_inside = was_finished || top == Some(self.place.function);
        match self.place.special {
            // QEMU 7.2 hides the first instruction of an interrupt that came before an access to a device.
            Some(Special::Entry(kind)) if self.place.is_start || !is_inside => Some(kind),
            Some(Special::Stubs) => Some(Kind::Interrupt),
            _ => None,
        }
    }

    /// Whether a call that leads from here to `target` is only there for what it leaves on the stack: a thunk, or what
    /// fills the processor's memory of returns.
    pub fn jumps_inside(&self, target: &Block) -> bool {
        self.is_kernel() && self.place.function == target.place.function && !target.place.is_start
    }

    pub fn is_thunk(&self) -> bool {
        self.place.special == Some(Special::Thunk)
    }

    /// The function that it begins when it is called, or is part of in the kernel.
    pub fn function(&self) -> u64 {
        if self.is_kernel() && self.place.function != 0 { self.place.function } else { self.start }
    }
}

/// Blocks by where they begin and end: QEMU translates the same ones again and again.
#[derive(Default)]
pub struct Blocks(HashMap<(u64, u64), Vec<&'static Block>>);

impl Blocks {
    /// The block that lives for ever and is like this one.
    pub fn kept(&mut self, block: Block) -> &'static Block {
        let alike = self.0.entry((block.start, block.end)).or_default();
        match alike.iter().find(|known| ***known == block) {
            Some(known) => known,
            None => {
                let block: &'static Block = Box::leak(Box::new(block));
                alike.push(block);
                block
            }
        }
    }
}
