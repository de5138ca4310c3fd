//! The files of a sampler's source: opened once, read repeatedly (pread(2)).

use std::io;
use std::os::unix::fs::FileExt;

use crate::disk::fs::File;
use crate::errno;
use crate::event::Source;
use crate::sampling::figures::{self, Chosen, Keys};

const FIRST_BYTES: usize = 16 << 10;
/// A file of the kernel that is longer than that is something else.
const MOST_BYTES: usize = 16 << 20;

/// How the text of one file becomes figures.
type Parse = Box<dyn Fn(&str, &mut Chosen<'_>)>;

/// A source that can be read.
pub struct Reader {
    files: Vec<(File, Parse)>,
    text: Vec<u8>,
}

impl Reader {
    /// Open the files of `source` that have any of the figures that `keys` choose.
    /// The error says why there is none.
    pub fn open(source: Source, pid: i32, keys: &Keys) -> Result<Reader, String> {
        let mut files = Vec::new();
        let mut missing = Err("it has none of the figures asked for".to_owned());
        for (path, beginning, parse) in places(source, pid) {
            if !keys.may_choose(beginning) {
                continue;
            }
            match File::open(&path).and_then(readable) {
                Ok(file) => files.push((file, parse)),
                Err(error) => missing = Err(format!("{path}: {}", errno::of::<io::Error>(error))),
            }
        }
        if files.is_empty() { missing } else { Ok(Reader { files, text: vec![0; FIRST_BYTES] }) }
    }

    /// Read all files and give every figure that `keys` choose to `take`.
    pub fn read(&mut self, keys: &Keys, take: &mut dyn FnMut(&str, u64)) -> Result<(), String> {
        let mut chosen = Chosen::new(keys, take);
        for (file, parse) in &self.files {
            let length = read_whole(file, &mut self.text).map_err(errno::of::<io::Error>)?;
            parse(&String::from_utf8_lossy(&self.text[..length]), &mut chosen);
        }
        Ok(())
    }
}

/// Reading shows whether this kernel has the figures of a file.
fn readable(file: File) -> io::Result<File> {
    file.read_at(&mut [0], 0).map(|_| file)
}

/// The files of a source, with the beginning of all their figures' names.
fn places(source: Source, pid: i32) -> Vec<(String, &'static str, Parse)> {
    fn one(path: &str, parse: fn(&str, &mut Chosen<'_>)) -> Vec<(String, &'static str, Parse)> {
        vec![(path.to_owned(), "", Box::new(parse))]
    }
    match source {
        Source::Vmstat => one("/proc/vmstat", figures::vmstat),
        Source::Meminfo => one("/proc/meminfo", figures::meminfo),
        Source::Diskstats => one("/proc/diskstats", figures::diskstats),
        Source::Schedstat => one("/proc/schedstat", figures::schedstat),
        Source::Softirqs => one("/proc/softirqs", figures::by_cpu),
        Source::Interrupts => one("/proc/interrupts", figures::by_cpu),
        Source::Stat => one("/proc/stat", figures::stat),
        Source::Pressure => ["cpu", "io", "memory", "irq"].map(of_resource).into(),
        Source::Process => {
            let page_bytes = rustix::param::page_size() as u64;
            let stat: Parse = Box::new(move |text, chosen| figures::process_stat(text, page_bytes, chosen));
            vec![
                (format!("/proc/{pid}/stat"), "stat.", stat),
                (format!("/proc/{pid}/io"), "io.", Box::new(figures::process_io)),
                (format!("/proc/{pid}/schedstat"), "schedstat.", Box::new(figures::process_schedstat)),
                (format!("/proc/{pid}/status"), "status.", Box::new(figures::process_status)),
            ]
        }
    }
}

fn of_resource(resource: &'static str) -> (String, &'static str, Parse) {
    let parse: Parse = Box::new(move |text, chosen| figures::pressure(resource, text, chosen));
    (format!("/proc/pressure/{resource}"), resource, parse)
}

/// The whole file into the beginning of `text`, which grows as needed.
/// Returns its length.
fn read_whole(file: &File, text: &mut Vec<u8>) -> io::Result<usize> {
    let mut length = 0;
    loop {
        if length == text.len() {
            if length >= MOST_BYTES {
                return Err(io::Error::from(io::ErrorKind::FileTooLarge));
            }
            text.resize(2 * length, 0);
        }
        match file.read_at(&mut text[length..], length as u64) {
            Ok(0) => return Ok(length),
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn read(source: Source, keys: &[&str]) -> Result<BTreeMap<String, u64>, String> {
        let keys = Keys::new(&keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>());
        let mut reader = Reader::open(source, std::process::id() as i32, &keys)?;
        let mut found = BTreeMap::new();
        reader
            .read(&keys, &mut |name, value| assert!(found.insert(name.to_owned(), value).is_none(), "{name} twice"))?;
        Ok(found)
    }

    #[test]
    fn the_running_kernel_has_figures_of_every_source_or_says_why_not() {
        for (source, figure) in [
            (Source::Vmstat, "nr_dirty"),
            (Source::Meminfo, "Dirty"),
            (Source::Diskstats, ""),
            (Source::Schedstat, "cpu0.run_ns"),
            (Source::Pressure, "cpu.some.total_us"),
            (Source::Softirqs, "NET_RX"),
            (Source::Interrupts, "LOC.cpu0"),
            (Source::Stat, "cpu0.user_ticks"),
            (Source::Process, "status.voluntary_ctxt_switches"),
        ] {
            match read(source, &["*"]) {
                Ok(found) => assert!(figure.is_empty() || found.contains_key(figure), "{source:?}: {found:?}"),
                Err(reason) => assert!(reason.starts_with("/proc/"), "{source:?}: {reason}"),
            }
        }
    }

    #[test]
    fn a_second_reading_begins_at_the_beginning() {
        let keys = Keys::new(&["*".to_owned()]);
        let mut reader = Reader::open(Source::Interrupts, 1, &keys).unwrap();
        let mut counts = [0; 2];
        for count in &mut counts {
            reader.read(&keys, &mut |_, _| *count += 1).unwrap();
        }
        assert!(counts[0] > 0 && counts[0] == counts[1]);
    }

    #[test]
    fn a_file_longer_than_the_buffer_is_read_whole() {
        let path = std::env::temp_dir().join(format!("ajuste-reader-{}", std::process::id()));
        std::fs::write(&path, [b'x'; 100_001]).unwrap();
        let mut text = vec![0; 16];
        assert_eq!(read_whole(&File::open(&path).unwrap(), &mut text).unwrap(), 100_001);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn the_figures_of_this_process_are_its_own() {
        let found = read(Source::Process, &["stat.threads", "status.Threads", "io.rchar"]).unwrap();
        assert_eq!(found["stat.threads"], found["status.Threads"]);
        assert!(found["io.rchar"] > 0);
    }

    #[test]
    fn keys_that_no_file_can_have_are_not_supported() {
        assert_eq!(read(Source::Process, &["rss"]).unwrap_err(), "it has none of the figures asked for");
    }
}
