//! Records in a separate trace instance (Documentation/trace/ftrace.rst).
//! Other tracing is not touched.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::format::Format;
use super::moment::{Decoder, Moment, TRACEPOINTS};
use super::page::{Cursor, Layout};
use super::reckoning::Reckoning;
use super::recording::{Part, Recording};
use crate::clock;
use crate::disk;
use crate::disk::fs::{self, File};
use crate::errno;

/// Where tracefs is.
const TRACEFS: &str = "/sys/kernel/tracing";
/// The buffers get at most one part in this many of the free memory.
const PART_OF_MEMORY: u64 = 4;

const LONGEST_TEXT_BYTES: usize = 1 << 16;

/// The directory of this agent's instance.
pub fn instance() -> PathBuf {
    PathBuf::from(format!("{TRACEFS}/instances/ajuste-{}", std::process::id()))
}

/// An instance that exists while this value does.
pub struct Recorder {
    instance: PathBuf,
    decoder: Decoder,
    layout: Layout,
    buffer_bytes: u64,
    begun_ns: u64,
    ended_ns: u64,
    known: Vec<(u32, Part)>,
}

impl Recorder {
    /// Have an instance with buffers, which records nothing yet.
    /// The error says what is missing.
    pub fn prepare(buffer_bytes: u64) -> Result<Recorder, String> {
        let formats = formats()?;
        let decoder = Decoder::new(formats)?;
        let layout = Layout::parse(&read(Path::new(&format!("{TRACEFS}/events/header_page")))?)?;
        let instance = instance();
        fs::create_dir(&instance).map_err(errno::at(instance.display()))?;
        let mut recorder =
            Recorder { instance, decoder, layout, buffer_bytes: 0, begun_ns: 0, ended_ns: 0, known: Vec::new() };
        recorder.set_up(buffer_bytes)?;
        Ok(recorder)
    }

    fn set_up(&mut self, buffer_bytes: u64) -> Result<(), String> {
        self.set("tracing_on", "0")?;
        self.set("trace_clock", "mono_raw")?;
        // What came first is kept where there is no room for all.
        self.set("options/overwrite", "0")?;
        // Names are in the records themselves; some kernels have this for all instances
        // together only.
        let _ = self.set("options/record-cmd", "0");
        let cpus = self.cpus()?.len().max(1) as u64;
        let room_bytes = buffer_bytes.min(available_bytes() / PART_OF_MEMORY);
        let kibibytes = (room_bytes / cpus / 1024).max(64);
        self.set("buffer_size_kb", &kibibytes.to_string())?;
        self.buffer_bytes = kibibytes * 1024 * cpus;
        TRACEPOINTS.iter().try_for_each(|name| self.set(&format!("events/sched/{name}/enable"), "1"))
    }

    /// Start to record the workload, the background load, and all that they fork.
    pub fn begin(&mut self, workload: i32, background: &[i32]) -> Result<(), String> {
        self.known.clear();
        for pid in background {
            self.known.extend(tasks_of(*pid).into_iter().map(|task| (task, Part::Background)));
        }
        self.known.extend(tasks_of(workload).into_iter().map(|task| (task, Part::Workload)));
        self.begun_ns = clock::raw_ns();
        self.set("tracing_on", "1")
    }

    /// Record no more.
    pub fn end(&mut self) -> Result<(), String> {
        self.ended_ns = clock::raw_ns();
        self.set("tracing_on", "0")
    }

    /// What all that was recorded comes to.
    pub fn recording(&self) -> Result<Recording, String> {
        let mut streams = Vec::new();
        for cpu in self.cpus()? {
            streams.push(Stream::open(&self.instance, cpu, &self.layout)?);
        }
        let lost = streams.iter().map(|stream| stream.lost).sum();
        let mut reckoning = Reckoning::new(self.begun_ns, self.known.iter().copied());
        let mut until_ns = self.ended_ns;
        streams.iter_mut().try_for_each(|stream| stream.advance(&self.decoder))?;
        while let Some(first) = earliest(&streams) {
            let stream = &mut streams[first];
            if let Some(moment) = stream.moment.take().filter(|moment| moment.at_ns <= self.ended_ns) {
                reckoning.add(&moment);
                stream.last_ns = moment.at_ns;
            }
            stream.advance(&self.decoder)?;
            if stream.moment.is_none() && stream.lost > 0 {
                // From here on this CPU is not known.
                until_ns = stream.last_ns;
                break;
            }
        }
        Ok(Recording {
            span_ns: self.ended_ns.saturating_sub(self.begun_ns),
            lost,
            buffer_bytes: self.buffer_bytes,
            ..reckoning.finish(until_ns)
        })
    }

    /// The numbers of all CPUs that have a buffer.
    fn cpus(&self) -> Result<Vec<usize>, String> {
        let place = self.instance.join("per_cpu");
        let entries = fs::read_dir(&place).map_err(errno::at(place.display()))?;
        let names = entries.flatten().map(|entry| entry.file_name());
        let mut cpus: Vec<usize> = names.filter_map(|name| name.to_str()?.strip_prefix("cpu")?.parse().ok()).collect();
        cpus.sort_unstable();
        Ok(cpus)
    }

    fn set(&self, name: &str, value: &str) -> Result<(), String> {
        let place = self.instance.join(name);
        fs::write(&place, value).map_err(errno::at(place.display()))
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.set("tracing_on", "0");
        let _ = fs::remove_dir(&self.instance);
    }
}

/// The records of one CPU, one after the other.
struct Stream {
    file: File,
    cpu: usize,
    layout: Layout,
    page: Vec<u8>,
    cursor: Cursor,
    moment: Option<Moment>,
    last_ns: u64,
    lost: u64,
}

impl Stream {
    fn open(instance: &Path, cpu: usize, layout: &Layout) -> Result<Stream, String> {
        let folder = instance.join(format!("per_cpu/cpu{cpu}"));
        let lost = lost(&read(&folder.join("stats"))?);
        let place = folder.join("trace_pipe_raw");
        let file = disk::open_at_once(&place).map_err(errno::at(place.display()))?;
        let (file, layout, page) = (file.into(), layout.clone(), Vec::new());
        Ok(Stream { file, cpu, layout, page, cursor: Cursor::default(), moment: None, last_ns: 0, lost })
    }

    /// Go to the next moment; there is none at the end.
    fn advance(&mut self, decoder: &Decoder) -> Result<(), String> {
        loop {
            while let Some((at_ns, place)) = self.cursor.next(&self.page) {
                self.moment = decoder.decode(at_ns, self.cpu, &self.page[place]);
                if self.moment.is_some() {
                    return Ok(());
                }
            }
            self.page.resize(self.layout.page_bytes(), 0);
            let count = match self.file.read(&mut self.page) {
                Ok(count) => count,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => 0,
                Err(error) => return Err(format!("the records of CPU {}: {}", self.cpu, errno::of(error))),
            };
            self.page.truncate(count);
            self.cursor = Cursor::new(&self.page, &self.layout);
            if count == 0 {
                self.moment = None;
                return Ok(());
            }
        }
    }
}

/// Which stream has the earliest moment.
fn earliest(streams: &[Stream]) -> Option<usize> {
    let times = streams.iter().enumerate().filter_map(|(place, stream)| Some((stream.moment.as_ref()?.at_ns, place)));
    times.min().map(|(_, place)| place)
}

fn formats() -> Result<[Format; TRACEPOINTS.len()], String> {
    let mut formats = Vec::new();
    for name in TRACEPOINTS {
        formats.push(Format::parse(&read(Path::new(&format!("{TRACEFS}/events/sched/{name}/format")))?));
    }
    formats.try_into().map_err(|_| "not all formats were read".to_owned())
}

/// A file's text.
/// Of `header_page` the kernel gives nothing after the first read, so that one must be long enough.
fn read(place: &Path) -> Result<String, String> {
    let mut text = Vec::with_capacity(LONGEST_TEXT_BYTES);
    let read = File::open(place).and_then(|mut file| file.read_to_end(&mut text));
    read.map_err(errno::at(place.display()))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Of a buffer that keeps what came first: how many records there was no room for.
fn lost(stats: &str) -> u64 {
    let counts = ["overrun:", "commit overrun:", "dropped events:"];
    let count = |line: &str| counts.iter().find_map(|name| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    stats.lines().filter_map(count).sum()
}

/// The numbers of all tasks of a process and its descendants.
fn tasks_of(pid: i32) -> Vec<u32> {
    let mut tasks = Vec::new();
    let mut processes = vec![pid as u32];
    while let Some(process) = processes.pop() {
        let entries = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
        for task in entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()) {
            tasks.push(task);
            let children = fs::read_to_string(format!("/proc/{process}/task/{task}/children")).unwrap_or_default();
            processes.extend(children.split_whitespace().filter_map(|number| number.parse::<u32>().ok()));
        }
    }
    tasks
}

/// MemAvailable of proc_meminfo(5).
fn available_bytes() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_had_no_room_is_counted() {
        let stats = "entries: 9\noverrun: 1\ncommit overrun: 2\nbytes: 5\ndropped events: 40\nread events: 3\n";
        assert_eq!(lost(stats), 43);
    }

    #[test]
    fn the_tasks_of_a_process_are_its_threads_and_children() {
        let mut child = std::process::Command::new("/bin/sleep").arg("100").spawn().unwrap();
        let found = tasks_of(std::process::id() as i32);
        let own = std::process::id();
        assert!(found.contains(&own) && found.contains(&child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(tasks_of(i32::MAX).is_empty());
    }
}
