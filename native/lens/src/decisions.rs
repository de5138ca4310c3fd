//! The decisions of the guest's scheduler, one by one: which task leaves a CPU and which comes, who wakes whom, who is
//! told to make way, and the interrupts of the timer.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io;
use std::path::PathBuf;

use serde::Serialize;

use crate::clock::Clock;
use crate::parallel;
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
    /// When, where CPUs run at once: instructions are no time there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    at_ns: Vec<u64>,
    running: Vec<TaskId>,
    others: Vec<i64>,
    stays: Vec<u8>,
    ways: Vec<i64>,
}

/// `SystemCallColumns` of `src/ajuste/model/decision.py`.
#[derive(Debug, Default, Serialize)]
struct CallColumns {
    tasks: Vec<TaskId>,
    functions: Vec<u64>,
    at: Vec<u64>,
    idle_ns: Vec<u64>,
    /// None: not before the window's end.
    ended_at: Vec<Option<u64>>,
    ended_idle_ns: Vec<Option<u64>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    at_ns: Vec<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ended_at_ns: Vec<Option<u64>>,
    left_out: u64,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_ns: Option<u64>,
    left_out: u64,
    tasks: Vec<DecisionTask>,
    paths: &'a [Vec<u64>],
    #[serde(flatten)]
    columns: &'a Columns,
    calls: &'a CallColumns,
}

/// All decisions of the window.
pub struct Decisions {
    file: PathBuf,
    clock: Option<Clock>,
    idle_ns: u64,
    idle_ns_before: u64,
    /// When the window began, and the time of the last thing that is kept.
    began_ns: u64,
    last_ns: u64,
    columns: Columns,
    left_out: u64,
    calls: CallColumns,
    /// Of each task that carries out a system call the place of that.
    calling: HashMap<TaskId, usize>,
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
            began_ns: 0,
            last_ns: 0,
            columns: Columns::default(),
            left_out: 0,
            calls: CallColumns::default(),
            calling: HashMap::new(),
            paths: Vec::new(),
            places: HashMap::new(),
            known: HashMap::new(),
        }
    }

    /// The window begins.
    pub fn open(&mut self) {
        self.idle_ns_before = self.clock.as_ref().map_or(0, Clock::idle_ns);
        self.began_ns = parallel::now_ns().unwrap_or(0);
    }

    /// Since the window began, by the clock of the CPU that runs; never before what another one has done. `None` where
    /// CPUs share QEMU's clock.
    fn now_ns(&mut self) -> Option<u64> {
        let since = parallel::now_ns()?.saturating_sub(self.began_ns);
        self.last_ns = self.last_ns.max(since);
        Some(self.last_ns)
    }

    pub fn add(&mut self, decision: Decision, tree: &Tree) {
        if self.columns.kinds.len() >= MOST {
            self.left_out += 1;
            return;
        }
        if decision.is_idle {
            let idle_ns = self.clock.as_ref().map_or(0, Clock::idle_ns);
            // Several CPUs that run at once carry out more than their time has room for.
            self.idle_ns = self.idle_ns.max(idle_ns.saturating_sub(self.idle_ns_before));
        }
        let path = decision.frame.map_or(-1, |frame| self.path(decision.task, frame, tree));
        let now_ns = self.now_ns();
        let columns = &mut self.columns;
        columns.kinds.push(decision.kind as u8);
        columns.cpus.push(decision.cpu);
        columns.at.push(decision.instruction);
        columns.idle_ns.push(self.idle_ns);
        columns.at_ns.extend(now_ns);
        columns.running.push(decision.task);
        columns.others.push(decision.other.map_or(-1, |other| other as i64));
        columns.stays.push(decision.stays.into());
        columns.ways.push(path);
    }

    /// A task begins a system call, which `function` carries out.
    pub fn call(&mut self, task: TaskId, function: u64, instruction: u64) {
        self.return_to(task, instruction);
        let now_ns = self.now_ns();
        let calls = &mut self.calls;
        if calls.tasks.len() >= MOST {
            calls.left_out += 1;
            return;
        }
        self.calling.insert(task, calls.tasks.len());
        calls.tasks.push(task);
        calls.functions.push(function);
        calls.at.push(instruction);
        calls.idle_ns.push(self.idle_ns);
        calls.ended_at.push(None);
        calls.ended_idle_ns.push(None);
        calls.at_ns.extend(now_ns);
        calls.ended_at_ns.extend(now_ns.map(|_| None));
    }

    pub fn is_calling(&self, task: TaskId) -> bool {
        self.calling.contains_key(&task)
    }

    /// A task is in user space: its system call is over.
    pub fn return_to(&mut self, task: TaskId, instruction: u64) {
        if let Some(place) = self.calling.remove(&task) {
            self.calls.ended_at[place] = Some(instruction);
            self.calls.ended_idle_ns[place] = Some(self.idle_ns);
            if let Some(now_ns) = self.now_ns() {
                self.calls.ended_at_ns[place] = Some(now_ns);
            }
        }
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
    pub fn write(&mut self, tasks: &Tasks, instructions: u64) -> io::Result<()> {
        let ended_ns = self.now_ns();
        let document = Document {
            version: VERSION,
            has_clock: ended_ns.is_some() || self.clock.is_some(),
            instructions,
            ended_ns,
            left_out: self.left_out,
            tasks: self.tasks(tasks),
            paths: &self.paths,
            columns: &self.columns,
            calls: &self.calls,
        };
        let new = self.file.with_extension("new");
        fs::write(&new, serde_json::to_vec(&document)?)?;
        fs::rename(new, &self.file)
    }

    pub fn file(&self) -> &PathBuf {
        &self.file
    }

    /// Those of the decisions and system calls, and those that made them.
    fn tasks(&self, tasks: &Tasks) -> Vec<DecisionTask> {
        let others = self.columns.others.iter().filter_map(|other| usize::try_from(*other).ok());
        let (running, calling) = (self.columns.running.iter().copied(), self.calls.tasks.iter().copied());
        let mut told: BTreeSet<TaskId> = running.chain(calling).chain(others).collect();
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
    fn a_system_call_ends_in_user_space() {
        let mut decisions = Decisions::new(PathBuf::new());
        decisions.call(4, 0x100, 10);
        decisions.call(5, 0x200, 11);
        decisions.idle_ns = 7;
        decisions.return_to(4, 30);
        decisions.return_to(4, 31);
        assert!(decisions.is_calling(5) && !decisions.is_calling(4));
        let calls = decisions.calls;
        assert_eq!((calls.tasks, calls.functions, calls.at), (vec![4, 5], vec![0x100, 0x200], vec![10, 11]));
        assert_eq!((calls.ended_at, calls.ended_idle_ns), (vec![Some(30), None], vec![Some(7), None]));
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
