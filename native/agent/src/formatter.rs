//! Making the scratch file system of a trial: its device, formatted by the plan's program, mounted.

use std::collections::BTreeMap;

use crate::event::{Role, Stage, Stream};
use crate::failure::{failure, Stop};
use crate::launch::DEFAULT_PATH;
use crate::measurement::{Measurement, INTERRUPTED};
use crate::plan::{Attributes, Command, Scratch};
use crate::scratch::{Device, Mounted};
use crate::supervise::{Supervision, Woken};

impl Measurement<'_> {
    /// The plan's scratch file system, mounted. It is gone when the value is dropped.
    pub fn make_scratch(&self, scratch: &Scratch) -> Result<Mounted, Stop> {
        let failed = failure(Stage::Scratch);
        let device = Device::prepare(scratch).map_err(&failed)?;
        self.format(scratch, &device).map_err(&failed)?;
        Mounted::mount(scratch, device).map_err(&failed)
    }

    fn format(&self, scratch: &Scratch, device: &Device) -> Result<(), String> {
        let command = command(scratch, device);
        let program = &command.argv[0];
        let mut supervision = Supervision::new(self.interrupts);
        let launched = self.launch(&command, "scratch", 0)?;
        let place = supervision.start(Role::Before, 0, launched);
        let woken = supervision.wait(Some(place), self.patience());
        if woken != Woken::Ended {
            supervision.end(place, woken == Woken::Elapsed);
        }
        supervision.stop()?;
        if woken == Woken::Interrupted {
            return Err(INTERRUPTED.to_owned());
        }
        supervision.launched(place).await_exec(std::time::Duration::ZERO)?;
        let exited = supervision.exits().pop().ok_or_else(|| format!("{program} has not ended"))?;
        let how = match (exited.exit_code, exited.signal) {
            (Some(0), _) => return Ok(()),
            _ if exited.timed_out => "took too long".to_owned(),
            (Some(code), _) => format!("ended with exit code {code}"),
            (None, signal) => format!("was ended by signal {}", signal.unwrap_or_default()),
        };
        let printed = supervision.launched(place).capture(Stream::Stderr).text();
        let (text, _) = printed.map_err(|error| error.to_string())?;
        let last = text.lines().rev().find(|line| !line.trim().is_empty()).map(str::trim);
        Err(format!("{program} {how}{}", last.map_or_else(String::new, |line| format!(": {line}"))))
    }
}

/// The plan's program with the device's path, and an environment in which its words are English.
fn command(scratch: &Scratch, device: &Device) -> Command {
    let mut argv = scratch.make.clone();
    argv.push(device.path().to_string_lossy().into_owned());
    let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let environment = BTreeMap::from([variable("LC_ALL", "C"), variable("PATH", DEFAULT_PATH)]);
    Command { argv, environment, directory: "/".to_owned(), attributes: Attributes::default(), user: None }
}
