//! What a forked child becomes: attributes, streams, program.
//! All is prepared before the fork.
//!
//! Between fork and exec there are only system calls: nothing is allocated, so that nothing there depends on the
//! agent's memory.

use std::ffi::{CString, c_char};
use std::io;
use std::os::fd::RawFd;
use std::ptr;

use crate::errno;
use crate::plan::{Command, Policy, User};
use crate::ports;
use crate::process::area::Area;
use crate::process::lifetime::Clocks;
use crate::process::surroundings::Surroundings;

/// `AJUSTE_PADDING=` and its final zero take 16 bytes, the padding the rest.
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

/// Everything a child needs; the texts are in the area, and nothing is on the heap.
pub struct Image {
    path: *const c_char,
    argv: *const *const c_char,
    envp: *const *const c_char,
    directory: *const c_char,
    cpus: Option<libc::cpu_set_t>,
    nice: Option<i32>,
    policy: Option<(libc::c_int, libc::sched_param)>,
    user: Option<Identity>,
    surroundings: Surroundings,
    agent: libc::pid_t,
    streams: Streams,
    /// What it reads just before its exec.
    clocks: *const Clocks,
    _area: Area,
}

/// A user as the kernel takes it.
struct Identity {
    uid: libc::uid_t,
    gid: libc::gid_t,
    groups: *const libc::gid_t,
    group_count: usize,
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
        clocks: *const Clocks,
    ) -> io::Result<Image> {
        let mut area = area_for(command, &path, padding_bytes)?;
        let mut variables: Vec<_> =
            command.environment.iter().map(|(name, value)| area.text(&[&raw(name), b"=", &raw(value)])).collect();
        if padding_bytes > PADDING_NAME.len() {
            let filling = "x".repeat(padding_bytes - PADDING_NAME.len() - 1);
            variables.push(area.text(&[PADDING_NAME.as_bytes(), filling.as_bytes()]));
        }
        let arguments: Vec<_> = command.argv.iter().map(|text| area.text(&[text.as_bytes()])).collect();
        let attributes = &command.attributes;
        let user = command.user.as_ref().filter(|user| !is_ours(user));
        Ok(Image {
            path: area.copy(path.as_bytes_with_nul()).cast(),
            argv: ended(&mut area, arguments),
            envp: ended(&mut area, variables),
            directory: area.text(&[command.directory.as_bytes()]),
            cpus: attributes.affinity.as_deref().map(cpu_set),
            nice: attributes.nice.or(surroundings.nice),
            policy: attributes.policy.map(|policy| scheduling(policy, attributes.priority)),
            user: user.map(|user| Identity::new(user, &mut area)),
            surroundings: *surroundings,
            agent: std::process::id() as libc::pid_t,
            streams,
            clocks,
            _area: area,
        })
    }

    /// In the child: prepare, report, sleep until released, execute the program.
    pub fn become_it(&self) -> ! {
        // SAFETY: plain system calls on descriptors and memory that were made before the
        // fork.
        unsafe {
            match self.prepare() {
                Ok(()) => self.report(Step::Ready, 0),
                Err(step) => self.give_up(step),
            }
            let mut byte = 0_u8;
            if libc::read(self.streams.door, ptr::from_mut(&mut byte).cast(), 1) != 1 {
                libc::_exit(127);
            }
            (*self.clocks).read();
            libc::execve(self.path, self.argv, self.envp);
            self.give_up(Step::Program)
        }
    }

    unsafe fn prepare(&self) -> Result<(), Step> {
        // SAFETY: as the caller promises.
        unsafe {
            if let Some(event_port) = self.surroundings.event_port {
                ports::forbid(event_port);
            }
            succeeded(libc::setpgid(0, 0), Step::Group)?;
            if self.surroundings.die_with_agent {
                succeeded(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL), Step::Group)?;
                // An agent that died before that would have left this child asleep for ever,
                // holding what it inherited.
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
            succeeded(libc::chdir(self.directory), Step::Directory)?;
            // Before the release, so that the usual mistakes are known before anything is said
            // to have started.
            succeeded(libc::access(self.path, libc::X_OK), Step::Program)?;
            Ok(())
        }
    }

    /// Change the user for good.
    /// The kernel drops all capabilities with the last user number, and the death signal, which is set again.
    unsafe fn become_user(&self, user: &Identity) -> Result<(), Step> {
        // SAFETY: as the caller promises.
        unsafe {
            succeeded(libc::setgroups(user.group_count, user.groups), Step::User)?;
            succeeded(libc::setresgid(user.gid, user.gid, user.gid), Step::User)?;
            succeeded(libc::setresuid(user.uid, user.uid, user.uid), Step::User)?;
            if self.surroundings.die_with_agent {
                succeeded(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL), Step::User)?;
            }
            Ok(())
        }
    }

    /// Undo the agent's own signal settings: blocked signals, and SIGPIPE ignored.
    unsafe fn forget_signals(&self) {
        // SAFETY: as the caller promises.
        unsafe {
            let mut none = std::mem::zeroed();
            libc::sigemptyset(&mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &none, ptr::null_mut());
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        }
    }

    unsafe fn report(&self, step: Step, number: i32) {
        // SAFETY: as the caller promises.
        unsafe {
            let bytes = Report { step: step as u32, number }.to_bytes();
            libc::write(self.streams.report, bytes.as_ptr().cast(), bytes.len());
        }
    }

    unsafe fn give_up(&self, step: Step) -> ! {
        // SAFETY: as the caller promises.
        unsafe {
            self.report(step, *libc::__errno_location());
            libc::_exit(127)
        }
    }
}

/// Whether the agent is this user already, and may not be another.
fn is_ours(user: &User) -> bool {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    !uid.is_root() && (uid.as_raw(), gid.as_raw()) == (user.uid, user.gid)
}

fn succeeded(result: i32, step: Step) -> Result<(), Step> {
    if result < 0 { Err(step) } else { Ok(()) }
}

impl Identity {
    fn new(user: &User, area: &mut Area) -> Identity {
        let (groups, group_count) = (area.copy(&user.groups), user.groups.len());
        Identity { uid: user.uid, gid: user.gid, groups, group_count }
    }
}

/// With room for all texts of `command` and the pointers to them.
/// The texts have no zero bytes: [`Plan::parse`](crate::plan::Plan::parse) checks that.
fn area_for(command: &Command, path: &CString, padding_bytes: usize) -> io::Result<Area> {
    let texts = command.argv.len() + command.environment.len() + 4;
    let variables: usize = command.environment.iter().map(|(name, value)| name.len() + value.len()).sum();
    let arguments: usize = command.argv.iter().map(String::len).sum();
    let groups = command.user.as_ref().map_or(0, |user| size_of_val(user.groups.as_slice()));
    let others = path.count_bytes() + command.directory.len() + padding_bytes + groups;
    let pointers = texts * size_of::<*const c_char>();
    Area::with_room(arguments + variables + others + pointers + 2 * texts, texts + 4)
}

/// The bytes of a text in a plan's environment (see [`Command::environment`]).
/// Never longer than the text.
pub fn raw(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    for character in text.chars() {
        match u32::from(character) {
            code @ 0x10ff80..=0x10ffff => bytes.push(code as u8),
            _ => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    bytes
}

/// The pointers with a final null.
fn ended(area: &mut Area, mut texts: Vec<*const c_char>) -> *const *const c_char {
    texts.push(ptr::null());
    area.copy(&texts)
}

fn cpu_set(cpus: &[u32]) -> libc::cpu_set_t {
    // SAFETY: zeros are the empty set, and CPU_SET only changes it.
    // Numbers beyond its end are ignored.
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
    fn bytes_that_are_no_utf8_are_themselves_again() {
        assert_eq!(raw("a\u{e9}\u{10ff80}=\u{10ffff}\u{10ff7f}"), b"a\xc3\xa9\x80=\xff\xf4\x8f\xbd\xbf");
    }

    #[test]
    fn every_step_has_its_words() {
        assert!(STEPS.iter().enumerate().all(|(index, (step, _))| *step as usize == index));
    }
}
