//! Figures by name from the text of kernel files, one function per format.
//! Pure.
//!
//! The names are those of `docs/reference/sampler-figures.md`. A line that does not look as it should is passed over: later kernels add
//! lines and fields.

/// Which figures are wanted: names, or beginnings of them followed by `*`.
#[derive(Debug)]
pub struct Keys {
    names: Vec<String>,
    beginnings: Vec<String>,
}

impl Keys {
    pub fn new(keys: &[String]) -> Keys {
        let beginnings = keys.iter().filter_map(|key| key.strip_suffix('*')).map(str::to_owned).collect();
        let names = keys.iter().filter(|key| !key.ends_with('*')).cloned().collect();
        Keys { names, beginnings }
    }

    fn choose(&self, name: &str) -> bool {
        self.names.iter().any(|own| own == name) || self.beginnings.iter().any(|own| name.starts_with(own.as_str()))
    }

    /// Whether any figure is wanted whose name begins with `beginning`.
    pub fn may_choose(&self, beginning: &str) -> bool {
        self.names.iter().any(|own| own.starts_with(beginning))
            || self.beginnings.iter().any(|own| own.starts_with(beginning) || beginning.starts_with(own.as_str()))
    }
}

/// Takes the figures that are wanted.
pub struct Chosen<'a> {
    keys: &'a Keys,
    name: String,
    take: &'a mut dyn FnMut(&str, u64),
}

impl<'a> Chosen<'a> {
    pub fn new(keys: &'a Keys, take: &'a mut dyn FnMut(&str, u64)) -> Chosen<'a> {
        Chosen { keys, name: String::new(), take }
    }

    /// The name comes in two pieces: those that are not wanted are never joined.
    fn figure(&mut self, beginning: &str, rest: &str, value: Option<u64>) {
        let Some(value) = value else { return };
        self.name.clear();
        self.name.push_str(beginning);
        self.name.push_str(rest);
        if self.keys.choose(&self.name) {
            (self.take)(&self.name, value);
        }
    }

    fn figures<'t>(&mut self, beginning: &str, names: &[&str], values: impl Iterator<Item = &'t str>) {
        if self.keys.may_choose(beginning) {
            for (name, value) in names.iter().zip(values).filter(|(name, _)| !name.is_empty()) {
                self.figure(beginning, name, number(value));
            }
        }
    }
}

fn number(text: &str) -> Option<u64> {
    text.parse().ok()
}

/// `NAME VALUE` a line: /proc/vmstat.
pub fn vmstat(text: &str, chosen: &mut Chosen<'_>) {
    for (name, value) in text.lines().filter_map(|line| line.split_once(' ')) {
        chosen.figure("", name, number(value));
    }
}

/// `NAME: VALUE kB` or `NAME: VALUE` a line: /proc/meminfo. Kibibytes become bytes.
pub fn meminfo(text: &str, chosen: &mut Chosen<'_>) {
    for (name, value) in text.lines().filter_map(|line| line.split_once(':')) {
        chosen.figure("", name, in_bytes(value).or_else(|| number(value.trim())));
    }
}

/// The bytes that a text with the unit kB says.
fn in_bytes(text: &str) -> Option<u64> {
    number(text.trim().strip_suffix(" kB")?)?.checked_mul(1024)
}

/// Documentation/admin-guide/iostats.rst, fields 1 to 17.
const DISK: [&str; 17] = [
    "reads_completed",
    "reads_merged",
    "sectors_read",
    "read_ms",
    "writes_completed",
    "writes_merged",
    "sectors_written",
    "write_ms",
    "ios_in_progress",
    "io_ms",
    "weighted_io_ms",
    "discards_completed",
    "discards_merged",
    "sectors_discarded",
    "discard_ms",
    "flushes_completed",
    "flush_ms",
];

/// /proc/diskstats: `vda.sectors_written`.
pub fn diskstats(text: &str, chosen: &mut Chosen<'_>) {
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace().skip(2);
        let Some(device) = words.next() else { continue };
        chosen.figures(&format!("{device}."), &DISK, words);
    }
}

/// CPU statistics of Documentation/scheduler/sched-stats.rst.
/// The second has been unused since the O(1) scheduler.
const RUNQUEUE: [&str; 9] =
    ["yields", "", "schedules", "schedules_idle", "wakeups", "wakeups_local", "run_ns", "wait_ns", "timeslices"];

/// /proc/schedstat: `cpu0.wait_ns`, and `cpu.wait_ns` for all CPUs together.
pub fn schedstat(text: &str, chosen: &mut Chosen<'_>) {
    let mut totals = [0_u64; RUNQUEUE.len()];
    for line in text.lines().filter(|line| line.starts_with("cpu")) {
        let mut words = line.split_ascii_whitespace();
        let cpu = words.next().unwrap_or_default();
        chosen.figures(&format!("{cpu}."), &RUNQUEUE, words.clone());
        for (total, value) in totals.iter_mut().zip(words) {
            *total = total.saturating_add(number(value).unwrap_or(0));
        }
    }
    for (name, total) in RUNQUEUE.iter().zip(totals).filter(|(name, _)| !name.is_empty()) {
        chosen.figure("cpu.", name, Some(total));
    }
}

/// One file of /proc/pressure for its `resource`: `io.full.total_us`.
/// (Documentation/accounting/psi.rst)
pub fn pressure(resource: &str, text: &str, chosen: &mut Chosen<'_>) {
    for line in text.lines() {
        let share = line.split(' ').next().unwrap_or_default();
        let total = line.rsplit_once(" total=").and_then(|(_, total)| number(total));
        chosen.figure(resource, &format!(".{share}.total_us"), total);
    }
}

/// A table with a column for each CPU: /proc/softirqs, /proc/interrupts.
/// `NET_RX` is the sum of all CPUs, `NET_RX.cpu0` of one.
pub fn by_cpu(text: &str, chosen: &mut Chosen<'_>) {
    let mut lines = text.lines();
    let cpus: Vec<_> = lines.next().unwrap_or_default().split_ascii_whitespace().map(str::to_ascii_lowercase).collect();
    for line in lines {
        let Some((name, rest)) = line.split_once(':') else { continue };
        let name = name.trim_start();
        if !chosen.keys.may_choose(name) {
            continue;
        }
        let words = rest.split_ascii_whitespace().take(cpus.len());
        let counts: Vec<u64> = words.map_while(number).collect();
        let total = counts.iter().fold(0_u64, |total, count| total.saturating_add(*count));
        chosen.figure(name, "", (!counts.is_empty()).then_some(total));
        // A line with fewer columns counts for the whole machine.
        if counts.len() == cpus.len() && chosen.keys.may_choose(&format!("{name}.")) {
            for (cpu, count) in cpus.iter().zip(counts) {
                chosen.figure(name, &format!(".{cpu}"), Some(count));
            }
        }
    }
}

/// proc_stat(5); in clock ticks.
const TICKS: [&str; 10] = [
    "user_ticks",
    "nice_ticks",
    "system_ticks",
    "idle_ticks",
    "iowait_ticks",
    "irq_ticks",
    "softirq_ticks",
    "steal_ticks",
    "guest_ticks",
    "guest_nice_ticks",
];

/// /proc/stat: `ctxt`, `procs_running`, `cpu.user_ticks`, `cpu0.steal_ticks`.
/// Of `intr` and `softirq` the total.
pub fn stat(text: &str, chosen: &mut Chosen<'_>) {
    for (name, values) in text.lines().filter_map(|line| line.split_once(' ')) {
        let mut values = values.split_ascii_whitespace();
        if name.starts_with("cpu") {
            chosen.figures(&format!("{name}."), &TICKS, values);
        } else {
            chosen.figure("", name, values.next().and_then(number));
        }
    }
}

/// Fields of proc_pid_stat(5), by their place after the name.
/// Others can be negative or are no figures.
const PROCESS: [(usize, &str); 11] = [
    (7, "minor_faults"),
    (8, "child_minor_faults"),
    (9, "major_faults"),
    (10, "child_major_faults"),
    (11, "utime_ticks"),
    (12, "stime_ticks"),
    (17, "threads"),
    (20, "vsize_bytes"),
    (RESIDENT, "rss_bytes"),
    (36, "cpu"),
    (39, "blkio_delay_ticks"),
];
const RESIDENT: usize = 21;

/// /proc/PID/stat, whose second field, the program's name, may contain anything.
pub fn process_stat(text: &str, page_bytes: u64, chosen: &mut Chosen<'_>) {
    let fields: Vec<&str> = text.rsplit_once(')').map_or("", |(_, rest)| rest).split_ascii_whitespace().collect();
    for (place, name) in PROCESS {
        let unit = if place == RESIDENT { page_bytes } else { 1 };
        let value = fields.get(place).copied().and_then(number);
        chosen.figure("stat.", name, value.and_then(|value| value.checked_mul(unit)));
    }
}

/// /proc/PID/io: `io.write_bytes`.
pub fn process_io(text: &str, chosen: &mut Chosen<'_>) {
    for (name, value) in text.lines().filter_map(|line| line.split_once(": ")) {
        chosen.figure("io.", name, number(value));
    }
}

/// /proc/PID/schedstat: of the process's first thread.
pub fn process_schedstat(text: &str, chosen: &mut Chosen<'_>) {
    chosen.figures("schedstat.", &["run_ns", "wait_ns", "timeslices"], text.split_ascii_whitespace());
}

/// /proc/PID/status: sizes, in bytes, and the few lines that are counts.
/// Masks are written in digits too.
pub fn process_status(text: &str, chosen: &mut Chosen<'_>) {
    const COUNTS: [&str; 4] = ["FDSize", "Threads", "voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"];
    for (name, value) in text.lines().filter_map(|line| line.split_once(':')) {
        let count = if COUNTS.contains(&name) { number(value.trim()) } else { None };
        chosen.figure("status.", name, in_bytes(value).or(count));
    }
}

#[cfg(test)]
#[path = "figures_test.rs"]
mod tests;
