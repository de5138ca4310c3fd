//! Where a kernel's scheduler decides.
//!
//! What a function decides is seen by what it stores, which is alike in all kernels from 5.10 to 7.3: a task that wakes
//! up gets the state 0 (there stands the tracepoint `sched_wakeup`, too), and one that has to make way gets a flag in
//! its first word, by a locked instruction. Both name the task by their address.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use crate::symbols::{Place, Symbols};

/// How the names of functions begin that carry out a system call. Source: arch/x86/include/asm/syscall_wrapper.h
const SYSTEM_CALLS: [&str; 3] = ["__x64_sys_", "__ia32_sys_", "__ia32_compat_sys_"];

/// What a function of the kernel decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Site {
    Wakeup,
    New,
    Resched,
    Timer,
    Schedule,
    Dequeue,
    /// It carries out a system call.
    SystemCall,
}

impl Site {
    fn of(name: &str) -> Option<Site> {
        // A compiler adds to the names of functions that it has changed: `.isra.0`.
        match name.split('.').next().unwrap_or(name) {
            "try_to_wake_up" | "ttwu_do_wakeup" | "ttwu_do_activate" | "ttwu_runnable" => Some(Site::Wakeup),
            "wake_up_new_task" => Some(Site::New),
            "resched_curr" | "__resched_curr" => Some(Site::Resched),
            "sysvec_apic_timer_interrupt" => Some(Site::Timer),
            "__schedule" => Some(Site::Schedule),
            plain if plain.starts_with("dequeue_task_") => Some(Site::Dequeue),
            plain if SYSTEM_CALLS.iter().any(|prefix| plain.starts_with(prefix)) => Some(Site::SystemCall),
            _ => None,
        }
    }
}

/// Where a kernel decides.
pub struct Sites(HashMap<u64, Site>);

impl Sites {
    /// Read the names that `symbols` were made of, too.
    /// The error says what the kernel lacks.
    pub fn read(file: &Path, symbols: &Symbols) -> Result<Sites, String> {
        let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        Sites::of(symbols, &text)
    }

    fn of(symbols: &Symbols, text: &str) -> Result<Sites, String> {
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        let sites = lines.filter_map(|(address, name)| {
            let address = u64::from_str_radix(address, 16).ok()?;
            Some((symbols.place(address).function, Site::of(name)?))
        });
        let found = Sites(sites.collect());
        for (needed, name) in [(Site::Wakeup, "try_to_wake_up"), (Site::Resched, "resched_curr")] {
            if !found.0.values().any(|site| *site == needed) {
                return Err(format!("the kernel has no symbol {name}"));
            }
        }
        Ok(found)
    }

    /// What the function of `place` decides.
    pub fn at(&self, place: Place) -> Option<Site> {
        self.0.get(&place.function).copied()
    }
}

/// Where a task has its state, if the instruction sets that to 0 (`TASK_RUNNING`).
///
/// The state stands right behind `thread_info`: until 5.13 it is a word of 64 bits at 16, later one of 32 bits at 24.
pub fn state_offset(bytes: &[u8]) -> Option<usize> {
    const REX_W: u8 = 8;
    let (is_wide, rest) = match bytes {
        [rex @ 0x40..=0x4f, rest @ ..] => (rex & REX_W != 0, rest),
        _ => (false, bytes),
    };
    let (operands, rest) = match rest {
        [0xc7, operands, 0x24, rest @ ..] if operands & 7 == 4 && rest.len() == 5 && bytes[0] & 0xf1 == 0x41 => {
            (*operands, rest) // the base is R12
        }
        [0xc7, operands, rest @ ..] if operands & 7 != 4 => (*operands, rest),
        _ => return None,
    };
    match rest {
        [0x10, 0, 0, 0, 0] if operands & 0xf8 == 0x40 && is_wide => Some(0x10),
        [0x18, 0, 0, 0, 0] if operands & 0xf8 == 0x40 && !is_wide => Some(0x18),
        _ => None,
    }
}

/// Where there is one CPU, the kernel has put another prefix (DS) in the place of each LOCK. Source:
/// arch/x86/kernel/alternative.c, `alternatives_smp_unlock`.
pub fn is_locked(bytes: &[u8]) -> bool {
    matches!(bytes.first(), Some(0xf0 | 0x3e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_wakes_up_gets_the_state_0() {
        let stores: [(&[u8], Option<usize>); 8] = [
            (&[0x48, 0xc7, 0x45, 0x10, 0, 0, 0, 0], Some(0x10)), // movq $0,0x10(%rbp)
            (&[0xc7, 0x43, 0x18, 0, 0, 0, 0], Some(0x18)),       // movl $0,0x18(%rbx)
            (&[0x41, 0xc7, 0x44, 0x24, 0x18, 0, 0, 0, 0], Some(0x18)), // movl $0,0x18(%r12)
            (&[0x49, 0xc7, 0x46, 0x10, 0, 0, 0, 0], Some(0x10)), // movq $0,0x10(%r14)
            (&[0xc7, 0x44, 0x24, 0x18, 0, 0, 0, 0], None),       // movl $0,0x18(%rsp)
            (&[0x48, 0xc7, 0x44, 0x24, 0x10, 0, 0, 0, 0], None), // movq $0,0x10(%rsp)
            (&[0xc7, 0x43, 0x18, 0, 2, 0, 0], None),             // movl $0x200,0x18(%rbx)
            (&[0xc7, 0x43, 0x1c, 0, 0, 0, 0], None),             // movl $0,0x1c(%rbx)
        ];
        for (bytes, offset) in stores {
            assert_eq!(state_offset(bytes), offset, "{bytes:x?}");
        }
        for length in 0..8 {
            assert_eq!(state_offset(&[0x48, 0xc7, 0x45, 0x10, 0, 0, 0, 0][..length]), None);
        }
        assert!(is_locked(&[0xf0, 0x80, 0x0a, 0x08]) && is_locked(&[0x3e, 0x80, 0x0a, 0x08]));
        assert!(!is_locked(&[0x80, 0x0a, 0x08]) && !is_locked(&[]));
    }

    const KERNEL: &str = "ffffffff81000100 __switch_to_asm\nffffffff81000200 copy_thread\n\
        ffffffff81000300 start_thread\nffffffff81000400 try_to_wake_up.isra.0\nffffffff81000500 resched_curr\n\
        ffffffff81000600 dequeue_task_fair\nffffffff81000700 schedule\nffffffff81000800 __x64_sys_write\n";

    #[test]
    fn the_functions_that_decide_are_found_by_name() {
        let symbols = Symbols::parse(KERNEL).unwrap();
        let sites = Sites::of(&symbols, KERNEL).unwrap();
        assert_eq!(sites.0.get(&0xffff_ffff_8100_0400), Some(&Site::Wakeup));
        assert_eq!(sites.0.get(&0xffff_ffff_8100_0600), Some(&Site::Dequeue));
        assert_eq!(sites.0.get(&0xffff_ffff_8100_0800), Some(&Site::SystemCall));
        assert_eq!(sites.0.len(), 4);
        let without = KERNEL.replace("resched_curr", "else");
        assert_eq!(Sites::of(&symbols, &without).err().unwrap(), "the kernel has no symbol resched_curr");
    }
}
