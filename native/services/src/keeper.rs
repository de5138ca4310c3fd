//! The parent of a service from its start to its end.
//!
//! It sleeps while the trial is measured. It adopts orphans of the service, so that their accounts are complete and
//! none of them is left.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::account::{self, Account, Reaped};
use crate::command::{become_leader, succeeds};
use crate::log::Log;
use crate::port;
use crate::report::{self, ACCOUNT, BEGIN, Ended, NotStarted, READY, STOP};
use crate::request::{Ending, Start};

/// Between two looks whether the service is ready: the first and the longest.
const FIRST_LOOK: Duration = Duration::from_millis(1);
const LONGEST_LOOK: Duration = Duration::from_millis(20);
/// How often the log is looked at.
const LOG_LOOK: Duration = Duration::from_secs(1);
/// Who asks must say what at once.
const REQUEST: Duration = Duration::from_secs(5);
const BETWEEN_KILLS: Duration = Duration::from_millis(5);

pub struct Keeper {
    start: Start,
    log: Log,
    signals: OwnedFd,
    main: i32,
    ended: Option<Ended>,
    /// The service has left its first process, as a daemon does.
    is_daemon: bool,
    reaped: Reaped,
    begin: Option<Account>,
}

impl Keeper {
    /// All of it, in a process of its own. Says on `says` when the service is ready, or why it is not.
    /// `detach` waits until the process that started this one is gone.
    pub fn live(start: Start, listener: UnixListener, says: OwnedFd, detach: impl FnOnce()) -> i32 {
        let name = start.name.clone();
        let refused = |why: String, log: String| NotStarted { name: name.clone(), why, log };
        let began = Keeper::begin(start).map_err(|why| refused(why, String::new()));
        let ready = began.and_then(|mut keeper| match keeper.await_ready() {
            Ok(()) => Ok(keeper),
            Err(why) => {
                let log = keeper.log.end();
                keeper.kill_all();
                Err(refused(why, log))
            }
        });
        match ready {
            Ok(mut keeper) => {
                let _ = rustix::io::write(&says, READY.as_bytes());
                drop(says); // The reader waits for the end of what is said.
                detach();
                keeper.serve(&listener);
                0
            }
            Err(not_started) => {
                let _ = rustix::io::write(&says, serde_json::to_string(&not_started).unwrap_or_default().as_bytes());
                1
            }
        }
    }

    fn begin(start: Start) -> Result<Keeper, String> {
        let words = |error: io::Error| error.to_string();
        silence().map_err(|error| error.to_string())?;
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        let signals = signals().map_err(words)?;
        let log = Log::create().map_err(words)?;
        let program = start.command[0].to_string_lossy().into_owned();
        let mut command = Command::new(&start.command[0]);
        command.args(&start.command[1..]).stdin(Stdio::null());
        command.stdout(log.writer().map_err(words)?).stderr(log.writer().map_err(words)?);
        // SAFETY: only system calls.
        unsafe { command.pre_exec(become_leader) };
        let child = command.spawn().map_err(|error| format!("cannot start {program}: {error}"))?;
        Ok(Keeper {
            start,
            log,
            signals,
            main: child.id() as i32,
            ended: None,
            is_daemon: false,
            reaped: Reaped::default(),
            begin: None,
        })
    }

    fn await_ready(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + self.start.within;
        let mut look = FIRST_LOOK;
        let ready = self.start.ready.clone();
        loop {
            self.reap();
            self.is_daemon |= self.ended.is_some_and(|ended| ended.exit_code == Some(0)) && has_descendants();
            self.require_alive("before it was ready")?;
            if ready.is_so(&mut self.log, deadline)? {
                break;
            }
            if Instant::now() >= deadline {
                let seconds = self.start.within.as_secs_f64();
                return Err(format!("not ready after {seconds} s; waited until {}", ready.words()));
            }
            self.sleep(look.min(deadline.saturating_duration_since(Instant::now())))?;
            look = (look * 3 / 2).min(LONGEST_LOOK);
        }
        self.start.ports.iter().try_for_each(|port| port::require_own(*port))?;
        let settled = Instant::now() + self.start.settle;
        while let Some(rest) = settled.checked_duration_since(Instant::now()).filter(|rest| !rest.is_zero()) {
            self.sleep(rest)?;
            self.require_alive("while it settled")?;
        }
        Ok(())
    }

    fn require_alive(&self, when: &str) -> Result<(), String> {
        match self.ended {
            Some(ended) if self.is_over() => Err(format!("{} {when}", ended.words())),
            _ => Ok(()),
        }
    }

    /// Until something happens to a child, at most for `limit`. The error says that this process is to end.
    fn sleep(&mut self, limit: Duration) -> Result<(), String> {
        let mut waiting = [PollFd::new(&self.signals, PollFlags::IN)];
        let woken = poll(&mut waiting, Some(&timespec(limit)));
        if woken == Ok(1) && self.is_told_to_end() {
            return Err("was stopped before it was ready".to_owned());
        }
        self.reap();
        Ok(())
    }

    /// Answer until told to stop, or to end.
    fn serve(&mut self, listener: &UnixListener) {
        loop {
            let mut waiting =
                [PollFd::new(&self.signals, PollFlags::IN), PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN)];
            let _ = poll(&mut waiting, Some(&timespec(LOG_LOOK)));
            let [signalled, asked] = waiting.map(|one| !one.revents().is_empty());
            if signalled && self.is_told_to_end() {
                self.kill_all();
                return;
            }
            self.reap();
            self.log.limit();
            if asked && listener.accept().is_ok_and(|(stream, _)| self.answer(stream)) {
                return;
            }
        }
    }

    /// Whether that was the last answer.
    fn answer(&mut self, mut stream: UnixStream) -> bool {
        let mut request = String::new();
        let _ = stream.set_read_timeout(Some(REQUEST));
        let _ = BufReader::new((&stream).take(16)).read_line(&mut request);
        let mut said = report::Account { name: self.start.name.clone(), ..report::Account::default() };
        match request.trim_end() {
            BEGIN => {
                account::forget_peaks();
                self.begin = Some(Account::now(self.reaped));
            }
            ACCOUNT => {
                said.used = self.begin.as_ref().map(|begin| Account::now(self.reaped).since(begin));
                said.died = self.ended.filter(|_| self.is_over());
                said.log = if said.died.is_some() { self.log.end() } else { String::new() };
            }
            STOP => {
                said.killed = self.stop();
                said.log = if said.killed { self.log.end() } else { String::new() };
            }
            _ => return false,
        }
        let _ = stream.write_all(format!("{}\n", serde_json::to_string(&said).unwrap_or_default()).as_bytes());
        request.trim_end() == STOP
    }

    /// Whether it had to be killed.
    fn stop(&mut self) -> bool {
        let deadline = Instant::now() + self.start.patience;
        if !self.is_over() {
            match &self.start.ending {
                Ending::Signal(signal) => self.signal(*signal),
                Ending::Command(words) => {
                    succeeds(words, deadline);
                }
            }
        }
        self.reap();
        while !self.is_over() && Instant::now() < deadline {
            let mut waiting = [PollFd::new(&self.signals, PollFlags::IN)];
            let _ = poll(&mut waiting, Some(&timespec(deadline.saturating_duration_since(Instant::now()))));
            if self.is_told_to_end() {
                break;
            }
            self.reap();
        }
        let killed = !self.is_over();
        self.kill_all();
        killed
    }

    fn signal(&self, signal: i32) {
        let own = account::children();
        let asked = if self.is_daemon { own } else { vec![self.main] };
        for pid in asked {
            // SAFETY: kill(2) only takes numbers. They are of our children, which nobody else reaps.
            unsafe { libc::kill(pid, signal) };
        }
    }

    fn is_over(&self) -> bool {
        self.ended.is_some() && !(self.is_daemon && has_descendants())
    }

    /// Kill all descendants, until there is none.
    fn kill_all(&mut self) {
        loop {
            self.reap();
            let left = account::descendants();
            if left.is_empty() {
                return;
            }
            for pid in left {
                // SAFETY: kill(2) only takes numbers. They are of our descendants, by the kernel's word just now.
                unsafe { libc::kill(pid, libc::SIGKILL) };
            }
            let mut waiting = [PollFd::new(&self.signals, PollFlags::IN)];
            let _ = poll(&mut waiting, Some(&timespec(BETWEEN_KILLS)));
            self.is_told_to_end();
        }
    }

    /// Take note of children that have ended.
    fn reap(&mut self) {
        loop {
            let mut status = 0;
            let mut usage = MaybeUninit::<libc::rusage>::zeroed();
            // SAFETY: both places are ours and of the right type.
            let pid = unsafe { libc::wait4(-1, &mut status, libc::WNOHANG, usage.as_mut_ptr()) };
            if pid <= 0 {
                return;
            }
            // SAFETY: wait4 filled it in, and zeros are valid too.
            self.reaped.add(&unsafe { usage.assume_init() });
            if pid == self.main {
                self.ended = Some(Ended {
                    exit_code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
                    signal: libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status)),
                });
            }
        }
    }

    /// Whether any of the signals that have arrived is one to end.
    fn is_told_to_end(&self) -> bool {
        let mut told = false;
        let mut bytes = [0; size_of::<libc::signalfd_siginfo>()];
        while rustix::io::read(&self.signals, &mut bytes).is_ok_and(|count| count == bytes.len()) {
            // The number of the signal comes first (signalfd(2)).
            let number = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            told |= number != libc::SIGCHLD as u32;
        }
        told
    }
}

/// Wait until the process `parent` is gone. From then on, this one ends with the process that has adopted it.
pub fn await_end(gone: &OwnedFd, parent: u32) {
    let mut byte = [0];
    let _ = rustix::io::read(gone, &mut byte);
    while std::os::unix::process::parent_id() == parent {
        std::thread::sleep(Duration::from_micros(100));
    }
    // SAFETY: prctl(2) only takes numbers.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) };
}

fn signals() -> io::Result<OwnedFd> {
    // SAFETY: the set is ours; the descriptor is new and nobody else's.
    unsafe {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigemptyset(set.as_mut_ptr());
        for signal in [libc::SIGCHLD, libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        libc::sigprocmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
        match libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
            -1 => Err(io::Error::last_os_error()),
            descriptor => Ok(OwnedFd::from_raw_fd(descriptor)),
        }
    }
}

/// Nothing is read from, or written to, where the trial's own output goes.
fn silence() -> rustix::io::Result<()> {
    let null = rustix::fs::open("/dev/null", rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC, 0.into())?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)
}

fn has_descendants() -> bool {
    !account::descendants().is_empty()
}

fn timespec(limit: Duration) -> Timespec {
    Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: i64::from(limit.subsec_nanos()) }
}
