//! What is put into each block for the modelled machine, and what QEMU calls then.

use std::collections::HashMap;
use std::ffi::{c_uint, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::callbacks::with;
use crate::instruction::shape;
use crate::interface::{self, Instruction};
use crate::machine::Machine;
use crate::memory::{Kinds, Ram};
use crate::model::{Branch, Fetch, Model};
use crate::parallel;
use crate::symbols::is_kernel;
use crate::tables;
use crate::translations::Flush;

const PAGE: u64 = 4096;

/// What blocks of code tell the model. It lives for ever, and is shared by blocks that are alike.
struct Fetches {
    line_bytes: u64,
    ram: Ram,
    kinds: Kinds,
    known: HashMap<Fetch, &'static Fetch>,
}

struct Piece {
    instruction: Instruction,
    address: u64,
    physical: u64,
    bytes: Vec<u8>,
}

static FETCHES: AtomicPtr<Fetches> = AtomicPtr::new(ptr::null_mut());

/// From now on blocks are instrumented for this machine.
pub fn keep(machine: &Machine) {
    FETCHES.store(Box::into_raw(Box::new(Fetches::new(machine))), Ordering::Release);
}

fn fetches() -> Option<&'static mut Fetches> {
    // SAFETY: they live for ever, and QEMU calls the lens from one thread, one callback at a time.
    unsafe { FETCHES.load(Ordering::Relaxed).as_mut() }
}

/// Instrument a block, if a machine is modelled.
pub fn instrument(block: &interface::Block) {
    if let Some(fetches) = fetches() {
        fetches.instrument(block);
    }
}

impl Fetches {
    fn new(machine: &Machine) -> Fetches {
        let ram = Ram::new(machine.memory_bytes, machine.ends());
        Fetches { line_bytes: machine.line_bytes, ram, kinds: Kinds::new(), known: HashMap::new() }
    }

    fn instrument(&mut self, block: &interface::Block) {
        let pieces: Vec<Piece> = block.instructions().map(|instruction| self.piece(instruction)).collect();
        let branch = pieces.last().and_then(|last| branch_of(last.address, &last.bytes));
        let mut line = None;
        for (number, piece) in pieces.iter().enumerate() {
            if shape(&piece.bytes).may_fault() {
                piece.instruction.on_access(accessed, space_of(piece.address));
            }
            if let Some(flush) = Flush::of(&piece.bytes) {
                piece.instruction.on_execution(flushed, told(flush as usize));
            }
            let (first, last) = self.lines(piece);
            if number == 0 || line != Some(last) {
                let fetch = Fetch {
                    address: piece.address,
                    physical: piece.physical,
                    goes_on: last != first,
                    begins_block: number == 0,
                    branch: branch.filter(|_| number == 0),
                    in_kernel: is_kernel(piece.address),
                };
                let kept = *self.known.entry(fetch).or_insert_with(|| Box::leak(Box::new(fetch)));
                piece.instruction.on_execution(fetched, ptr::from_ref(kept).cast_mut().cast());
            }
            line = Some(last);
        }
    }

    fn piece(&mut self, instruction: Instruction) -> Piece {
        let address = instruction.address();
        let physical = self.ram.place_of_code(instruction.raw(), address);
        Piece { instruction, address, physical, bytes: instruction.bytes() }
    }

    /// The lines of the first and the last byte. What is on another page is fetched by the next instruction.
    fn lines(&self, piece: &Piece) -> (u64, u64) {
        let most = PAGE - piece.physical % PAGE;
        let size = (piece.bytes.len() as u64).clamp(1, most);
        (piece.physical / self.line_bytes, (piece.physical + size - 1) / self.line_bytes)
    }
}

/// The conditional jump that these bytes are. Source: Intel's manual, volume 2, Jcc and LOOPcc.
fn branch_of(address: u64, bytes: &[u8]) -> Option<Branch> {
    let next = address.wrapping_add(bytes.len() as u64);
    let prefixes = bytes.iter().take_while(|byte| matches!(byte, 0x2e | 0x3e | 0xf2)).count();
    let offset = match bytes[prefixes..] {
        [0x70..=0x7f | 0xe0..=0xe3, offset] => i64::from(offset as i8),
        [0x0f, 0x80..=0x8f, first, second, third, fourth] => {
            i64::from(i32::from_le_bytes([first, second, third, fourth]))
        }
        _ => return None,
    };
    Some(Branch { address, next, target: next.wrapping_add_signed(offset) })
}

/// A number that a callback gets back.
fn told(number: usize) -> *mut c_void {
    ptr::without_provenance_mut(number)
}

fn space_of(address: u64) -> *mut c_void {
    told(usize::from(is_kernel(address)))
}

extern "C" fn fetched(told: c_uint, fetch: *mut c_void) {
    let (lens, cpu) = with(told);
    if let (Some(model), Some(fetches)) = (lens.model.as_mut().filter(|model| model.is_on()), fetches()) {
        // SAFETY: it was registered with what lives for ever.
        let fetch = unsafe { &*fetch.cast::<Fetch>() };
        model.fetch(cpu, fetch, || tables::reach(&fetches.ram, cpu, fetch.address, fetch.physical));
        charge(model, cpu);
    }
}

extern "C" fn accessed(told: c_uint, access: u32, address: u64, space: *mut c_void) {
    let (lens, cpu) = with(told);
    if let (Some(model), Some(fetches)) = (lens.model.as_mut().filter(|model| model.is_on()), fetches()) {
        let (bytes, is_store) = fetches.kinds.of(access);
        let how = (is_store, !space.is_null());
        model.access(cpu, (address, bytes), how, |address| {
            let place = fetches.ram.place_of_access(access, address)?;
            Some(tables::reach(&fetches.ram, cpu, address, place))
        });
        charge(model, cpu);
    }
}

/// What the CPU waits for takes time, if the model keeps that.
#[inline(always)]
fn charge(model: &mut Model, cpu: usize) {
    if let Some(stall) = model.stalled(cpu) {
        parallel::stall(stall);
    }
}

extern "C" fn flushed(told: c_uint, flush: *mut c_void) {
    let (lens, cpu) = with(told);
    let flush = [Flush::User, Flush::All, Flush::Page].into_iter().find(|known| *known as usize == flush.addr());
    if let (Some(model), Some(flush)) = (lens.model.as_mut(), flush) {
        model.flush(cpu, flush);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditional_jumps_and_where_they_lead() {
        let targets = |bytes: &[u8]| branch_of(0x1000, bytes).map(|branch| (branch.next, branch.target));
        assert_eq!(targets(&[0x75, 0xfe]), Some((0x1002, 0x1000))); // jne .
        assert_eq!(targets(&[0x0f, 0x84, 0, 1, 0, 0]), Some((0x1006, 0x1106))); // je .+0x106
        assert_eq!(targets(&[0x3e, 0x74, 0x10]), Some((0x1003, 0x1013)));
        assert_eq!(targets(&[0xe2, 0xf0]), Some((0x1002, 0xff2))); // loop
        assert_eq!(targets(&[0xeb, 0x10]), None); // jmp
        assert_eq!(targets(&[0xc3]), None);
    }
}
