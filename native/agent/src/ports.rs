//! I/O ports of an x86 machine (ioperm(2)), by which a guest talks to QEMU.
//!
//! Port I/O is carried out between two instructions of the guest: nothing about it depends on the host's timing.

use std::arch::asm;
use std::io::{self, Write};

/// QEMU's isa-debugcon; the boot file can override it.
/// SeaBIOS has 0x402.
pub const EVENT_PORT: u16 = 0x4a0;
/// QEMU's pvpanic device (docs/specs/pvpanic.rst).
const PVPANIC_PORT: u16 = 0x505;
const PVPANIC_PANICKED: u8 = 1;
/// QEMU's ib700 watchdog: a write arms it for (15 - byte) * 2 seconds.
const WATCHDOG_PORT: u16 = 0x443;
const WATCHDOG_TWO_SECONDS: u8 = 14;
/// QEMU's fw_cfg device (docs/specs/fw_cfg.rst): selector, then data.
const FIRMWARE_SELECTOR: u16 = 0x510;
const FIRMWARE_DATA: u16 = 0x511;

/// The right to use the ports that a guest's agent needs.
pub struct Ports {
    event_port: u16,
}

impl Ports {
    /// Ask the kernel for them. Needs CAP_SYS_RAWIO.
    pub fn open(event_port: u16) -> io::Result<Ports> {
        permit(event_port, true)?;
        Ok(Ports { event_port })
    }

    /// Stop the machine here.
    /// QEMU, started with `-action panic=pause`, pauses it at the byte "panicked". The guest resumes after this
    /// instruction, perhaps in another process and many times.
    pub fn pause_machine(&self) {
        // SAFETY: the port is permitted, and what a write to it does is known.
        unsafe { asm!("out dx, al", in("dx") PVPANIC_PORT, in("al") PVPANIC_PANICKED, options(nomem, nostack)) }
    }

    /// Have the machine stopped after two seconds of guest time.
    /// QEMU, started with `-action watchdog=pause`, pauses it when the watchdog expires. The guest must be asleep by
    /// then.
    ///
    /// Under the instruction-counted clock [`Ports::pause_machine`] is not exact: QEMU marks the CPU as stopped before
    /// the machine is, and a main loop that comes by in between takes it for idle and moves the clock to the next
    /// timer. While a guest sleeps, moving the clock to the next timer is just what is right.
    pub fn arm_watchdog(&self) {
        // SAFETY: the port is permitted, and what a write to it does is known.
        unsafe { asm!("out dx, al", in("dx") WATCHDOG_PORT, in("al") WATCHDOG_TWO_SECONDS, options(nomem, nostack)) }
    }

    /// Choose the item that the next [`Ports::firmware_read`] begins.
    pub fn firmware_select(&self, key: u16) {
        // SAFETY: as above.
        unsafe { asm!("out dx, ax", in("dx") FIRMWARE_SELECTOR, in("ax") key, options(nomem, nostack)) }
    }

    /// The next bytes of the chosen item; zeros past its end.
    pub fn firmware_read(&self, bytes: &mut [u8]) {
        // SAFETY: `rep insb` writes exactly rcx bytes from rdi on, which are those of the
        // slice.
        unsafe {
            asm!("rep insb", in("dx") FIRMWARE_DATA, inout("rdi") bytes.as_mut_ptr() => _,
                 inout("rcx") bytes.len() => _, options(nostack));
        }
    }
}

impl Write for &Ports {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // SAFETY: `rep outsb` reads exactly rcx bytes from rsi on, which are those of the
        // slice.
        unsafe {
            asm!("rep outsb", in("dx") self.event_port, inout("rsi") bytes.as_ptr() => _,
                 inout("rcx") bytes.len() => _, options(nostack, readonly));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Give up the ports before an exec; safe between fork and exec.
/// No workload inherits them, and none pays for switching the permission map.
pub fn forbid(event_port: u16) {
    let _ = permit(event_port, false);
}

fn permit(event_port: u16, allowed: bool) -> io::Result<()> {
    for (port, count) in [(event_port, 1), (PVPANIC_PORT, 1), (WATCHDOG_PORT, 1), (FIRMWARE_SELECTOR, 2)] {
        // SAFETY: ioperm(2) only takes numbers.
        if unsafe { libc::ioperm(port.into(), count, allowed.into()) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}
