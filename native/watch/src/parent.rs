//! The agent that started this program, which could not restore while it is stopped.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getppid, kill_process};

/// Who is stopped for so long does not go on by itself.
const PATIENCE: Duration = Duration::from_millis(600);
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

pub struct Parent(Option<Pid>);

impl Parent {
    pub fn of_this_process() -> Parent {
        Parent(getppid())
    }

    /// Kill it if it is stopped (SIGSTOP): its guardian puts everything back then.
    pub fn end_if_stopped(&self) {
        let Some(pid) = self.0 else { return };
        let deadline = Instant::now() + PATIENCE;
        // Once it has died, another process may get its number; ours is then another's child.
        while getppid() == self.0 && is_stopped(pid) {
            if Instant::now() >= deadline {
                let _ = kill_process(pid, Signal::KILL);
                return;
            }
            thread::sleep(BETWEEN_LOOKS);
        }
    }
}

fn is_stopped(pid: Pid) -> bool {
    let text = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    state(&text) == Some('T')
}

/// As proc_pid_stat(5) has it; the name before it may have any characters.
fn state(text: &str) -> Option<char> {
    text.rsplit_once(')')?.1.trim_start().chars().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_follows_the_name() {
        assert_eq!(state("1 (a) T) S 0 1"), Some('S'));
        assert_eq!(state("1 (ajuste-agent) T 0 1"), Some('T'));
        assert_eq!(state(""), None);
    }
}
