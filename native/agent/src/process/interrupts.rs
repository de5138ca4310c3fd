//! What asks the agent to stop, as something to wait for: signals, and the end of whoever listens to it. A host's agent
//! stops its processes, puts everything back, and says so.
//!
//! That nobody listens any more is seen from the pipe (or socket) that events go to. The end of standard input says
//! nothing of the kind: it may only mean that there are no more plans.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::event::{poll, PollFd, PollFlags};

/// SIGINT, SIGTERM and SIGHUP, blocked and readable instead (signalfd(2)), and the listener's end.
pub struct Interrupts {
    signals: OwnedFd,
    /// Until it is gone and that was taken note of.
    listener: Cell<Option<BorrowedFd<'static>>>,
}

impl Interrupts {
    /// From now on. Events go to `listener`.
    pub fn catch(listener: BorrowedFd<'static>) -> io::Result<Interrupts> {
        // SAFETY: the set is ours; signalfd gives a descriptor of our own.
        unsafe {
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
                libc::sigaddset(&mut set, signal);
            }
            libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
            match libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
                -1 => Err(io::Error::last_os_error()),
                descriptor => {
                    let signals = OwnedFd::from_raw_fd(descriptor);
                    Ok(Interrupts { signals, listener: Cell::new(Some(listener)) })
                }
            }
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
                Some("nobody listens any more")
            }
            _ => None,
        }
    }
}
