//! How much of the guest's time passed without an instruction: while it was idle, its clock is moved on.
//!
//! QEMU's functions for its clock may not be called from within a block of code, on the CPU's own thread. From another
//! thread they only read.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use crate::exports::function;

/// A thread that reads QEMU's clock.
pub struct Clock {
    asks: Sender<()>,
    answers: Receiver<u64>,
}

/// What QEMU exports where it was built with modules. Source: include/sysemu/cpu-timers.h.
#[derive(Clone, Copy)]
struct Functions {
    time_ns: unsafe extern "C" fn() -> i64,
    instructions: unsafe extern "C" fn() -> i64,
    as_ns: unsafe extern "C" fn(i64) -> i64,
}

impl Functions {
    fn find() -> Option<Functions> {
        let named: [&CStr; 3] = [c"icount_get", c"icount_get_raw", c"icount_to_ns"];
        Some(Functions { time_ns: function(named[0])?, instructions: function(named[1])?, as_ns: function(named[2])? })
    }

    fn idle_ns(self) -> u64 {
        // SAFETY: the functions only read; no CPU runs while a callback waits for the answer.
        let idle = unsafe { (self.time_ns)() - (self.as_ns)((self.instructions)()) };
        u64::try_from(idle).unwrap_or(0)
    }
}

impl Clock {
    /// `None` where this QEMU does not let its clock be read.
    pub fn find() -> Option<Clock> {
        let functions = Functions::find()?;
        let (asks, asked) = channel();
        let (answer, answers) = channel();
        without_signals(|| {
            thread::Builder::new()
                .name("lens".to_owned())
                .spawn(move || while asked.recv().is_ok() && answer.send(functions.idle_ns()).is_ok() {})
        })
        .ok()?;
        Some(Clock { asks, answers })
    }

    /// For how many nanoseconds of its own time the guest was idle so far.
    pub fn idle_ns(&self) -> u64 {
        self.asks.send(()).ok().and_then(|()| self.answers.recv().ok()).unwrap_or(0)
    }
}

/// A thread keeps the signals of the one that starts it: QEMU's are for its own threads only.
fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: the sets are written before they are read.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    let started = start();
    // SAFETY: as above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    started
}
