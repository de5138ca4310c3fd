//! What a core remembers of the translation of addresses (TLB), for instructions and for data.
//!
//! The entries really have what they stand for, as those of a processor: so the emulator is asked only where they miss.

use crate::cache::{Entry, Lru};
use crate::machine::{Geometry, Machine};
use crate::symbols::is_kernel;
use crate::tables::Reached;

/// A page of virtual memory, and where it begins in physical memory. It was `checked` after so many invalidations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    number: u64,
    start: u64,
    checked: u64,
}

impl Page {
    #[inline(always)]
    fn place_of(&self, address: u64, size: usize) -> u64 {
        self.start.wrapping_add(address & offset_bits(size))
    }
}

impl Entry for Page {
    const EMPTY: Page = Page { number: u64::MAX, start: 0, checked: 0 };

    fn key(&self) -> u64 {
        self.number
    }
}

const KERNEL_MARK: u64 = 1 << 58;
const SIZE_MARK: u32 = 59;

/// The bits of pages of 4 KiB, 2 MiB and 1 GiB.
const SIZES: [u32; 3] = [12, 21, 30];

/// The number of the page of so many bits that has an address.
#[inline(always)]
fn number_of(address: u64, size: usize) -> u64 {
    let space = if is_kernel(address) { KERNEL_MARK } else { 0 };
    (address << 7 >> 7 >> SIZES[size]) | (size as u64) << SIZE_MARK | space
}

#[inline(always)]
fn offset_bits(size: usize) -> u64 {
    (1 << SIZES[size]) - 1
}

#[inline(always)]
fn region_of(address: u64) -> usize {
    (address >> REGION_BITS) as usize % REGIONS
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

/// The first level of one side: large pages may be apart.
struct First {
    pages: Lru<Page>,
    large: Option<Lru<Page>>,
}

impl First {
    #[inline(always)]
    fn of(&mut self, size: usize) -> &mut Lru<Page> {
        match &mut self.large {
            Some(large) if size > 0 => large,
            _ => &mut self.pages,
        }
    }
}

pub struct Translations {
    first: [First; 2],
    second: Vec<Lru<Page>>,
    /// Which of the second level each side has.
    second_of: [Option<usize>; 2],
    invalidations: u64,
    /// Of which size the pages of a region are, as far as it was seen last: what is looked for first.
    likely: [u8; REGIONS],
    searches: u64,
}

const REGIONS: usize = 1024;
const REGION_BITS: u32 = 21;

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
        let first = [(machine.itlb, machine.large_itlb), (machine.dtlb, machine.large_dtlb)]
            .map(|(pages, large)| First { pages: made(pages), large: large.map(made) });
        Translations { first, second, second_of, invalidations: 0, likely: [0; REGIONS], searches: 0 }
    }

    /// Where `address` is in memory, and which level knew it; `ask` walks the tables of pages if none does. `None` if it is
    /// no memory.
    #[inline(always)]
    pub fn find(&mut self, side: Side, address: u64, ask: impl FnOnce() -> Option<Reached>) -> Option<(u64, Known)> {
        let likely = self.likely[region_of(address)] as usize;
        if let Some(page) = self.first[side as usize].of(likely).used(number_of(address, likely)) {
            if page.checked == self.invalidations {
                return Some((page.place_of(address, likely), Known::First));
            }
        }
        self.look_further(side, address, likely, ask)
    }

    /// How often a page was looked for elsewhere than where the last one of its region was.
    pub fn searches(&self) -> u64 {
        self.searches
    }

    /// Of which size the page of data is that was found last at `address`.
    pub fn size_at(&self, address: u64) -> usize {
        self.likely[region_of(address)] as usize
    }

    /// Data of that page were accessed again, which the first level may still have.
    pub fn touch(&mut self, address: u64, size: usize) {
        self.first[Side::Data as usize].of(size).used(number_of(address, size));
    }

    #[inline(never)]
    fn look_further(
        &mut self,
        side: Side,
        address: u64,
        likely: usize,
        ask: impl FnOnce() -> Option<Reached>,
    ) -> Option<(u64, Known)> {
        self.searches += 1;
        let checked = self.invalidations;
        let mut is_doubtful = self.first[side as usize].of(likely).seen(number_of(address, likely)).is_some();
        for size in (0..SIZES.len()).filter(|size| *size != likely) {
            if let Some(page) = self.first[side as usize].of(size).used(number_of(address, size)) {
                if page.checked == checked {
                    let place = page.place_of(address, size);
                    self.likely[region_of(address)] = size as u8;
                    return Some((place, Known::First));
                }
                is_doubtful = true;
            }
        }
        if let Some(second) = self.second_of[side as usize].filter(|_| !is_doubtful) {
            for size in 0..SIZES.len() {
                let (second, number) = (&mut self.second[second], number_of(address, size));
                if second.seen(number).is_some_and(|page| page.checked == checked) {
                    let page = *second.used(number)?;
                    self.put_first(side, size, address, page);
                    return Some((page.place_of(address, size), Known::Second));
                }
            }
        }
        let reached = ask()?;
        Some((reached.place, self.learn(side, address, reached)))
    }

    fn put_first(&mut self, side: Side, size: usize, address: u64, page: Page) {
        self.likely[region_of(address)] = size as u8;
        let first = self.first[side as usize].of(size);
        match first.used(page.number) {
            Some(old) => *old = page,
            None => {
                first.put(page);
            }
        }
    }

    /// Use a page that no level has, or that was not checked there.
    fn learn(&mut self, side: Side, address: u64, reached: Reached) -> Known {
        let size = SIZES.iter().position(|bits| *bits == reached.bits).unwrap_or(0);
        let start = reached.place.wrapping_sub(address & offset_bits(size));
        let page = Page { number: number_of(address, size), start, checked: self.invalidations };
        let is_same = |old: Option<&mut Page>| old.is_some_and(|old| old.start == start);
        let is_in_first = is_same(self.first[side as usize].of(size).seen(page.number));
        self.put_first(side, size, address, page);
        if is_in_first {
            return Known::First;
        }
        // It was split since, or is part of a larger page now.
        for other in (0..SIZES.len()).filter(|other| *other != size) {
            self.first[side as usize].of(other).remove(number_of(address, other));
            if let Some(second) = self.second_of[side as usize] {
                self.second[second].remove(number_of(address, other));
            }
        }
        let Some(second) = self.second_of[side as usize] else { return Known::Walked };
        let second = &mut self.second[second];
        match second.used(page.number) {
            Some(old) => {
                let is_known = old.start == start;
                *old = page;
                if is_known { Known::Second } else { Known::Walked }
            }
            None => {
                second.put(page);
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
        let first = self.first.iter_mut().flat_map(|first| std::iter::once(&mut first.pages).chain(&mut first.large));
        for pages in first.chain(&mut self.second) {
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
        translations.find(Side::Data, address, || small_page(address & 0xfff_ffff)).unwrap().1
    }

    fn small_page(place: u64) -> Option<Reached> {
        Some(Reached::small(place))
    }

    fn page_of(place: u64, bits: u32) -> Option<Reached> {
        Some(Reached { place, bits })
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
        assert_eq!(translations.find(Side::Data, 0x1234, || small_page(0x7234)), Some((0x7234, Known::Walked)));
        assert_eq!(translations.find(Side::Data, 0x1fff, || panic!()), Some((0x7fff, Known::First)));
        // The second level is one for both sides.
        assert_eq!(translations.find(Side::Instructions, 0x1000, || panic!()), Some((0x7000, Known::Second)));
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
            translations.find(Side::Data, address, || small_page(address));
        }
        translations.flush(Flush::Page);
        assert_eq!(translations.find(Side::Data, 0x1000, || small_page(0x1000)), Some((0x1000, Known::First)));
        assert_eq!(translations.find(Side::Data, 0x2000, || small_page(0x9000)), Some((0x9000, Known::Walked)));
        assert_eq!(translations.find(Side::Data, 0x2008, || panic!()), Some((0x9008, Known::First)));
    }

    #[test]
    fn a_large_page_is_known_wherever_it_is_used() {
        for bits in [21, 30] {
            let mut translations = Translations::new(&small());
            let (size, start) = (1 << bits, 7 << 30);
            let walked = translations.find(Side::Data, size + 0x1234, || page_of(start + 0x1234, bits));
            assert_eq!(walked, Some((start + 0x1234, Known::Walked)));
            for offset in [0, 0x5678, size - 8] {
                let found = translations.find(Side::Data, size + offset, || panic!());
                assert_eq!(found, Some((start + offset, Known::First)));
            }
            assert_eq!(translations.find(Side::Data, 2 * size, || None), None);
        }
    }

    #[test]
    fn pages_of_all_sizes_are_in_one_region_at_once() {
        let mut translations = Translations::new(&small());
        let pages = [(KERNEL, 12), (0x20_0000, 21), (0x1000, 12), (1 << 41, 30)];
        for (address, bits) in pages {
            translations.find(Side::Data, address, || page_of(address & 0xffff_ffff, bits));
        }
        for (address, _) in pages {
            assert_eq!(translations.find(Side::Data, address, || panic!()).unwrap().1, Known::First);
        }
    }

    #[test]
    fn large_pages_may_be_apart() {
        let large_dtlb = Some(Geometry { sets: 1, ways: 2 });
        let known = |machine: Machine| {
            let mut translations = Translations::new(&machine);
            for page in 0..4 {
                translations.find(Side::Data, page << 12, || small_page(page << 12));
            }
            for page in 1..4 {
                translations.find(Side::Data, page << 21, || page_of(page << 21, 21));
            }
            [0, 1 << 21, 2 << 21].map(|address| translations.find(Side::Data, address, || panic!()).unwrap().1)
        };
        assert_eq!(known(small()), [Known::Second, Known::First, Known::First]);
        assert_eq!(known(Machine { large_dtlb, ..small() }), [Known::First, Known::Second, Known::Second]);
    }

    #[test]
    fn a_page_that_is_split_or_becomes_part_of_a_larger_one_is_walked_to_again() {
        let mut translations = Translations::new(&small());
        let start = 5 << 21;
        for (bits, known) in [(21, Known::Walked), (12, Known::Walked), (21, Known::Walked), (21, Known::First)] {
            translations.flush(Flush::Page);
            let found = translations.find(Side::Data, start + 0x3008, || page_of(0x3008, bits));
            assert_eq!(found, Some((0x3008, known)), "{bits}");
            let next = translations.find(Side::Data, start + 0x4000, || page_of(0x4000, bits));
            assert_eq!(next, Some((0x4000, if bits == 12 { Known::Walked } else { Known::First })), "{bits}");
        }
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
