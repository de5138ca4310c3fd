//! What a core remembers of the translation of addresses (TLB), for instructions and for data.
//!
//! The entries really have what they stand for, as those of a processor: so the emulator is asked only where they miss.

use crate::cache::{Entry, Lru};
use crate::machine::{Geometry, Machine};
use crate::symbols::is_kernel;

/// A page of virtual memory, and where it begins in physical memory. It was `checked` after so many invalidations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    number: u64,
    pub start: u64,
    pub checked: u64,
}

impl Entry for Page {
    const EMPTY: Page = Page { number: u64::MAX, start: 0, checked: 0 };

    fn key(&self) -> u64 {
        self.number
    }
}

/// The kernel maps all memory, and itself, by pages of 2 MiB. Source: Documentation/arch/x86/x86_64/mm.rst of Linux;
/// guests under the virtual clock are started with `nokaslr`.
const LARGE: [std::ops::Range<u64>; 2] =
    [0xffff_8880_0000_0000..0xffff_c880_0000_0000, 0xffff_ffff_8000_0000..0xffff_ffff_c000_0000];
const LARGE_MARK: u64 = 1 << 60;
const KERNEL_MARK: u64 = 1 << 61;

/// The number of the page of an address, and its size.
#[inline(always)]
pub fn page_of(address: u64) -> (u64, u64) {
    let is_large = is_kernel(address) && LARGE.iter().any(|range| range.contains(&address));
    let (bits, mark) = if is_large { (21, LARGE_MARK) } else { (12, 0) };
    let space = if is_kernel(address) { KERNEL_MARK } else { 0 };
    ((address << 16 >> 16 >> bits) | mark | space, 1 << bits)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Instructions,
    Data,
}

/// What an instruction makes a core forget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// What is not the kernel's: another task's memory is used from now on.
    User,
    All,
    /// One page. It is not known which, so all are checked when they are used.
    Page,
}

impl Flush {
    /// What the instruction with these bytes does. Source: Intel's manual, volume 2.
    pub fn of(bytes: &[u8]) -> Option<Flush> {
        let (has_size, bytes) = match bytes {
            [0x66, rest @ ..] => (true, rest),
            _ => (false, bytes),
        };
        const REX_R: u8 = 4;
        let (register_bit, bytes) = match bytes {
            [rex @ 0x40..=0x4f, rest @ ..] => (rex & REX_R, rest),
            _ => (0, bytes),
        };
        match *bytes {
            [0x0f, 0x22, operands, ..] if register_bit == 0 => match operands >> 3 & 7 {
                3 => Some(Flush::User),
                0 | 4 => Some(Flush::All),
                _ => None,
            },
            [0x0f, 0x01, operands, ..] if operands >> 3 & 7 == 7 && operands >> 6 != 3 => Some(Flush::Page),
            [0x0f, 0x38, 0x82, ..] if has_size => Some(Flush::All),
            _ => None,
        }
    }
}

/// Which level knew a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    First,
    Second,
    /// None: the tables of pages were walked.
    Walked,
}

pub struct Translations {
    first: [Lru<Page>; 2],
    second: Vec<Lru<Page>>,
    /// Which of the second level each side has.
    second_of: [Option<usize>; 2],
    invalidations: u64,
}

impl Translations {
    pub fn new(machine: &Machine) -> Translations {
        let made = |geometry: Geometry| Lru::new(geometry.sets, geometry.ways);
        let (mut second, mut second_of) = (Vec::new(), [None, None]);
        if let Some(shared) = machine.l2_tlb {
            second.push(made(shared));
            second_of = [Some(0), Some(0)];
        } else {
            for (side, own) in [machine.l2_itlb, machine.l2_dtlb].into_iter().enumerate() {
                second_of[side] = own.map(|_| second.len());
                second.extend(own.map(made));
            }
        }
        Translations { first: [made(machine.itlb), made(machine.dtlb)], second, second_of, invalidations: 0 }
    }

    /// The physical address of `address`, and which level knew it; `ask` tells it if none does. `None` if nobody does.
    #[inline(always)]
    pub fn find(&mut self, side: Side, address: u64, ask: impl FnOnce() -> Option<u64>) -> Option<(u64, Known)> {
        let (number, size) = page_of(address);
        let offset = address & (size - 1);
        if let Some(page) = self.first[side as usize].used(number) {
            if page.checked == self.invalidations {
                return Some((page.start.wrapping_add(offset), Known::First));
            }
        }
        let asked = ask()?;
        let known = self.learn(side, number, asked.wrapping_sub(offset));
        Some((asked, known))
    }

    /// Use a page that is not in the first level, or not checked there. It begins at `start`.
    #[inline(never)]
    fn learn(&mut self, side: Side, number: u64, start: u64) -> Known {
        let fresh = Page { number, start, checked: self.invalidations };
        let first = &mut self.first[side as usize];
        if let Some(page) = first.used(number) {
            let is_same = page.start == start;
            *page = fresh;
            return if is_same { Known::First } else { Known::Walked };
        }
        first.put(fresh);
        let Some(second) = self.second_of[side as usize] else { return Known::Walked };
        match self.second[second].used(number) {
            Some(page) => {
                let is_same = page.start == start;
                *page = fresh;
                if is_same {
                    Known::Second
                } else {
                    Known::Walked
                }
            }
            None => {
                self.second[second].put(fresh);
                Known::Walked
            }
        }
    }

    pub fn flush(&mut self, flush: Flush) {
        if flush == Flush::Page {
            self.invalidations += 1;
            return;
        }
        let keeps_kernel = flush == Flush::User;
        for pages in self.first.iter_mut().chain(&mut self.second) {
            pages.keep(|page| keeps_kernel && page.number & KERNEL_MARK != 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::tests::small;

    const KERNEL: u64 = 0xffff_c900_0000_0000;

    fn level(translations: &mut Translations, address: u64) -> Known {
        translations.find(Side::Data, address, || Some(address & 0xfff_ffff)).unwrap().1
    }

    #[test]
    fn the_steps_are_where_the_numbers_of_entries_say() {
        let known = |pages: u64| {
            let mut translations = Translations::new(&small());
            let rounds = (0..3).flat_map(|_| (0..pages).map(|page| page << 12));
            let levels: Vec<Known> = rounds.map(|address| level(&mut translations, address)).collect();
            levels[levels.len() - 1]
        };
        assert_eq!([4, 5, 16, 17].map(known), [Known::First, Known::Second, Known::Second, Known::Walked]);
    }

    #[test]
    fn the_emulator_is_asked_only_where_the_first_level_does_not_know() {
        let mut translations = Translations::new(&small());
        assert_eq!(translations.find(Side::Data, 0x1234, || None), None);
        assert_eq!(translations.find(Side::Data, 0x1234, || Some(0x7234)), Some((0x7234, Known::Walked)));
        assert_eq!(translations.find(Side::Data, 0x1fff, || panic!()), Some((0x7fff, Known::First)));
        // The second level is one for both sides.
        assert_eq!(translations.find(Side::Instructions, 0x1000, || Some(0x7000)), Some((0x7000, Known::Second)));
    }

    #[test]
    fn another_task_has_other_pages_and_the_same_kernel() {
        let mut translations = Translations::new(&small());
        let mut known = |address: u64| level(&mut translations, address);
        assert_eq!([known(0), known(KERNEL)], [Known::Walked; 2]);
        translations.flush(Flush::User);
        let mut known = |address: u64| level(&mut translations, address);
        assert_eq!([known(0), known(KERNEL)], [Known::Walked, Known::First]);
        translations.flush(Flush::All);
        assert_eq!(level(&mut translations, KERNEL), Known::Walked);
    }

    #[test]
    fn of_one_page_only_what_changed_is_walked_again() {
        let mut translations = Translations::new(&small());
        for address in [0x1000, 0x2000] {
            translations.find(Side::Data, address, || Some(address));
        }
        translations.flush(Flush::Page);
        assert_eq!(translations.find(Side::Data, 0x1000, || Some(0x1000)), Some((0x1000, Known::First)));
        assert_eq!(translations.find(Side::Data, 0x2000, || Some(0x9000)), Some((0x9000, Known::Walked)));
        assert_eq!(translations.find(Side::Data, 0x2008, || panic!()), Some((0x9008, Known::First)));
    }

    #[test]
    fn the_kernel_has_large_pages() {
        assert_eq!(page_of(0xffff_8880_0012_3456).1, 1 << 21);
        assert_eq!(page_of(0xffff_ffff_8100_0000).0, page_of(0xffff_ffff_811f_ffff).0);
        assert_ne!(page_of(0xffff_ffff_8100_0000).0, page_of(0xffff_ffff_8120_0000).0);
        assert_eq!(page_of(KERNEL).1, 1 << 12);
        assert_ne!(page_of(KERNEL).0, page_of(KERNEL & 0xffff_ffff_ffff >> 1).0);
    }

    #[test]
    fn instructions_that_forget_are_known() {
        assert_eq!(Flush::of(&[0x0f, 0x22, 0xd8]), Some(Flush::User)); // mov %rax,%cr3
        assert_eq!(Flush::of(&[0x0f, 0x22, 0xe0]), Some(Flush::All)); // mov %rax,%cr4
        assert_eq!(Flush::of(&[0x44, 0x0f, 0x22, 0xc0]), None); // mov %rax,%cr8
        assert_eq!(Flush::of(&[0x0f, 0x01, 0x38]), Some(Flush::Page)); // invlpg (%rax)
        assert_eq!(Flush::of(&[0x0f, 0x01, 0xf8]), None); // swapgs
        assert_eq!(Flush::of(&[0x66, 0x0f, 0x38, 0x82, 0x08]), Some(Flush::All)); // invpcid (%rax),%rcx
        assert_eq!(Flush::of(&[0x48, 0x89, 0xc3]), None);
    }
}
