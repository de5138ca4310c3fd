//! A scheduler in BPF (sched_ext) for one trial.
//! Its program is started and left running, and ended afterwards.
//!
//! Loaded is what the kernel says is: it ejects a scheduler that does not do its work and goes on with its own, and the
//! program may only notice later (Documentation/scheduler/sched-ext.rst).
//!
//! Output, to be read by programs:
//! ```text
//! scheduler loaded=simple
//! scheduler unloaded=simple
//! ```

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lexopt::prelude::*;

use crate::request::Fault;

const CLASS: &str = "/sys/kernel/sched_ext";
const LOG: &str = "ajuste-scheduler.log";
const NOTE: &str = "ajuste-scheduler";

/// In the time of a guest, whose CPU may be slow: some schedulers compute for 10 seconds before they load.
const PATIENCE: Duration = Duration::from_secs(60);
/// The example schedulers look once a second whether they are still loaded.
const LAST_WORDS: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(5);
const SHOWN_LINES: usize = 3;

pub fn run(mut arguments: lexopt::Parser) -> Result<(), Fault> {
    let (mut words, mut class) = (Vec::new(), PathBuf::from(CLASS));
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("class") => class = arguments.value()?.into(),
            Value(word) => words.push(word),
            other => return Err(other.unexpected().into()),
        }
    }
    let class = Class { directory: class };
    match words.as_slice() {
        [verb, program] if verb == "load" => load(&class, program),
        [verb] if verb == "unload" => unload(&class),
        _ => Err(Fault::Request("expected load PROGRAM, or unload".into())),
    }
}

fn load(class: &Class, program: &OsString) -> Result<(), Fault> {
    let state = class.state()?;
    if state != "disabled" {
        return Err(Fault::Run(format!("the state of sched_ext is {state} before anything was loaded")));
    }
    let name = Path::new(program).file_name().unwrap_or(program).to_string_lossy().into_owned();
    let log =
        File::create(beside(LOG)).map_err(|error| Fault::Run(format!("cannot keep what {name} says: {error}")))?;
    let mut child = Command::new(program)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .map_err(|error| Fault::Run(format!("cannot start {name}: {error}")))?;
    let begun = Instant::now();
    while !class.is_loaded() {
        if let Some(status) = child.try_wait()? {
            return Err(Fault::Run(format!("{name} did not load its scheduler ({status}){}", last_words())));
        }
        if begun.elapsed() > PATIENCE {
            let _ = child.kill();
            return Err(Fault::Run(format!("{name} loaded no scheduler within {PATIENCE:?}{}", last_words())));
        }
        std::thread::sleep(LOOK);
    }
    let loaded = class.loaded();
    fs::write(beside(NOTE), format!("{}\n{loaded}\n{}\n", child.id(), class.count()))?;
    writeln!(std::io::stdout(), "scheduler loaded={loaded}")?;
    Ok(())
}

fn unload(class: &Class) -> Result<(), Fault> {
    let note = fs::read_to_string(beside(NOTE)).map_err(|_| Fault::Run("no scheduler was loaded".into()))?;
    let mut lines = note.lines();
    let mut next = || lines.next().unwrap_or_default();
    let (pid, loaded, count) = (next(), next(), next());
    let process = pid.parse::<libc::pid_t>().map_err(|_| Fault::Run("no scheduler was loaded".into()))?;
    if !class.is_loaded() || class.loaded() != loaded || class.count() != count {
        await_that(LAST_WORDS, || !is_alive(pid));
        return Err(Fault::Run(format!("the kernel ejected the scheduler {loaded} meanwhile{}", last_words())));
    }
    // SAFETY: takes numbers only. The process is alive, as its scheduler is loaded.
    unsafe { libc::kill(process, libc::SIGTERM) };
    if !await_that(PATIENCE, || class.state().is_ok_and(|state| state == "disabled")) {
        return Err(Fault::Run(format!("the scheduler {loaded} is still there after {PATIENCE:?}{}", last_words())));
    }
    writeln!(std::io::stdout(), "scheduler unloaded={loaded}")?;
    Ok(())
}

/// What the kernel says of its scheduler class.
struct Class {
    directory: PathBuf,
}

impl Class {
    fn state(&self) -> Result<String, Fault> {
        self.read("state").map_err(|error| Fault::Run(format!("this kernel has no sched_ext: {error}")))
    }

    fn is_loaded(&self) -> bool {
        self.state().is_ok_and(|state| state == "enabled") && !self.loaded().is_empty()
    }

    /// The name of the scheduler.
    fn loaded(&self) -> String {
        self.read("root/ops").unwrap_or_default()
    }

    /// How many were loaded since boot.
    /// Another number means another scheduler.
    fn count(&self) -> String {
        self.read("enable_seq").unwrap_or_default()
    }

    fn read(&self, name: &str) -> Result<String, String> {
        let path = self.directory.join(name);
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(text.trim().to_owned())
    }
}

fn beside(name: &str) -> PathBuf {
    std::env::temp_dir().join(name)
}

/// The last lines that the program printed, to follow a reason.
fn last_words() -> String {
    let text = fs::read(beside(LOG)).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let said: Vec<&str> = text.lines().map(str::trim).filter(|line| line.contains(char::is_alphanumeric)).collect();
    let last = said[said.len().saturating_sub(SHOWN_LINES)..].join("; ");
    if last.is_empty() { last } else { format!(": {last}") }
}

/// Whether it was so within `limit`.
fn await_that(limit: Duration, is_so: impl Fn() -> bool) -> bool {
    let begun = Instant::now();
    while !is_so() {
        if begun.elapsed() > limit {
            return false;
        }
        std::thread::sleep(LOOK);
    }
    true
}

/// A zombie has no command line.
fn is_alive(pid: &str) -> bool {
    fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
}
