//! Starts a service: leaves its keeper running, and ends once the service is ready, or cannot be.

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::process::ExitCode;

use rustix::pipe::{PipeFlags, pipe_with};

use crate::directory;
use crate::keeper::{self, Keeper};
use crate::port;
use crate::report::{NotStarted, READY, Said};
use crate::request::{Fault, Start};

pub fn run(start: Start) -> Result<ExitCode, Fault> {
    directory::make(&start.directory)?;
    let control = directory::socket(&start.directory);
    let _ = fs::remove_file(&control);
    if let Some(why) = start.ports.iter().copied().chain(start.ready.port()).find_map(port::obstacle) {
        return Ok(failed(NotStarted { name: start.name, why, log: String::new() }));
    }
    match &start.template {
        Some(template) => directory::restore(&start.directory, template)?,
        None if start.makes_data => directory::make_data(&start.directory)?,
        None => {}
    }
    let listener = UnixListener::bind(&control).map_err(Fault::of(control.display()))?;
    let (answer, says) = pipe().map_err(Fault::of("pipe"))?;
    let (gone, here) = pipe().map_err(Fault::of("pipe"))?;
    let parent = std::process::id();
    // SAFETY: there is one thread, so a forked process may do all that this one may.
    match unsafe { libc::fork() } {
        -1 => Err(Fault::of("fork")(std::io::Error::last_os_error())),
        0 => {
            drop((answer, here));
            let code = Keeper::live(start, listener, says, || keeper::await_end(&gone, parent));
            // SAFETY: nothing of the other process's is cleaned up here.
            unsafe { libc::_exit(code) }
        }
        _ => {
            drop((says, gone, listener));
            let code = outcome(answer, &start.name);
            drop(here);
            Ok(code)
        }
    }
}

fn pipe() -> std::io::Result<(OwnedFd, OwnedFd)> {
    Ok(pipe_with(PipeFlags::CLOEXEC)?)
}

fn outcome(answer: OwnedFd, name: &str) -> ExitCode {
    let mut text = String::new();
    let _ = File::from(answer).read_to_string(&mut text);
    if text == READY {
        return ExitCode::SUCCESS;
    }
    failed(serde_json::from_str(&text).unwrap_or_else(|_| NotStarted {
        name: name.to_owned(),
        why: "its keeper was killed".to_owned(),
        log: String::new(),
    }))
}

fn failed(why: NotStarted) -> ExitCode {
    Said::AjusteServiceFailed(why).print();
    ExitCode::FAILURE
}
