//! Which CPU carries out a block, in guests with several.
//!
//! Under the virtual clock all CPUs share one thread and take turns. QEMU 10 then tells a callback the CPU for which its
//! block was translated, and adds to that one's counters, whoever carries it out. But it keeps the CPU whose turn it is
//! in a variable of that thread, `current_cpu`, which QEMUs that can load modules export, as they do `qemu_get_cpu`, by
//! which each CPU's number is known. Every block begins with a callback that compares this variable with what it was.

use std::ffi::{CStr, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::exports::function;

/// A CPU of QEMU.
type State = *mut c_void;
type Find = unsafe extern "C" fn(c_int) -> State;

const CURRENT: &CStr = c"current_cpu";
const FIND: &CStr = c"qemu_get_cpu";

static NOBODY: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
/// Where the CPU whose turn it is stands.
static TURN: AtomicPtr<AtomicPtr<c_void>> = AtomicPtr::new((&raw const NOBODY).cast_mut());
/// Whose turn it was when that was looked at last.
static BEFORE: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
/// The addresses of all CPUs, by number.
static ALL: OnceLock<Vec<usize>> = OnceLock::new();

/// Why it is not seen which of several CPUs runs.
pub fn problem(cpus: c_int) -> Option<String> {
    let lacks = |name: &&CStr| function::<State>(name).is_none();
    let lacking = [CURRENT, FIND].into_iter().find(lacks).filter(|_| cpus > 1)?;
    Some(format!("this QEMU does not show which of {cpus} CPUs runs: it exports no {}", lacking.to_string_lossy()))
}

/// Find all CPUs. To be called by their thread when they exist; the error says what is not as expected.
pub fn find(cpus: c_int) -> Result<(), String> {
    let (Some(turn), Some(find)) = (function(CURRENT), function::<Find>(FIND)) else {
        return Err(problem(cpus).unwrap_or_default());
    };
    TURN.store(turn, Ordering::Relaxed);
    // SAFETY: it looks a number up in a list, which stays the same while a guest runs.
    let all = ALL.get_or_init(|| (0..cpus).map(|number| unsafe { find(number) }.addr()).collect());
    let is_known = all.contains(&turn_of().addr()) && !all.contains(&0);
    is_known.then_some(()).ok_or_else(|| format!("QEMU runs a CPU that is none of the {cpus} that it names"))
}

/// QEMU's own of the CPU that runs; null before `find`.
pub fn current() -> *mut c_void {
    turn_of()
}

fn turn_of() -> State {
    // SAFETY: it is a variable of the thread that carries out all code, and calls this.
    unsafe { &*TURN.load(Ordering::Relaxed) }.load(Ordering::Relaxed)
}

/// Whether the same CPU runs as when this was asked last.
pub fn is_as_before() -> bool {
    let (now, before) = (turn_of(), BEFORE.load(Ordering::Relaxed));
    BEFORE.store(now, Ordering::Relaxed);
    now == before
}

/// The number of the CPU that runs; 0 in a guest with one.
pub fn number() -> usize {
    let Some(all) = ALL.get() else { return 0 };
    let turn = turn_of().addr();
    all.iter().position(|cpu| *cpu == turn).expect("the CPUs of a guest stay the same")
}
