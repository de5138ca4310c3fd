//! The guardian outlives a dead agent, and then puts everything back.
//!
//! It is forked before the first change and holds the read end of a pipe whose other end only the agent has. It sleeps
//! while the agent lives, so the two never restore at the same time. At the end of the pipe it kills what the agent's
//! processes have left, restores from the journal, and removes it. After an orderly end there is no journal, and
//! nothing to do.
//!
//! It is not a child of the agent: nothing that the agent kills or waits for by its parentage can be it. Its parent is the
//! agent's, which waits for it.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::clock;
use crate::errno;
use crate::process::account;
use crate::process::roll::Roll;
use crate::safety::leftovers;
use crate::safety::recovery;
use crate::safety::session::Session;
use crate::safety::system::{System, ThisMachine};

/// As `/proc/PID/comm` shows it.
pub const NAME: &std::ffi::CStr = c"ajuste-guardian";
/// For a guardian to end after the agent's orderly end.
const PATIENCE: Duration = Duration::from_secs(5);

/// A machine on which a session can have a guardian.
pub trait Guarded: System {
    type Guardian;

    fn fork_guardian(&self, session: &Session<Self>, roll: Self::Roll) -> Result<Self::Guardian, String>;
    fn is_guarded(&self, guardian: &Self::Guardian) -> bool;
    /// Let it end after an orderly end, and wait until it has.
    fn dismiss(&self, guardian: Self::Guardian);
}

impl Guarded for ThisMachine {
    type Guardian = Guardian;

    fn fork_guardian(&self, session: &Session<Self>, roll: Roll) -> Result<Guardian, String> {
        Guardian::fork(session, roll, self.held.as_ref().map(|held| held.as_raw_fd()))
    }

    fn is_guarded(&self, guardian: &Guardian) -> bool {
        guardian.is_alive()
    }

    fn dismiss(&self, guardian: Guardian) {
        guardian.dismiss();
    }
}

/// A guardian, as its agent has it.
pub struct Guardian {
    /// Closed by the agent's end, and by every exec: no other process has it.
    lifeline: OwnedFd,
    pidfd: OwnedFd,
}

impl Guardian {
    /// Fork one for `session`. It keeps `held` open as long as it lives.
    fn fork(session: &Session<ThisMachine>, roll: Roll, held: Option<RawFd>) -> Result<Guardian, String> {
        let refused = |error: io::Error| format!("cannot start the guardian: {}", errno::of(error));
        let (end, lifeline) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| refused(error.into()))?;
        let (answer, ready) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| refused(error.into()))?;
        let [file, directory] = session.journal.descriptors();
        let mut kept = vec![end.as_raw_fd(), ready.as_raw_fd(), file.as_raw_fd(), directory.as_raw_fd()];
        kept.extend(held);
        account::fork_sibling(|| {
            isolate(&mut kept);
            let pid = std::process::id() as i32;
            let _ = rustix::io::write(&ready, &pid.to_ne_bytes());
            await_end(&end);
            leftovers::kill(roll);
            recovery::take_over(session);
        })
        .map_err(refused)?;
        drop((end, ready));
        let mut bytes = [0; 4];
        match rustix::io::read(&answer, &mut bytes) {
            Ok(4) => {}
            _ => return Err("the guardian ended at its start".to_owned()),
        }
        let pid = Pid::from_raw(i32::from_ne_bytes(bytes)).ok_or("the guardian has no number")?;
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(|error| refused(error.into()))?;
        Ok(Guardian { lifeline, pidfd })
    }

    fn is_alive(&self) -> bool {
        matches!(poll(&mut [PollFd::new(&self.pidfd, PollFlags::IN)], Some(&Default::default())), Ok(0))
    }

    /// Let it end, and wait until it has: it lets go of what it holds.
    fn dismiss(self) {
        drop(self.lifeline);
        let deadline = Instant::now() + PATIENCE;
        while let Err(rustix::io::Errno::INTR) = poll(
            &mut [PollFd::new(&self.pidfd, PollFlags::IN)],
            Some(&clock::timespec(deadline.saturating_duration_since(Instant::now()))),
        ) {}
    }
}

/// Leave the agent: a new session, no signals, only the `kept` descriptors.
fn isolate(kept: &mut [RawFd]) {
    // SAFETY: plain system calls; this process does not use the closed descriptors.
    unsafe {
        libc::setsid();
        for signal in (1..=libc::SIGRTMAX()).filter(|signal| *signal != libc::SIGCHLD) {
            libc::signal(signal, libc::SIG_IGN);
        }
        libc::prctl(libc::PR_SET_NAME, NAME.as_ptr());
        libc::prctl(libc::PR_SET_PDEATHSIG, 0);
        libc::chdir(c"/".as_ptr());
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        for stream in 0..3 {
            libc::dup2(null, stream);
        }
        kept.sort_unstable();
        let mut first = 3;
        for descriptor in kept.iter() {
            close_range(first, descriptor - 1);
            first = descriptor + 1;
        }
        close_range(first, RawFd::MAX);
    }
    account::be_spared_when_memory_is_short();
}

/// close_range(2), or one by one where the kernel (before 5.9) does not have it.
unsafe fn close_range(first: RawFd, last: RawFd) {
    // SAFETY: as the caller promises.
    unsafe {
        if first > last || libc::syscall(libc::SYS_close_range, first, last, 0) == 0 {
            return;
        }
        for descriptor in first..=last.min(1023) {
            libc::close(descriptor);
        }
    }
}

fn await_end(end: &OwnedFd) {
    loop {
        match rustix::io::read(end, &mut [0; 8]) {
            Ok(1..) | Err(rustix::io::Errno::INTR) => {}
            _ => return,
        }
    }
}
