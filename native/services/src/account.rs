//! What the processes of a service have used, as the kernel accounts for them.

use std::collections::BTreeMap;
use std::fs;

use crate::report::Use;

/// At one moment, of all descendants of this process.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// Of those that live, with what they have reaped themselves.
    cpu_ns: u64,
    /// By process and thread: voluntary and involuntary switches.
    switches: BTreeMap<(i32, i32), (u64, u64)>,
    peak_rss_bytes: u64,
    /// What this process has reaped, as wait4(2) says.
    reaped: Reaped,
}

/// Of children that have ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reaped {
    pub cpu_ns: u64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
}

impl Reaped {
    pub fn add(&mut self, usage: &libc::rusage) {
        let nanoseconds = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
        self.cpu_ns += nanoseconds(usage.ru_utime) + nanoseconds(usage.ru_stime);
        self.voluntary_switches += usage.ru_nvcsw as u64;
        self.involuntary_switches += usage.ru_nivcsw as u64;
    }
}

impl Account {
    pub fn now(reaped: Reaped) -> Account {
        let mut account = Account { reaped, ..Account::default() };
        for pid in descendants() {
            account.cpu_ns += cpu_ns(pid) + children_ns(pid);
            account.peak_rss_bytes += 1024 * line(&read(&format!("/proc/{pid}/status")), "VmHWM:");
            for thread in numbers(&format!("/proc/{pid}/task")) {
                let status = read(&format!("/proc/{pid}/task/{thread}/status"));
                let counts = (line(&status, "voluntary_ctxt_switches:"), line(&status, "nonvoluntary_ctxt_switches:"));
                account.switches.insert((pid, thread), counts);
            }
        }
        account
    }

    /// What was used since `begin`.
    pub fn since(&self, begin: &Account) -> Use {
        let mut used = Use {
            cpu_ns: (self.cpu_ns + self.reaped.cpu_ns).saturating_sub(begin.cpu_ns + begin.reaped.cpu_ns),
            peak_rss_bytes: self.peak_rss_bytes,
            voluntary_switches: self.reaped.voluntary_switches - begin.reaped.voluntary_switches,
            involuntary_switches: self.reaped.involuntary_switches - begin.reaped.involuntary_switches,
        };
        for (thread, (voluntary, involuntary)) in &self.switches {
            let (before, before_involuntary) = begin.switches.get(thread).copied().unwrap_or_default();
            used.voluntary_switches += voluntary.saturating_sub(before);
            used.involuntary_switches += involuntary.saturating_sub(before_involuntary);
        }
        used
    }
}

/// Let the largest memory of each process begin anew (clear_refs, proc(5)).
pub fn forget_peaks() {
    for pid in descendants() {
        let _ = fs::write(format!("/proc/{pid}/clear_refs"), "5");
    }
}

/// All descendants of this process that were not reaped.
/// Orphans among them are its children (PR_SET_CHILD_SUBREAPER).
pub fn descendants() -> Vec<i32> {
    let mut found = children();
    let mut next = 0;
    while next < found.len() {
        found.extend(children_of(found[next]));
        next += 1;
    }
    found
}

/// The children of this process.
pub fn children() -> Vec<i32> {
    children_of(std::process::id() as i32)
}

fn children_of(pid: i32) -> Vec<i32> {
    let mut found = Vec::new();
    for thread in numbers(&format!("/proc/{pid}/task")) {
        match fs::read_to_string(format!("/proc/{pid}/task/{thread}/children")) {
            Ok(text) => found.extend(text.split_whitespace().filter_map(|number| number.parse::<i32>().ok())),
            // CONFIG_PROC_CHILDREN, which small kernels lack.
            Err(_) => return numbers("/proc").into_iter().filter(|one| stat(*one, 1) == pid as u64).collect(),
        }
    }
    found
}

/// What all threads of a process have used, also those that have ended: clock_getcpuclockid(3).
fn cpu_ns(pid: i32) -> u64 {
    const PROF_OF_PROCESS: i32 = 2;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel only writes to the structure given.
    match unsafe { libc::clock_gettime((!pid << 3) | PROF_OF_PROCESS, &mut time) } {
        0 => time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64,
        _ => ticks_ns(stat(pid, 11) + stat(pid, 12)),
    }
}

/// What a process has reaped, known only in clock ticks.
fn children_ns(pid: i32) -> u64 {
    ticks_ns(stat(pid, 13) + stat(pid, 14))
}

fn ticks_ns(ticks: u64) -> u64 {
    // SAFETY: it only takes a number.
    let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as u64;
    ticks * (1_000_000_000 / per_second)
}

/// A field of /proc/PID/stat, counted from the state, which is 0.
/// The name before it may contain anything.
fn stat(pid: i32, index: usize) -> u64 {
    let text = read(&format!("/proc/{pid}/stat"));
    let rest = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    rest.split_whitespace().nth(index).and_then(|field| field.parse().ok()).unwrap_or(0)
}

fn line(status: &str, name: &str) -> u64 {
    let value = status.lines().find_map(|line| line.strip_prefix(name));
    value.and_then(|text| text.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn read(path: &str) -> String {
    fs::read(path).map_or_else(|_| String::new(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn numbers(path: &str) -> Vec<i32> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let mut found: Vec<i32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn what_descendants_use_is_counted() {
        let mut child = Command::new("sh")
            .args(["-c", "read go; i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; sleep 0.01; echo; read end"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let begin = Account::now(Reaped::default());
        let mut input = child.stdin.take().unwrap();
        std::io::Write::write_all(&mut input, b"\n").unwrap();
        let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut output, &mut String::new()).unwrap();
        let used = Account::now(Reaped::default()).since(&begin);
        drop(input);
        child.wait().unwrap();
        assert!(used.cpu_ns > 1_000_000 && used.cpu_ns < 60_000_000_000);
        assert!(used.peak_rss_bytes > 100_000);
        assert!(used.voluntary_switches > 0);
    }
}
