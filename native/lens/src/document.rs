//! The document that the lens writes: `Costs` of `src/ajuste/model/cost.py`.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use serde::Serialize;

use crate::arguments::Depth;
use crate::symbols::is_kernel;
use crate::task::{Task, Tasks};

const VERSION: u32 = 1;

#[derive(Serialize)]
struct CostFrame {
    parent: i64,
    space: &'static str,
    address: u64,
    kind: &'static str,
    calls: u64,
    instructions: u64,
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
    pub fn of(tasks: &Tasks, depth: Depth, faulted: u64) -> Costs {
        let seen = tasks.seen();
        let told: Vec<CostTask> =
            (0..seen.len()).filter(|task| seen[*task]).map(|task| described(tasks, task)).collect();
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

fn described(tasks: &Tasks, number: usize) -> CostTask {
    let task = &tasks.all()[number];
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
        entry: task.entry,
        frames: frames(task),
        code: task.code.iter().map(|(address, bytes)| CostCode { address: *address, bytes_: in_hex(bytes) }).collect(),
    }
}

fn frames(task: &Task) -> Vec<CostFrame> {
    let frame = |node: &crate::tree::Node| CostFrame {
        parent: node.parent.map_or(-1, i64::from),
        space: if is_kernel(node.address) { "kernel" } else { "user" },
        address: node.address,
        kind: node.kind.word(),
        calls: node.calls,
        instructions: node.instructions,
    };
    task.tree.nodes().iter().map(frame).collect()
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
        let costs = serde_json::to_value(Costs::of(&tasks, Depth::Functions, 1)).unwrap();
        assert_eq!(costs["user"], 5);
        assert_eq!(costs["tasks"].as_array().unwrap().len(), 1);
        let told = &costs["tasks"][0];
        assert_eq!(told["code"][0]["bytes_"], "0f05");
        assert_eq!(told["frames"][1]["space"], "kernel");
        assert_eq!(told["frames"][1]["parent"], 0);
        assert_eq!(told["frames"][0]["parent"], -1);
    }
}
