//! The document that the lens writes: `Costs` of `src/ajuste/model/cost.py`.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use serde::Serialize;

use crate::arguments::Depth;
use crate::misses::{Misses, Modelled};
use crate::symbols::is_kernel;
use crate::task::{Task, TaskId, Tasks};

const VERSION: u32 = 1;
/// A document has no more frames: the smallest are counted in those that called them.
const MOST_FRAMES: usize = 250_000;

#[derive(Serialize)]
struct CostFrame {
    parent: i64,
    space: &'static str,
    address: u64,
    kind: &'static str,
    calls: u64,
    instructions: u64,
    /// Empty where nothing was missed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    misses: Vec<u64>,
}

/// What the modelled machine made of it.
#[derive(Serialize)]
struct CostModelled {
    user: Modelled,
    kernel: Modelled,
}

#[derive(Serialize)]
struct CostCode {
    address: u64,
    bytes_: String,
}

#[derive(Serialize)]
struct CostTask {
    number: usize,
    parent: Option<usize>,
    role: &'static str,
    user: u64,
    kernel: u64,
    loads: u64,
    stores: u64,
    branches: u64,
    switches_in: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    modelled: Option<CostModelled>,
    entry: Option<u64>,
    frames: Vec<CostFrame>,
    code: Vec<CostCode>,
}

#[derive(Serialize)]
pub struct Costs {
    version: u32,
    depth: &'static str,
    user: u64,
    kernel: u64,
    faulted: u64,
    tasks: Vec<CostTask>,
}

impl Costs {
    pub fn of(tasks: &Tasks, depth: Depth, faulted: u64, is_modelled: bool) -> Costs {
        let seen = tasks.seen();
        let numbers: Vec<TaskId> = (0..seen.len()).filter(|task| seen[*task]).collect();
        let inclusive: Vec<Vec<u64>> = numbers.iter().map(|task| tasks.all()[*task].tree.inclusive()).collect();
        let least = least_shown(inclusive.iter().flatten().copied().collect(), MOST_FRAMES);
        let of_tasks = numbers.iter().zip(&inclusive);
        let told: Vec<CostTask> =
            of_tasks.map(|(task, all)| described(tasks, *task, all, least, is_modelled)).collect();
        Costs {
            version: VERSION,
            depth: depth.word(),
            user: told.iter().map(|task| task.user).sum(),
            kernel: told.iter().map(|task| task.kernel).sum(),
            faulted,
            tasks: told,
        }
    }

    /// Write it all at once.
    pub fn write(&self, file: &Path) -> io::Result<()> {
        let new = file.with_extension("new");
        fs::write(&new, serde_json::to_vec(self)?)?;
        fs::rename(new, file)
    }
}

/// As many instructions a frame must have, with all that it called, so that at most so many are shown.
fn least_shown(mut inclusive: Vec<u64>, most: usize) -> u64 {
    if inclusive.len() <= most {
        return 0;
    }
    inclusive.sort_unstable_by(|first, second| second.cmp(first));
    inclusive[most] + 1
}

fn described(tasks: &Tasks, number: TaskId, inclusive: &[u64], least: u64, is_modelled: bool) -> CostTask {
    let task = &tasks.all()[number];
    let [user, kernel] = task.modelled;
    CostTask {
        number,
        parent: task.parent,
        role: tasks.role(number).word(),
        user: task.counts.user,
        kernel: task.counts.kernel,
        loads: task.counts.loads,
        stores: task.counts.stores,
        branches: task.counts.branches,
        switches_in: task.switches_in,
        modelled: is_modelled.then_some(CostModelled { user, kernel }),
        entry: task.entry,
        frames: frames(task, inclusive, least),
        code: task.code.iter().map(|(address, bytes)| CostCode { address: *address, bytes_: in_hex(bytes) }).collect(),
    }
}

/// The frames with at least so many instructions, and all roots; what others have is counted in their callers.
fn frames(task: &Task, inclusive: &[u64], least: u64) -> Vec<CostFrame> {
    let mut shown: Vec<CostFrame> = Vec::new();
    let mut misses: Vec<Misses> = Vec::new();
    let mut places: Vec<usize> = Vec::with_capacity(inclusive.len());
    for ((node, inclusive), missed) in task.tree.nodes().iter().zip(inclusive).zip(task.tree.misses()) {
        let parent = node.parent.map(|parent| places[parent as usize]);
        match parent {
            Some(parent) if *inclusive < least => {
                shown[parent].instructions += node.instructions;
                misses[parent] += missed;
                places.push(parent);
            }
            _ => {
                places.push(shown.len());
                misses.push(missed);
                shown.push(CostFrame {
                    parent: parent.map_or(-1, |place| place as i64),
                    space: if is_kernel(node.address) { "kernel" } else { "user" },
                    address: node.address,
                    kind: node.kind.word(),
                    calls: node.calls,
                    instructions: node.instructions,
                    misses: Vec::new(),
                });
            }
        }
    }
    for (frame, missed) in shown.iter_mut().zip(misses).filter(|(_, missed)| !missed.is_zero()) {
        frame.misses = missed.figures().to_vec();
    }
    shown
}

fn in_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::Counts;
    use crate::task::Role;
    use crate::tree::Kind;

    #[test]
    fn of_too_many_frames_the_smallest_are_counted_in_their_callers() {
        let mut tasks = Tasks::default();
        let task = tasks.at(0x1000);
        let tree = &mut tasks.get_mut(task).tree;
        let root = tree.enter(None, 1, Kind::Start, 1);
        for (address, instructions) in [(2, 5), (3, 50), (4, 7)] {
            let node = tree.enter(Some(root), address, Kind::Call, 1);
            tree.charge(node, instructions);
        }
        let inclusive = tree.inclusive();
        assert_eq!(inclusive, [62, 5, 50, 7]);
        let least = least_shown(inclusive.clone(), 2);
        let shown = frames(&tasks.all()[task], &inclusive, least);
        assert_eq!(shown.iter().map(|frame| frame.instructions).collect::<Vec<_>>(), [12, 50]);
        assert_eq!(least_shown(inclusive, 4), 0);
    }

    #[test]
    fn the_document_has_what_was_counted() {
        let mut tasks = Tasks::default();
        let task = tasks.at(0x1000);
        tasks.at(0x2000);
        let made = tasks.get_mut(task);
        made.counts = Counts { user: 5, kernel: 2, loads: 1, stores: 0, branches: 3 };
        made.role = Some(Role::Workload);
        made.code.insert(0x40, vec![0x0f, 0x05]);
        let root = made.tree.enter(None, 0x40, Kind::Start, 1);
        made.tree.charge(root, 5);
        let inner = made.tree.enter(Some(root), u64::MAX, Kind::Syscall, 2);
        made.tree.charge(inner, 2);
        let costs = serde_json::to_value(Costs::of(&tasks, Depth::Functions, 1, false)).unwrap();
        assert_eq!(costs["user"], 5);
        assert_eq!(costs["tasks"].as_array().unwrap().len(), 1);
        let told = &costs["tasks"][0];
        assert_eq!(told["code"][0]["bytes_"], "0f05");
        assert_eq!(told["frames"][1]["space"], "kernel");
        assert_eq!(told["frames"][1]["parent"], 0);
        assert_eq!(told["frames"][0]["parent"], -1);
        assert!(told.get("modelled").is_none() && told["frames"][0].get("misses").is_none());
    }

    #[test]
    fn what_was_modelled_is_in_the_document_of_a_machine() {
        let mut tasks = Tasks::default();
        let task = tasks.at(0x1000);
        let made = tasks.get_mut(task);
        made.counts.user = 9;
        made.modelled[0] = Modelled { loads: 5, stores: 2, misses: Misses { l1d: 3, walks: 1, ..Misses::default() } };
        let root = made.tree.enter(None, 0x40, Kind::Start, 1);
        let inner = made.tree.enter(Some(root), 0x50, Kind::Call, 1);
        made.tree.charge_misses(inner, made.modelled[0].misses);
        let costs = serde_json::to_value(Costs::of(&tasks, Depth::Functions, 0, true)).unwrap();
        let told = &costs["tasks"][0];
        assert_eq!(told["modelled"]["user"]["loads"], 5);
        assert_eq!(told["modelled"]["user"]["misses"], serde_json::json!([0, 3, 0, 0, 0, 1, 0, 0, 0, 0, 0]));
        assert!(told["frames"][0].get("misses").is_none());
        assert_eq!(told["frames"][1]["misses"][1], 3);
    }
}
