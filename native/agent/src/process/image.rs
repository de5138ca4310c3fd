//! What a forked child becomes: attributes, streams and program, all made before the fork.
//!
//! Between fork and exec there are only system calls: nothing is allocated, so that nothing there depends on the
//! agent's memory.

use std::ffi::{CStr, CString};
use std::os::fd::RawFd;
use std::ptr;

use crate::errno;
use crate::guest::ports;
use crate::plan::{Command, Policy, User};
use crate::process::surroundings::Surroundings;

/// `AJUSTE_PADDING=` and its final zero are 16 bytes; the rest of the padding follows.
const PADDING_NAME: &str = "AJUSTE_PADDING=";

/// Descriptors of the child-to-be, all of them closed by its exec.
pub struct Streams {
    pub stdin: RawFd,
    pub stdout: RawFd,
    pub stderr: RawFd,
    /// It sleeps until a byte comes from here.
    pub door: RawFd,
    /// It says here that it is ready, or what failed.
    pub report: RawFd,
    /// `cgroup.procs` of the group that it joins.
    pub group: Option<RawFd>,
}

/// Everything a child needs.
pub struct Image {
    path: CString,
    _arguments: Vec<CString>,
    argv: Vec<*const libc::c_char>,
    _variables: Vec<CString>,
    envp: Vec<*const libc::c_char>,
    directory: CString,
    cpus: Option<libc::cpu_set_t>,
    nice: Option<i32>,
    policy: Option<(libc::c_int, libc::sched_param)>,
    user: Option<User>,
    surroundings: Surroundings,
    agent: libc::pid_t,
    streams: Streams,
}

/// What a child does before its exec, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
enum Step {
    Ready,
    Group,
    Streams,
    ControlGroup,
    Nice,
    Affinity,
    Policy,
    User,
    Directory,
    Program,
}

const STEPS: [(Step, &str); 10] = [
    (Step::Ready, ""),
    (Step::Group, "process group: "),
    (Step::Streams, "streams: "),
    (Step::ControlGroup, "control group: "),
    (Step::Nice, "nice: "),
    (Step::Affinity, "affinity: "),
    (Step::Policy, "policy: "),
    (Step::User, "user: "),
    (Step::Directory, "directory: "),
    (Step::Program, ""),
];

/// What a child says: a step and, if it failed there, the error's number.
#[derive(Clone, Copy)]
pub struct Report {
    step: u32,
    number: i32,
}

impl Report {
    pub const BYTES: usize = 8;

    pub fn from_bytes(bytes: [u8; Report::BYTES]) -> Report {
        let half = |from: usize| std::array::from_fn(|index| bytes[from + index]);
        Report { step: u32::from_ne_bytes(half(0)), number: i32::from_ne_bytes(half(4)) }
    }

    fn to_bytes(self) -> [u8; Report::BYTES] {
        (u64::from(self.step) | (self.number as u64) << 32).to_ne_bytes()
    }

    pub fn is_ready(self) -> bool {
        self.step == Step::Ready as u32
    }

    /// `nice: Permission denied`
    pub fn words(self) -> String {
        let words = STEPS.iter().find(|(step, _)| *step as u32 == self.step).map_or("", |(_, words)| words);
        format!("{words}{}", errno::text(self.number))
    }
}

impl Image {
    pub fn new(
        command: &Command,
        path: CString,
        padding_bytes: usize,
        surroundings: &Surroundings,
        streams: Streams,
    ) -> Image {
        let mut variables: Vec<CString> =
            command.environment.iter().map(|(name, value)| c_string(format!("{name}={value}"))).collect();
        if padding_bytes > PADDING_NAME.len() {
            let filling = "x".repeat(padding_bytes - PADDING_NAME.len() - 1);
            variables.push(c_string(format!("{PADDING_NAME}{filling}")));
        }
        let arguments: Vec<CString> = command.argv.iter().map(|text| c_string(text.clone())).collect();
        let attributes = &command.attributes;
        Image {
            path,
            argv: pointers(&arguments),
            _arguments: arguments,
            envp: pointers(&variables),
            _variables: variables,
            directory: c_string(command.directory.clone()),
            cpus: attributes.affinity.as_deref().map(cpu_set),
            nice: attributes.nice.or(surroundings.nice),
            policy: attributes.policy.map(|policy| scheduling(policy, attributes.priority)),
            user: command.user.clone().filter(|user| !is_ours(user)),
            surroundings: *surroundings,
            agent: std::process::id() as libc::pid_t,
            streams,
        }
    }

    /// In the child: prepare, report, sleep until released, execute the program.
    pub fn become_it(&self) -> ! {
        // SAFETY: plain system calls on descriptors and memory that were made before the fork.
        unsafe {
            match self.prepare() {
                Ok(()) => self.report(Step::Ready, 0),
                Err(step) => self.give_up(step),
            }
            let mut byte = 0_u8;
            if libc::read(self.streams.door, ptr::from_mut(&mut byte).cast(), 1) != 1 {
                libc::_exit(127);
            }
            libc::execve(self.path.as_ptr(), self.argv.as_ptr(), self.envp.as_ptr());
            self.give_up(Step::Program)
        }
    }

    unsafe fn prepare(&self) -> Result<(), Step> {
        if let Some(event_port) = self.surroundings.event_port {
            ports::forbid(event_port);
        }
        succeeded(libc::setpgid(0, 0), Step::Group)?;
        if self.surroundings.die_with_agent {
            succeeded(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL), Step::Group)?;
            // An agent that died before that would have left this child asleep for ever, holding what it inherited.
            if libc::getppid() != self.agent {
                libc::_exit(127);
            }
        }
        self.forget_signals();
        succeeded(libc::dup2(self.streams.stdin, 0), Step::Streams)?;
        succeeded(libc::dup2(self.streams.stdout, 1), Step::Streams)?;
        succeeded(libc::dup2(self.streams.stderr, 2), Step::Streams)?;
        if let Some(group) = self.streams.group {
            succeeded(libc::write(group, c"0".as_ptr().cast(), 1) as i32, Step::ControlGroup)?;
        }
        if let Some(nice) = self.nice {
            succeeded(libc::setpriority(libc::PRIO_PROCESS, 0, nice), Step::Nice)?;
        }
        if let Some(cpus) = &self.cpus {
            succeeded(libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), cpus), Step::Affinity)?;
        }
        if let Some((policy, parameters)) = &self.policy {
            succeeded(libc::sched_setscheduler(0, *policy, parameters), Step::Policy)?;
        }
        if let Some(user) = &self.user {
            self.become_user(user)?;
        }
        succeeded(libc::chdir(self.directory.as_ptr()), Step::Directory)?;
        // Before the release, so that the usual mistakes are known before anything is said to have started.
        succeeded(libc::access(self.path.as_ptr(), libc::X_OK), Step::Program)?;
        Ok(())
    }

    /// Be nobody else any more: with the last user number the kernel takes all capabilities, and the signal at the
    /// agent's death, which is set again.
    unsafe fn become_user(&self, user: &User) -> Result<(), Step> {
        succeeded(libc::setgroups(user.groups.len(), user.groups.as_ptr()), Step::User)?;
        succeeded(libc::setresgid(user.gid, user.gid, user.gid), Step::User)?;
        succeeded(libc::setresuid(user.uid, user.uid, user.uid), Step::User)?;
        if self.surroundings.die_with_agent {
            succeeded(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL), Step::User)?;
        }
        Ok(())
    }

    /// Undo what the agent does for itself: blocked signals, and SIGPIPE ignored by Rust's runtime.
    unsafe fn forget_signals(&self) {
        let mut none = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, ptr::null_mut());
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
    }

    unsafe fn report(&self, step: Step, number: i32) {
        let bytes = Report { step: step as u32, number }.to_bytes();
        libc::write(self.streams.report, bytes.as_ptr().cast(), bytes.len());
    }

    unsafe fn give_up(&self, step: Step) -> ! {
        self.report(step, *libc::__errno_location());
        libc::_exit(127)
    }
}

/// Whether the agent is this user already, and may not be another.
fn is_ours(user: &User) -> bool {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    !uid.is_root() && (uid.as_raw(), gid.as_raw()) == (user.uid, user.gid)
}

fn succeeded(result: i32, step: Step) -> Result<(), Step> {
    if result < 0 {
        Err(step)
    } else {
        Ok(())
    }
}

/// The plan's texts have no zero bytes ([`crate::plan::Plan::parse`] sees to that).
fn c_string(text: String) -> CString {
    CString::new(text).unwrap_or_default()
}

fn pointers(texts: &[CString]) -> Vec<*const libc::c_char> {
    texts.iter().map(|text| CStr::as_ptr(text)).chain([ptr::null()]).collect()
}

fn cpu_set(cpus: &[u32]) -> libc::cpu_set_t {
    // SAFETY: zeros are the empty set, and CPU_SET only changes it. Numbers beyond its end are ignored.
    unsafe {
        let mut set = std::mem::zeroed();
        for cpu in cpus.iter().filter(|cpu| **cpu < libc::CPU_SETSIZE as u32) {
            libc::CPU_SET(*cpu as usize, &mut set);
        }
        set
    }
}

fn scheduling(policy: Policy, priority: Option<i32>) -> (libc::c_int, libc::sched_param) {
    let (number, lowest) = match policy {
        Policy::Other => (libc::SCHED_OTHER, 0),
        Policy::Batch => (libc::SCHED_BATCH, 0),
        Policy::Idle => (libc::SCHED_IDLE, 0),
        Policy::Fifo => (libc::SCHED_FIFO, 1),
        Policy::Rr => (libc::SCHED_RR, 1),
    };
    (number, libc::sched_param { sched_priority: priority.unwrap_or(lowest) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_survives_the_pipe() {
        let report = Report::from_bytes(Report { step: Step::Nice as u32, number: libc::EACCES }.to_bytes());
        assert_eq!(report.words(), "nice: Permission denied");
        assert!(!report.is_ready());
    }

    #[test]
    fn every_step_has_its_words() {
        assert!(STEPS.iter().enumerate().all(|(index, (step, _))| *step as usize == index));
    }
}
