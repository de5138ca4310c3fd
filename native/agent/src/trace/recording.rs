//! What a trace comes to: the figures that are said of it.
//! `src/ajuste/model/scheduling.py` describes the same.

use serde::{Deserialize, Serialize};

use super::spread::Spread;

/// The owner of a task: workload, background load, or others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    Workload,
    Background,
    #[default]
    Other,
}

/// How often tasks left the CPU, by cause.
///
/// The first two wanted to continue.
/// A task that woke up took their place (`by_wakeup`), or their time slice expired, they yielded, or they were moved to
/// another CPU (`by_turn`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Switches {
    pub by_wakeup: u64,
    pub by_turn: u64,
    pub slept: u64,
    pub blocked: u64,
    pub stopped: u64,
    pub exited: u64,
}

/// The tasks of one part.
/// `latency` is from being woken to running, `runs` from being given the CPU to leaving it; `wait_ns` is all the time
/// in which they could have run and did not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Behaviour {
    pub tasks: u64,
    pub switches: Switches,
    pub wakeups: u64,
    pub migrations: u64,
    pub run_ns: u64,
    pub wait_ns: u64,
    pub latency: Spread,
    pub runs: Spread,
}

/// How long a command had a CPU, and how often it left one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    pub command: String,
    pub part: Part,
    pub run_ns: u64,
    pub switches: u64,
}

/// How often a task `by` of that `part` preempted the workload's task `preempted`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preemption {
    pub preempted: String,
    pub by: String,
    pub part: Part,
    pub count: u64,
}

/// From the workload's start to its end, or until the buffer was full.
/// Then `covered_ns` is less than `span_ns`, and `lost` events are missing. `queue` has the nanoseconds during which
/// that many tasks could run on a CPU, including the running ones. Of `shares` and `preemptions` the greatest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recording {
    pub span_ns: u64,
    pub covered_ns: u64,
    pub events: u64,
    pub lost: u64,
    pub buffer_bytes: u64,
    pub cpus: u64,
    pub idle_ns: u64,
    pub workload: Behaviour,
    pub background: Behaviour,
    pub queue: Vec<(u64, u64)>,
    pub shares: Vec<Share>,
    pub preemptions: Vec<Preemption>,
}
