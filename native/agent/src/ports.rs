//! I/O ports of an x86 machine (ioperm(2)), by which a guest talks to QEMU.
//!
//! Port I/O is carried out between two instructions of the guest: nothing about it depends on the host's timing. Guests
//! are x86 machines; on other ones the agent runs without ports.

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
        instructions::write_byte(PVPANIC_PORT, PVPANIC_PANICKED);
    }

    /// Have the machine stopped after two seconds of guest time.
    /// QEMU, started with `-action watchdog=pause`, pauses it when the watchdog expires. The guest must be asleep by
    /// then.
    ///
    /// Under the instruction-counted clock [`Ports::pause_machine`] is not exact: QEMU marks the CPU as stopped before
    /// the machine is, and a main loop that comes by in between takes it for idle and moves the clock to the next
    /// timer. While a guest sleeps, moving the clock to the next timer is just what is right.
    pub fn arm_watchdog(&self) {
        instructions::write_byte(WATCHDOG_PORT, WATCHDOG_TWO_SECONDS);
    }

    /// Choose the item that the next [`Ports::firmware_read`] begins.
    pub fn firmware_select(&self, key: u16) {
        instructions::write_word(FIRMWARE_SELECTOR, key);
    }

    /// The next bytes of the chosen item; zeros past its end.
    pub fn firmware_read(&self, bytes: &mut [u8]) {
        instructions::read_bytes(FIRMWARE_DATA, bytes);
    }
}

impl Write for &Ports {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        instructions::write_bytes(self.event_port, bytes);
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
        instructions::permit(port, count, allowed)?;
    }
    Ok(())
}

#[cfg(target_arch = "x86_64")]
mod instructions {
    use std::arch::asm;
    use std::io;

    pub fn permit(port: u16, count: u8, allowed: bool) -> io::Result<()> {
        // SAFETY: ioperm(2) only takes numbers.
        match unsafe { libc::ioperm(port.into(), count.into(), allowed.into()) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    pub fn write_byte(port: u16, byte: u8) {
        // SAFETY: the port is permitted, and what a write to it does is known.
        unsafe { asm!("out dx, al", in("dx") port, in("al") byte, options(nomem, nostack)) }
    }

    pub fn write_word(port: u16, word: u16) {
        // SAFETY: as above.
        unsafe { asm!("out dx, ax", in("dx") port, in("ax") word, options(nomem, nostack)) }
    }

    pub fn read_bytes(port: u16, bytes: &mut [u8]) {
        // SAFETY: `rep insb` writes exactly rcx bytes from rdi on, which are those of the slice.
        unsafe {
            asm!("rep insb", in("dx") port, inout("rdi") bytes.as_mut_ptr() => _, inout("rcx") bytes.len() => _,
                 options(nostack));
        }
    }

    pub fn write_bytes(port: u16, bytes: &[u8]) {
        // SAFETY: `rep outsb` reads exactly rcx bytes from rsi on, which are those of the slice.
        unsafe {
            asm!("rep outsb", in("dx") port, inout("rsi") bytes.as_ptr() => _, inout("rcx") bytes.len() => _,
                 options(nostack, readonly));
        }
    }
}

/// No ports are permitted, so nothing is ever read or written.
#[cfg(not(target_arch = "x86_64"))]
mod instructions {
    use std::io;

    pub fn permit(_port: u16, _count: u8, _allowed: bool) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn write_byte(_port: u16, _byte: u8) {}

    pub fn write_word(_port: u16, _word: u16) {}

    pub fn read_bytes(_port: u16, _bytes: &mut [u8]) {}

    pub fn write_bytes(_port: u16, _bytes: &[u8]) {}
}
