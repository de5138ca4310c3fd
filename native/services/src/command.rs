//! Commands that a service is looked at and ended with.

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Between two looks whether a command has ended.
const LOOK: Duration = Duration::from_millis(1);

/// A command in JSON: no text is ever split.
pub fn read(text: &str) -> Result<Vec<String>, lexopt::Error> {
    match serde_json::from_str::<Vec<String>>(text) {
        Ok(words) if !words.is_empty() => Ok(words),
        _ => Err(format!("expected a command such as [\"PROGRAM\", \"ARGUMENT\"], not {text:?}").into()),
    }
}

/// Whether a command ends with exit code 0 before the deadline.
pub fn succeeds(words: &[String], deadline: Instant) -> bool {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: only system calls.
    unsafe { command.pre_exec(become_leader) };
    let Ok(mut child) = command.spawn() else { return false };
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(LOOK),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return false;
            }
        }
    }
}

/// In a new child: a process group of its own, in the session of the trial, so that it shares one scheduling group
/// with the workload (CONFIG_SCHED_AUTOGROUP). It dies with its keeper.
pub fn become_leader() -> io::Result<()> {
    // SAFETY: they only take numbers and a set of our own.
    unsafe {
        let mut none = MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigemptyset(none.as_mut_ptr());
        let done = libc::setpgid(0, 0) == 0
            && libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == 0
            && libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut()) == 0;
        if done { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}
