//! The memory that a child needs between fork and exec, without the agent's heap.
//!
//! A forked child shares the agent's memory until one of them writes to it, and each page that is written then costs
//! both a fault. With the heap kept from the child there is hardly one.

use std::ffi::c_char;
use std::io;
use std::ptr;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

const ALIGNMENT: usize = 16;
const PAGE_BYTES: usize = 4096;
/// What a thread has of the C library (`struct pthread`) is less.
const THREAD_BYTES: usize = 4096;
/// More heap than that is none of this agent.
const MOST_HEAP_BYTES: usize = 1 << 30;

/// Memory that is filled from its beginning, and given back as a whole.
pub struct Area {
    start: *mut u8,
    length: usize,
    used: usize,
}

impl Area {
    /// With room for `bytes`; pieces are aligned to [`ALIGNMENT`].
    pub fn with_room(bytes: usize, pieces: usize) -> io::Result<Area> {
        let length = (bytes + pieces * ALIGNMENT).next_multiple_of(PAGE_BYTES).max(PAGE_BYTES);
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, at a place that the kernel chooses.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), length, access, MapFlags::PRIVATE | MapFlags::POPULATE)? };
        Ok(Area { start: start.cast(), length, used: 0 })
    }

    /// `parts` as one text with a final zero.
    pub fn text(&mut self, parts: &[&[u8]]) -> *const c_char {
        let length = parts.iter().map(|part| part.len()).sum::<usize>() + 1;
        let place = self.take(length);
        let mut next = place;
        for part in parts {
            // SAFETY: `take` has made sure that there is room for all parts and the zero that
            // is there already.
            unsafe {
                ptr::copy_nonoverlapping(part.as_ptr(), next, part.len());
                next = next.add(part.len());
            }
        }
        place.cast()
    }

    /// A copy of `values`.
    pub fn copy<T: Copy>(&mut self, values: &[T]) -> *const T {
        let place = self.take(size_of_val(values)).cast::<T>();
        // SAFETY: as above; no value needs more than ALIGNMENT.
        unsafe { ptr::copy_nonoverlapping(values.as_ptr(), place, values.len()) };
        place
    }

    fn take(&mut self, length: usize) -> *mut u8 {
        let begin = self.used.next_multiple_of(ALIGNMENT);
        assert!(begin + length <= self.length, "more than there is room for");
        self.used = begin + length;
        // SAFETY: within the mapping.
        unsafe { self.start.add(begin) }
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: our own mapping; no reference outlives it.
        let _ = unsafe { munmap(self.start.cast(), self.length) };
    }
}

/// The heap, while no child inherits it.
pub struct Withheld {
    start: *mut libc::c_void,
    length: usize,
}

impl Withheld {
    /// Keep it from children.
    /// `None` where it cannot be separated from what a child needs.
    ///
    /// A static program has the thread's own data (with `errno`) at the beginning of the heap: that much is not withheld.
    pub fn heap() -> Option<Withheld> {
        let thread: usize;
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the thread pointer of x86-64 (psABI, thread-local storage), whose first
        // word is its own address.
        unsafe {
            std::arch::asm!("mov {}, fs:0", out(reg) thread, options(nostack, readonly, preserves_flags))
        };
        #[cfg(target_arch = "aarch64")]
        // SAFETY: the thread pointer of AArch64 (its ELF ABI, thread-local storage), which is in a register.
        unsafe {
            std::arch::asm!("mrs {}, tpidr_el0", out(reg) thread, options(nomem, nostack, preserves_flags))
        };
        // SAFETY: sbrk(0) only says where the heap ends.
        let end = unsafe { libc::sbrk(0) } as usize;
        let start = (thread + THREAD_BYTES).next_multiple_of(PAGE_BYTES);
        let length =
            (end & !(PAGE_BYTES - 1)).checked_sub(start).filter(|length| (1..MOST_HEAP_BYTES).contains(length))?;
        let heap = Withheld { start: start as *mut _, length };
        heap.advise(libc::MADV_DONTFORK).then_some(heap)
    }

    fn advise(&self, advice: libc::c_int) -> bool {
        // SAFETY: it changes what a fork copies, nothing else.
        unsafe { libc::madvise(self.start, self.length, advice) == 0 }
    }
}

impl Drop for Withheld {
    fn drop(&mut self) {
        self.advise(libc::MADV_DOFORK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    #[test]
    fn what_is_put_there_stays_apart() {
        let mut area = Area::with_room(9, 3).unwrap();
        let text = area.text(&[b"a", b"=", "é".as_bytes()]);
        let numbers = area.copy(&[1_u32, u32::MAX]);
        let empty = area.text(&[]);
        // SAFETY: the area is still there.
        unsafe {
            assert_eq!(CStr::from_ptr(text).to_str().unwrap(), "a=é");
            assert_eq!(std::slice::from_raw_parts(numbers, 2), [1, u32::MAX]);
            assert_eq!(CStr::from_ptr(empty).count_bytes(), 0);
        }
    }
}
