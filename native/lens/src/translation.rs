//! What is put into each block of instructions when QEMU translates it.
//!
//! A block ends early where an instruction faults. So its instructions are counted in parts, each of which ends with
//! one that may fault: what was counted was begun, whatever happens.

use std::ffi::c_void;

use crate::arguments::Depth;
use crate::block::{Block, Blocks, CODE_BYTES, Flow};
use crate::callbacks;
use crate::counters::{BRANCHES, CLOSE, KERNEL, NOTHING, OPEN, USER};
use crate::instruction::{Shape, shape};
use crate::interface::{self, Instruction, LONGEST_INSTRUCTION};
use crate::sites::{Site, Sites, is_locked, state_offset};
use crate::symbols::{Place, Special, Symbols, is_image, is_kernel};

struct Piece {
    instruction: Instruction,
    address: u64,
    bytes: Vec<u8>,
    shape: Shape,
}

/// Instrument a block.
pub fn instrument(
    block: &interface::Block,
    depth: Depth,
    symbols: &Symbols,
    blocks: &mut Blocks,
    sites: Option<&Sites>,
    shares: bool,
) {
    let pieces: Vec<Piece> = block.instructions().map(piece).collect();
    let Some(first) = pieces.first() else { return };
    let in_kernel = is_kernel(first.address);
    let place = if in_kernel { symbols.place(first.address) } else { Place::default() };
    if depth == Depth::Functions {
        let kept = blocks.kept(described(&pieces, place));
        block.on_execution(callbacks::block, std::ptr::from_ref(kept).cast_mut().cast());
    }
    if in_kernel {
        watch_kernel(block, &pieces, place);
        if let Some(sites) = sites {
            watch_decisions(&pieces, sites.at(place), place.function);
        }
    } else {
        watch_user(&pieces);
    }
    if shares && !is_image(first.address) {
        watch_sharing(&pieces);
    }
    let (sure, unsure) = pieces.split_at(pieces.len() - usize::from(may_be_left_out(&pieces)));
    count(sure, in_kernel);
    count(unsure, in_kernel);
}

/// Whether the last instruction may be no part of the block, though QEMU 7.2 names it: it ends on the next page.
fn may_be_left_out(pieces: &[Piece]) -> bool {
    const PAGE: u64 = 4096;
    let last = pieces[pieces.len() - 1].address % PAGE;
    pieces.len() > 1 && last + LONGEST_INSTRUCTION as u64 > PAGE
}

fn piece(instruction: Instruction) -> Piece {
    let bytes = instruction.bytes();
    let shape = shape(&bytes);
    Piece { instruction, address: instruction.address(), bytes, shape }
}

fn described(pieces: &[Piece], place: Place) -> Block {
    let last = &pieces[pieces.len() - 1];
    let code = pieces.iter().flat_map(|piece| &piece.bytes).take(CODE_BYTES).copied();
    Block {
        start: pieces[0].address,
        end: last.address + last.bytes.len() as u64,
        instructions: pieces.len() as u64,
        flow: flow_after(last.shape),
        place,
        code: if is_kernel(pieces[0].address) { Vec::new() } else { code.collect() },
    }
}

fn flow_after(last: Shape) -> Flow {
    match last {
        Shape::Jump => Flow::Jump,
        Shape::Call(_) => Flow::Call,
        Shape::Return => Flow::Return,
        Shape::Leave => Flow::Leave,
        _ => Flow::On,
    }
}

/// A number that a callback gets back.
fn told(number: u64) -> *mut c_void {
    std::ptr::without_provenance_mut(number as usize)
}

fn watch_kernel(block: &interface::Block, pieces: &[Piece], place: Place) {
    match (place.special, place.vector) {
        (Some(Special::Exec), _) if place.is_start => block.on_execution(callbacks::exec, told(0)),
        (Some(Special::Idle), _) if place.is_start => block.on_execution(callbacks::idle, told(0)),
        (_, Some(vector)) => block.on_execution(callbacks::fault, told(vector as u64)),
        (Some(Special::Entry(_)), _) if place.is_start => block.on_execution(callbacks::enter, told(0)),
        (Some(Special::Stubs), _) => block.on_execution(callbacks::enter, told(0)),
        _ => {}
    }
    for piece in pieces {
        match (piece.shape, place.special) {
            (Shape::ExchangeGs, _) => piece.instruction.on_execution(callbacks::exchange, told(0)),
            (Shape::StoreAt(offset), Some(Special::Switch)) => {
                piece.instruction.on_access(callbacks::switch_from, told(offset as u64));
            }
            (Shape::LoadStack(offset), Some(Special::Switch)) => {
                piece.instruction.on_access(callbacks::switch_to, told(offset as u64));
            }
            (Shape::StoreAt(offset), Some(Special::Copy)) => {
                piece.instruction.on_access(callbacks::copy, told(offset as u64));
            }
            _ => {}
        }
    }
}

/// Have the instructions told of that decide something in a `function` of the scheduler.
fn watch_decisions(pieces: &[Piece], site: Option<Site>, function: u64) {
    for piece in pieces {
        let is_first = piece.address == function;
        match site {
            Some(Site::Wakeup | Site::New) => {
                let woken = if site == Some(Site::New) { callbacks::new } else { callbacks::woken };
                if let Some(offset) = state_offset(&piece.bytes) {
                    piece.instruction.on_access(woken, told(offset as u64));
                }
            }
            Some(Site::Resched) if is_locked(&piece.bytes) => piece.instruction.on_access(callbacks::marked, told(0)),
            Some(Site::Timer) if is_first => piece.instruction.on_execution(callbacks::timer, told(0)),
            Some(Site::Schedule) if is_first => piece.instruction.on_execution(callbacks::schedule, told(0)),
            Some(Site::Dequeue) if is_first => piece.instruction.on_execution(callbacks::dequeue, told(0)),
            Some(Site::SystemCall) if is_first => {
                piece.instruction.on_execution(callbacks::system_call, told(function))
            }
            _ => {}
        }
    }
}

fn watch_user(pieces: &[Piece]) {
    for piece in pieces.iter().filter(|piece| piece.shape == Shape::Output) {
        piece.instruction.on_execution(callbacks::output, told(0));
    }
}

fn watch_sharing(pieces: &[Piece]) {
    for (place, piece) in pieces.iter().enumerate().filter(|(_, piece)| piece.shape.may_fault()) {
        let left = pieces.len() - place - 1;
        piece.instruction.on_access(callbacks::shared, told(callbacks::packed(piece.address, left)));
    }
}

/// Whether it cannot be told from its accesses that it was finished.
fn is_doubtful(shape: Shape) -> bool {
    matches!(shape, Shape::Direct | Shape::String | Shape::Other)
}

/// Count the instructions of a block.
fn count(pieces: &[Piece], in_kernel: bool) {
    let Some(last) = pieces.len().checked_sub(1) else { return };
    if !in_kernel && is_doubtful(pieces[last].shape) {
        pieces[last].instruction.on_execution(callbacks::doubtful, told(0));
        if matches!(pieces[last].shape, Shape::Direct | Shape::Other) {
            pieces[last].instruction.on_access(callbacks::accessed, told(0));
        }
    }
    let mut begins = 0;
    for (number, piece) in pieces.iter().enumerate() {
        // What is in doubt at the end of a block has a part of its own.
        let is_before_doubtful = number + 1 == last && is_doubtful(pieces[last].shape);
        if piece.shape.may_be_helped() {
            // QEMU 7.2 forgets to end what an earlier block has asked for, unless something else is asked for.
            piece.instruction.count_access(NOTHING, 0);
        }
        if number == last || piece.shape.may_fault() || is_before_doubtful {
            let counted = (number + 1 - begins) as u64;
            let amount = if in_kernel { counted } else { counted.wrapping_add(opened(pieces, begins, number)) };
            pieces[begins].instruction.count(if in_kernel { KERNEL } else { USER }, amount);
            begins = number + 1;
        }
    }
    if !in_kernel && pieces[last].shape.accesses() > 0 {
        pieces[last].instruction.count_access(USER, CLOSE);
    }
    if pieces[last].shape.is_branch() {
        pieces[last].instruction.count(BRANCHES, 1);
    }
}

/// Whether the part from `begins` to `ends` opens or closes its block, as what is added to the counter.
fn opened(pieces: &[Piece], begins: usize, ends: usize) -> u64 {
    let (is_first, is_final) = (begins == 0, ends + 1 == pieces.len());
    // What the last instruction accesses closes it, each time once.
    let later = pieces[pieces.len() - 1].shape.accesses() * OPEN;
    match (is_first, is_final) {
        (true, true) => later,
        (true, false) => OPEN,
        (false, true) => later.wrapping_add(CLOSE),
        (false, false) => 0,
    }
}
