//! The guest's own page tables, walked as its processor walks them.
//!
//! QEMU says where an access is in memory, but not how large its page is. So the tables are read where a modelled TLB
//! misses, which is when a processor walks them. Reading changes nothing in the guest.

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

use crate::exports::required;
use crate::memory::Ram;

pub const SMALL_BITS: u32 = 12;
const BITS_OF_LEVEL: u32 = 9;
/// Entries of a table of this level or below can be pages. Source: Intel's manual, volume 3, 4-level paging.
const HIGHEST_WITH_PAGES: u32 = 2;
const PRESENT: u64 = 1;
const IS_PAGE: u64 = 1 << 7;
const FRAME: u64 = 0x000f_ffff_ffff_f000;
const FIVE_LEVELS: u64 = 1 << 12;

/// Numbers of CR3 and CR4 among the registers that QEMU shows to gdb. Source: target/i386/gdbstub.c.
const CR3: c_int = 29;
const CR4: c_int = 30;

/// A page that was walked to: the place of the address in memory, and how many bits of it are an offset in the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reached {
    pub place: u64,
    pub bits: u32,
}

impl Reached {
    /// ... in a page of 4 KiB.
    pub fn small(place: u64) -> Reached {
        Reached { place, bits: SMALL_BITS }
    }

    /// How many levels of tables a walk to a page of 4 KiB reads beyond this one.
    pub fn skipped_levels(self) -> u64 {
        u64::from((self.bits - SMALL_BITS) / BITS_OF_LEVEL)
    }
}

/// GLib's array of bytes. Source: glib/garray.h.
#[repr(C)]
struct Bytes {
    data: *const u8,
    length: u32,
}

struct Functions {
    find_cpu: unsafe extern "C" fn(c_int) -> *mut c_void,
    read_register: unsafe extern "C" fn(*mut c_void, *mut Bytes, c_int) -> c_int,
    read_memory: unsafe extern "C" fn(u64, *mut c_void, u64, bool),
    resize: unsafe extern "C" fn(*mut Bytes, u32) -> *mut Bytes,
    bytes: *mut Bytes,
}

// SAFETY: the array is only used within callbacks, of which one runs at a time.
unsafe impl Send for Functions {}
// SAFETY: as above.
unsafe impl Sync for Functions {}

static FUNCTIONS: OnceLock<Functions> = OnceLock::new();

/// Look up the functions. The error says which this QEMU lacks.
pub fn find_functions() -> Result<(), String> {
    let make: unsafe extern "C" fn() -> *mut Bytes = required(c"g_byte_array_new")?;
    let found = Functions {
        find_cpu: required(c"qemu_get_cpu")?,
        read_register: required(c"x86_cpu_gdb_read_register")?,
        read_memory: required(c"cpu_physical_memory_rw")?,
        resize: required(c"g_byte_array_set_size")?,
        // SAFETY: it makes an empty array.
        bytes: unsafe { make() },
    };
    FUNCTIONS.get_or_init(|| found);
    Ok(())
}

impl Functions {
    fn register(&self, cpu: usize, number: c_int) -> u64 {
        // SAFETY: the array is this one's, and the CPU is QEMU's own, which runs.
        let shown = unsafe {
            (self.resize)(self.bytes, 0);
            let length = (self.read_register)((self.find_cpu)(cpu as c_int), self.bytes, number);
            (length == 8 && (*self.bytes).length == 8).then(|| (*self.bytes).data.cast::<[u8; 8]>().read())
        };
        u64::from_le_bytes(shown.expect("QEMU shows CR3 and CR4 as 8 bytes"))
    }

    fn entry(&self, address: u64) -> u64 {
        let mut entry = [0; 8];
        // SAFETY: there is room for so many bytes.
        unsafe { (self.read_memory)(address, entry.as_mut_ptr().cast(), 8, false) };
        u64::from_le_bytes(entry)
    }
}

/// The page of `address`, which QEMU has found at `place` for the CPU that runs.
///
/// Where the tables no longer say so, the guest has changed them and not yet invalidated what was there: the page is
/// taken for a small one.
#[inline(never)]
pub fn reach(ram: &Ram, cpu: usize, address: u64, place: u64) -> Reached {
    let functions = FUNCTIONS.get().expect("the functions are looked up before anything is modelled");
    let levels = if functions.register(cpu, CR4) & FIVE_LEVELS == 0 { 4 } else { 5 };
    let page = walk(functions.register(cpu, CR3), levels, address, |address| functions.entry(address));
    match page {
        Some((physical, bits)) if ram.place_of_guest(physical) == place => Reached { place, bits },
        _ => Reached::small(place),
    }
}

/// The physical address of `address`, and the bits of its page, by the tables at `root`.
fn walk(root: u64, levels: u32, address: u64, entry: impl Fn(u64) -> u64) -> Option<(u64, u32)> {
    let mut table = root & FRAME;
    for level in (0..levels).rev() {
        let bits = SMALL_BITS + BITS_OF_LEVEL * level;
        let found = entry(table + (address >> bits & 0x1ff) * 8);
        if found & PRESENT == 0 {
            return None;
        }
        if level == 0 || level <= HIGHEST_WITH_PAGES && found & IS_PAGE != 0 {
            let offset = (1 << bits) - 1;
            return Some((found & FRAME & !offset | address & offset, bits));
        }
        table = found & FRAME;
    }
    None
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    const NO_EXECUTE: u64 = 1 << 63;

    /// Tables at 0x1000, 0x2000, ..., of which the last has the page.
    fn tables(levels: u32, address: u64, page: u64) -> HashMap<u64, u64> {
        let last = 5 - levels;
        let mut made = HashMap::new();
        for (number, level) in (last..5).rev().enumerate() {
            let (table, index) = (0x1000 * (number as u64 + 1), address >> (12 + 9 * level) & 0x1ff);
            made.insert(table + index * 8, if level == last { page } else { (table + 0x1000) | 0x67 });
        }
        made
    }

    #[test]
    fn pages_are_as_large_as_the_table_that_has_them() {
        let address = 0x00ab_cdef_1234_5678;
        for (levels, bits, page) in [
            (5, 12, 0x4_4444_3000 | 0x67),
            (4, 21, 0x4_4440_0000 | 0xe7 | 0x1000), // The attribute bit of a large page is none of its address.
            (3, 30, 0x4_4000_0000 | 0xe7),
        ] {
            let tables = tables(levels, address, page | NO_EXECUTE);
            let read = |at: u64| tables.get(&at).copied().unwrap_or(0);
            let offset = (1 << bits) - 1;
            let physical = page & 0xf_ffff_f000 & !offset | address & offset;
            assert_eq!(walk(0x1000 | 5, 5, address, read), Some((physical, bits)));
            assert_eq!(walk(0x1000, 5, address ^ 1 << 40, read), None);
            // With four levels the highest table is left out.
            assert_eq!(walk(0x2000, 4, address, read), Some((physical, bits)));
        }
    }

    #[test]
    fn a_larger_page_is_reached_over_fewer_tables() {
        let skipped = |bits| Reached { place: 0, bits }.skipped_levels();
        assert_eq!([12, 21, 30].map(skipped), [0, 1, 2]);
    }
}
