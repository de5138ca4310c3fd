//! Commands that are not measured: before a trial, to prepare for it, and after it.
//!
//! What one of them leaves running may be meant to (a server that the workload asks): it lives until the trial is over.

use std::io::Write;
use std::time::Duration;

use crate::errno;
use crate::event::{Role, Stage, Stream};
use crate::failure::{Stop, failure};
use crate::measurement::{Measurement, report, started};
use crate::plan::Command;
use crate::process::account;
use crate::process::supervise::{Supervision, Woken};
use crate::stream::EventStream;

/// So long a program may take to say whether a load is ready.
const ONE_LOOK: Duration = Duration::from_secs(1);

impl Measurement<'_> {
    /// Run `commands` one after the other.
    /// The first that does not end with the exit code 0 is the last.
    pub fn run_errands<W: Write>(
        &self,
        role: Role,
        commands: &[Command],
        stream: &mut EventStream<W>,
    ) -> Result<(), Stop> {
        commands.iter().enumerate().try_for_each(|(index, command)| self.run_errand(role, index, command, stream))
    }

    /// Whether a program that only looks ends with the exit code 0, within a second.
    pub fn succeeds(&self, name: &str, command: &Command) -> Result<bool, Stop> {
        let failed = failure(Stage::Background);
        let mut supervision = Supervision::new(self.interrupts, account::children());
        let launched = self.launch(command, name, 0).map_err(&failed)?;
        let place = supervision.start(Role::Before, 0, launched);
        let woken = supervision.wait(Some(place), ONE_LOOK);
        if let Woken::Interrupted(reason) = woken {
            return Err(failed(reason.to_owned()));
        }
        if woken != Woken::Ended {
            supervision.end(place, true);
        }
        supervision.launched(place).await_exec(Duration::ZERO).map_err(&failed)?;
        let ready = verdict(&supervision, place, &command.argv[0]).is_ok();
        supervision.leave();
        Ok(ready)
    }

    fn run_errand<W: Write>(
        &self,
        role: Role,
        index: usize,
        command: &Command,
        stream: &mut EventStream<W>,
    ) -> Result<(), Stop> {
        let (stage, word) = if role == Role::After { (Stage::After, "after") } else { (Stage::Before, "before") };
        let failed = failure(stage);
        let mut supervision = Supervision::new(self.interrupts, Vec::new());
        let launched = self.launch(command, &format!("{word}-{index}"), 0).map_err(&failed)?;
        stream.say(started(role, index, &launched))?;
        let place = supervision.start(role, index, launched);
        let woken = supervision.wait(Some(place), self.patience());
        if woken != Woken::Ended {
            supervision.end(place, woken == Woken::Elapsed);
        }
        supervision.launched(place).await_exec(Duration::ZERO).map_err(&failed)?;
        report(&supervision, Vec::new(), stream)?;
        if let Woken::Interrupted(reason) = woken {
            return Err(failed(reason.to_owned()));
        }
        let result = verdict(&supervision, place, &command.argv[0]);
        supervision.leave();
        result.map_err(failed)
    }
}

/// Whether the program of the process at `place` ended well.
/// The error says how it ended, and what it complained of last.
pub fn verdict(supervision: &Supervision<'_>, place: usize, program: &str) -> Result<(), String> {
    let exited = supervision.exits().into_iter().nth(place).ok_or_else(|| format!("{program} has not ended"))?;
    let how = match (exited.exit_code, exited.signal) {
        _ if exited.timed_out => "took too long".to_owned(),
        (Some(0), _) => return Ok(()),
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, signal) => format!("was ended by signal {}", signal.unwrap_or_default()),
    };
    let (text, _) = supervision.launched(place).capture(Stream::Stderr).text().map_err(errno::of)?;
    let last = text.lines().rfind(|line| !line.trim().is_empty()).map(str::trim);
    Err(format!("{program} {how}{}", last.map_or_else(String::new, |line| format!(": {line}"))))
}
