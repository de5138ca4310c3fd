//! What QEMU calls while the guest runs.
//!
//! With `-accel tcg,thread=single`, which Ajuste always uses under the virtual clock, all CPUs are one thread, and all
//! of this is called from it. A panic ends QEMU (the profile aborts), and with it the trial.

use std::ffi::{c_uint, c_void};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::block::Block;
use crate::decisions::Kind;
use crate::interface::{self, interface};
use crate::lens::Lens;
use crate::running;
use crate::symbols::Vector;

static LENS: AtomicPtr<Lens> = AtomicPtr::new(ptr::null_mut());

/// Keep the lens for the callbacks.
pub fn keep(lens: Lens) {
    LENS.store(Box::into_raw(Box::new(lens)), Ordering::Release);
}

/// The lens that was kept. To be used within one callback.
pub fn lens() -> &'static mut Lens {
    // SAFETY: it was kept before any callback was registered, lives for ever, and only one callback runs at a time.
    unsafe { LENS.load(Ordering::Relaxed).as_mut() }.expect("the lens is kept before callbacks are registered")
}

/// ... and the CPU that runs, which is known to it. What QEMU says it is may be wrong.
pub fn with(_: c_uint) -> (&'static mut Lens, usize) {
    let lens = lens();
    let cpu = lens.running().unwrap_or_else(|| lens.run(0, interface().counters()));
    (lens, cpu)
}

/// Have each block begin with a look at whose turn it is. To be called before all else is put into the block.
pub fn watch_turns(block: &interface::Block) {
    static FOUND: OnceLock<Result<(), String>> = OnceLock::new();
    if let Err(reason) = FOUND.get_or_init(|| running::find(interface().cpus)) {
        refuse(reason);
    }
    block.on_execution(turn, ptr::without_provenance_mut(running::number()));
}

/// A block begins that was translated for the CPU `translator`.
extern "C" fn turn(told: c_uint, translator: *mut c_void) {
    if !running::is_as_before() || told as usize != translator.addr() {
        next_turn(told as usize, translator.addr());
    }
}

#[cold]
fn next_turn(told: usize, translator: usize) {
    if told != translator {
        refuse("this QEMU does not add to the counters of the CPU that a block was translated for");
    }
    lens().run(running::number(), interface().counters());
}

/// End QEMU, and with it the trial.
fn refuse(reason: &str) -> ! {
    eprintln!("lens: {reason}");
    // SAFETY: it ends this process without looking back.
    unsafe { libc::_exit(1) }
}

/// Of an address: what is above is like its highest one.
const ADDRESS_BITS: u32 = 48;

/// An instruction, and how many of its block come after it.
pub fn packed(address: u64, left: usize) -> u64 {
    (left as u64) << ADDRESS_BITS | address & ((1 << ADDRESS_BITS) - 1)
}

fn unpacked(number: u64) -> (u64, u64) {
    let above = u64::BITS - ADDRESS_BITS;
    (((number << above) as i64 >> above) as u64, number >> ADDRESS_BITS)
}

fn number(told: *mut c_void) -> u64 {
    told.addr() as u64
}

pub extern "C" fn block(cpu: c_uint, block: *mut c_void) {
    let (lens, cpu) = with(cpu);
    // SAFETY: it was registered with a block that lives for ever.
    lens.block(cpu, unsafe { &*block.cast::<Block>() });
}

pub extern "C" fn switch_from(cpu: c_uint, access: u32, address: u64, offset: *mut c_void) {
    let (lens, cpu) = with(cpu);
    if interface().is_store(access) {
        lens.switch_from(cpu, address, number(offset));
    }
}

pub extern "C" fn switch_to(cpu: c_uint, access: u32, address: u64, offset: *mut c_void) {
    let (lens, cpu) = with(cpu);
    if !interface().is_store(access) {
        lens.switch_to(cpu, address, number(offset));
    }
}

pub extern "C" fn copy(cpu: c_uint, access: u32, address: u64, offset: *mut c_void) {
    let (lens, cpu) = with(cpu);
    if interface().is_store(access) {
        lens.copy(cpu, address, number(offset));
    }
}

pub extern "C" fn exec(cpu: c_uint, _: *mut c_void) {
    let (lens, cpu) = with(cpu);
    lens.exec(cpu);
}

pub extern "C" fn idle(cpu: c_uint, _: *mut c_void) {
    let (lens, cpu) = with(cpu);
    lens.idle(cpu);
}

pub extern "C" fn enter(cpu: c_uint, _: *mut c_void) {
    let (lens, cpu) = with(cpu);
    lens.enter(cpu);
}

pub extern "C" fn fault(cpu: c_uint, vector: *mut c_void) {
    let (lens, cpu) = with(cpu);
    let known = [Vector::Page, Vector::Division, Vector::Protection];
    if let Some(vector) = known.into_iter().find(|known| *known as u64 == number(vector)) {
        lens.fault(cpu, vector);
    }
}

pub extern "C" fn exchange(cpu: c_uint, _: *mut c_void) {
    let (lens, cpu) = with(cpu);
    lens.exchange(cpu);
}

pub extern "C" fn doubtful(cpu: c_uint, _: *mut c_void) {
    let (lens, cpu) = with(cpu);
    lens.doubtful(cpu);
}

pub extern "C" fn accessed(cpu: c_uint, _: u32, _: u64, _: *mut c_void) {
    let (lens, cpu) = with(cpu);
    lens.accessed(cpu);
}

pub extern "C" fn shared(cpu: c_uint, access: u32, address: u64, by: *mut c_void) {
    let (lens, cpu) = with(cpu);
    lens.access(cpu, address, unpacked(number(by)), interface().is_store(access));
}

pub extern "C" fn output(cpu: c_uint, _: *mut c_void) {
    let (lens, cpu) = with(cpu);
    lens.output(cpu);
}

pub extern "C" fn woken(cpu: c_uint, access: u32, address: u64, offset: *mut c_void) {
    if interface().is_store(access) {
        let (lens, cpu) = with(cpu);
        lens.decide_of(cpu, Kind::Wakeup, address.wrapping_sub(number(offset)));
    }
}

pub extern "C" fn new(cpu: c_uint, access: u32, address: u64, offset: *mut c_void) {
    if interface().is_store(access) {
        let (lens, cpu) = with(cpu);
        lens.decide_of(cpu, Kind::New, address.wrapping_sub(number(offset)));
    }
}

pub extern "C" fn marked(cpu: c_uint, access: u32, address: u64, _: *mut c_void) {
    if interface().is_store(access) {
        let (lens, cpu) = with(cpu);
        lens.decide_of(cpu, Kind::Resched, address);
    }
}

pub extern "C" fn timer(cpu: c_uint, _: *mut c_void) {
    let (lens, cpu) = with(cpu);
    lens.decide(cpu, Kind::Timer, None);
}

pub extern "C" fn schedule(cpu: c_uint, _: *mut c_void) {
    let (lens, cpu) = with(cpu);
    lens.may_stay(cpu, true);
}

pub extern "C" fn dequeue(cpu: c_uint, _: *mut c_void) {
    let (lens, cpu) = with(cpu);
    lens.may_stay(cpu, false);
}

pub extern "C" fn system_call(cpu: c_uint, function: *mut c_void) {
    let (lens, cpu) = with(cpu);
    lens.system_call(cpu, number(function));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_of_a_program_or_a_module_is_packed() {
        for address in [0x40_1234, 0x7fff_ffff_ffff, 0xffff_ffff_c000_1234] {
            assert_eq!(unpacked(packed(address, 65_535)), (address, 65_535));
        }
    }
}
