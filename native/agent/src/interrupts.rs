//! Signals that ask the agent to stop, as something to wait for. A host's agent stops its processes and says so.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

/// SIGINT, SIGTERM and SIGHUP, blocked and readable instead (signalfd(2)).
pub struct Interrupts(OwnedFd);

impl Interrupts {
    pub fn catch() -> io::Result<Interrupts> {
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
                descriptor => Ok(Interrupts(OwnedFd::from_raw_fd(descriptor))),
            }
        }
    }
}

impl AsFd for Interrupts {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Interrupts {
    /// Take one signal. False if none is there.
    pub fn take(&self) -> bool {
        let mut bytes = [0; size_of::<libc::signalfd_siginfo>()];
        rustix::io::read(&self.0, &mut bytes).is_ok_and(|taken| taken == bytes.len())
    }
}
