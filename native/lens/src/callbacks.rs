//! What QEMU calls while the guest runs.
//!
//! With `-accel tcg,thread=single`, which Ajuste always uses under the virtual clock, all CPUs are one thread, and all
//! of this is called from it. A panic ends QEMU (the profile aborts), and with it the trial.

use std::ffi::{c_uint, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::block::Block;
use crate::decisions::Kind;
use crate::interface::interface;
use crate::lens::Lens;
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

/// ... with this CPU known to it.
fn with(cpu: c_uint) -> (&'static mut Lens, usize) {
    let (lens, number) = (lens(), cpu as usize);
    if !lens.knows(number) {
        lens.meet(number, interface().counters(cpu));
    }
    (lens, number)
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
