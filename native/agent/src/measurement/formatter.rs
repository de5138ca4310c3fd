//! Makes a trial's scratch file system: device, format, mount.

use indexmap::IndexMap;

use crate::event::{Role, Stage};
use crate::failure::{Stop, failure};
use crate::measurement::Measurement;
use crate::measurement::errand::verdict;
use crate::plan::{Attributes, Command, Scratch};
use crate::process::launch::DEFAULT_PATH;
use crate::process::supervise::{Supervision, Woken};
use crate::scratch::{Device, Mounted};

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
        let mut supervision = Supervision::new(self.interrupts, Vec::new());
        let launched = self.launch(&command, "scratch", 0)?;
        let place = supervision.start(Role::Before, 0, launched);
        let woken = supervision.wait(Some(place), self.patience());
        if woken != Woken::Ended {
            supervision.end(place, woken == Woken::Elapsed);
        }
        supervision.stop()?;
        if let Woken::Interrupted(reason) = woken {
            return Err(reason.to_owned());
        }
        supervision.launched(place).await_exec(std::time::Duration::ZERO)?;
        verdict(&supervision, place, &command.argv[0])
    }
}

/// The plan's program with the device's path and an English environment.
fn command(scratch: &Scratch, device: &Device) -> Command {
    let mut argv = scratch.make.clone();
    argv.push(device.path().to_string_lossy().into_owned());
    let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let environment = IndexMap::from([variable("LC_ALL", "C"), variable("PATH", DEFAULT_PATH)]);
    Command { argv, environment, directory: "/".to_owned(), attributes: Attributes::default(), user: None }
}
