//! The plan: what one trial writes, runs and counts.
//!
//! This module and `src/ajuste/model/plan.py` describe the same JSON document; the files under `contract/plan` are
//! read by the tests of both sides.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::counters;
use crate::event::Source;
pub use crate::place::location::*;

/// Of plans and events.
/// Changes when an old reader would misunderstand a new document.
pub const CONTRACT_VERSION: u32 = 1;

/// A longer document is no plan.
pub const PLAN_LIMIT_BYTES: usize = 4 << 20;

/// A tunable whose value is reported before anything is written.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Read {
    pub tunable: String,
    pub location: Location,
}

/// A tunable that gets `value`. The kernel changes its `companions` along with it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Write {
    pub tunable: String,
    pub location: Location,
    pub value: String,
    #[serde(default)]
    pub companions: Vec<Location>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    Other,
    Batch,
    Idle,
    Fifo,
    Rr,
}

/// How a process is run.
/// `None` leaves what the kernel would do by itself; a real-time policy without a priority gets the lowest, 1.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Attributes {
    pub nice: Option<i32>,
    pub policy: Option<Policy>,
    pub priority: Option<i32>,
    pub affinity: Option<Vec<u32>>,
    pub cgroup_weight: Option<u32>,
    /// More control files of the process's own group, with their values.
    pub cgroup_limits: BTreeMap<String, String>,
}

/// Whose process it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    pub uid: u32,
    pub gid: u32,
    #[serde(default)]
    pub groups: Vec<u32>,
}

/// A program with its arguments, its whole environment, and its attributes.
/// No shell runs it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    pub argv: Vec<String>,
    /// In the order in which the program finds it.
    /// A character U+10FF80 … U+10FFFF is the byte 0x80 … 0xFF, which stands in no text of UTF-8.
    #[serde(default)]
    pub environment: IndexMap<String, String>,
    #[serde(default = "root_directory")]
    pub directory: String,
    #[serde(default)]
    pub attributes: Attributes,
    #[serde(default)]
    pub user: Option<User>,
}

/// Reads one source at intervals.
/// `keys` are names of figures, or prefixes followed by `*`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sampler {
    pub source: Source,
    pub keys: Vec<String>,
    pub interval_ns: u64,
}

/// Records what the scheduler does beside the workload.
/// That costs time, so a trial that is compared never has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// The size of all CPUs' buffers together, if there is enough memory.
    pub buffer_bytes: u64,
}

/// A file system for the trial.
/// It is on `device`, or on a file of `size_bytes` in `directory`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scratch {
    pub filesystem: String,
    /// The program that formats it; the device's path is added.
    pub make: Vec<String>,
    pub mount: String,
    #[serde(default)]
    pub options: String,
    #[serde(default)]
    pub size_bytes: u64,
    #[serde(default)]
    pub directory: String,
    #[serde(default)]
    pub device: String,
    #[serde(default)]
    pub user: Option<User>,
}

/// What a seed changes: virtual-clock replicates would be identical without it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Perturbation {
    pub entropy: u64,
    pub environment_bytes: usize,
    pub start_delay_ns: u64,
}

/// When a background load is there, and the workload may start.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "lowercase", deny_unknown_fields)]
pub enum Ready {
    /// Its processes and their use of the CPUs have settled.
    #[default]
    Settled,
    /// At once.
    Started,
    /// It has printed this text.
    Output { text: String },
    /// This program ends with the exit code 0.
    Command { command: Box<Command> },
}

/// One trial. Without a workload it only reads and writes.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    #[serde(default = "contract_version")]
    pub version: u32,
    pub id: String,
    #[serde(default)]
    pub reads: Vec<Read>,
    #[serde(default)]
    pub writes: Vec<Write>,
    /// What another program may change: restored after the trial, and reported if it was changed.
    #[serde(default)]
    pub keeps: Vec<Read>,
    #[serde(default)]
    pub scratch: Option<Scratch>,
    #[serde(default)]
    pub before: Vec<Command>,
    #[serde(default)]
    pub background: Vec<Command>,
    /// Of each background load; those without one are to settle.
    #[serde(default)]
    pub ready: Vec<Ready>,
    #[serde(default = "default_ready_timeout_ns")]
    pub ready_timeout_ns: u64,
    #[serde(default)]
    pub settle_ns: u64,
    #[serde(default)]
    pub workload: Option<Command>,
    #[serde(default = "default_timeout_ns")]
    pub timeout_ns: u64,
    #[serde(default = "default_output_limit_bytes")]
    pub output_limit_bytes: u64,
    #[serde(default)]
    pub counters: Vec<String>,
    #[serde(default)]
    pub samplers: Vec<Sampler>,
    #[serde(default)]
    pub trace: Option<Trace>,
    #[serde(default)]
    pub observe_ns: u64,
    #[serde(default)]
    pub after: Vec<Command>,
    #[serde(default)]
    pub perturbation: Perturbation,
}

fn root_directory() -> String {
    "/".to_owned()
}

fn contract_version() -> u32 {
    CONTRACT_VERSION
}

fn default_timeout_ns() -> u64 {
    600_000_000_000
}

fn default_ready_timeout_ns() -> u64 {
    5_000_000_000
}

fn default_output_limit_bytes() -> u64 {
    1_048_576
}

impl Plan {
    /// Parse and check one document.
    /// The error says in one line what is wrong and where.
    pub fn parse(document: &[u8]) -> Result<Plan, String> {
        if document.len() > PLAN_LIMIT_BYTES {
            return Err(format!("the plan is longer than {PLAN_LIMIT_BYTES} bytes"));
        }
        let plan: Plan = serde_json::from_slice(document).map_err(|error| error.to_string())?;
        plan.check()?;
        Ok(plan)
    }

    fn check(&self) -> Result<(), String> {
        if self.version != CONTRACT_VERSION {
            return Err(format!("version is {}, this agent understands {CONTRACT_VERSION}", self.version));
        }
        if self.timeout_ns == 0 {
            return Err("timeout_ns is 0, it must be greater".to_owned());
        }
        within("perturbation.environment_bytes", self.perturbation.environment_bytes as i64, 0, 65536)?;
        for name in &self.counters {
            if !counters::is_known(name) {
                return Err(format!("unknown counter {name:?}; known are {}", counters::names()));
            }
        }
        for write in &self.writes {
            if matches!(write.location, Location::Flag(_) | Location::Feature(_))
                && !["0", "1"].contains(&write.value.as_str())
            {
                return Err(format!("{} is a flag: its value is \"1\" or \"0\", not {:?}", write.tunable, write.value));
            }
        }
        for (index, sampler) in self.samplers.iter().enumerate() {
            sampler.check().map_err(|reason| format!("samplers[{index}]: {reason}"))?;
        }
        if let Some(Trace { buffer_bytes }) = self.trace {
            within("trace.buffer_bytes", buffer_bytes.min(i64::MAX as u64) as i64, 1 << 16, 1 << 32)?;
        }
        for (role, commands) in [("before", &self.before), ("background", &self.background), ("after", &self.after)] {
            for (index, command) in commands.iter().enumerate() {
                command.check().map_err(|reason| format!("{role}[{index}]: {reason}"))?;
            }
        }
        if self.ready.len() > self.background.len() {
            return Err(format!(
                "ready has {} entries for {} background loads",
                self.ready.len(),
                self.background.len()
            ));
        }
        for (index, ready) in self.ready.iter().enumerate() {
            if let Ready::Command { command } = ready {
                command.check().map_err(|reason| format!("ready[{index}]: {reason}"))?;
            }
        }
        self.scratch.as_ref().map_or(Ok(()), Scratch::check).map_err(|reason| format!("scratch: {reason}"))?;
        self.workload.as_ref().map_or(Ok(()), Command::check).map_err(|reason| format!("workload: {reason}"))
    }

    /// Every command with a name unique in the plan, in the order in which they run.
    pub fn commands(&self) -> impl Iterator<Item = (String, &Command)> {
        let numbered = |role: &'static str, commands: &'_ [Command]| {
            (0..commands.len()).map(move |index| format!("{role}{index}")).collect::<Vec<_>>()
        };
        let before = numbered("before-", &self.before).into_iter().zip(&self.before);
        let background = numbered("", &self.background).into_iter().zip(&self.background);
        let workload = self.workload.iter().map(|command| ("workload".to_owned(), command));
        let after = numbered("after-", &self.after).into_iter().zip(&self.after);
        before.chain(background).chain(workload).chain(after)
    }
}

/// A sampler that reads more often would be measured itself.
const SHORTEST_INTERVAL_NS: u64 = 1_000_000;

impl Sampler {
    fn check(&self) -> Result<(), String> {
        if self.keys.is_empty() {
            return Err("keys name no figure".to_owned());
        }
        if self.interval_ns < SHORTEST_INTERVAL_NS {
            return Err(format!("interval_ns is {}, it must be at least {SHORTEST_INTERVAL_NS}", self.interval_ns));
        }
        Ok(())
    }
}

impl Scratch {
    fn check(&self) -> Result<(), String> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        if !(2..=16).contains(&self.filesystem.len()) || !self.filesystem.bytes().all(plain) {
            return Err(format!("{:?} is no name of a file system", self.filesystem));
        }
        if self.make.first().is_none_or(String::is_empty) {
            return Err("make names no program".to_owned());
        }
        if !self.mount.starts_with('/') {
            return Err(format!("mount {:?} is not absolute", self.mount));
        }
        if self.device.is_empty() && (self.size_bytes == 0 || !self.directory.starts_with('/')) {
            return Err("without a device it needs a size_bytes and an absolute directory".to_owned());
        }
        let texts = self.make.iter().chain([&self.mount, &self.options, &self.directory, &self.device]);
        match texts.into_iter().find(|text| text.contains('\0')) {
            Some(text) => Err(format!("{text:?} contains a zero byte")),
            None => Ok(()),
        }
    }
}

impl Command {
    fn check(&self) -> Result<(), String> {
        if self.argv.first().is_none_or(String::is_empty) {
            return Err("argv names no program".to_owned());
        }
        if !self.directory.starts_with('/') {
            return Err(format!("directory {:?} is not absolute", self.directory));
        }
        let texts = self.argv.iter().chain(self.environment.values()).chain([&self.directory]);
        if let Some(text) = texts.into_iter().find(|text| text.contains('\0')) {
            return Err(format!("{text:?} contains a zero byte"));
        }
        if let Some(name) = self.environment.keys().find(|name| name.is_empty() || name.contains(['=', '\0'])) {
            return Err(format!("{name:?} is no name of an environment variable"));
        }
        self.attributes.check()
    }
}

impl Attributes {
    fn check(&self) -> Result<(), String> {
        if let Some(nice) = self.nice {
            within("nice", nice.into(), -20, 19)?;
        }
        if let Some(priority) = self.priority {
            within("priority", priority.into(), 1, 99)?;
        }
        if let Some(weight) = self.cgroup_weight {
            within("cgroup_weight", weight.into(), 1, 10000)?;
        }
        if let Some(name) = self.cgroup_limits.keys().find(|name| !is_cgroup_file(name)) {
            return Err(format!("{name:?} is no control file of the controllers cpu, memory, io and pids"));
        }
        if self.priority.is_some() && !self.is_realtime() {
            return Err("priority is for the policies fifo and rr only".to_owned());
        }
        if self.affinity.as_ref().is_some_and(Vec::is_empty) {
            return Err("affinity names no CPU".to_owned());
        }
        Ok(())
    }

    /// Whether it runs before every ordinary process.
    pub fn is_realtime(&self) -> bool {
        matches!(self.policy, Some(Policy::Fifo | Policy::Rr))
    }
}

fn is_cgroup_file(name: &str) -> bool {
    let mut parts = name.split('.');
    let controller = parts.next().is_some_and(|part| ["cpu", "memory", "io", "pids"].contains(&part));
    let mut parts = parts.peekable();
    let plain = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase());
    controller && parts.peek().is_some() && parts.all(plain)
}

fn within(name: &str, value: i64, low: i64, high: i64) -> Result<(), String> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(format!("{name} is {value}, it must be from {low} to {high}"))
}
