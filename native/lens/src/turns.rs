//! How long the turns are that the CPUs of a guest take.
//!
//! Under the virtual clock QEMU shares out the time until the next timer among all CPUs, and one after the other has its
//! part. A timer of the lens's own makes these parts short, so that CPUs come closer to running at once. It does nothing
//! else, and the guest does not see it. Source: accel/tcg/tcg-accel-ops-icount.c, `icount_percpu_budget`.

use std::ffi::{CStr, c_int, c_uint, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::exports::function;
use crate::interface;

/// QEMU's functions. Source: include/qemu/timer.h.
type Init =
    unsafe extern "C" fn(*mut c_void, *mut c_void, c_int, c_int, c_int, extern "C" fn(*mut c_void), *mut c_void);
type Set = unsafe extern "C" fn(*mut c_void, i64);
type Now = unsafe extern "C" fn(c_int) -> i64;

const INIT: &CStr = c"timer_init_full";
const SET: &CStr = c"timer_mod_ns";
const NOW: &CStr = c"qemu_clock_get_ns";
const VIRTUAL_CLOCK: c_int = 1;
const NANOSECONDS: c_int = 1;
/// An idle guest does not wait for such a timer (`icount_start_warp_timer`).
const EXTERNAL: c_int = 1;

/// There is room for QEMU's structure, and more.
#[repr(C, align(16))]
struct Timer([u8; 512]);

static PERIOD_NS: AtomicU64 = AtomicU64::new(0);
static RUNS: AtomicBool = AtomicBool::new(false);

/// Have a turn of all CPUs take so long from the first block on. The error says what this QEMU lacks.
pub fn shorten(period_ns: u64) -> Result<(), String> {
    let lacking = [INIT, SET, NOW].into_iter().find(|name| function::<*mut c_void>(name).is_none());
    if let Some(name) = lacking {
        return Err(format!("this QEMU does not let turns be shortened: it exports no {}", name.to_string_lossy()));
    }
    PERIOD_NS.store(period_ns, Ordering::Relaxed);
    Ok(())
}

/// Begin with this block, which is the guest's first one if nothing runs yet.
pub fn begin(block: &interface::Block) {
    if PERIOD_NS.load(Ordering::Relaxed) > 0 && !RUNS.load(Ordering::Relaxed) {
        block.on_execution(first, ptr::null_mut());
    }
}

extern "C" fn first(_: c_uint, _: *mut c_void) {
    if RUNS.swap(true, Ordering::Relaxed) {
        return;
    }
    let (Some(init), Some(set)) = (function::<Init>(INIT), function::<Set>(SET)) else { return };
    let timer: *mut c_void = ptr::from_mut(Box::leak(Box::new(Timer([0; 512])))).cast();
    // SAFETY: QEMU initialises the structure, which lives for ever. Its clock must not be read here, within a block: a
    // timer for the time 0 is due at once.
    unsafe {
        init(timer, ptr::null_mut(), VIRTUAL_CLOCK, NANOSECONDS, EXTERNAL, again, timer);
        set(timer, 0);
    }
}

/// The timer is due: the next moment is a whole number of periods, whenever this one was noticed.
extern "C" fn again(timer: *mut c_void) {
    let (Some(set), Some(now)) = (function::<Set>(SET), function::<Now>(NOW)) else { return };
    let period = PERIOD_NS.load(Ordering::Relaxed) as i64;
    // SAFETY: QEMU calls this where its clock may be read; the timer is the one that was initialised.
    unsafe { set(timer, (now(VIRTUAL_CLOCK) / period + 1) * period) }
}
