//! What asks the agent to stop: signals, and the end of its reader.
//! A host's agent then stops its processes, puts everything back, and reports it.
//!
//! The end of the reader shows at the pipe (or socket) of the events.
//! The end of standard input only means that there are no more plans.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};

/// SIGINT, SIGTERM and SIGHUP by signalfd(2), and the end of the reader.
pub struct Interrupts {
    signals: OwnedFd,
    /// SIGCONT, which ends a stop of this process, and SIGCHLD.
    /// SIGCHLD also says that a child was stopped or resumed.
    changes: OwnedFd,
    /// Until it is gone and that was taken note of.
    listener: Cell<Option<BorrowedFd<'static>>>,
}

impl Interrupts {
    /// From now on. Events go to `listener`.
    pub fn catch(listener: BorrowedFd<'static>) -> io::Result<Interrupts> {
        let signals = readable(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP])?;
        let changes = readable(&[libc::SIGCONT, libc::SIGCHLD])?;
        Ok(Interrupts { signals, changes, listener: Cell::new(Some(listener)) })
    }

    /// What poll(2) also waits for while processes run.
    /// It is readable when [`Interrupts::take_changes`] has something to report.
    pub fn changes(&self) -> BorrowedFd<'_> {
        self.changes.as_fd()
    }

    /// What has happened since the last time.
    pub fn take_changes(&self) -> Changes {
        let mut changes = Changes::default();
        let mut bytes = [0; size_of::<libc::signalfd_siginfo>()];
        while rustix::io::read(&self.changes, &mut bytes).is_ok_and(|taken| taken == bytes.len()) {
            // The first member of the structure is the signal's number.
            let number = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            changes.continued |= number == libc::SIGCONT as u32;
            changes.of_children |= number == libc::SIGCHLD as u32;
        }
        changes
    }
}

/// What signals say of this process and of its children.
#[derive(Clone, Copy, Debug, Default)]
pub struct Changes {
    /// This process goes on, after it was stopped.
    pub continued: bool,
    /// A child ended, was stopped, or goes on.
    pub of_children: bool,
}

/// `signals`, blocked and readable instead.
fn readable(signals: &[libc::c_int]) -> io::Result<OwnedFd> {
    // SAFETY: the set is ours; signalfd gives a descriptor of our own.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in signals {
            libc::sigaddset(&mut set, *signal);
        }
        libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        match libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
            -1 => Err(io::Error::last_os_error()),
            descriptor => Ok(OwnedFd::from_raw_fd(descriptor)),
        }
    }
}

impl Interrupts {
    /// What poll(2) has to wait for. Any answer is a reason to [`Interrupts::take`].
    pub fn waiting(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        // Errors and the other end's end are always answered.
        let listener = self.listener.get().map(|listener| (listener, PollFlags::empty()));
        [(self.signals.as_fd(), PollFlags::IN)].into_iter().chain(listener)
    }

    /// Why to stop, said once for each signal, and once for the end of the listener.
    pub fn take(&self) -> Option<&'static str> {
        let mut bytes = [0; size_of::<libc::signalfd_siginfo>()];
        if rustix::io::read(&self.signals, &mut bytes).is_ok_and(|taken| taken == bytes.len()) {
            return Some("a signal asked the agent to stop");
        }
        let listener = self.listener.get()?;
        let mut waiting = [PollFd::from_borrowed_fd(listener, PollFlags::empty())];
        match poll(&mut waiting, Some(&Default::default())) {
            Ok(1..) => {
                self.listener.set(None);
                Some("the reader of the events is gone")
            }
            _ => None,
        }
    }
}
