//! The events of a trial, one JSON document a line.
//!
//! This module and `src/ajuste/model/event.py` describe the same lines; the files under `contract/events` are read
//! by the tests of both sides. `at_ns` is CLOCK_MONOTONIC_RAW of the machine that is measured.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::trace::recording::Recording;

/// One line. Internally tagged by `event`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum Event {
    Hello(Hello),
    Gate(Gate),
    Accepted(Accepted),
    Read(ReadBack),
    Written(Written),
    Started(Started),
    Loaded(Loaded),
    Output(Output),
    Exited(Exited),
    Counter(Counter),
    Sample(Sample),
    Sampled(Sampled),
    Traced(Box<Traced>),
    Paused(Paused),
    Restored(Restored),
    Journal(Left),
    Failed(Failed),
    End(End),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Workload,
    Background,
    Before,
    After,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    Stdout,
    Stderr,
}

/// Where a sampler reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    Vmstat,
    Meminfo,
    Diskstats,
    Schedstat,
    Pressure,
    Softirqs,
    Interrupts,
    Stat,
    Process,
}

/// What the agent was doing when something went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    Boot,
    Plan,
    Journal,
    Read,
    Write,
    Scratch,
    Before,
    Background,
    Workload,
    Counters,
    Samplers,
    After,
    Restore,
}

/// First of all: who speaks and from what machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    pub at_ns: u64,
    pub version: u32,
    pub agent: String,
    pub kernel: String,
    pub build: String,
    pub machine: String,
    pub cpus: u64,
    pub memory_bytes: u64,
    pub guest: bool,
}

/// A guest is ready for its plan and stops here.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gate {
    pub at_ns: u64,
}

/// The plan was understood. Events are counted from this one.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accepted {
    pub at_ns: u64,
    pub id: String,
}

/// The value of a tunable, or why it cannot be read.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadBack {
    pub at_ns: u64,
    pub tunable: String,
    #[serde(default)]
    pub value: Option<String>,
    #[serde(default)]
    pub error: Option<String>,
}

/// A tunable was written; `after` is what the kernel made of what was `asked`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Written {
    pub at_ns: u64,
    pub tunable: String,
    pub asked: String,
    pub before: String,
    pub after: String,
}

/// A process is about to execute its program.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Started {
    pub at_ns: u64,
    pub role: Role,
    pub index: usize,
    pub pid: i32,
}

/// The background load is there, or was waited for in vain. Said just before the workload starts.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loaded {
    pub at_ns: u64,
    /// Whether it settled, where it had to.
    pub settled: bool,
    /// Since the start of the last load.
    pub waited_ns: u64,
    /// Of all loads that had to settle.
    pub processes: usize,
    /// CPU time that each load's first process has used until now.
    pub used_ns: Vec<u64>,
}

/// What a process printed on one stream.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Output {
    pub at_ns: u64,
    pub role: Role,
    pub index: usize,
    pub stream: Stream,
    pub text: String,
    #[serde(default)]
    pub dropped_bytes: u64,
}

/// A process ended; the figures of wait4(2), with the children it waited for.
///
/// Switches and faults are those since its exec was released: what the agent's own preparation in that process cost
/// is taken off.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exited {
    pub at_ns: u64,
    pub role: Role,
    pub index: usize,
    #[serde(default)]
    pub exit_code: Option<i32>,
    #[serde(default)]
    pub signal: Option<i32>,
    #[serde(default)]
    pub timed_out: bool,
    pub wall_ns: u64,
    pub user_ns: u64,
    pub system_ns: u64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
    pub minor_faults: u64,
    pub major_faults: u64,
    pub peak_rss_bytes: u64,
}

/// A perf event of the workload: its value, or why there is none.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counter {
    pub at_ns: u64,
    pub name: String,
    #[serde(default)]
    pub value: Option<u64>,
    #[serde(default)]
    pub enabled_ns: u64,
    #[serde(default)]
    pub running_ns: u64,
    #[serde(default)]
    pub not_supported: Option<String>,
}

/// What a sampler read. Said after the observation ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    pub at_ns: u64,
    pub source: Source,
    pub values: BTreeMap<String, u64>,
}

/// The end of the plan's sampler `index`.
/// It says how often the sampler read, how many due times it missed, whether the room for readings was used up, or
/// why there is nothing to read.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sampled {
    pub at_ns: u64,
    pub index: usize,
    pub source: Source,
    pub readings: u64,
    #[serde(default)]
    pub skipped: u64,
    #[serde(default)]
    pub full: bool,
    #[serde(default)]
    pub not_supported: Option<String>,
}

/// What the scheduler did beside the workload, or why that is not known.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Traced {
    pub at_ns: u64,
    #[serde(default)]
    pub recording: Option<Recording>,
    #[serde(default)]
    pub not_supported: Option<String>,
}

/// A process or the machine stood still during a trial on a host.
/// The measured times are too long.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paused {
    pub at_ns: u64,
    pub who: PausedOne,
    /// At most.
    pub paused_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PausedOne {
    Agent,
    Workload,
    Background,
    Machine,
}

/// A place has its old value again.
/// `found` was there just before; `value` was read back afterwards.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restored {
    pub at_ns: u64,
    pub tunable: String,
    pub found: String,
    pub value: String,
}

/// What became of a journal that a session had left behind.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Left {
    pub at_ns: u64,
    pub path: String,
    pub state: JournalState,
    #[serde(default)]
    pub message: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JournalState {
    /// Everything is as it was; it was removed.
    Restored,
    /// There was nothing to undo; it was removed.
    Void,
    /// A guardian that was at work removed it.
    Gone,
    /// Its session is still at work.
    Held,
    /// Something could not be put back; it says what.
    Kept,
    /// Some lines cannot be read.
    /// The others were put back, or an event says what was not.
    Damaged,
    /// It cannot be read, or was deleted: values may still be changed.
    Unknown,
    /// Of another machine or an unknown boot; left alone.
    Foreign,
    /// It is no journal, or not one that can be trusted.
    Malformed,
}

/// The plan could not be carried out.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failed {
    pub at_ns: u64,
    pub stage: Stage,
    pub message: String,
    #[serde(default)]
    pub tunable: Option<String>,
}

/// Last of all; `events` came before it since (and with) `accepted`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    pub at_ns: u64,
    pub id: String,
    pub ok: bool,
    pub events: u64,
}
