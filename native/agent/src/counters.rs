//! perf events of a workload and its children (perf_event_open(2)).

use std::io::{self, Read};
use std::os::fd::FromRawFd;
use std::sync::atomic::{AtomicU32, Ordering};

use perf_event_open_sys as perf;
use perf_event_open_sys::bindings as abi;

use crate::clock;
use crate::disk::fs::File;
use crate::errno;
use crate::event::Counter;

const HARDWARE: u32 = abi::PERF_TYPE_HARDWARE;
const SOFTWARE: u32 = abi::PERF_TYPE_SOFTWARE;

/// Name, type and number of every event that a plan can ask for.
/// `task-clock` counts nanoseconds.
const KNOWN: [(&str, u32, u32); 10] = [
    ("task-clock", SOFTWARE, abi::PERF_COUNT_SW_TASK_CLOCK),
    ("context-switches", SOFTWARE, abi::PERF_COUNT_SW_CONTEXT_SWITCHES),
    ("cpu-migrations", SOFTWARE, abi::PERF_COUNT_SW_CPU_MIGRATIONS),
    ("page-faults", SOFTWARE, abi::PERF_COUNT_SW_PAGE_FAULTS),
    ("cycles", HARDWARE, abi::PERF_COUNT_HW_CPU_CYCLES),
    ("instructions", HARDWARE, abi::PERF_COUNT_HW_INSTRUCTIONS),
    ("cache-references", HARDWARE, abi::PERF_COUNT_HW_CACHE_REFERENCES),
    ("cache-misses", HARDWARE, abi::PERF_COUNT_HW_CACHE_MISSES),
    ("branches", HARDWARE, abi::PERF_COUNT_HW_BRANCH_INSTRUCTIONS),
    ("branch-misses", HARDWARE, abi::PERF_COUNT_HW_BRANCH_MISSES),
];

const NO_SUCH: &str = "this machine has no such counter";

pub fn is_known(name: &str) -> bool {
    KNOWN.iter().any(|(known, _, _)| *known == name)
}

/// All known names, for a message.
pub fn names() -> String {
    KNOWN.map(|(name, _, _)| name).join(", ")
}

/// A counter that begins at the exec of a process, or why there is none.
pub struct OpenCounter {
    name: String,
    file: Result<File, String>,
}

/// Open the named counters on a process that has not executed its program yet.
pub fn open(names: &[String], pid: i32) -> Vec<OpenCounter> {
    names.iter().map(|name| OpenCounter { name: name.clone(), file: open_one(name, pid) }).collect()
}

fn open_one(name: &str, pid: i32) -> Result<File, String> {
    /// Bits of the events in [`KNOWN`] that this machine lacks: it is not asked again for each trial.
    static LACKING: AtomicU32 = AtomicU32::new(0);

    let found = KNOWN.iter().position(|(known, _, _)| *known == name);
    let place = found.ok_or_else(|| format!("unknown counter {name:?}"))?;
    if LACKING.load(Ordering::Relaxed) & (1 << place) != 0 {
        return Err(NO_SUCH.to_owned());
    }
    let (_, kind, config) = KNOWN[place];
    let mut attributes = attributes(kind, config);
    attributes.set_inherit(1);
    attributes.set_enable_on_exec(1);
    open_event(attributes, pid).map_err(|error| {
        if error.raw_os_error() == Some(libc::ENOENT) {
            LACKING.fetch_or(1 << place, Ordering::Relaxed);
        }
        why_not(error)
    })
}

/// Of an event that does not count yet.
fn attributes(kind: u32, config: u32) -> abi::perf_event_attr {
    let mut attributes = abi::perf_event_attr {
        type_: kind,
        size: size_of::<abi::perf_event_attr>() as u32,
        config: u64::from(config),
        read_format: u64::from(abi::PERF_FORMAT_TOTAL_TIME_ENABLED | abi::PERF_FORMAT_TOTAL_TIME_RUNNING),
        ..Default::default()
    };
    attributes.set_disabled(1);
    attributes
}

fn open_event(mut attributes: abi::perf_event_attr, pid: i32) -> io::Result<File> {
    let flags = u64::from(abi::PERF_FLAG_FD_CLOEXEC);
    // SAFETY: the attributes are a valid structure of the size they say; the call
    // gives a descriptor of our own.
    unsafe {
        match perf::perf_event_open(&mut attributes, pid, -1, -1, flags) {
            -1 => Err(io::Error::last_os_error()),
            descriptor => Ok(File::from_raw_fd(descriptor)),
        }
    }
}

/// Events of this process that never count, one for each software counter that a plan asked for.
///
/// The kernel patches its own code when the first event of a kind is opened and when the last one is closed (static
/// keys), and interrupts every CPU each time. With these events it does so once, and not in every trial.
#[derive(Default)]
pub struct Standby {
    events: Vec<(u32, Option<File>)>,
}

impl Standby {
    /// Keep an event for each of the named counters. One that is not permitted is tried once.
    pub fn keep(&mut self, names: &[String]) {
        for (_, kind, config) in KNOWN.iter().filter(|(known, ..)| names.iter().any(|name| name == known)) {
            if *kind == SOFTWARE && self.events.iter().all(|(kept, _)| kept != config) {
                self.events.push((*config, open_event(attributes(*kind, *config), 0).ok()));
            }
        }
    }
}

/// Why perf_event_open(2) failed, in words.
fn why_not(error: io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP) => NO_SUCH.to_owned(),
        Some(libc::EACCES | libc::EPERM) => "not permitted (see kernel.perf_event_paranoid)".to_owned(),
        _ => errno::of(error),
    }
}

impl OpenCounter {
    /// What was counted, after all counted processes ended.
    /// A counter that never ran has no value: never a false 0.
    pub fn read(self) -> Counter {
        let reading = self.file.and_then(|file| read_values(file).map_err(errno::of::<io::Error>));
        let mut counter = Counter {
            at_ns: clock::raw_ns(),
            name: self.name,
            value: None,
            enabled_ns: 0,
            running_ns: 0,
            not_supported: None,
        };
        match reading {
            Err(reason) => counter.not_supported = Some(reason),
            Ok([_, enabled, 0]) => {
                counter.enabled_ns = enabled;
                counter.not_supported = Some("not counted".to_owned());
            }
            Ok([count, enabled, running]) => {
                (counter.enabled_ns, counter.running_ns) = (enabled, running);
                counter.value = Some(scaled(count, enabled, running));
            }
        }
        counter
    }
}

/// Count, time enabled, time running (`struct read_format` of perf_event_open(2)).
fn read_values(mut file: File) -> io::Result<[u64; 3]> {
    let mut bytes = [0; 24];
    file.read_exact(&mut bytes)?;
    let word = |index: usize| u64::from_ne_bytes(std::array::from_fn(|byte| bytes[index * 8 + byte]));
    Ok([word(0), word(1), word(2)])
}

/// The count extrapolated to the whole enabled time.
/// Events may share a hardware counter.
fn scaled(count: u64, enabled_ns: u64, running_ns: u64) -> u64 {
    let exact = u128::from(count) * u128::from(enabled_ns) / u128::from(running_ns);
    exact.min(u64::MAX.into()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_software_counter_has_one_event_on_standby() {
        let names: Vec<String> = KNOWN.iter().map(|(name, ..)| (*name).to_owned()).collect();
        let mut standby = Standby::default();
        standby.keep(&names[1..3]);
        standby.keep(&names);
        let mut configs: Vec<u32> = standby.events.iter().map(|(config, _)| *config).collect();
        configs.sort_unstable();
        let mut expected: Vec<u32> =
            KNOWN.iter().filter(|(_, kind, _)| *kind == SOFTWARE).map(|(_, _, config)| *config).collect();
        expected.sort_unstable();
        assert_eq!(configs, expected);
        for file in standby.events.into_iter().filter_map(|(_, file)| file) {
            assert_eq!(read_values(file).unwrap(), [0, 0, 0], "it counts");
        }
    }

    #[test]
    fn a_shared_counter_is_extrapolated() {
        assert_eq!(scaled(100, 30, 10), 300);
        assert_eq!(scaled(7, 10, 10), 7);
        assert_eq!(scaled(u64::MAX, 3, 2), u64::MAX);
    }
}
