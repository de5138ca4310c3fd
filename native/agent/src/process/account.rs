//! Processes as the kernel accounts for them: their use, their end, their kin.

use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::time::Duration;

use crate::clock;
use crate::disk::fs::{self, File};

/// What a process used before its exec: the agent's share, not the program's.
#[derive(Clone, Copy, Debug, Default)]
pub struct Baseline {
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
    pub minor_faults: u64,
    pub major_faults: u64,
    /// When it began, in clock ticks since the boot.
    pub started_ticks: u64,
}

const LOOKS: u32 = 1000;
/// Looks without a pause: a process that has reported ready usually sleeps by then.
const LOOKS_AT_ONCE: u32 = 20;
const BETWEEN_LOOKS: Duration = Duration::from_micros(100);

impl Baseline {
    /// Wait until `pid` sleeps, then read what it has used so far.
    /// It sleeps until its release (proc_pid_stat(5), proc_pid_status(5)).
    pub fn of_sleeping(pid: i32) -> Baseline {
        let mut stat = Stat::of(pid);
        for look in 0..LOOKS {
            if stat.field(0) == Some("S") {
                break;
            }
            if look < LOOKS_AT_ONCE {
                rustix::thread::sched_yield();
            } else {
                clock::sleep(BETWEEN_LOOKS);
            }
            stat = Stat::of(pid);
        }
        let status = about(pid, "status");
        let line = |name: &str| {
            let value = status.lines().find_map(|line| line.strip_prefix(name));
            value.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
        };
        Baseline {
            voluntary_switches: line("voluntary_ctxt_switches:"),
            involuntary_switches: line("nonvoluntary_ctxt_switches:"),
            minor_faults: stat.number(7).unwrap_or(0),
            major_faults: stat.number(9).unwrap_or(0),
            started_ticks: stat.number(19).unwrap_or(0),
        }
    }
}

/// The beginning of `/proc/PID/NAME`, as the kernel gives it in one read.
fn about(pid: i32, name: &str) -> String {
    let mut bytes = [0; 4096];
    let count = File::open(format!("/proc/{pid}/{name}")).and_then(|mut file| file.read(&mut bytes)).unwrap_or(0);
    String::from_utf8_lossy(&bytes[..count]).into_owned()
}

/// The fields of `/proc/PID/stat` from the state on.
/// The name before it may contain anything.
struct Stat(String);

impl Stat {
    fn of(pid: i32) -> Stat {
        let text = about(pid, "stat");
        Stat(text.rsplit_once(')').map_or("", |(_, rest)| rest).to_owned())
    }

    fn field(&self, index: usize) -> Option<&str> {
        self.0.split_whitespace().nth(index)
    }

    fn number<T: std::str::FromStr>(&self, index: usize) -> Option<T> {
        self.field(index)?.parse().ok()
    }
}

/// A process among others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kin {
    pub pid: i32,
    pub parent: i32,
    pub group: i32,
    /// When it began, in clock ticks since the boot.
    pub started_ticks: u64,
    pub is_dead: bool,
}

/// What the kernel says of the process `pid`, `None` if there is none.
pub fn kin(pid: i32) -> Option<Kin> {
    let stat = Stat::of(pid);
    let is_dead = ["Z", "X"].contains(&stat.field(0)?);
    Some(Kin { pid, parent: stat.number(1)?, group: stat.number(2)?, started_ticks: stat.number(19)?, is_dead })
}

/// Every process that is not dead yet, but this one.
pub fn everybody() -> Vec<Kin> {
    let me = std::process::id() as i32;
    numbers_in("/proc").filter(|pid| *pid != me).filter_map(kin).filter(|kin| !kin.is_dead).collect()
}

/// Be the last process that goes when memory is short. Only root may say so.
pub fn be_spared_when_memory_is_short() {
    let _ = fs::write("/proc/self/oom_score_adj", "-1000");
}

/// When the process `pid` began, in clock ticks since the boot.
/// That distinguishes it from a later process with the same number.
pub fn start_ticks(pid: i32) -> Option<u64> {
    kin(pid).filter(|kin| !kin.is_dead).map(|kin| kin.started_ticks)
}

/// Run `live` in a new process that is a child of this one's parent, and end there.
///
/// It is no child of this process, so nothing kills it or waits for it here.
/// Its parent reaps it; not every machine's first process would.
pub fn fork_sibling(live: impl FnOnce()) -> io::Result<()> {
    let flags = libc::CLONE_PARENT | libc::SIGCHLD;
    // SAFETY: as fork(2), without what the C library does about it: there is one
    // thread, so a forked process may do all that this one may.
    match unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            live();
            // SAFETY: nothing of the other process's is cleaned up here.
            unsafe { libc::_exit(0) }
        }
        _ => Ok(()),
    }
}

/// How a process ended, with wait4(2)'s account.
#[derive(Clone, Copy)]
pub struct Ended {
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    pub usage: libc::rusage,
}

impl Ended {
    pub fn user_ns(&self) -> u64 {
        nanoseconds(self.usage.ru_utime)
    }

    pub fn system_ns(&self) -> u64 {
        nanoseconds(self.usage.ru_stime)
    }
}

fn nanoseconds(time: libc::timeval) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000
}

/// Wait for a child of ours that has ended or is about to.
pub fn reap(pid: i32) -> io::Result<Ended> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    loop {
        // SAFETY: both places are ours and of the right type.
        if unsafe { libc::wait4(pid, &mut status, 0, usage.as_mut_ptr()) } == pid {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    // SAFETY: wait4 filled it in, and zeros are valid too.
    let usage = unsafe { usage.assume_init() };
    let signal = libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status));
    let exit_code = libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
    Ok(Ended { exit_code, signal, usage })
}

/// What happened to a process that goes on living.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Stopped,
    Continued,
}

/// What happened last to a child of ours, said once.
pub fn change(pid: i32) -> Option<Change> {
    // SAFETY: nothing is written but the structure given.
    let about = unsafe {
        let mut about = MaybeUninit::<libc::siginfo_t>::zeroed();
        let options = libc::WSTOPPED | libc::WCONTINUED | libc::WNOHANG;
        if libc::waitid(libc::P_PID, pid as libc::id_t, about.as_mut_ptr(), options) != 0 {
            return None;
        }
        about.assume_init()
    };
    // SAFETY: waitid fills in this member, or leaves it zero.
    match (unsafe { about.si_pid() }, about.si_code) {
        (0, _) => None,
        (_, libc::CLD_STOPPED) => Some(Change::Stopped),
        (_, libc::CLD_CONTINUED) => Some(Change::Continued),
        _ => None,
    }
}

/// Send `signal` to a process group. That none is left of it is no error.
pub fn signal_group(leader: i32, signal: i32) {
    // SAFETY: kill(2) only takes numbers.
    unsafe { libc::kill(-leader, signal) };
}

/// Adopt orphaned descendants, so that [`kill_children`] finds them.
/// (PR_SET_CHILD_SUBREAPER)
pub fn adopt_orphans() {
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// Kill and reap all children but the `spared`, until none is left.
/// Their children become ours and are killed too.
pub fn kill_children(spared: &[i32]) {
    while !spared.is_empty() {
        let doomed: Vec<i32> = children().into_iter().filter(|child| !spared.contains(child)).collect();
        for child in &doomed {
            // SAFETY: as above.
            // Only this process reaps our children, so the number is still theirs.
            unsafe { libc::kill(*child, libc::SIGKILL) };
            let _ = reap(*child);
        }
        if doomed.is_empty() {
            return;
        }
    }
    while has_children() {
        // The first process of a guest may kill all others.
        // A host only kills those that the kernel lists as ours.
        if std::process::id() == 1 {
            // SAFETY: as above.
            unsafe { libc::kill(-1, libc::SIGKILL) };
        }
        for child in children() {
            // SAFETY: as above.
            // Only this process reaps our children, so the number is still theirs.
            unsafe { libc::kill(child, libc::SIGKILL) };
        }
        // SAFETY: as in reap.
        if unsafe { libc::waitpid(-1, std::ptr::null_mut(), 0) } < 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return;
            }
        }
    }
}

/// Whether any process is left that we would have to reap.
fn has_children() -> bool {
    // SAFETY: nothing is reaped, and nothing is written but the structure given.
    unsafe {
        let mut about = MaybeUninit::<libc::siginfo_t>::zeroed();
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        libc::waitid(libc::P_ALL, 0, about.as_mut_ptr(), options) == 0
    }
}

/// Our children as they are now.
pub fn children() -> Vec<i32> {
    let own = std::process::id() as i32;
    children_of_thread(own, own).unwrap_or_else(|| children_of(own))
}

/// `None` without CONFIG_PROC_CHILDREN, which small kernels lack.
fn children_of_thread(pid: i32, thread: i32) -> Option<Vec<i32>> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{thread}/children")).ok()?;
    Some(text.split_whitespace().filter_map(|number| number.parse().ok()).collect())
}

/// The same from what every process says of its parent.
fn children_of(parent: i32) -> Vec<i32> {
    numbers_in("/proc").filter(|pid| Stat::of(*pid).number(1) == Some(parent)).collect()
}

fn numbers_in(directory: &str) -> impl Iterator<Item = i32> + use<> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Those of `leaders` that are not dead, and all that they have started, directly or not.
pub fn descendants(leaders: &[i32]) -> Vec<i32> {
    let mut family = Vec::new();
    let mut unseen = leaders.to_vec();
    while let Some(pid) = unseen.pop() {
        if kin(pid).is_none_or(|kin| kin.is_dead) {
            continue;
        }
        family.push(pid);
        for thread in numbers_in(&format!("/proc/{pid}/task")) {
            unseen.extend(children_of_thread(pid, thread).unwrap_or_else(|| children_of(pid)));
        }
    }
    family
}

/// Whether a process runs, or waits for a CPU.
pub fn is_runnable(pid: i32) -> bool {
    Stat::of(pid).field(0) == Some("R")
}

/// The CPU time that all threads of a process have used so far (clock_getcpuclockid(3)).
pub fn cpu_ns(pid: i32) -> Option<u64> {
    const SCHEDULED: libc::clockid_t = 2;
    let mut used = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is what clock_gettime(2) fills in.
    let result = unsafe { libc::clock_gettime((!pid << 3) | SCHEDULED, &mut used) };
    (result == 0).then_some(used.tv_sec as u64 * 1_000_000_000 + used.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_name_with_parentheses_does_not_hide_the_numbers() {
        let link = std::env::temp_dir().join(format!("a) R (b {}", std::process::id()));
        std::os::unix::fs::symlink("/bin/sleep", &link).unwrap();
        let mut child = Command::new(&link).arg("100").stdout(Stdio::null()).spawn().unwrap();
        let pid = child.id() as i32;
        let baseline = Baseline::of_sleeping(pid);
        let stat = Stat::of(pid);
        let listed = children_of(std::process::id() as i32);
        child.kill().unwrap();
        child.wait().unwrap();
        std::fs::remove_file(&link).unwrap();
        assert_eq!(stat.field(0), Some("S"));
        assert!(listed.contains(&pid));
        assert!(baseline.minor_faults > 0 && baseline.voluntary_switches > 0);
    }
}
