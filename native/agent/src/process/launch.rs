//! Starts a program with all its attributes in place before its first instruction.
//!
//! The child prepares itself (group, priority, CPUs, streams), says that it is ready and sleeps until it is released;
//! meanwhile counters are opened on it. Its exec either succeeds, which closes the report pipe, or is reported.

use std::cell::Cell;
use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::clock;
use crate::disk::fs::{self, File};
use crate::disk::{self, Access};
use crate::errno;
use crate::event::Stream;
use crate::plan::Command;
use crate::process::account::{self, Baseline};
use crate::process::area::Withheld;
use crate::process::capture::Capture;
use crate::process::cgroup::Group;
use crate::process::image::{Image, Report, Streams, raw};
use crate::process::lifetime::Beginning;
use crate::process::roll::{Leader, Roll};
use crate::process::surroundings::Surroundings;

/// The PATH for commands without one (as execvp(3) of most shells).
pub const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A process that is ready and waits for its release.
pub struct Launched {
    pub pid: i32,
    pub pidfd: OwnedFd,
    pub stdout: Capture,
    pub stderr: Capture,
    pub baseline: Baseline,
    pub beginning: Beginning,
    program: String,
    door: OwnedFd,
    report: OwnedFd,
    roll: Option<Roll>,
    _group: Option<Group>,
    is_released: Cell<bool>,
}

/// Fork a process for `command` and have it prepare itself.
/// `padding_bytes` of environment are added. The error names the program and what could not be done.
pub fn launch(
    command: &Command,
    name: &str,
    surroundings: &Surroundings,
    padding_bytes: usize,
    output_limit_bytes: u64,
    patience: Duration,
) -> Result<Launched, String> {
    let program = command.argv[0].clone();
    let says = |reason: String| format!("{program}: {reason}");
    let broken = |error: io::Error| format!("{program}: {}", errno::of(error));
    let path = find(command).map_err(says)?;
    let group = Group::create(name, &command.attributes, surroundings.is_guest()).map_err(says)?;
    let group_door = group.as_ref().map(Group::door).transpose()?;
    let stdout = Capture::create(output_limit_bytes).map_err(broken)?;
    let stderr = Capture::create(output_limit_bytes).map_err(broken)?;
    if let Some(user) = &command.user {
        // It may open them by their names, /dev/stdout and /dev/stderr.
        stdout.give(user).and_then(|()| stderr.give(user)).map_err(broken)?;
    }
    let stdin = nothing().map_err(broken)?;
    let (sleeper, door) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| says(errno::of(error)))?;
    let (report, reporter) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| says(errno::of(error)))?;
    let streams = Streams {
        stdin: stdin.as_raw_fd(),
        stdout: stdout.as_fd().as_raw_fd(),
        stderr: stderr.as_fd().as_raw_fd(),
        door: sleeper.as_raw_fd(),
        report: reporter.as_raw_fd(),
        group: group_door.as_ref().map(|file| file.as_raw_fd() as RawFd),
    };
    let beginning = Beginning::new().map_err(broken)?;
    let image = Image::new(command, path, padding_bytes, surroundings, streams, beginning.place()).map_err(broken)?;
    let pid = fork(&image).map_err(broken)?;
    drop((sleeper, reporter, image));
    let ready = Pid::from_raw(pid)
        .ok_or_else(|| "no process number".to_owned())
        .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).map_err(errno::of))
        .and_then(|pidfd| await_ready(report.as_fd(), patience).map(|()| pidfd));
    let pidfd = ready.map_err(|reason| {
        // SAFETY: our own child, not reaped yet.
        unsafe { libc::kill(pid, libc::SIGKILL) };
        let _ = account::reap(pid);
        says(reason)
    })?;
    let baseline = Baseline::of_sleeping(pid);
    if let Some(roll) = surroundings.roll {
        roll.enter(Leader { pid, started_ticks: baseline.started_ticks });
    }
    let roll = surroundings.roll;
    Ok(Launched {
        pid,
        pidfd,
        stdout,
        stderr,
        baseline,
        beginning,
        program,
        door,
        report,
        roll,
        _group: group,
        is_released: Cell::new(false),
    })
}

/// The standard input of all processes, opened once.
fn nothing() -> io::Result<&'static File> {
    static NOTHING: OnceLock<File> = OnceLock::new();
    match NOTHING.get() {
        Some(file) => Ok(file),
        None => File::open("/dev/null").map(|file| NOTHING.get_or_init(|| file)),
    }
}

/// A process that becomes `image`.
fn fork(image: &Image) -> io::Result<i32> {
    let _heap = Withheld::heap();
    // As fork(2), without what the C library does about it in the child, which
    // executes a program anyway. SAFETY: the agent has one thread, and the child only makes system calls on what was
    // made before.
    match unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) } {
        -1 => Err(io::Error::last_os_error()),
        0 => image.become_it(),
        pid => Ok(pid as i32),
    }
}

impl Launched {
    /// Let it execute its program.
    pub fn release(&self) {
        // A pipe's reader is woken without preempting its writer, who is about to sleep.
        let _ = rustix::io::write(&self.door, &[1]);
        self.is_released.set(true);
    }

    /// Wait until it executes its program, at most for `patience`.
    /// The error says why it does not.
    pub fn await_exec(&self, patience: Duration) -> Result<(), String> {
        let result = match next_report(self.report.as_fd(), patience) {
            Ok(Some(report)) => Err(report.words()),
            Ok(None) => Ok(()),
            Err(reason) => Err(reason),
        };
        result.map_err(|reason| format!("{}: {reason}", self.program))
    }

    /// What it leaves running is the guardian's business until the roll is cleared.
    pub fn stay_on_roll(mut self) {
        self.roll = None;
    }

    pub fn capture(&self, stream: Stream) -> &Capture {
        match stream {
            Stream::Stdout => &self.stdout,
            Stream::Stderr => &self.stderr,
        }
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        if !self.is_released.get() {
            // It would wait for ever: it holds both ends of its door.
            // SAFETY: our own child, not reaped yet.
            unsafe { libc::kill(self.pid, libc::SIGKILL) };
            let _ = account::reap(self.pid);
        }
        if let Some(roll) = self.roll {
            roll.strike(self.pid);
        }
    }
}

fn await_ready(report: BorrowedFd<'_>, patience: Duration) -> Result<(), String> {
    match next_report(report, patience)? {
        Some(report) if report.is_ready() => Ok(()),
        Some(report) => Err(report.words()),
        None => Err("it ended before it was ready".to_owned()),
    }
}

/// The next report of the child.
/// `None` if there will be none: it executes its program, or is dead.
fn next_report(report: BorrowedFd<'_>, patience: Duration) -> Result<Option<Report>, String> {
    let mut waiting = [PollFd::new(&report, PollFlags::IN)];
    match poll(&mut waiting, Some(&clock::timespec(patience))) {
        Ok(0) => return Err(format!("it did not start within {} s", patience.as_secs_f64())),
        Ok(_) => {}
        Err(error) => return Err(errno::of(error)),
    }
    let mut bytes = [0; Report::BYTES];
    match rustix::io::read(report, &mut bytes) {
        Ok(Report::BYTES) => Ok(Some(Report::from_bytes(bytes))),
        Ok(_) => Ok(None),
        Err(error) => Err(errno::of(error)),
    }
}

/// The file of the program.
/// With a slash it stays as it is (execve(2) resolves it in the command's directory), otherwise it is searched in the
/// PATH of the command's environment.
fn find(command: &Command) -> Result<CString, String> {
    let program = &command.argv[0];
    let c_string =
        |path: &Path| CString::new(path.as_os_str().to_owned().into_vec()).map_err(|error| error.to_string());
    if program.contains('/') {
        return c_string(Path::new(program));
    }
    let search = command.environment.get("PATH").map_or_else(|| DEFAULT_PATH.into(), |path| raw(path));
    let candidates = search
        .split(|byte| *byte == b':')
        .filter(|folder| !folder.is_empty())
        .map(|folder| Path::new(OsStr::from_bytes(folder)).join(program));
    let executable = |path: &std::path::PathBuf| {
        fs::metadata(path).is_ok_and(|about| about.is_file()) && disk::access(path, Access::EXEC_OK).is_ok()
    };
    match candidates.into_iter().find(executable) {
        Some(path) => c_string(&path),
        None => Err(format!("no such program in {}", String::from_utf8_lossy(&search))),
    }
}
