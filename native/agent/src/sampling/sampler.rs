//! Samplers read the system's figures during the workload, and report them after.
//!
//! They run in the agent's one thread.
//! A sleep ends at [`Samplers::next_due`], and [`Samplers::read_due`] follows it. Readings are kept in memory, so that
//! nothing is written during a measurement.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use crate::clock;
use crate::errno;
use crate::event::{Event, Sample, Sampled, Source};
use crate::plan::Sampler;
use crate::sampling::figures::Keys;
use crate::sampling::reader::Reader;

/// The limit for all samplers together.
/// Enough for 5 s at the highest rate, or an hour and more at 10 Hz.
const MOST_READINGS: usize = 50_000;
const MOST_VALUES: usize = 500_000;

/// One sampler of a plan.
struct Timed {
    source: Source,
    keys: Keys,
    interval: Duration,
    /// `None` when its source is gone, or was never there.
    reader: Option<Reader>,
    due: Instant,
    readings: u64,
    skipped: u64,
    not_supported: Option<String>,
}

/// One reading of a sampler; its values end where the next reading's begin.
struct Reading {
    at_ns: u64,
    sampler: usize,
    first_value: usize,
}

/// All readings so far. A name is kept once.
#[derive(Default)]
struct Record {
    readings: Vec<Reading>,
    values: Vec<(u32, u64)>,
    names: Vec<String>,
    numbers: HashMap<String, u32>,
}

/// All samplers of a plan.
pub struct Samplers {
    timed: Vec<Timed>,
    record: Record,
    full: bool,
}

impl Samplers {
    /// Read all of them for the first time.
    /// `pid` is the workload's process, which has not executed its program yet.
    pub fn start(plan: &[Sampler], pid: i32) -> Samplers {
        let timed = plan.iter().map(|sampler| Timed::open(sampler, pid)).collect();
        let mut samplers = Samplers { timed, record: Record::default(), full: false };
        samplers.read_all();
        let now = Instant::now();
        for timed in &mut samplers.timed {
            timed.due = now + timed.interval;
        }
        samplers
    }

    /// When [`Samplers::read_due`] wants to be called next.
    pub fn next_due(&self) -> Option<Instant> {
        let live = self.timed.iter().filter(|timed| timed.reader.is_some() && !self.full);
        live.map(|timed| timed.due).min()
    }

    /// Read those whose time has come.
    /// A time that was missed is not made up for, and the next one does not move.
    pub fn read_due(&mut self, now: Instant) {
        for place in 0..self.timed.len() {
            let timed = &mut self.timed[place];
            if timed.reader.is_some() && timed.due <= now {
                timed.skipped += timed.step_over(now);
                self.read(place);
            }
        }
    }

    /// Read all samplers now, due or not: where something begins or ends.
    pub fn read_all(&mut self) {
        for place in 0..self.timed.len() {
            self.read(place);
        }
    }

    fn read(&mut self, place: usize) {
        let timed = &mut self.timed[place];
        let Some(reader) = timed.reader.as_mut().filter(|_| !self.full) else { return };
        let record = &mut self.record;
        let first_value = record.values.len();
        let at_ns = clock::raw_ns();
        let result = reader.read(&timed.keys, &mut |name, value| record.note(name, value));
        match result {
            Ok(()) if record.values.len() == first_value => {}
            Ok(()) => {
                timed.readings += 1;
                record.readings.push(Reading { at_ns, sampler: place, first_value });
            }
            Err(reason) => {
                // A file that could be read once and no more is that of a process that is gone,
                // unless another reason is known.
                record.values.truncate(first_value);
                timed.reader = None;
                if timed.readings == 0 || reason != errno::text(libc::ESRCH) {
                    timed.not_supported = Some(reason);
                }
            }
        }
        self.full = record.readings.len() >= MOST_READINGS || record.values.len() >= MOST_VALUES;
    }

    /// All that was read, in the order of time, and then what became of each sampler.
    pub fn events(self) -> impl Iterator<Item = Event> {
        let Samplers { timed, record, full } = self;
        let sources: Vec<Source> = timed.iter().map(|timed| timed.source).collect();
        let ends = timed.into_iter().enumerate().map(move |(index, timed)| timed.sampled(index, full));
        let ends: Vec<Event> = ends.collect();
        let samples = (0..record.readings.len()).map(move |place| record.sample(place, &sources));
        samples.chain(ends)
    }
}

impl Timed {
    fn open(sampler: &Sampler, pid: i32) -> Timed {
        let keys = Keys::new(&sampler.keys);
        let (reader, not_supported) = match Reader::open(sampler.source, pid, &keys) {
            Ok(reader) => (Some(reader), None),
            Err(reason) => (None, Some(reason)),
        };
        let interval = Duration::from_nanos(sampler.interval_ns);
        let due = Instant::now();
        Timed { source: sampler.source, keys, interval, reader, due, readings: 0, skipped: 0, not_supported }
    }

    /// Move `due` to the first time after `now`. Returns how many were missed.
    fn step_over(&mut self, now: Instant) -> u64 {
        let missed = now.duration_since(self.due).as_nanos() / self.interval.as_nanos();
        self.due += Duration::from_nanos(self.interval.as_nanos() as u64 * (missed as u64 + 1));
        missed as u64
    }

    fn sampled(self, index: usize, full: bool) -> Event {
        Event::Sampled(Sampled {
            at_ns: clock::raw_ns(),
            index,
            source: self.source,
            readings: self.readings,
            skipped: self.skipped,
            full,
            not_supported: self.not_supported,
        })
    }
}

impl Record {
    fn note(&mut self, name: &str, value: u64) {
        // Figures come in the same order every time: the next one is mostly the one after
        // the last.
        let next = self.values.last().map_or(0, |(number, _)| number + 1);
        let number = match self.names.get(next as usize) {
            Some(expected) if expected == name => next,
            _ => self.number(name),
        };
        self.values.push((number, value));
    }

    fn number(&mut self, name: &str) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }

    fn sample(&self, place: usize, sources: &[Source]) -> Event {
        let reading = &self.readings[place];
        let end = self.readings.get(place + 1).map_or(self.values.len(), |next| next.first_value);
        let named = |(number, value): &(u32, u64)| (self.names[*number as usize].clone(), *value);
        let values: BTreeMap<String, u64> = self.values[reading.first_value..end].iter().map(named).collect();
        Event::Sample(Sample { at_ns: reading.at_ns, source: sources[reading.sampler], values })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samplers(plan: &[(Source, &str, u64)]) -> Samplers {
        let sampler = |(source, key, interval_ns): &(Source, &str, u64)| Sampler {
            source: *source,
            keys: vec![(*key).to_owned()],
            interval_ns: *interval_ns,
        };
        let plan: Vec<Sampler> = plan.iter().map(sampler).collect();
        Samplers::start(&plan, std::process::id() as i32)
    }

    fn said(samplers: Samplers) -> (Vec<Sample>, Vec<Sampled>) {
        let (mut samples, mut ends) = (Vec::new(), Vec::new());
        for event in samplers.events() {
            match event {
                Event::Sample(sample) => samples.push(sample),
                Event::Sampled(sampled) => ends.push(sampled),
                other => panic!("{other:?}"),
            }
        }
        (samples, ends)
    }

    #[test]
    fn readings_come_at_multiples_of_the_interval_however_late_one_was() {
        let mut samplers = samplers(&[(Source::Stat, "ctxt", 1_000_000_000)]);
        let first = samplers.next_due().unwrap();
        samplers.read_due(first - Duration::from_millis(1));
        assert_eq!(samplers.next_due(), Some(first));
        samplers.read_due(first + Duration::from_millis(300));
        assert_eq!(samplers.next_due(), Some(first + Duration::from_secs(1)));
        samplers.read_due(first + Duration::from_millis(4500));
        assert_eq!(samplers.next_due(), Some(first + Duration::from_secs(5)));
        let (samples, ends) = said(samplers);
        assert_eq!((samples.len(), ends[0].readings, ends[0].skipped), (3, 3, 3));
        assert!(samples.windows(2).all(|pair| pair[0].at_ns <= pair[1].at_ns));
        assert!(samples.windows(2).all(|pair| pair[0].values["ctxt"] <= pair[1].values["ctxt"]));
    }

    #[test]
    fn every_sampler_has_its_own_rate() {
        let mut samplers = samplers(&[(Source::Stat, "ctxt", 1_000_000), (Source::Meminfo, "MemTotal", 3_000_000)]);
        let start = samplers.next_due().unwrap();
        for step in 0..6 {
            samplers.read_due(start + Duration::from_millis(step));
        }
        let (samples, ends) = said(samplers);
        assert_eq!((ends[0].readings, ends[1].readings), (7, 3));
        let total = samples.iter().find(|sample| sample.source == Source::Meminfo).unwrap();
        assert_eq!(total.values["MemTotal"], crate::machine::hello(false).memory_bytes);
    }

    #[test]
    fn what_would_not_end_is_cut_off_and_said() {
        let mut samplers = samplers(&[(Source::Vmstat, "*", 1_000_000)]);
        while !samplers.full {
            samplers.read_all();
        }
        assert_eq!(samplers.next_due(), None);
        samplers.read_all();
        let (samples, ends) = said(samplers);
        let values: usize = samples.iter().map(|sample| sample.values.len()).sum();
        assert!(ends[0].full && ends[0].readings == samples.len() as u64);
        assert!((MOST_VALUES..MOST_VALUES + 1000).contains(&values));
    }

    #[test]
    fn a_process_that_is_gone_is_read_no_more() {
        let mut child = std::process::Command::new("/bin/sleep").arg("100").spawn().unwrap();
        let plan = [Sampler { source: Source::Process, keys: vec!["stat.*".to_owned()], interval_ns: 1_000_000 }];
        let mut samplers = Samplers::start(&plan, child.id() as i32);
        child.kill().unwrap();
        child.wait().unwrap();
        samplers.read_all();
        assert_eq!(samplers.next_due(), None);
        let (samples, ends) = said(samplers);
        assert_eq!((samples.len(), ends[0].readings, ends[0].not_supported.clone()), (1, 1, None));
        assert_eq!(samples[0].values["stat.threads"], 1);
    }

    #[test]
    fn a_source_that_is_not_there_says_why() {
        let plan = [Sampler { source: Source::Process, keys: vec!["io.*".to_owned()], interval_ns: 1_000_000 }];
        let samplers = Samplers::start(&plan, i32::MAX);
        assert_eq!(samplers.next_due(), None);
        let (samples, ends) = said(samplers);
        assert!(samples.is_empty());
        assert!(ends[0].not_supported.as_ref().unwrap().contains("No such file or directory"));
    }
}
