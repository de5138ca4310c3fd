//! The decisions of the guest's scheduler, one by one: which task leaves a CPU and which comes, who wakes whom, who is
//! told to make way, and the interrupts of the timer.
//!
//! What a function decides is seen by what it stores, which is alike in all kernels from 5.10 to 7.3: a task that wakes
//! up gets the state 0 (there stands the tracepoint `sched_wakeup`, too), and one that has to make way gets a flag in
//! its first word, by a locked instruction. Both name the task by their address.

use std::collections::{BTreeSet, HashMap};
use std::ffi::{c_uint, c_void};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::callbacks::with;
use crate::clock::Clock;
use crate::interface::{interface, Instruction};
use crate::symbols::{Place, Symbols};
use crate::task::{TaskId, Tasks};
use crate::tree::{NodeId, Tree};

const VERSION: u32 = 1;
/// Further decisions are only counted.
const MOST: usize = 500_000;
/// Further ways to a decision, and functions beyond, are left out.
const MOST_PATHS: usize = 20_000;
const LONGEST_PATH: usize = 48;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A task leaves the CPU, another one comes.
    Switch,
    /// A task is woken.
    Wakeup,
    /// A new task runs for the first time.
    New,
    /// The running task has to make way.
    Resched,
    /// The timer interrupts.
    Timer,
}

/// What a function of the kernel decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Site {
    Wakeup,
    New,
    Resched,
    Timer,
    Schedule,
    Dequeue,
}

impl Site {
    fn of(name: &str) -> Option<Site> {
        // A compiler adds to the names of functions that it has changed: `.isra.0`.
        match name.split('.').next().unwrap_or(name) {
            "try_to_wake_up" | "ttwu_do_wakeup" | "ttwu_do_activate" | "ttwu_runnable" => Some(Site::Wakeup),
            "wake_up_new_task" => Some(Site::New),
            "resched_curr" | "__resched_curr" => Some(Site::Resched),
            "sysvec_apic_timer_interrupt" => Some(Site::Timer),
            "__schedule" => Some(Site::Schedule),
            plain if plain.starts_with("dequeue_task_") => Some(Site::Dequeue),
            _ => None,
        }
    }
}

/// Where a kernel decides.
pub struct Sites(HashMap<u64, Site>);

impl Sites {
    /// Read the names that `symbols` were made of, too.
    /// The error says what the kernel lacks.
    pub fn read(file: &Path, symbols: &Symbols) -> Result<Sites, String> {
        let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        Sites::of(symbols, &text)
    }

    fn of(symbols: &Symbols, text: &str) -> Result<Sites, String> {
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        let sites = lines.filter_map(|(address, name)| {
            let address = u64::from_str_radix(address, 16).ok()?;
            Some((symbols.place(address).function, Site::of(name)?))
        });
        let found = Sites(sites.collect());
        for (needed, name) in [(Site::Wakeup, "try_to_wake_up"), (Site::Resched, "resched_curr")] {
            if !found.0.values().any(|site| *site == needed) {
                return Err(format!("the kernel has no symbol {name}"));
            }
        }
        Ok(found)
    }

    /// Have an instruction told of if it decides something.
    pub fn watch(&self, place: Place, instruction: Instruction, bytes: &[u8]) {
        let Some(site) = self.0.get(&place.function) else { return };
        let is_first = instruction.address() == place.function;
        match site {
            Site::Wakeup | Site::New => {
                let told = if *site == Site::New { new } else { woken };
                if let Some(offset) = state_offset(bytes) {
                    instruction.on_access(told, std::ptr::without_provenance_mut(offset));
                }
            }
            Site::Resched if is_locked(bytes) => instruction.on_access(marked, std::ptr::null_mut()),
            Site::Timer if is_first => instruction.on_execution(timer, std::ptr::null_mut()),
            Site::Schedule if is_first => instruction.on_execution(schedule, std::ptr::null_mut()),
            Site::Dequeue if is_first => instruction.on_execution(dequeue, std::ptr::null_mut()),
            _ => {}
        }
    }
}

/// Where a task has its state, if the instruction sets that to 0 (`TASK_RUNNING`).
///
/// The state stands right behind `thread_info`: until 5.13 it is a word of 64 bits at 16, later one of 32 bits at 24.
fn state_offset(bytes: &[u8]) -> Option<usize> {
    const REX_W: u8 = 8;
    let (is_wide, rest) = match bytes {
        [rex @ 0x40..=0x4f, rest @ ..] => (rex & REX_W != 0, rest),
        _ => (false, bytes),
    };
    let (operands, rest) = match rest {
        [0xc7, operands, 0x24, rest @ ..] if operands & 7 == 4 && rest.len() == 5 && bytes[0] & 0xf1 == 0x41 => {
            (*operands, rest) // the base is R12
        }
        [0xc7, operands, rest @ ..] if operands & 7 != 4 => (*operands, rest),
        _ => return None,
    };
    match rest {
        [0x10, 0, 0, 0, 0] if operands & 0xf8 == 0x40 && is_wide => Some(0x10),
        [0x18, 0, 0, 0, 0] if operands & 0xf8 == 0x40 && !is_wide => Some(0x18),
        _ => None,
    }
}

/// Where there is one CPU, the kernel has put another prefix (DS) in the place of each LOCK. Source:
/// arch/x86/kernel/alternative.c, `alternatives_smp_unlock`.
fn is_locked(bytes: &[u8]) -> bool {
    matches!(bytes.first(), Some(0xf0 | 0x3e))
}

extern "C" fn woken(cpu: c_uint, access: u32, address: u64, offset: *mut c_void) {
    if interface().is_store(access) {
        let (lens, cpu) = with(cpu);
        lens.decide_of(cpu, Kind::Wakeup, address.wrapping_sub(offset.addr() as u64));
    }
}

extern "C" fn new(cpu: c_uint, access: u32, address: u64, offset: *mut c_void) {
    if interface().is_store(access) {
        let (lens, cpu) = with(cpu);
        lens.decide_of(cpu, Kind::New, address.wrapping_sub(offset.addr() as u64));
    }
}

extern "C" fn marked(cpu: c_uint, access: u32, address: u64, _: *mut c_void) {
    if interface().is_store(access) {
        let (lens, cpu) = with(cpu);
        lens.decide_of(cpu, Kind::Resched, address);
    }
}

extern "C" fn timer(cpu: c_uint, _: *mut c_void) {
    let (lens, cpu) = with(cpu);
    lens.decide(cpu, Kind::Timer, None);
}

extern "C" fn schedule(cpu: c_uint, _: *mut c_void) {
    let (lens, cpu) = with(cpu);
    lens.may_stay(cpu, true);
}

extern "C" fn dequeue(cpu: c_uint, _: *mut c_void) {
    let (lens, cpu) = with(cpu);
    lens.may_stay(cpu, false);
}

/// A decision, on a CPU whose task is `task`, after so many instructions.
#[derive(Clone, Copy, Debug)]
pub struct Decision {
    pub kind: Kind,
    pub cpu: usize,
    pub instruction: u64,
    pub task: TaskId,
    /// Who comes, is woken, or has to make way.
    pub other: Option<TaskId>,
    /// Of a switch: whether the task that leaves could go on.
    pub stays: bool,
    pub is_idle: bool,
    pub frame: Option<NodeId>,
}

/// `DecisionStream` of `src/ajuste/model/decision.py`.
#[derive(Debug, Default, Serialize)]
struct Columns {
    kinds: Vec<u8>,
    cpus: Vec<usize>,
    at: Vec<u64>,
    idle_ns: Vec<u64>,
    running: Vec<TaskId>,
    others: Vec<i64>,
    stays: Vec<u8>,
    ways: Vec<i64>,
}

#[derive(Serialize)]
struct DecisionTask {
    number: TaskId,
    parent: Option<TaskId>,
    role: &'static str,
    /// How many its parent had made before it.
    birth: usize,
}

#[derive(Serialize)]
struct Document<'a> {
    version: u32,
    has_clock: bool,
    instructions: u64,
    left_out: u64,
    tasks: Vec<DecisionTask>,
    paths: &'a [Vec<u64>],
    #[serde(flatten)]
    columns: &'a Columns,
}

/// All decisions of the window.
pub struct Decisions {
    file: PathBuf,
    clock: Option<Clock>,
    idle_ns: u64,
    idle_ns_before: u64,
    columns: Columns,
    left_out: u64,
    paths: Vec<Vec<u64>>,
    places: HashMap<Vec<u64>, i64>,
    known: HashMap<(TaskId, NodeId), i64>,
}

impl Decisions {
    pub fn new(file: PathBuf) -> Decisions {
        Decisions {
            file,
            clock: Clock::find(),
            idle_ns: 0,
            idle_ns_before: 0,
            columns: Columns::default(),
            left_out: 0,
            paths: Vec::new(),
            places: HashMap::new(),
            known: HashMap::new(),
        }
    }

    /// The window begins.
    pub fn open(&mut self) {
        self.idle_ns_before = self.clock.as_ref().map_or(0, Clock::idle_ns);
    }

    pub fn add(&mut self, decision: Decision, tree: &Tree) {
        if self.columns.kinds.len() >= MOST {
            self.left_out += 1;
            return;
        }
        if decision.is_idle {
            let idle_ns = self.clock.as_ref().map_or(0, Clock::idle_ns);
            self.idle_ns = idle_ns.saturating_sub(self.idle_ns_before);
        }
        let path = decision.frame.map_or(-1, |frame| self.path(decision.task, frame, tree));
        let columns = &mut self.columns;
        columns.kinds.push(decision.kind as u8);
        columns.cpus.push(decision.cpu);
        columns.at.push(decision.instruction);
        columns.idle_ns.push(self.idle_ns);
        columns.running.push(decision.task);
        columns.others.push(decision.other.map_or(-1, |other| other as i64));
        columns.stays.push(decision.stays.into());
        columns.ways.push(path);
    }

    /// The place of the functions from `frame` to where the kernel was entered.
    fn path(&mut self, task: TaskId, frame: NodeId, tree: &Tree) -> i64 {
        if let Some(known) = self.known.get(&(task, frame)) {
            return *known;
        }
        let path = functions(frame, tree);
        let next = self.paths.len();
        let place = match self.places.get(&path) {
            Some(place) => *place,
            None if next >= MOST_PATHS => return -1,
            None => {
                self.paths.push(path.clone());
                self.places.insert(path, next as i64);
                next as i64
            }
        };
        self.known.insert((task, frame), place);
        place
    }

    /// Write it all at once.
    pub fn write(&self, tasks: &Tasks, instructions: u64) -> io::Result<()> {
        let document = Document {
            version: VERSION,
            has_clock: self.clock.is_some(),
            instructions,
            left_out: self.left_out,
            tasks: self.tasks(tasks),
            paths: &self.paths,
            columns: &self.columns,
        };
        let new = self.file.with_extension("new");
        fs::write(&new, serde_json::to_vec(&document)?)?;
        fs::rename(new, &self.file)
    }

    pub fn file(&self) -> &PathBuf {
        &self.file
    }

    /// Those of the decisions, and those that made them.
    fn tasks(&self, tasks: &Tasks) -> Vec<DecisionTask> {
        let others = self.columns.others.iter().filter_map(|other| usize::try_from(*other).ok());
        let mut told: BTreeSet<TaskId> = self.columns.running.iter().copied().chain(others).collect();
        let mut parents: Vec<TaskId> = told.iter().copied().collect();
        while let Some(task) = parents.pop() {
            parents.extend(tasks.all()[task].parent.filter(|parent| told.insert(*parent)));
        }
        let mut births: HashMap<TaskId, usize> = HashMap::new();
        let mut found = Vec::with_capacity(told.len());
        for (number, task) in tasks.all().iter().enumerate() {
            let birth = task.parent.map_or(0, |parent| {
                let made = births.entry(parent).or_default();
                *made += 1;
                *made - 1
            });
            if told.contains(&number) {
                found.push(DecisionTask { number, parent: task.parent, role: tasks.role(number).word(), birth });
            }
        }
        found
    }
}

/// The functions from `frame` outwards, up to the one that hardware entered.
fn functions(frame: NodeId, tree: &Tree) -> Vec<u64> {
    let mut path = Vec::new();
    let mut at = Some(frame);
    while let Some(node) = at.map(|some| &tree.nodes()[some as usize]).filter(|_| path.len() < LONGEST_PATH) {
        if node.address != 0 {
            path.push(node.address);
        }
        at = node.parent.filter(|_| !node.kind.is_gate());
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree;

    #[test]
    fn a_task_that_wakes_up_gets_the_state_0() {
        let stores: [(&[u8], Option<usize>); 8] = [
            (&[0x48, 0xc7, 0x45, 0x10, 0, 0, 0, 0], Some(0x10)), // movq $0,0x10(%rbp)
            (&[0xc7, 0x43, 0x18, 0, 0, 0, 0], Some(0x18)),       // movl $0,0x18(%rbx)
            (&[0x41, 0xc7, 0x44, 0x24, 0x18, 0, 0, 0, 0], Some(0x18)), // movl $0,0x18(%r12)
            (&[0x49, 0xc7, 0x46, 0x10, 0, 0, 0, 0], Some(0x10)), // movq $0,0x10(%r14)
            (&[0xc7, 0x44, 0x24, 0x18, 0, 0, 0, 0], None),       // movl $0,0x18(%rsp)
            (&[0x48, 0xc7, 0x44, 0x24, 0x10, 0, 0, 0, 0], None), // movq $0,0x10(%rsp)
            (&[0xc7, 0x43, 0x18, 0, 2, 0, 0], None),             // movl $0x200,0x18(%rbx)
            (&[0xc7, 0x43, 0x1c, 0, 0, 0, 0], None),             // movl $0,0x1c(%rbx)
        ];
        for (bytes, offset) in stores {
            assert_eq!(state_offset(bytes), offset, "{bytes:x?}");
        }
        for length in 0..8 {
            assert_eq!(state_offset(&[0x48, 0xc7, 0x45, 0x10, 0, 0, 0, 0][..length]), None);
        }
        assert!(is_locked(&[0xf0, 0x80, 0x0a, 0x08]) && is_locked(&[0x3e, 0x80, 0x0a, 0x08]));
        assert!(!is_locked(&[0x80, 0x0a, 0x08]) && !is_locked(&[]));
    }

    const KERNEL: &str = "ffffffff81000100 __switch_to_asm\nffffffff81000200 copy_thread\n\
        ffffffff81000300 start_thread\nffffffff81000400 try_to_wake_up.isra.0\nffffffff81000500 resched_curr\n\
        ffffffff81000600 dequeue_task_fair\nffffffff81000700 schedule\n";

    #[test]
    fn the_functions_that_decide_are_found_by_name() {
        let symbols = Symbols::parse(KERNEL).unwrap();
        let sites = Sites::of(&symbols, KERNEL).unwrap();
        assert_eq!(sites.0.get(&0xffff_ffff_8100_0400), Some(&Site::Wakeup));
        assert_eq!(sites.0.get(&0xffff_ffff_8100_0600), Some(&Site::Dequeue));
        assert_eq!(sites.0.len(), 3);
        let without = KERNEL.replace("resched_curr", "else");
        assert_eq!(Sites::of(&symbols, &without).err().unwrap(), "the kernel has no symbol resched_curr");
    }

    fn decision(task: TaskId, frame: NodeId) -> Decision {
        let (kind, other) = (Kind::Switch, Some(task + 1));
        Decision { kind, cpu: 0, instruction: 9, task, other, stays: true, is_idle: false, frame: Some(frame) }
    }

    #[test]
    fn a_path_ends_where_the_kernel_was_entered() {
        let mut tree = Tree::default();
        let mut node = tree.enter(None, 1, tree::Kind::Start, 1);
        for (address, kind) in [(2, tree::Kind::Call), (3, tree::Kind::Syscall), (4, tree::Kind::Call)] {
            node = tree.enter(Some(node), address, kind, 1);
        }
        assert_eq!(functions(node, &tree), [4, 3]);
        let mut decisions = Decisions::new(PathBuf::new());
        (0..3).for_each(|_| decisions.add(decision(0, node), &tree));
        assert_eq!(decisions.paths, [[4, 3]]);
        assert_eq!(decisions.columns.ways, [0, 0, 0]);
    }

    #[test]
    fn what_there_is_no_room_for_is_counted() {
        let mut tree = Tree::default();
        let node = tree.enter(None, 1, tree::Kind::Start, 1);
        let mut decisions = Decisions::new(PathBuf::new());
        (0..MOST + 7).for_each(|_| decisions.add(decision(0, node), &tree));
        assert_eq!((decisions.columns.kinds.len(), decisions.left_out), (MOST, 7));
    }

    #[test]
    fn a_task_is_told_with_those_that_made_it() {
        let mut tasks = Tasks::default();
        let first = tasks.at(0x1000);
        (2..5).for_each(|place| tasks.made(0x1000 * place, first));
        let mut tree = Tree::default();
        let node = tree.enter(None, 1, tree::Kind::Start, 1);
        let mut decisions = Decisions::new(PathBuf::new());
        decisions.add(decision(2, node), &tree);
        let told: Vec<_> = decisions.tasks(&tasks).iter().map(|task| (task.number, task.birth)).collect();
        assert_eq!(told, [(0, 0), (2, 1), (3, 2)]);
    }
}
