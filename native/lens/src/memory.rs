//! The guest's memory as QEMU has it: the physical addresses of accesses and of code.

use std::ffi::c_void;
use std::fs;
use std::sync::OnceLock;

use crate::interface::{required, RawInstruction};

#[repr(C)]
struct RawAddress([u8; 0]);

/// More functions of this QEMU. Source: include/qemu/qemu-plugin.h.
struct Functions {
    is_store: unsafe extern "C" fn(u32) -> bool,
    size_bits: unsafe extern "C" fn(u32) -> u32,
    find: unsafe extern "C" fn(u32, u64) -> *mut RawAddress,
    is_device: unsafe extern "C" fn(*const RawAddress) -> bool,
    physical: unsafe extern "C" fn(*const RawAddress) -> u64,
    place: unsafe extern "C" fn(*const RawInstruction) -> *mut c_void,
}

static FUNCTIONS: OnceLock<Functions> = OnceLock::new();

fn functions() -> &'static Functions {
    FUNCTIONS.get().expect("the functions are looked up before anything calls them")
}

/// Look up the functions. The error says which this QEMU lacks.
pub fn find_functions() -> Result<(), String> {
    let found = Functions {
        is_store: required(c"qemu_plugin_mem_is_store")?,
        size_bits: required(c"qemu_plugin_mem_size_shift")?,
        find: required(c"qemu_plugin_get_hwaddr")?,
        is_device: required(c"qemu_plugin_hwaddr_is_io")?,
        physical: required(c"qemu_plugin_hwaddr_phys_addr")?,
        place: required(c"qemu_plugin_insn_haddr")?,
    };
    FUNCTIONS.get_or_init(|| found);
    Ok(())
}

/// How many bytes an access has, and whether it is a store, by what QEMU tells of it. That is one of few numbers, so
/// each is asked about once.
pub struct Kinds(Vec<Option<(u8, bool)>>);

const MOST_KINDS: u32 = 1 << 18;

impl Kinds {
    pub fn new() -> Kinds {
        Kinds(vec![None; MOST_KINDS as usize])
    }

    pub fn of(&mut self, access: u32) -> (u64, bool) {
        let (size_bits, is_store) = match self.0.get(access as usize) {
            Some(Some(known)) => *known,
            _ => {
                let found = asked(access);
                if access < MOST_KINDS {
                    self.0[access as usize] = Some(found);
                }
                found
            }
        };
        (1 << size_bits, is_store)
    }
}

fn asked(access: u32) -> (u8, bool) {
    // SAFETY: they look at a number.
    unsafe { ((functions().size_bits)(access) as u8 & 7, (functions().is_store)(access)) }
}

/// The physical address of what is accessed at `address`; `None` for a device. To be asked while the access is told.
pub fn physical_address(access: u32, address: u64) -> Option<u64> {
    // SAFETY: a callback of that access is running.
    let found = unsafe { (functions().find)(access, address) };
    // SAFETY: it is QEMU's own, and valid until the next one is asked for.
    (!found.is_null() && unsafe { !(functions().is_device)(found) }).then(|| unsafe { (functions().physical)(found) })
}

/// Where QEMU keeps the guest's memory.
pub struct Ram {
    bytes: u64,
    begin: Option<u64>,
}

/// Code elsewhere, in the firmware, is told apart from memory by this.
const ELSEWHERE: u64 = 1 << 52;

impl Ram {
    pub fn new(bytes: u64) -> Ram {
        Ram { bytes, begin: None }
    }

    /// The physical address of an instruction while it is translated.
    pub fn physical_address(&mut self, raw: *const RawInstruction, address: u64) -> u64 {
        // SAFETY: it is being translated.
        let place = unsafe { (functions().place)(raw) }.addr() as u64;
        if self.begin.is_none() {
            self.begin = fs::read_to_string("/proc/self/maps").ok().and_then(|maps| begin_of(&maps, place, self.bytes));
        }
        match self.begin {
            Some(begin) if (begin..begin + self.bytes).contains(&place) => place - begin,
            _ => ELSEWHERE | address & (ELSEWHERE - 1),
        }
    }
}

/// Where memory of that size begins that has `place` in it. QEMU puts a page without rights behind it
/// (`qemu_ram_mmap` of util/mmap-alloc.c), so its end is the end of a mapping; what is before it may belong to the same.
fn begin_of(maps: &str, place: u64, bytes: u64) -> Option<u64> {
    for line in maps.lines() {
        let (begin, end) = line.split(' ').next()?.split_once('-')?;
        let (begin, end) = (u64::from_str_radix(begin, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
        if (begin..end).contains(&place) && end - begin >= bytes && place >= end - bytes {
            return Some(end - bytes);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "55d0c0000000-55d0c0001000 r-xp 00000000 08:01 42 /usr/bin/qemu\n\
        7f0000000000-7f0010200000 rw-p 00000000 00:00 0 \n\
        7f0010200000-7f0010201000 ---p 00000000 00:00 0 \n";

    #[test]
    fn memory_ends_where_its_mapping_ends() {
        let found = |place| begin_of(MAPS, place, 0x1000_0000);
        assert_eq!(found(0x7f00_0100_0000), Some(0x7f00_0020_0000));
        assert_eq!(found(0x7f00_0000_1000), None);
        assert_eq!(found(0x55d0_c000_0010), None);
        assert_eq!(begin_of(MAPS, 0x7f00_0000_1000, 1 << 40), None);
    }
}
