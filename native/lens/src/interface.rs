//! QEMU's interface for plugins, as far as the lens needs it: version 1 (QEMU 7.2) and 2 to 4 (QEMU 9 and later).
//!
//! Source: include/qemu/qemu-plugin.h and docs/devel/tcg-plugins of QEMU. Its functions are looked up when QEMU loads
//! the library, because each version has some that another one lacks.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

use crate::counters::FIELDS;
use crate::exports::{function, required};
use crate::running;

/// A block of instructions while it is translated.
#[repr(C)]
pub struct RawBlock([u8; 0]);
/// An instruction of such a block.
#[repr(C)]
pub struct RawInstruction([u8; 0]);

pub type Id = u64;
pub type Translated = extern "C" fn(Id, *mut RawBlock);
pub type Executed = extern "C" fn(c_uint, *mut c_void);
pub type Accessed = extern "C" fn(c_uint, u32, u64, *mut c_void);

/// What QEMU says of itself when it loads a plugin.
#[repr(C)]
pub struct About {
    target: *const c_char,
    least_version: c_int,
    version: c_int,
    is_system: bool,
    cpus: c_int,
    most_cpus: c_int,
}

impl About {
    /// Why the lens does not fit this QEMU.
    pub fn problem(&self) -> Option<String> {
        // SAFETY: QEMU passes the name of its target, which ends in a zero.
        let target = unsafe { CStr::from_ptr(self.target) };
        match (target.to_bytes(), self.is_system) {
            (b"x86_64", true) => running::problem(self.most_cpus),
            _ => Some("this is no emulator of x86_64 machines".to_owned()),
        }
    }
}

/// All accesses: QEMU 7.2 takes loads for stores where only one kind is asked for.
const READ_OR_WRITE: c_int = 3;
const WITHOUT_REGISTERS: c_int = 0;
const ADD: c_int = 0;
/// From this version on the bytes of an instruction are copied.
const COPIES_BYTES: c_int = 3;

/// A counter of the interface's later versions: in an array of QEMU's own, which has an element for each CPU.
#[derive(Clone, Copy)]
#[repr(C)]
struct Entry {
    board: *mut c_void,
    offset: usize,
}

/// That array, of which only the address is used: the counters themselves are memory of the lens. With elements of one
/// byte QEMU 10 adds the number of the CPU that a block is translated for to a counter's address, and nothing else: a
/// multiplication of that number would spoil it (gen_plugin_u64_ptr).
#[derive(Clone, Copy)]
struct Board {
    board: *mut c_void,
    find: unsafe extern "C" fn(*mut c_void, c_uint) -> *mut c_void,
}

impl Board {
    fn new() -> Result<Board, String> {
        let make: unsafe extern "C" fn(usize) -> *mut c_void = required(c"qemu_plugin_scoreboard_new")?;
        let find = required(c"qemu_plugin_scoreboard_find")?;
        // SAFETY: it takes the size of an element.
        Ok(Board { board: unsafe { make(1) }, find })
    }

    /// What QEMU takes for the counter at `counter`, in the block that is translated now.
    fn entry(&self, counter: *mut u64) -> Entry {
        // SAFETY: the board is QEMU's own, and every guest has a first CPU.
        let first = unsafe { (self.find)(self.board, 0) };
        Entry { board: self.board, offset: counter.addr().wrapping_sub(first.addr() + running::number()) }
    }
}

type AddSingle = unsafe extern "C" fn(*mut RawInstruction, c_int, *mut u64, u64);
type AddPerCpu = unsafe extern "C" fn(*mut RawInstruction, c_int, Entry, u64);
type AddAccessSingle = unsafe extern "C" fn(*mut RawInstruction, c_int, c_int, *mut u64, u64);
type AddAccessPerCpu = unsafe extern "C" fn(*mut RawInstruction, c_int, c_int, Entry, u64);

#[derive(Clone, Copy)]
enum Adding {
    Single(AddSingle, AddAccessSingle),
    PerCpu(AddPerCpu, AddAccessPerCpu, Board),
}

#[derive(Clone, Copy)]
enum Bytes {
    Shared(unsafe extern "C" fn(*const RawInstruction) -> *const u8),
    Copied(unsafe extern "C" fn(*const RawInstruction, *mut u8, usize) -> usize),
}

/// The functions of this QEMU.
pub struct Interface {
    counters: *mut [u64; FIELDS],
    adding: Adding,
    bytes: Bytes,
    /// How many CPUs the guest has.
    pub cpus: c_int,
    on_translation: unsafe extern "C" fn(Id, Translated),
    on_block: unsafe extern "C" fn(*mut RawBlock, Executed, c_int, *mut c_void),
    on_instruction: unsafe extern "C" fn(*mut RawInstruction, Executed, c_int, *mut c_void),
    on_access: unsafe extern "C" fn(*mut RawInstruction, Accessed, c_int, c_int, *mut c_void),
    is_store: unsafe extern "C" fn(u32) -> bool,
    length: unsafe extern "C" fn(*const RawBlock) -> usize,
    instruction: unsafe extern "C" fn(*const RawBlock, usize) -> *mut RawInstruction,
    address: unsafe extern "C" fn(*const RawInstruction) -> u64,
    size: unsafe extern "C" fn(*const RawInstruction) -> usize,
}

// SAFETY: it is written once, before any CPU runs; what it points to is QEMU's or lives for ever.
unsafe impl Send for Interface {}
// SAFETY: as above.
unsafe impl Sync for Interface {}

static INTERFACE: OnceLock<Interface> = OnceLock::new();

/// The functions of the QEMU that loaded the lens.
/// Panics before `Interface::find`.
pub fn interface() -> &'static Interface {
    INTERFACE.get().expect("the functions are looked up before anything calls them")
}

/// The version of the interface that the lens asks for: what this QEMU has of those it knows.
pub fn wanted_version() -> c_int {
    let has_boards = function::<*mut c_void>(c"qemu_plugin_scoreboard_new").is_some();
    if has_boards { 2 } else { 1 }
}

impl Interface {
    /// Look up the functions of the QEMU that loaded the lens.
    /// The error says what it lacks.
    pub fn find(about: &About) -> Result<&'static Interface, String> {
        let adding = if wanted_version() == 1 {
            Adding::Single(
                required(c"qemu_plugin_register_vcpu_insn_exec_inline")?,
                required(c"qemu_plugin_register_vcpu_mem_inline")?,
            )
        } else {
            Adding::PerCpu(
                required(c"qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu")?,
                required(c"qemu_plugin_register_vcpu_mem_inline_per_vcpu")?,
                Board::new()?,
            )
        };
        let bytes = if about.version < COPIES_BYTES {
            Bytes::Shared(required(c"qemu_plugin_insn_data")?)
        } else {
            Bytes::Copied(required(c"qemu_plugin_insn_data")?)
        };
        let found = Interface {
            counters: Box::leak(Box::new([0_u64; FIELDS])),
            adding,
            bytes,
            cpus: about.most_cpus,
            on_translation: required(c"qemu_plugin_register_vcpu_tb_trans_cb")?,
            on_block: required(c"qemu_plugin_register_vcpu_tb_exec_cb")?,
            on_instruction: required(c"qemu_plugin_register_vcpu_insn_exec_cb")?,
            on_access: required(c"qemu_plugin_register_vcpu_mem_cb")?,
            is_store: required(c"qemu_plugin_mem_is_store")?,
            length: required(c"qemu_plugin_tb_n_insns")?,
            instruction: required(c"qemu_plugin_tb_get_insn")?,
            address: required(c"qemu_plugin_insn_vaddr")?,
            size: required(c"qemu_plugin_insn_size")?,
        };
        Ok(INTERFACE.get_or_init(|| found))
    }

    /// Have each block told to `translated` before it is carried out for the first time.
    pub fn on_translation(&self, id: Id, translated: Translated) {
        // SAFETY: QEMU passed the id, and the function lives as long as the library.
        unsafe { (self.on_translation)(id, translated) }
    }

    /// Whether an access is a store, by what QEMU tells a callback of it.
    pub fn is_store(&self, access: u32) -> bool {
        // SAFETY: it looks at a number.
        unsafe { (self.is_store)(access) }
    }

    /// What translated code adds to, whichever CPU carries it out; never while a callback runs.
    pub fn counters(&self) -> *mut [u64; FIELDS] {
        self.counters
    }

    fn counter(&self, field: usize) -> *mut u64 {
        self.counters.cast::<u64>().wrapping_add(field)
    }
}

/// A block while it is translated.
pub struct Block(*mut RawBlock);

impl Block {
    /// SAFETY: to be used only within the callback that QEMU passed it to.
    pub unsafe fn new(raw: *mut RawBlock) -> Block {
        Block(raw)
    }

    pub fn instructions(&self) -> impl Iterator<Item = Instruction> + '_ {
        // SAFETY: the block is valid while it is translated.
        let length = unsafe { (interface().length)(self.0) };
        // SAFETY: as above; the index is less than the length.
        (0..length).map(|index| Instruction(unsafe { (interface().instruction)(self.0, index) }))
    }

    /// Call `executed` each time before the block is carried out.
    pub fn on_execution(&self, executed: Executed, data: *mut c_void) {
        // SAFETY: the block is valid while it is translated; data lives for ever.
        unsafe { (interface().on_block)(self.0, executed, WITHOUT_REGISTERS, data) }
    }
}

/// An instruction of a block while that is translated.
#[derive(Clone, Copy)]
pub struct Instruction(*mut RawInstruction);

/// No instruction of x86 is longer.
pub const LONGEST_INSTRUCTION: usize = 15;

// SAFETY of all below: the instruction is valid while its block is translated, and data lives for ever.
impl Instruction {
    pub fn raw(&self) -> *const RawInstruction {
        self.0
    }

    pub fn address(&self) -> u64 {
        // SAFETY: see above.
        unsafe { (interface().address)(self.0) }
    }

    /// Its bytes.
    pub fn bytes(&self) -> Vec<u8> {
        // SAFETY: see above.
        let size = unsafe { (interface().size)(self.0) }.min(LONGEST_INSTRUCTION);
        match interface().bytes {
            // SAFETY: QEMU shares as many bytes as the instruction has.
            Bytes::Shared(data) => unsafe { std::slice::from_raw_parts(data(self.0), size) }.to_vec(),
            Bytes::Copied(copy) => {
                let mut bytes = vec![0; size];
                // SAFETY: there is room for so many.
                let copied = unsafe { copy(self.0, bytes.as_mut_ptr(), size) };
                bytes.truncate(copied);
                bytes
            }
        }
    }

    /// Add to a counter each time that it is begun.
    pub fn count(&self, field: usize, amount: u64) {
        let counter = interface().counter(field);
        match interface().adding {
            // SAFETY: see above; the counter is the lens's.
            Adding::Single(add, _) => unsafe { add(self.0, ADD, counter, amount) },
            // SAFETY: as above.
            Adding::PerCpu(add, _, board) => unsafe { add(self.0, ADD, board.entry(counter), amount) },
        }
    }

    /// Add to a counter each time that it has loaded from memory or stored to it.
    pub fn count_access(&self, field: usize, amount: u64) {
        let counter = interface().counter(field);
        match interface().adding {
            // SAFETY: see above; the counter is the lens's.
            Adding::Single(_, add) => unsafe { add(self.0, READ_OR_WRITE, ADD, counter, amount) },
            // SAFETY: as above.
            Adding::PerCpu(_, add, board) => unsafe { add(self.0, READ_OR_WRITE, ADD, board.entry(counter), amount) },
        }
    }

    /// Call `executed` each time before it is carried out.
    pub fn on_execution(&self, executed: Executed, data: *mut c_void) {
        // SAFETY: see above.
        unsafe { (interface().on_instruction)(self.0, executed, WITHOUT_REGISTERS, data) }
    }

    /// Call `accessed` each time that it has loaded from memory or stored to it.
    pub fn on_access(&self, accessed: Accessed, data: *mut c_void) {
        // SAFETY: see above.
        unsafe { (interface().on_access)(self.0, accessed, WITHOUT_REGISTERS, READ_OR_WRITE, data) }
    }
}
