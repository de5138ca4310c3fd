//! What the lens must know of an instruction of x86-64, from its bytes.
//!
//! Only few shapes matter. Everything else counts as one that may end in a fault, which is always safe: it costs a
//! little time and changes no figure. Source: Intel's manual, volume 2, appendix A.

/// What an instruction does, as far as the lens must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// It never faults: registers only.
    Plain,
    /// A jump that never faults, taken or not.
    Branch,
    /// ... to where a register says.
    Jump,
    /// It accesses memory, and translated code does so itself.
    Direct,
    /// It accesses memory so many times, and no fault follows the last one.
    Memory(u64),
    /// ... as does a call, a return and a jump.
    Call(u64),
    Return,
    JumpThrough,
    /// A string instruction, which QEMU carries out step by step.
    String,
    /// Output through a port.
    Output,
    /// A system call, an interrupt by software, or a halt: none of them faults in a program that may do so.
    Trap,
    /// The return from an interrupt, exception or system call.
    Leave,
    /// The exchange of GS, on the way into the kernel from user space or back.
    ExchangeGs,
    /// A store to memory at a register and an offset of 32 bits.
    StoreAt(i32),
    /// A load of the stack pointer from there.
    LoadStack(i32),
    Other,
}

impl Shape {
    pub fn may_fault(self) -> bool {
        !matches!(self, Shape::Plain | Shape::Branch | Shape::Jump)
    }

    pub fn is_branch(self) -> bool {
        matches!(self, Shape::Branch | Shape::Jump | Shape::Call(_) | Shape::Return | Shape::JumpThrough)
    }

    /// Whether functions of QEMU may access memory for it.
    pub fn may_be_helped(self) -> bool {
        matches!(self, Shape::String | Shape::Output | Shape::Trap | Shape::Leave | Shape::Other)
    }

    /// How many times it accesses memory, where no fault follows the last one; 0 where that is not known.
    pub fn accesses(self) -> u64 {
        match self {
            Shape::Memory(accesses) | Shape::Call(accesses) => accesses,
            Shape::StoreAt(_) | Shape::LoadStack(_) | Shape::Return | Shape::JumpThrough => 1,
            _ => 0,
        }
    }
}

const REX_W: u8 = 8;

/// The shape of the instruction with these bytes.
pub fn shape(bytes: &[u8]) -> Shape {
    let (prefixes, rest) = bytes.split_at(bytes.iter().take_while(|byte| is_prefix(**byte)).count());
    let (rex, rest) = match rest {
        [rex @ 0x40..=0x4f, rest @ ..] => (*rex, rest),
        _ => (0, rest),
    };
    let repeats = prefixes.iter().any(|prefix| matches!(prefix, 0xf2 | 0xf3));
    match rest {
        [0x0f, rest @ ..] => two_bytes(rest),
        [0x6e | 0x6f, ..] | [0xe6 | 0xe7 | 0xee | 0xef, ..] => Shape::Output,
        [0x6c | 0x6d | 0xa4..=0xa7 | 0xaa..=0xaf, ..] if repeats => Shape::String,
        _ if prefixes.contains(&0xf0) => Shape::Other,
        [opcode, rest @ ..] => one_byte(*opcode, rest, rex & REX_W != 0),
        [] => Shape::Other,
    }
}

fn is_prefix(byte: u8) -> bool {
    matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3)
}

fn one_byte(opcode: u8, rest: &[u8], wide: bool) -> Shape {
    let operands = rest.first().copied().unwrap_or(0);
    let (of_registers, digit) = (operands >> 6 == 3, operands >> 3 & 7);
    let loads = if of_registers { Shape::Plain } else { Shape::Memory(1) };
    let changes = if of_registers { Shape::Plain } else { Shape::Memory(2) };
    match opcode {
        0x38..=0x3b => loads,
        0x00..=0x3f if opcode & 7 <= 1 => changes,
        0x00..=0x3f if opcode & 7 <= 3 => loads,
        0x00..=0x3f if opcode & 7 <= 5 => Shape::Plain,
        0x50..=0x5f | 0x68 | 0x6a => Shape::Memory(1),
        0x88 | 0x8a | 0x89 | 0x8b | 0xc6 | 0xc7 if !of_registers => moved(opcode, operands, rest, wide),
        0x86 | 0x87 if !of_registers => Shape::Other,
        0x80 | 0x81 | 0x83 if digit < 7 => changes,
        0x63 | 0x69 | 0x6b | 0x80 | 0x81 | 0x83..=0x8b => loads,
        0x70..=0x7f | 0xe0..=0xe3 | 0xe9 | 0xeb => Shape::Branch,
        0x8d | 0x90..=0x99 | 0xa8 | 0xa9 | 0xb0..=0xbf => Shape::Plain,
        0xc0 | 0xc1 | 0xc6 | 0xc7 | 0xd0..=0xd3 => changes,
        0xc2 | 0xc3 => Shape::Return,
        0xcc | 0xcd | 0xf4 => Shape::Trap,
        0xcf => Shape::Leave,
        0xe8 => Shape::Call(1),
        0xf6 | 0xf7 if matches!(digit, 2 | 3) => changes,
        0xf6 | 0xf7 if digit < 6 => loads,
        0xfe if digit < 2 => changes,
        0xff => match digit {
            0 | 1 => changes,
            2 => Shape::Call(if of_registers { 1 } else { 2 }),
            4 if of_registers => Shape::Jump,
            4 => Shape::JumpThrough,
            6 => Shape::Memory(if of_registers { 1 } else { 2 }),
            _ => Shape::Other,
        },
        _ => Shape::Other,
    }
}

/// A move between memory and a register or a constant.
fn moved(opcode: u8, operands: u8, rest: &[u8], wide: bool) -> Shape {
    const STACK_POINTER: u8 = 4;
    let (has_index, register) = (operands & 7 == 4, operands >> 3 & 7);
    let offset = match rest {
        [_, first, second, third, fourth, ..] if wide && operands >> 6 == 2 && !has_index => {
            i32::from_le_bytes([*first, *second, *third, *fourth])
        }
        _ => return Shape::Memory(1),
    };
    match opcode {
        0x89 => Shape::StoreAt(offset),
        0x8b if register == STACK_POINTER => Shape::LoadStack(offset),
        _ => Shape::Memory(1),
    }
}

fn two_bytes(rest: &[u8]) -> Shape {
    let [opcode, operands, ..] = *rest else {
        return match rest {
            [0x05 | 0x34] => Shape::Trap,
            [0x07 | 0x35] => Shape::Leave,
            [0xc8..=0xcf] => Shape::Plain,
            _ => Shape::Other,
        };
    };
    match (opcode, operands) {
        (0x01, 0xf8) => Shape::ExchangeGs,
        (0x80..=0x8f, _) => Shape::Branch,
        (0x1f, _) | (0x1e, 0xfa) => Shape::Plain,
        (0x40..=0x4f | 0x90..=0x9f | 0xa3..=0xa5 | 0xab..=0xad | 0xaf | 0xb0 | 0xb1 | 0xb3, 0xc0..=0xff) => {
            Shape::Plain
        }
        (0xb6 | 0xb7 | 0xba..=0xc1, 0xc0..=0xff) => Shape::Plain,
        (0x40..=0x4f | 0x90..=0x9f | 0xaf | 0xb6 | 0xb7 | 0xbe | 0xbf, _) => Shape::Memory(1),
        // SSE. Where the kernel must give a task its registers first, the block ends there.
        (0x10..=0x17 | 0x28..=0x2f | 0x50..=0x76 | 0x7c..=0x7f | 0xc2..=0xc6 | 0xd0..=0xff, 0xc0..=0xff) => {
            Shape::Plain
        }
        (0x10..=0x17 | 0x28 | 0x29 | 0x51..=0x76 | 0x7e | 0x7f, _) => Shape::Direct,
        _ => Shape::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_alone_never_fault() {
        let known: [&[u8]; 9] = [
            &[0x48, 0x89, 0xc3],             // mov %rax,%rbx
            &[0x48, 0x8d, 0x44, 0x24, 0x08], // lea 8(%rsp),%rax
            &[0x31, 0xc0],                   // xor %eax,%eax
            &[0x0f, 0xb6, 0xc0],             // movzbl %al,%eax
            &[0x66, 0x0f, 0x1f, 0x44, 0, 0], // nopw 0(%rax,%rax)
            &[0xf3, 0x0f, 0x1e, 0xfa],       // endbr64
            &[0x48, 0x83, 0xec, 0x18],       // sub $24,%rsp
            &[0x0f, 0xc8],                   // bswap %eax
            &[0xf7, 0xe1],                   // mul %ecx
        ];
        assert!(known.iter().all(|bytes| shape(bytes) == Shape::Plain), "{:?}", known.map(shape));
    }

    #[test]
    fn what_divides_or_touches_memory_may_fault() {
        let known: [&[u8]; 3] = [
            &[0xf7, 0xf1],             // div %ecx
            &[0xf0, 0x0f, 0xb1, 0x0b], // lock cmpxchg %ecx,(%rbx)
            &[0xc5, 0xf8, 0x77],       // vzeroupper
        ];
        assert!(known.iter().all(|bytes| shape(bytes) == Shape::Other), "{:?}", known.map(shape));
        assert!(shape(&[0x55]).may_fault());
        assert_eq!(shape(&[0x48, 0x01, 0x03]), Shape::Memory(2)); // add %rax,(%rbx)
        assert_eq!(shape(&[0x48, 0x3b, 0x03]), Shape::Memory(1)); // cmp (%rbx),%rax
        assert_eq!(shape(&[0x66, 0x0f, 0xef, 0xc0]), Shape::Plain); // pxor %xmm0,%xmm0
    }

    #[test]
    fn the_flow_of_control() {
        assert_eq!(shape(&[0xe8, 0, 0, 0, 0]), Shape::Call(1));
        assert_eq!(shape(&[0xff, 0xd0]), Shape::Call(1));
        assert_eq!(shape(&[0xff, 0x10]), Shape::Call(2));
        assert_eq!(shape(&[0xf3, 0xc3]), Shape::Return);
        assert_eq!(shape(&[0xff, 0x25, 0, 0, 0, 0]), Shape::JumpThrough);
        assert_eq!(shape(&[0x41, 0xff, 0xe3]), Shape::Jump);
        assert_eq!(shape(&[0x0f, 0x84, 0, 0, 0, 0]), Shape::Branch);
        assert_eq!(shape(&[0x0f, 0x05]), Shape::Trap);
        assert_eq!(shape(&[0x48, 0x0f, 0x07]), Shape::Leave);
        assert_eq!(shape(&[0x48, 0xcf]), Shape::Leave);
        assert_eq!(shape(&[0x0f, 0x01, 0xf8]), Shape::ExchangeGs);
        assert_eq!(shape(&[0xf3, 0x6e]), Shape::Output);
        assert_eq!(shape(&[0xf3, 0x48, 0xa5]), Shape::String);
    }

    #[test]
    fn the_two_instructions_that_switch_tasks() {
        let store = [0x48, 0x89, 0xa7, 0x98, 0x13, 0, 0]; // mov %rsp,0x1398(%rdi)
        let load = [0x48, 0x8b, 0xa6, 0x98, 0x13, 0, 0]; // mov 0x1398(%rsi),%rsp
        assert_eq!(shape(&store), Shape::StoreAt(0x1398));
        assert_eq!(shape(&load), Shape::LoadStack(0x1398));
        let canary = [0x48, 0x8b, 0x9e, 0xc0, 0x08, 0, 0]; // mov 0x8c0(%rsi),%rbx
        assert_eq!(shape(&canary), Shape::Memory(1));
    }

    #[test]
    fn no_bytes_make_it_panic() {
        for first in 0..=255_u8 {
            for second in 0..=255_u8 {
                for length in 0..=2 {
                    let _ = shape(&[first, second][..length]);
                    let _ = shape(&[0x48, first, second][..=length]);
                }
            }
        }
    }
}
