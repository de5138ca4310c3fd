//! A modelled machine: what its caches, translations and branch predictor would make of what a guest carries out.
//!
//! It begins empty with the agent's first word in a trial, and sees everything from then on.

use crate::hierarchy::{Access, Found, Hierarchy};
use crate::machine::{Machine, NEAREST, Times};
use crate::misses::{BySpace, Misses};
use crate::predictor::Predictor;
use crate::symbols::is_kernel;
use crate::tables::Reached;
use crate::translations::{Flush, Known, Side, Translations};

/// A conditional jump at the end of a block: where it is, and where it may lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Branch {
    pub address: u64,
    pub next: u64,
    pub target: u64,
}

/// Code of one line, which is fetched when an instruction of it is the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fetch {
    pub address: u64,
    pub physical: u64,
    /// Whether the instruction goes on in the next line.
    pub goes_on: bool,
    pub begins_block: bool,
    /// At the end of the block that it begins.
    pub branch: Option<Branch>,
    pub in_kernel: bool,
}

/// A CPU: a thread of a core, whose caches it shares. The rest it has to itself.
struct Cpu {
    node: usize,
    /// In the hierarchy.
    core: usize,
    translations: Translations,
    predictor: Option<Predictor>,
    /// The jump at the end of the block that was begun last.
    ahead: Option<Branch>,
    /// The line and the address's page that were fetched last.
    fetched: (u64, u64),
    modelled: BySpace,
    /// How many misses there were.
    news: u64,
    told: Told,
    charged: Told,
}

/// What of a CPU's misses was asked for.
#[derive(Default)]
struct Told {
    news: u64,
    misses: Misses,
}

/// What misses cost a CPU. Of its lines, one may have been taken by another (`is_shared`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    pub fs: u64,
    pub is_shared: bool,
}

/// A line that was accessed lately: of an address, and of memory. `is_own` if a store needs nobody's leave.
#[derive(Clone, Copy)]
struct Near {
    line_of_address: u64,
    line: u64,
    address: u64,
    page_size: usize,
    is_own: bool,
}

/// The two lines that a CPU's data were in last, the later one first: most accesses are to one of them, and all that
/// changes by one is which is the later. `is_swapped` if only this knows that, and caches and translations not yet.
struct Nearest {
    cpu: usize,
    lines: [Near; 2],
    is_swapped: bool,
}

const NOWHERE: Near = Near { line_of_address: u64::MAX, line: u64::MAX, address: 0, page_size: 0, is_own: false };

impl Nearest {
    const NONE: Nearest = Nearest { cpu: usize::MAX, lines: [NOWHERE; 2], is_swapped: false };

    /// Whether an access to this line by a CPU changes nothing else.
    #[inline(always)]
    fn has(&mut self, cpu: usize, line_of_address: u64, is_store: bool) -> bool {
        let is_it = |near: &Near| near.line_of_address == line_of_address && (near.is_own || !is_store);
        if self.cpu != cpu {
            return false;
        }
        if is_it(&self.lines[0]) {
            return true;
        }
        if !is_it(&self.lines[1]) {
            return false;
        }
        self.lines.swap(0, 1);
        self.is_swapped = true;
        true
    }
}

pub struct Model {
    machine: Machine,
    /// Where each node's memory ends.
    ends: Vec<u64>,
    line_bits: u32,
    hierarchy: Hierarchy,
    cpus: Vec<Cpu>,
    nearest: Nearest,
    is_on: bool,
}

const NOTHING_FETCHED: (u64, u64) = (u64::MAX, u64::MAX);

impl Model {
    pub fn new(machine: Machine) -> Model {
        let (line_bits, hierarchy) = (machine.line_bytes.trailing_zeros(), Hierarchy::new(&machine));
        let (ends, cpus, nearest) = (machine.ends(), Vec::new(), Nearest::NONE);
        Model { ends, machine, line_bits, hierarchy, cpus, nearest, is_on: false }
    }

    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// From now on it looks at what happens.
    pub fn begin(&mut self) {
        self.is_on = true;
    }

    /// What it says of time, if it is asked for that.
    pub fn times(&self) -> Option<Times> {
        self.machine.times
    }

    pub fn end(&mut self) {
        self.is_on = false;
    }

    pub fn is_on(&self) -> bool {
        self.is_on
    }

    #[inline(never)]
    fn make_room_for(&mut self, cpu: usize) {
        for number in self.cpus.len()..=cpu {
            if let Some(place) = self.machine.place_of_core(number) {
                self.hierarchy.add(place);
            }
            self.cpus.push(Cpu::new(&self.machine, number));
        }
    }

    #[inline(always)]
    fn cpu(&mut self, cpu: usize) -> &mut Cpu {
        if cpu >= self.cpus.len() {
            self.make_room_for(cpu);
        }
        &mut self.cpus[cpu]
    }

    /// What a CPU did so far.
    pub fn modelled(&mut self, cpu: usize) -> BySpace {
        self.cpu(cpu).modelled
    }

    /// What a CPU missed since that was asked for the last time.
    pub fn missed(&mut self, cpu: usize) -> Option<Misses> {
        let cpu = self.cpu(cpu);
        cpu.told.more(cpu.news, &cpu.modelled)
    }

    /// What its misses cost a CPU since that was asked for the last time, where the machine says what takes how long.
    #[inline(always)]
    pub fn stalled(&mut self, cpu: usize) -> Option<Stall> {
        let times = self.machine.times?;
        let cpu = &mut self.cpus[cpu];
        let missed = cpu.charged.more(cpu.news, &cpu.modelled)?;
        Some(Stall { fs: times.of(&missed), is_shared: missed.lost > 0 })
    }

    /// Have caches and translations know which line was accessed last.
    #[inline(always)]
    fn settle(&mut self) {
        if std::mem::take(&mut self.nearest.is_swapped) {
            let (last, cpu) = (self.nearest.lines[0], &mut self.cpus[self.nearest.cpu]);
            cpu.translations.touch(last.address, last.page_size);
            self.hierarchy.touch(cpu.core, last.line);
        }
    }

    /// ... before it may change where they are.
    fn forget(&mut self) {
        self.settle();
        self.nearest = Nearest::NONE;
    }

    pub fn flush(&mut self, cpu: usize, flush: Flush) {
        self.forget();
        let cpu = self.cpu(cpu);
        cpu.translations.flush(flush);
        cpu.fetched = NOTHING_FETCHED;
    }

    /// Instructions are fetched; `ask` walks to the page that they are on.
    pub fn fetch(&mut self, number: usize, fetch: &Fetch, ask: impl Fn() -> Reached) {
        let line = fetch.physical >> self.line_bits;
        let space = usize::from(fetch.in_kernel);
        let cpu = self.cpu(number);
        if fetch.begins_block {
            cpu.branch(fetch);
        }
        let fetched = (line, fetch.address >> 12);
        if cpu.fetched == fetched && !fetch.goes_on {
            return;
        }
        cpu.fetched = fetched;
        cpu.translate(Side::Instructions, fetch.address, space, || Some(ask()));
        self.look_for(number, line, Access::Fetch, space);
        if fetch.goes_on {
            self.cpus[number].fetched = (line + 1, fetched.1);
            self.look_for(number, line + 1, Access::Fetch, space);
        }
    }

    /// `bytes` are loaded from or stored to `address`; `ask` walks to the page of one, unless that is none of memory.
    pub fn access(
        &mut self,
        number: usize,
        (address, bytes): (u64, u64),
        (is_store, in_kernel): (bool, bool),
        ask: impl Fn(u64) -> Option<Reached>,
    ) {
        let space = usize::from(in_kernel);
        let line_bits = self.line_bits;
        let cpu = self.cpu(number);
        let access = if is_store {
            cpu.modelled[space].stores += 1;
            Access::Store
        } else {
            cpu.modelled[space].loads += 1;
            Access::Load
        };
        let line_of_address = address >> line_bits;
        if address.wrapping_add(bytes - 1) >> line_bits != line_of_address {
            return self.access_two(number, (address, bytes), (access, space), ask);
        }
        if self.nearest.has(number, line_of_address, is_store) {
            return;
        }
        self.settle();
        let cpu = &mut self.cpus[number];
        let before = (cpu.news, cpu.translations.searches());
        let Some(physical) = cpu.translate(Side::Data, address, space, || ask(address)) else { return self.forget() };
        let (line, page_size) = (physical >> line_bits, cpu.translations.size_at(address));
        let is_own = self.look_for(number, line, access, space);
        // What was missed or searched for may have taken the place of others.
        let cpu = &self.cpus[number];
        let is_still_near = self.nearest.cpu == number && (cpu.news, cpu.translations.searches()) == before;
        let earlier = match self.nearest.lines {
            _ if !is_still_near => NOWHERE,
            [first, second] if first.line_of_address == line_of_address => second,
            [first, _] => first,
        };
        let lines = [Near { line_of_address, line, address, page_size, is_own }, earlier];
        self.nearest = Nearest { cpu: number, lines, is_swapped: false };
    }

    /// An access of two lines.
    #[inline(never)]
    fn access_two(
        &mut self,
        number: usize,
        (address, bytes): (u64, u64),
        (access, space): (Access, usize),
        ask: impl Fn(u64) -> Option<Reached>,
    ) {
        self.forget();
        let line_bits = self.line_bits;
        let begin = address.wrapping_add(bytes - 1) >> line_bits << line_bits;
        for address in [address, begin] {
            let Some(physical) = self.cpus[number].translate(Side::Data, address, space, || ask(address)) else {
                return;
            };
            self.look_for(number, physical >> line_bits, access, space);
        }
    }

    /// Returns whether the line is the core's own from now on.
    #[inline(always)]
    fn look_for(&mut self, number: usize, line: u64, access: Access, space: usize) -> bool {
        let found = self.hierarchy.access(self.cpus[number].core, line, access);
        if found != Found::First {
            self.missed_line(number, line, found, (access, space));
        }
        access == Access::Store
    }

    #[inline(never)]
    fn missed_line(&mut self, number: usize, line: u64, found: Found, (access, space): (Access, usize)) {
        let further = if found == Found::Memory { self.distance(self.cpus[number].node, line) - NEAREST } else { 0 };
        let was_lost = u64::from(self.hierarchy.was_lost());
        let cpu = &mut self.cpus[number];
        cpu.news += 1;
        let misses = &mut cpu.modelled[space].misses;
        if access == Access::Fetch {
            misses.l1i += 1;
        } else {
            misses.l1d += 1;
        }
        misses.l2 += u64::from(found != Found::Second);
        misses.llc += u64::from(found == Found::Memory);
        misses.remote += u64::from(further > 0);
        misses.distance += further;
        misses.lost += was_lost;
        if access == Access::Fetch {
            self.forget();
        }
    }

    /// From a node to the one that has a line. Code outside of memory is in none.
    fn distance(&self, node: usize, line: u64) -> u64 {
        let address = line << self.line_bits;
        let home = self.ends.iter().position(|end| address < *end);
        home.map_or(NEAREST, |home| self.machine.distances[node][home])
    }
}

impl Told {
    #[inline(always)]
    fn more(&mut self, news: u64, modelled: &BySpace) -> Option<Misses> {
        (self.news != news).then(|| {
            let sum = modelled[0].misses + modelled[1].misses;
            self.news = news;
            sum - std::mem::replace(&mut self.misses, sum)
        })
    }
}

impl Cpu {
    fn new(machine: &Machine, number: usize) -> Cpu {
        Cpu {
            node: machine.place(number).node,
            core: machine.core(number),
            translations: Translations::new(machine),
            predictor: machine.history_bits.map(Predictor::new),
            ahead: None,
            fetched: NOTHING_FETCHED,
            modelled: BySpace::default(),
            news: 0,
            told: Told::default(),
            charged: Told::default(),
        }
    }

    /// Where an address is in memory, by the TLBs of a side.
    #[inline(always)]
    fn translate(
        &mut self,
        side: Side,
        address: u64,
        space: usize,
        ask: impl FnOnce() -> Option<Reached>,
    ) -> Option<u64> {
        let mut skipped_levels = 0;
        let (place, known) = self.translations.find(side, address, || {
            let reached = ask()?;
            skipped_levels = reached.skipped_levels();
            Some(reached)
        })?;
        if known != Known::First {
            self.translated(known, skipped_levels, space);
        }
        Some(place)
    }

    #[inline(never)]
    fn translated(&mut self, known: Known, skipped_levels: u64, space: usize) {
        self.news += 1;
        let misses = &mut self.modelled[space].misses;
        misses.tlb += 1;
        if known == Known::Walked {
            misses.walks += 1;
            misses.skipped_levels += skipped_levels;
        }
    }

    /// A block begins: this is how the jump at the end of the last one went, unless something came between.
    fn branch(&mut self, fetch: &Fetch) {
        let before = std::mem::replace(&mut self.ahead, fetch.branch);
        let Some((branch, predictor)) = before.zip(self.predictor.as_mut()) else { return };
        let is_taken = fetch.address == branch.target;
        if (is_taken || fetch.address == branch.next) && !predictor.learn(branch.address, is_taken) {
            self.news += 1;
            let space = usize::from(is_kernel(branch.address));
            self.modelled[space].misses.branches += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Contents;
    use crate::machine::tests::{TIMES, of_two_nodes, small};
    use crate::misses::add_since;

    fn model() -> Model {
        Model::new(small())
    }

    fn in_place(address: u64) -> Option<Reached> {
        Some(Reached::small(address))
    }

    fn instructions(model: &mut Model, fetch: &Fetch) {
        model.fetch(0, fetch, || Reached::small(fetch.physical));
    }

    fn load(model: &mut Model, address: u64, bytes: u64) {
        model.access(0, (address, bytes), (false, false), in_place);
    }

    fn fetch(address: u64) -> Fetch {
        Fetch { address, physical: address, goes_on: false, begins_block: true, branch: None, in_kernel: false }
    }

    #[test]
    fn an_access_across_two_lines_needs_both() {
        let mut model = model();
        load(&mut model, 60, 8);
        let found = model.modelled(0)[0];
        assert_eq!((found.loads, found.misses.l1d, found.misses.llc, found.misses.walks), (1, 2, 2, 1));
        load(&mut model, 4094, 4);
        assert_eq!(model.modelled(0)[0].misses.walks, 2);
        load(&mut model, 64, 8);
        load(&mut model, 4095, 1);
        assert_eq!(model.modelled(0)[0].misses.l1d, 4);
    }

    #[test]
    fn pages_are_as_large_as_the_walk_says() {
        let walked = |bits: u32| {
            let mut model = model();
            for page in 0..512 {
                model.access(0, (page << 12, 8), (false, false), |place| Some(Reached { place, bits }));
            }
            let misses = model.modelled(0)[0].misses;
            (misses.tlb, misses.walks, misses.skipped_levels)
        };
        assert_eq!([12, 21, 30].map(walked), [(512, 512, 0), (1, 1, 1), (1, 1, 2)]);
    }

    #[test]
    fn what_is_no_memory_is_in_no_cache() {
        let mut model = model();
        model.access(0, (0xfee0_0000, 4), (true, true), |_| None);
        let found = model.modelled(0)[1];
        assert_eq!((found.stores, found.misses), (1, Misses::default()));
    }

    #[test]
    fn lines_are_those_of_physical_memory() {
        let mut model = model();
        for page in 0..4 {
            // One page at four addresses, as shared memory may be.
            model.access(0, (page << 12, 8), (page == 0, false), |address| in_place(address & 0xfff));
        }
        let misses = model.modelled(0)[0].misses;
        assert_eq!((misses.l1d, misses.tlb), (1, 4));
        // Code is in the same last level as data.
        instructions(&mut model, &Fetch { physical: 0, ..fetch(0x5000) });
        let misses = model.modelled(0)[0].misses;
        assert_eq!((misses.l1i, misses.llc), (1, 1));
    }

    #[test]
    fn a_line_that_is_fetched_again_at_once_is_there() {
        let mut model = model();
        for _ in 0..10 {
            instructions(&mut model, &Fetch { goes_on: true, ..fetch(0x103f) });
            instructions(&mut model, &fetch(0x1040));
        }
        let misses = model.modelled(0)[0].misses;
        assert_eq!((misses.l1i, misses.tlb), (2, 1));
    }

    #[test]
    fn lines_of_another_node_are_further_away() {
        let mut model = Model::new(of_two_nodes());
        for (core, address, remote, distance) in
            [(0, 0, 0, 0), (0, 1 << 18, 1, 21), (2, 1 << 19, 0, 0), (2, 64, 1, 11), (1, (1 << 20) - 8, 1, 21)]
        {
            model.access(core, (address, 8), (false, false), in_place);
            let misses = model.missed(core).unwrap();
            assert_eq!((misses.llc, misses.remote, misses.distance), (1, remote, distance), "{core} {address}");
        }
        // What a cache has is not fetched again.
        model.access(0, (1 << 18, 8), (false, false), in_place);
        assert_eq!(model.missed(0), None);
    }

    /// Two CPUs take turns to load 4 lines each, as many as L1 holds: what both miss.
    fn taking_turns(threads: usize) -> u64 {
        let mut model = Model::new(Machine { threads, ..small() });
        for _ in 0..100 {
            for cpu in 0..2 {
                (0..4)
                    .for_each(|line| model.access(cpu, ((cpu as u64) << 12 | line << 6, 8), (false, false), in_place));
            }
        }
        (0..2).map(|cpu| model.modelled(cpu)[0].misses.l1d).sum()
    }

    #[test]
    fn what_is_near_changes_nothing() {
        let mut state = 1_u64;
        let mut random = move |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        let inclusive = |machine: Machine| {
            let mut machine = machine;
            machine.llc.as_mut().unwrap().contents = Contents::Inclusive;
            machine
        };
        for machine in [small(), Machine { threads: 2, ..small() }, of_two_nodes(), inclusive(of_two_nodes())] {
            let (mut model, mut plain) = (Model::new(machine.clone()), Model::new(machine));
            let (mut cpu, mut places, mut moved) = (0, [0; 3], 0);
            for step in 0..100_000 {
                plain.forget();
                if random(50) == 0 {
                    cpu = random(3) as usize;
                }
                let place = &mut places[random(3) as usize];
                if random(5) == 0 {
                    *place = (random(3) << 21) + (random(6) << 12) + random(256) * 16;
                }
                let (address, bytes) = (*place + random(8), 1 << random(4));
                let how = (random(2) == 0, random(4) == 0);
                // Of three large pages one is split, and another one is in another place after a while.
                let walk = |address: u64| match address >> 21 {
                    0 => Some(Reached::small(address & 0xfffff)),
                    1 => Some(Reached { place: (address + moved) & 0xfffff, bits: 21 }),
                    _ if moved == 0 => Some(Reached { place: address & 0xfffff, bits: 21 }),
                    _ => Some(Reached::small((address ^ 0x3000) & 0xfffff)),
                };
                for model in [&mut model, &mut plain] {
                    model.access(cpu, (address, bytes), how, walk);
                }
                if random(20) == 0 {
                    let fetch = Fetch { goes_on: random(4) == 0, ..fetch((random(8) << 12) + random(64) * 64) };
                    for model in [&mut model, &mut plain] {
                        model.fetch(cpu, &fetch, || Reached::small(fetch.physical));
                    }
                }
                if random(1000) == 0 {
                    moved = random(2) << 16;
                    let flush = [Flush::User, Flush::All, Flush::Page][random(3) as usize];
                    for model in [&mut model, &mut plain] {
                        (0..3).for_each(|cpu| model.flush(cpu, flush));
                    }
                }
                assert_eq!(model.modelled(cpu), plain.modelled(cpu), "{step}");
            }
        }
    }

    #[test]
    fn threads_share_the_caches_of_their_core() {
        // Each has room for its own lines in a core of its own. In one core, each drives the other's out.
        assert_eq!(taking_turns(1), 2 * 4);
        assert_eq!(taking_turns(2), 2 * 4 * 100);
    }

    #[test]
    fn what_a_thread_fetched_its_sibling_finds() {
        let found = |threads| {
            let mut model = Model::new(Machine { threads, ..small() });
            [0, 1, 1].map(|cpu| {
                model.access(cpu, (64, 8), (true, false), in_place);
                model.missed(cpu).map_or((0, 0, 0), |missed| (missed.l1d, missed.lost, missed.walks))
            })
        };
        // Each has translations of its own, and a sibling's store takes no line away.
        assert_eq!(found(2), [(1, 0, 1), (0, 0, 1), (0, 0, 0)]);
        assert_eq!(found(1), [(1, 0, 1), (1, 0, 1), (0, 0, 0)]);
    }

    #[test]
    fn a_jump_is_judged_by_the_block_that_comes_next() {
        let mut model = model();
        let branch = Some(Branch { address: 0x1010, next: 0x1012, target: 0x1000 });
        for _ in 0..100 {
            instructions(&mut model, &Fetch { branch, ..fetch(0x1000) });
        }
        let learnt = model.modelled(0)[0].misses.branches;
        assert!((1..=6).contains(&learnt), "{learnt}");
        instructions(&mut model, &fetch(0x9000)); // An interrupt: nothing is known of the jump.
        assert_eq!(model.modelled(0)[0].misses.branches, learnt);
        instructions(&mut model, &Fetch { branch, ..fetch(0x1000) });
        instructions(&mut model, &fetch(0x1012));
        assert_eq!(model.modelled(0)[0].misses.branches, learnt + 1);
    }

    #[test]
    fn a_miss_costs_its_cpu_time_once() {
        let mut model = Model::new(Machine { times: Some(TIMES), ..small() });
        let mut store = |cpu| {
            model.access(cpu, (64, 8), (true, false), in_place);
            model.stalled(cpu)
        };
        let (walk, memory, last) = (5_000_000, 100_000_000, 10_000_000);
        assert_eq!(store(0), Some(Stall { fs: walk + memory, is_shared: false }));
        assert_eq!(store(0), None);
        assert_eq!(store(1), Some(Stall { fs: walk + last, is_shared: false }));
        assert_eq!(store(0), Some(Stall { fs: last, is_shared: true }));
        let mut free = self::model();
        load(&mut free, 0, 8);
        assert_eq!(free.stalled(0), None);
    }

    #[test]
    fn what_was_missed_is_told_once() {
        let mut model = model();
        assert_eq!(model.missed(0), None);
        load(&mut model, 0, 8);
        model.access(0, (0x4000, 8), (false, true), in_place);
        assert_eq!(model.missed(0).map(|missed| (missed.l1d, missed.walks)), Some((2, 2)));
        load(&mut model, 0, 8);
        assert_eq!(model.missed(0), None);
        let mut sum = BySpace::default();
        add_since(&mut sum, &model.modelled(0), &BySpace::default());
        assert_eq!((sum[0].loads, sum[1].loads, sum[1].misses.l1d), (2, 1, 1));
    }
}
