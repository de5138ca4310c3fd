//! What a CPU has carried out when it halts, in guests with several.
//!
//! When all CPUs halt, QEMU's main thread moves the clock on to the next timer. It may see that before the CPUs' thread
//! has added the last instructions to the clock, and then the guest stays some nanoseconds ahead. So they are added
//! before: each `hlt` ends a block, and QEMU has taken the whole block from what its CPU may still carry out when it
//! begins. Source: accel/tcg/icount-common.c, `icount_update`; accel/tcg/translator.c, `gen_tb_start`.

use std::ffi::{CStr, c_uint, c_void};
use std::ptr;
use std::sync::OnceLock;

use crate::exports::function;
use crate::interface::{self, interface};
use crate::running;

const UPDATE: &CStr = c"icount_update";
const HLT: u8 = 0xf4;

type Update = unsafe extern "C" fn(*mut c_void);

static FOUND: OnceLock<Option<Update>> = OnceLock::new();

/// Have the clock be right where a block halts.
pub fn watch(block: &interface::Block) {
    let Some(last) = block.instructions().last() else { return };
    if last.bytes() == [HLT] && FOUND.get_or_init(find).is_some() {
        last.on_execution(halt, ptr::null_mut());
    }
}

/// `None` where this QEMU does not export what is needed: then the clock stays as it is.
fn find() -> Option<Update> {
    running::find(interface().cpus).ok()?;
    function(UPDATE)
}

extern "C" fn halt(_: c_uint, _: *mut c_void) {
    if let Some(Some(update)) = FOUND.get() {
        // SAFETY: it adds to QEMU's clock what this CPU, of this thread, has carried out; it takes that clock's own lock.
        unsafe { update(running::current()) }
    }
}
