//! The guardian of a session's directory outlives its maker, and removes it.
//!
//! It waits until its standard input ends, which happens when the last process that holds the other end is gone,
//! however it died. Then it kills the processes that the session started and removes the directory.

use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::clock;
use crate::disk::fs::{self, File, OpenOptions};
use crate::errno;

/// Only a directory with this file in it is a session's.
pub const MARKER: &str = ".ajuste-session";

/// For all killed processes together to be gone.
const DEATH: Duration = Duration::from_secs(5);
/// A directory into which something is still written may need several goes.
const GOES: usize = 5;
const PAUSE: Duration = Duration::from_millis(50);

/// Wait for the end of standard input, then remove `directory`.
/// The error says why it is still there.
pub fn run(directory: &str) -> Result<(), String> {
    let directory = fs::canonicalize(directory).map_err(errno::at(directory))?;
    ignore_signals();
    wait_for_end(io::stdin());
    let marked = fs::symlink_metadata(directory.join(MARKER)).is_ok_and(|marker| marker.is_file());
    if !marked {
        // Its owner has removed it already, as usual.
        return if fs::metadata(&directory).is_ok() {
            Err(format!("{} has no {MARKER}", directory.display()))
        } else {
            Ok(())
        };
    }
    kill_listed(&directory);
    remove(&directory)
}

fn ignore_signals() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
        // SAFETY: no handler is installed.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

fn wait_for_end(mut input: impl Read) {
    let mut discarded = [0; 256];
    loop {
        match input.read(&mut discarded) {
            Ok(1..) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => return,
        }
    }
}

/// Kill each process in a `*.pid` file whose command line names the directory.
fn kill_listed(directory: &Path) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let files = entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|word| word == "pid"));
    let killed: Vec<_> = files.filter_map(|file| kill_if_ours(listed(&file)?, directory)).collect();
    let deadline = Instant::now() + DEATH;
    for pidfd in killed {
        let rest = clock::timespec(deadline.saturating_duration_since(Instant::now()));
        let _ = poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&rest));
    }
}

fn listed(file: &Path) -> Option<Pid> {
    let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW | libc::O_NOCTTY;
    let file: File = OpenOptions::new().read(true).custom_flags(flags).open(file).ok()?;
    let mut text = String::new();
    file.metadata().ok().filter(fs::Metadata::is_file)?;
    file.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok().filter(|number| *number > 1).and_then(Pid::from_raw)
}

/// The pidfd holds the number first: the checked process is the killed one.
fn kill_if_ours(pid: Pid, directory: &Path) -> Option<rustix::fd::OwnedFd> {
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    let command_line = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).ok()?;
    if !names(&command_line, directory.as_os_str().as_bytes()) {
        return None;
    }
    pidfd_send_signal(&pidfd, Signal::KILL).ok()?;
    Some(pidfd)
}

/// Whether `text` names `directory`, not only a longer name.
fn names(text: &[u8], directory: &[u8]) -> bool {
    let continues = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    text.windows(directory.len())
        .enumerate()
        .any(|(start, window)| window == directory && !text.get(start + directory.len()).is_some_and(continues))
}

fn remove(directory: &Path) -> Result<(), String> {
    let mut result = Ok(());
    for _ in 0..GOES {
        result = fs::remove_dir_all(directory);
        match &result {
            Err(error) if error.kind() != io::ErrorKind::NotFound => clock::sleep(PAUSE),
            _ => return Ok(()),
        }
    }
    result.map_err(errno::at(directory.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_name_is_another_directory() {
        assert!(names(b"qemu\0-qmp\0unix:/s/ab/q.sock,server=on\0", b"/s/ab"));
        assert!(names(b"x\0/s/ab\0", b"/s/ab"));
        assert!(!names(b"x\0/s/abc/q\0/s/ab-2\0", b"/s/ab"));
        assert!(!names(b"", b"/s/ab"));
    }
}
