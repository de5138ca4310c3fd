//! What the lens knows of a running guest, and what it makes of each thing that happens there.

use crate::arguments::{Arguments, Depth};
use crate::block::{Block, Blocks};
use crate::counters::{close, is_open, Counts, FIELDS};
use crate::document::Costs;
use crate::fault::Doubts;
use crate::machine::Machine;
use crate::mark::{Mark, Marks};
use crate::model::{add_since, BySpace, Model};
use crate::modelled::Fetches;
use crate::symbols::{Symbols, Vector};
use crate::task::{Role, TaskId, Tasks};
use crate::walk::Walk;

/// From the workload's start to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Window {
    Ahead,
    Open,
    Over,
}

/// One CPU of the guest.
struct Cpu {
    counters: *mut [u64; FIELDS],
    task: TaskId,
    /// What it had counted when that was last given to a task.
    given: Counts,
    modelled: BySpace,
    doubts: Doubts,
    walk: Walk,
}

impl Cpu {
    fn counters(&mut self) -> &mut [u64; FIELDS] {
        // SAFETY: the counters are this CPU's, and its code does not run while a callback does.
        unsafe { &mut *self.counters }
    }

    fn counts(&mut self) -> Counts {
        Counts::of(self.counters())
    }
}

pub struct Lens {
    arguments: Arguments,
    pub symbols: Symbols,
    pub blocks: Blocks,
    marks: Marks,
    tasks: Tasks,
    cpus: Vec<Option<Cpu>>,
    window: Window,
    agent: Option<TaskId>,
    /// Where a task's stack pointer is in it, once a switch was seen.
    offset: Option<u64>,
    faulted: u64,
    pub model: Option<Model>,
    pub fetches: Option<Fetches>,
}

impl Lens {
    /// The error says which file cannot be read.
    pub fn new(arguments: Arguments) -> Result<Lens, String> {
        let machine = arguments.machine.as_deref().map(Machine::read).transpose()?;
        Ok(Lens {
            symbols: Symbols::read(&arguments.symbols)?,
            marks: Marks::open(&arguments.events, &arguments.plan)?,
            arguments,
            blocks: Blocks::default(),
            tasks: Tasks::default(),
            cpus: Vec::new(),
            window: Window::Ahead,
            agent: None,
            offset: None,
            faulted: 0,
            fetches: machine.as_ref().map(|machine| Fetches::new(machine.line_bytes, machine.memory_bytes)),
            model: machine.map(Model::new),
        })
    }

    pub fn depth(&self) -> Depth {
        self.arguments.depth
    }

    /// Whether this CPU is known, so that its counters need not be looked up.
    pub fn knows(&self, cpu: usize) -> bool {
        self.cpus.get(cpu).is_some_and(Option::is_some)
    }

    pub fn meet(&mut self, cpu: usize, counters: *mut [u64; FIELDS]) {
        if self.cpus.len() <= cpu {
            self.cpus.resize_with(cpu + 1, || None);
        }
        let task = self.tasks.add(None);
        let (given, doubts, walk) = (Counts::default(), Doubts::default(), Walk::default());
        self.cpus[cpu] = Some(Cpu { counters, task, given, modelled: BySpace::default(), doubts, walk });
    }

    fn cpu(&mut self, cpu: usize) -> &mut Cpu {
        self.cpus[cpu].as_mut().expect("a callback meets its CPU first")
    }

    /// A block is about to be carried out.
    pub fn block(&mut self, cpu: usize, block: &'static Block) {
        self.charge_misses(cpu);
        let Some(cpu) = self.cpus[cpu].as_mut() else { return };
        let now = cpu.counts().instructions();
        cpu.walk.go_on(self.tasks.get_mut(cpu.task), block, now);
    }

    /// Give the frame on top what the modelled machine missed since the last time.
    fn charge_misses(&mut self, number: usize) {
        let Some(missed) = self.model.as_mut().and_then(|model| model.missed(number)) else { return };
        let task = self.cpu(number).task;
        self.tasks.get_mut(task).charge_misses(missed);
    }

    /// Give the task of a CPU what was counted since the last time.
    fn settle(&mut self, cpu: usize) {
        let depth = self.depth();
        if depth == Depth::Functions {
            self.charge_misses(cpu);
        }
        let modelled = self.model.as_mut().map(|model| model.modelled(cpu));
        let Some(cpu) = self.cpus[cpu].as_mut() else { return };
        let now = cpu.counts();
        let more = now.since(&cpu.given);
        cpu.given = now;
        let task = self.tasks.get_mut(cpu.task);
        task.counts.add(&more);
        task.is_user |= more.user > 0;
        if let Some(modelled) = modelled {
            add_since(&mut task.modelled, &modelled, &cpu.modelled);
            cpu.modelled = modelled;
        }
        if depth == Depth::Functions {
            cpu.walk.charge(task, now.instructions());
        }
    }

    /// The task that is left has its stack pointer at `address`.
    pub fn switch_from(&mut self, cpu: usize, address: u64, offset: u64) {
        self.offset = Some(offset);
        let task = self.cpu(cpu).task;
        self.tasks.found(task, address.wrapping_sub(offset));
    }

    /// The task that is switched to has its stack pointer at `address`.
    pub fn switch_to(&mut self, cpu: usize, address: u64, offset: u64) {
        self.settle(cpu);
        let task = self.tasks.at(address.wrapping_sub(offset));
        self.cpu(cpu).task = task;
        self.tasks.get_mut(task).switches_in += 1;
    }

    /// The stack of a new task may be prepared: what is stored may be its stack pointer.
    pub fn copy(&mut self, cpu: usize, address: u64, offset: u64) {
        if self.offset == Some(offset) {
            let maker = self.cpu(cpu).task;
            self.tasks.made(address.wrapping_sub(offset), maker);
        }
    }

    /// The task is about to begin a new program.
    pub fn exec(&mut self, cpu: usize) {
        let task = self.cpu(cpu).task;
        self.tasks.get_mut(task).is_new_program = true;
    }

    pub fn idle(&mut self, cpu: usize) {
        let task = self.cpu(cpu).task;
        self.tasks.get_mut(task).role = Some(Role::Idle);
    }

    /// The kernel is entered, and not because of a fault: so no block was left open. What QEMU 7.2 accesses to deliver an
    /// interrupt is told to the last instruction before, and seems to close it again.
    pub fn enter(&mut self, cpu: usize) {
        close(self.cpu(cpu).counters());
    }

    /// The kernel is entered because of a fault.
    pub fn fault(&mut self, cpu: usize, vector: Vector) {
        let cpu = self.cpu(cpu);
        let counts = cpu.counts();
        let was_open = is_open(cpu.counters());
        close(cpu.counters());
        let more = cpu.doubts.fault(vector, was_open, &counts);
        self.faulted += more;
    }

    /// GS is exchanged: on the way in or out.
    pub fn exchange(&mut self, cpu: usize) {
        let cpu = self.cpu(cpu);
        let counts = cpu.counts();
        let more = cpu.doubts.exchange(&counts);
        self.faulted += more;
    }

    /// An instruction of user space begins of which it is not seen whether it ends.
    pub fn doubtful(&mut self, cpu: usize) {
        let cpu = self.cpu(cpu);
        let counts = cpu.counts();
        cpu.doubts.begin(&counts);
    }

    /// Such an instruction has accessed memory: it will end.
    pub fn accessed(&mut self, cpu: usize) {
        self.cpu(cpu).doubts.end();
    }

    /// Something may have been put out.
    pub fn output(&mut self, cpu: usize) {
        if self.window == Window::Over {
            return;
        }
        for mark in self.marks.news() {
            self.mark(cpu, mark);
        }
    }

    fn mark(&mut self, cpu: usize, mark: Mark) {
        let agent = self.cpu(cpu).task;
        self.agent = Some(agent);
        if let Some(model) = &mut self.model {
            model.begin();
        }
        self.tasks.get_mut(agent).role = Some(Role::Agent);
        match mark {
            Mark::Started(role) => {
                if let Some(process) = self.tasks.youngest_of(agent) {
                    self.tasks.get_mut(process).role = Some(role);
                }
                if role == Role::Workload && self.window == Window::Ahead {
                    self.open();
                }
            }
            Mark::Exited(Role::Workload) if self.window == Window::Open => self.finish(),
            Mark::Exited(_) | Mark::Said => {}
        }
    }

    /// The window begins: what was counted before does not matter.
    fn open(&mut self) {
        self.settle_all();
        for task in self.tasks.iter_mut() {
            task.counts = Counts::default();
            task.modelled = BySpace::default();
            task.switches_in = 0;
            task.begin_tree();
        }
        self.faulted = 0;
        self.window = Window::Open;
    }

    fn finish(&mut self) {
        self.settle_all();
        self.window = Window::Over;
        if let Some(model) = &mut self.model {
            model.end();
        }
        let costs = Costs::of(&self.tasks, self.arguments.depth, self.faulted, self.model.is_some());
        if let Err(error) = costs.write(&self.arguments.costs) {
            eprintln!("lens: {}: {error}", self.arguments.costs.display());
        }
    }

    fn settle_all(&mut self) {
        for cpu in 0..self.cpus.len() {
            self.settle(cpu);
            if let Some(cpu) = self.cpus[cpu].as_mut() {
                let counts = cpu.counts();
                let more = cpu.doubts.settle(&counts);
                self.faulted += more;
            }
        }
    }
}
