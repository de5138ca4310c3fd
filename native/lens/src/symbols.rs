//! The kernel's symbols: where its functions begin, and which of them are entered by hardware.

use std::fs;
use std::path::Path;

use crate::tree::Kind;

/// Where the addresses of the kernel begin.
pub const KERNEL_SPACE: u64 = 1 << 63;

pub fn is_kernel(address: u64) -> bool {
    address >= KERNEL_SPACE
}

/// Modules are above the kernel's image: Documentation/arch/x86/x86_64/mm.rst, of a kernel whose place is random.
const MODULE_SPACE: u64 = 0xffff_ffff_c000_0000;

/// Whether it is the kernel's own image: no program, and no module.
pub fn is_image(address: u64) -> bool {
    (KERNEL_SPACE..MODULE_SPACE).contains(&address)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// Entered by hardware at its first instruction.
    Entry(Kind),
    /// Many short pieces, each entered by an interrupt.
    Stubs,
    /// Code between a call or return and its target: it belongs to whoever calls.
    Thunk,
    /// It switches from one task to another.
    Switch,
    /// It prepares the stack of a new task.
    Copy,
    /// It sets the first address of a new program.
    Exec,
    /// What an idle CPU does.
    Idle,
}

/// A fault, and whether its instruction is begun again without the emulator having counted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vector {
    /// Code that is not there ends no instruction, data that is not there does.
    Page,
    Division,
    /// Counted by QEMU, or not: it depends on the instruction.
    Protection,
}

#[derive(Debug)]
struct Symbol {
    address: u64,
    /// The start of the function that it is part of.
    function: u64,
    special: Option<Special>,
    vector: Option<Vector>,
}

/// Sorted by address.
#[derive(Debug, Default)]
pub struct Symbols(Vec<Symbol>);

/// A function as the code at an address belongs to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    pub function: u64,
    pub special: Option<Special>,
    /// Of a fault's entry, at its first instruction only.
    pub vector: Option<Vector>,
    /// Whether it is the first instruction.
    pub is_start: bool,
}

impl Symbols {
    /// Read lines of a hexadecimal address and a name.
    /// The error says what is wrong with the file.
    pub fn read(file: &Path) -> Result<Symbols, String> {
        let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        Symbols::parse(&text).map_err(|reason| format!("{}: {reason}", file.display()))
    }

    pub fn parse(text: &str) -> Result<Symbols, String> {
        let mut named: Vec<(u64, &str)> = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let symbol = line.split_once(' ').and_then(|(address, name)| {
                let address = u64::from_str_radix(address, 16).ok()?;
                (is_kernel(address) && !name.is_empty()).then_some((address, name))
            });
            named.push(symbol.ok_or_else(|| format!("line {} is no address of a kernel and a name", number + 1))?);
        }
        named.sort();
        for needed in ["__switch_to_asm", "copy_thread", "start_thread"] {
            if !named.iter().any(|(_, name)| *name == needed) {
                return Err(format!("the kernel has no symbol {needed}"));
            }
        }
        let mut by_name = named.clone();
        by_name.sort_by_key(|(_, name)| *name);
        let start_of = |name: &str| {
            let place = by_name.binary_search_by_key(&name, |(_, known)| known).ok()?;
            Some(by_name[place].0)
        };
        let mut symbols: Vec<Symbol> = Vec::with_capacity(named.len());
        for (address, name) in named {
            // What a compiler thought unlikely is put elsewhere, and is part of its function all the same.
            let whole = name.split_once(".cold").and_then(|(function, _)| start_of(function));
            let (special, vector) = (special(name), vector(name));
            match symbols.last_mut() {
                Some(last) if last.address == address => {
                    last.special = last.special.or(special);
                    last.vector = last.vector.or(vector);
                }
                _ => symbols.push(Symbol { address, function: whole.unwrap_or(address), special, vector }),
            }
        }
        Ok(Symbols(symbols))
    }

    /// What the code at `address` belongs to.
    pub fn place(&self, address: u64) -> Place {
        let after = self.0.partition_point(|symbol| symbol.address <= address);
        match self.0[..after].last() {
            Some(symbol) => {
                let is_start = symbol.address == address;
                let vector = if is_start { symbol.vector } else { None };
                Place { function: symbol.function, special: symbol.special, vector, is_start }
            }
            None => Place::default(),
        }
    }
}

fn special(name: &str) -> Option<Special> {
    let begins = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
    match name {
        "__switch_to_asm" => Some(Special::Switch),
        "copy_thread" => Some(Special::Copy),
        "start_thread" => Some(Special::Exec),
        "do_idle" | "arch_cpu_idle" | "cpu_idle_poll" => Some(Special::Idle),
        "irq_entries_start" | "spurious_entries_start" => Some(Special::Stubs),
        _ if begins(&["asm_sysvec_"]) => Some(Special::Entry(Kind::Interrupt)),
        _ if begins(&["asm_exc_"]) => Some(Special::Entry(Kind::Exception)),
        _ if begins(&["entry_SYSCALL_", "entry_SYSENTER_", "entry_INT80_", "asm_int80_emulation"]) => {
            let is_inside = name.contains("_after_") || name.contains("safe_stack") || name.contains("__entry");
            (!is_inside).then_some(Special::Entry(Kind::Syscall))
        }
        _ if begins(&[
            "__x86_indirect_",
            "__x86_return_",
            "retbleed_",
            "srso_",
            "its_return_",
            "entry_untrain_ret",
        ]) =>
        {
            Some(Special::Thunk)
        }
        _ => None,
    }
}

fn vector(name: &str) -> Option<Vector> {
    match name.strip_prefix("asm_exc_")? {
        "page_fault" => Some(Vector::Page),
        "divide_error" => Some(Vector::Division),
        "general_protection"
        | "stack_segment"
        | "segment_not_present"
        | "invalid_tss"
        | "alignment_check"
        | "coprocessor_error"
        | "simd_coprocessor_error" => Some(Vector::Protection),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: &str = "ffffffff81000000 _text\nffffffff81000100 __switch_to_asm\nffffffff81000200 copy_thread\n\
        ffffffff81000300 start_thread\nffffffff81000400 do_idle\nffffffff81000500 do_idle.cold\n\
        ffffffff81000600 asm_exc_page_fault\nffffffff81000700 entry_SYSCALL_64\n\
        ffffffff81000710 entry_SYSCALL_64_after_hwframe\nffffffff81000720 schedule\n";

    #[test]
    fn code_belongs_to_the_function_before_it() {
        let symbols = Symbols::parse(KERNEL).unwrap();
        let place = symbols.place(0xffff_ffff_8100_0723);
        assert_eq!((place.function, place.special, place.is_start), (0xffff_ffff_8100_0720, None, false));
        assert_eq!(symbols.place(0xffff_ffff_8000_0000), Place::default());
    }

    #[test]
    fn the_unlikely_part_of_a_function_is_the_function() {
        let symbols = Symbols::parse(KERNEL).unwrap();
        assert_eq!(symbols.place(0xffff_ffff_8100_0512).function, 0xffff_ffff_8100_0400);
    }

    #[test]
    fn what_hardware_enters_is_known() {
        let symbols = Symbols::parse(KERNEL).unwrap();
        let fault = symbols.place(0xffff_ffff_8100_0600);
        assert_eq!((fault.special, fault.vector), (Some(Special::Entry(Kind::Exception)), Some(Vector::Page)));
        assert_eq!(symbols.place(0xffff_ffff_8100_0601).vector, None);
        assert_eq!(symbols.place(0xffff_ffff_8100_0700).special, Some(Special::Entry(Kind::Syscall)));
        assert_eq!(symbols.place(0xffff_ffff_8100_0710).special, None);
    }

    #[test]
    fn a_table_that_cannot_be_used_is_refused() {
        assert_eq!(Symbols::parse("").unwrap_err(), "the kernel has no symbol __switch_to_asm");
        assert!(Symbols::parse("nonsense").unwrap_err().starts_with("line 1 "));
        assert!(Symbols::parse("1000 user").unwrap_err().starts_with("line 1 "));
    }
}
