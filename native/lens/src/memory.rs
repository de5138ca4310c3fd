//! The guest's memory as QEMU has it: the physical addresses of accesses and of code.

use std::ffi::{c_int, c_void};
use std::fs;
use std::sync::OnceLock;

use crate::exports::{function, required};
use crate::interface::{RawInstruction, wanted_version};

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
    /// What QEMU exports where it was built with modules. Source: include/exec/cpu-common.h.
    from_host: Option<unsafe extern "C" fn(*mut c_void) -> u64>,
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
        from_host: function(c"qemu_ram_addr_from_host"),
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

/// The guest's memory, which QEMU has in one piece for each of the guest's nodes.
///
/// A place in it is the number of bytes before it, node after node, wherever the guest's firmware sees it.
pub struct Ram {
    bytes: u64,
    /// Where each node's memory ends.
    ends: Vec<u64>,
    begin: Option<u64>,
}

/// Code elsewhere, in the firmware, is told apart from memory by this.
const ELSEWHERE: u64 = 1 << 52;

/// From this version of the interface on QEMU tells the address that the guest sees: between these two there is no memory,
/// if it does not fit below. Source: hw/i386/pc_piix.c, `pc_init1`.
const TELLS_GUEST_ADDRESSES: c_int = 2;
const HIGH: u64 = 1 << 32;
const HOLE_IF_FROM: u64 = 0xe000_0000;
const HOLE: u64 = 0xc000_0000;

impl Ram {
    /// `ends` are those of the guest's nodes, if it has any.
    pub fn new(bytes: u64, ends: Vec<u64>) -> Ram {
        Ram { bytes, ends, begin: None }
    }

    /// The place of what is accessed at `address`; `None` for a device. To be asked while the access is told.
    pub fn place_of_access(&self, access: u32, address: u64) -> Option<u64> {
        // SAFETY: a callback of that access is running.
        let found = unsafe { (functions().find)(access, address) };
        // SAFETY: it is QEMU's own, and valid until the next one is asked for.
        if found.is_null() || unsafe { (functions().is_device)(found) } {
            return None;
        }
        // SAFETY: as above.
        Some(self.place(unsafe { (functions().physical)(found) }, wanted_version()))
    }

    fn place(&self, told: u64, version: c_int) -> u64 {
        if version >= TELLS_GUEST_ADDRESSES {
            return self.place_of_guest(told);
        }
        // The beginning of the node's memory was added twice: as its place in all memory, and as its address.
        let begins = std::iter::once(&0).chain(&self.ends).zip(&self.ends);
        let node = begins.map(|(begin, end)| (*begin, begin + end)).find(|(_, end)| told < *end);
        told - node.map_or(0, |(begin, _)| begin)
    }

    /// The place of an address that the guest uses.
    pub fn place_of_guest(&self, address: u64) -> u64 {
        if address >= HIGH && self.bytes >= HOLE_IF_FROM { address - HIGH + HOLE } else { address }
    }

    /// The place of an instruction while it is translated.
    pub fn place_of_code(&mut self, raw: *const RawInstruction, address: u64) -> u64 {
        // SAFETY: it is being translated.
        let host = unsafe { (functions().place)(raw) };
        let place = match functions().from_host {
            // SAFETY: it looks the address up in a list, which stays the same while a guest runs.
            Some(from_host) => unsafe { from_host(host) },
            None => self.place_in_mapping(host.addr() as u64),
        };
        if place < self.bytes { place } else { ELSEWHERE | address & (ELSEWHERE - 1) }
    }

    fn place_in_mapping(&mut self, host: u64) -> u64 {
        if self.begin.is_none() {
            self.begin = fs::read_to_string("/proc/self/maps").ok().and_then(|maps| begin_of(&maps, host, self.bytes));
        }
        self.begin.map_or(u64::MAX, |begin| host.wrapping_sub(begin))
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
    fn places_are_counted_from_node_to_node() {
        let ram = Ram::new(5 << 30, vec![1 << 30, 3 << 30, 5 << 30]);
        let own = |told: u64| ram.place(told, 1);
        assert_eq!([own(7), own((2 << 30) + 7), own((8 << 30) - 1)], [7, (1 << 30) + 7, (5 << 30) - 1]);
        assert_eq!(own(6 << 30), 3 << 30);
        assert_eq!(ram.place(7, 2), 7);
        assert_eq!(ram.place((1 << 32) + 7, 2), 0xc000_0007);
        assert_eq!(Ram::new(1 << 30, vec![]).place(7, 1), 7);
    }

    #[test]
    fn memory_ends_where_its_mapping_ends() {
        let found = |place| begin_of(MAPS, place, 0x1000_0000);
        assert_eq!(found(0x7f00_0100_0000), Some(0x7f00_0020_0000));
        assert_eq!(found(0x7f00_0000_1000), None);
        assert_eq!(found(0x55d0_c000_0010), None);
        assert_eq!(begin_of(MAPS, 0x7f00_0000_1000, 1 << 40), None);
    }
}
