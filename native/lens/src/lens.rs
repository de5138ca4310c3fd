//! What the lens knows of a running guest, and what it makes of each thing that happens there.

use crate::arguments::{Arguments, Depth};
use crate::block::{Block, Blocks};
use crate::counters::{Counts, FIELDS, close, is_open};
use crate::decisions::{Decision, Decisions, Kind};
use crate::document::Costs;
use crate::fault::Doubts;
use crate::machine::Machine;
use crate::mark::{Mark, Marks};
use crate::misses::{BySpace, add_since};
use crate::model::Model;
use crate::parallel;
use crate::sharing::Sharing;
use crate::sites::Sites;
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
    /// What translated code adds to while it is this CPU's turn, and else what stood there when its turn ended.
    counters: *mut [u64; FIELDS],
    kept: *mut [u64; FIELDS],
    task: TaskId,
    /// What it had counted when that was last given to a task.
    given: Counts,
    modelled: BySpace,
    doubts: Doubts,
    walk: Walk,
    /// Whether its task could go on, if it is left now.
    stays: bool,
}

impl Cpu {
    fn new(task: TaskId) -> Cpu {
        let kept: *mut [u64; FIELDS] = Box::leak(Box::new([0; FIELDS]));
        let (given, doubts, walk) = (Counts::default(), Doubts::default(), Walk::default());
        Cpu { counters: kept, kept, task, given, modelled: BySpace::default(), doubts, walk, stays: true }
    }

    fn begin_turn(&mut self, counters: *mut [u64; FIELDS]) {
        // SAFETY: no code runs while a callback does.
        unsafe { *counters = *self.kept };
        self.counters = counters;
    }

    fn end_turn(&mut self) {
        // SAFETY: as above.
        unsafe { *self.kept = *self.counters };
        self.counters = self.kept;
    }

    fn counters(&mut self) -> &mut [u64; FIELDS] {
        // SAFETY: the counters are this CPU's, live for ever, and no code runs while a callback does.
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
    running: Option<usize>,
    window: Window,
    agent: Option<TaskId>,
    /// Where a task's stack pointer is in it, once a switch was seen.
    offset: Option<u64>,
    faulted: u64,
    /// What all CPUs had counted when the window began.
    began: u64,
    pub sites: Option<Sites>,
    decisions: Option<Decisions>,
    pub model: Option<Model>,
    sharing: Option<Sharing>,
}

impl Lens {
    /// The error says which file cannot be read.
    pub fn new(arguments: Arguments) -> Result<Lens, String> {
        let symbols = Symbols::read(&arguments.symbols)?;
        let decisions = arguments.decisions.clone().map(Decisions::new);
        let sharing = arguments.shared.clone().map(Sharing::new);
        let machine = arguments.machine.as_deref().map(Machine::read).transpose()?;
        Ok(Lens {
            sites: if decisions.is_some() { Some(Sites::read(&arguments.symbols, &symbols)?) } else { None },
            decisions,
            symbols,
            marks: Marks::open(&arguments.events, &arguments.plan)?,
            arguments,
            blocks: Blocks::default(),
            tasks: Tasks::default(),
            cpus: Vec::new(),
            running: None,
            window: Window::Ahead,
            agent: None,
            offset: None,
            faulted: 0,
            began: 0,
            model: machine.map(Model::new),
            sharing,
        })
    }

    pub fn depth(&self) -> Depth {
        self.arguments.depth
    }

    /// The CPU whose turn it is, once one is known.
    pub fn running(&self) -> Option<usize> {
        self.running
    }

    /// It is the turn of this CPU: `counters` are its own now. Returns its number.
    pub fn run(&mut self, cpu: usize, counters: *mut [u64; FIELDS]) -> usize {
        if let Some(before) = self.running.take() {
            self.cpu(before).end_turn();
        }
        if self.cpus.len() <= cpu {
            self.cpus.resize_with(cpu + 1, || None);
        }
        let task = &mut self.tasks;
        self.cpus[cpu].get_or_insert_with(|| Cpu::new(task.add(None))).begin_turn(counters);
        self.running = Some(cpu);
        cpu
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
        if !block.is_kernel() && self.decisions.as_ref().is_some_and(|decisions| decisions.is_calling(cpu.task)) {
            let task = cpu.task;
            let instruction = self.instructions();
            if let Some(decisions) = self.decisions.as_mut() {
                decisions.return_to(task, instruction);
            }
        }
    }

    /// A system call begins, which `function` carries out.
    pub fn system_call(&mut self, cpu: usize, function: u64) {
        if self.window == Window::Open && self.decisions.is_some() {
            let instruction = self.instructions();
            let task = self.cpu(cpu).task;
            if let Some(decisions) = self.decisions.as_mut() {
                decisions.call(task, function, instruction);
            }
        }
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
        self.decide(cpu, Kind::Switch, Some(task));
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

    /// The scheduler decides something; `other` is who comes, is woken, or has to make way.
    pub fn decide(&mut self, cpu: usize, kind: Kind, other: Option<TaskId>) {
        if self.window != Window::Open || self.decisions.is_none() {
            return;
        }
        let instruction = self.instructions();
        let (task, stays) = (self.cpu(cpu).task, self.cpu(cpu).stays);
        let Some(decisions) = self.decisions.as_mut() else { return };
        let made = &self.tasks.all()[task];
        let (is_idle, frame) = (made.role == Some(Role::Idle), made.stack.top().map(|top| top.node));
        let stays = kind == Kind::Switch && stays;
        decisions.add(Decision { kind, cpu, instruction, task, other, stays, is_idle, frame }, &made.tree);
    }

    /// ... of the task at `address`. One has to be known to make way.
    pub fn decide_of(&mut self, cpu: usize, kind: Kind, address: u64) {
        let known = if kind == Kind::Resched { self.tasks.known(address) } else { Some(self.tasks.at(address)) };
        if known.is_some() {
            self.decide(cpu, kind, known);
        }
    }

    /// Whether the task of a CPU could go on if another one came now.
    pub fn may_stay(&mut self, cpu: usize, stays: bool) {
        self.cpu(cpu).stays = stays;
    }

    /// As many as QEMU has counted in the window.
    fn instructions(&mut self) -> u64 {
        let counted: u64 = self.cpus.iter_mut().flatten().map(|cpu| cpu.counts().instructions()).sum();
        (counted - self.began).saturating_sub(self.faulted)
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

    pub fn shares(&self) -> bool {
        self.sharing.is_some()
    }

    /// A program accesses memory, by an instruction after which `left` ones of its block remain.
    pub fn access(&mut self, cpu: usize, address: u64, (by, left): (u64, u64), is_store: bool) {
        if self.window != Window::Open {
            return;
        }
        let task = self.cpu(cpu).task;
        if self.tasks.get_mut(task).role == Some(Role::Agent) {
            return;
        }
        if let Some(sharing) = self.sharing.as_mut() {
            sharing.access((task, cpu), (address, by), is_store, || parallel::before_end_ns(left).unwrap_or(0));
        }
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
        if let Some(model) = self.model.as_mut().filter(|model| !model.is_on()) {
            model.begin();
            model.times().iter().for_each(parallel::follow);
        }
        self.tasks.get_mut(agent).role = Some(Role::Agent);
        match mark {
            Mark::Started(role) => {
                if let Some(process) = self.tasks.youngest_of(agent) {
                    self.tasks.get_mut(process).role = Some(role);
                }
                if role == Role::Workload && self.window == Window::Ahead {
                    parallel::begin_pauses();
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
        self.began = 0;
        self.began = self.instructions();
        if let Some(decisions) = self.decisions.as_mut() {
            decisions.open();
        }
        if let Some(sharing) = self.sharing.as_mut() {
            sharing.open(parallel::begin_of_pauses(parallel::now_ns().unwrap_or(0) as i64) as u64);
        }
        self.window = Window::Open;
    }

    fn finish(&mut self) {
        self.settle_all();
        self.window = Window::Over;
        if let Some(model) = self.model.as_mut().filter(|model| model.times().is_none()) {
            model.end();
        }
        let costs = Costs::of(&self.tasks, self.arguments.depth, self.faulted, self.model.is_some());
        if let Err(error) = costs.write(&self.arguments.costs) {
            eprintln!("lens: {}: {error}", self.arguments.costs.display());
        }
        if let Some(sharing) = self.sharing.as_ref() {
            if let Err(error) = sharing.write() {
                eprintln!("lens: {:?}: {error}", self.arguments.shared);
            }
        }
        let instructions = self.instructions();
        if let Some(decisions) = self.decisions.as_mut() {
            if let Err(error) = decisions.write(&self.tasks, instructions) {
                eprintln!("lens: {}: {error}", decisions.file().display());
            }
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
