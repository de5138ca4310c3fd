//! Hostile plans, events and journals give a value or an error, never a panic.
//! They do so soon and in little memory.
//!
//! `AJUSTE_FUZZ` sets how many inputs each reader gets; `make fuzz` asks for many. Inputs are mutations of the examples
//! in `contract/`, by a generator that begins with the same seed each time: a failure names its input's number.

use std::fs;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use ajuste_agent::event::Event;
use ajuste_agent::plan::{FileLocation, Location, Plan};
use ajuste_agent::safety::record::{self, Header, JOURNAL_VERSION};
use ajuste_agent::safety::undo::{OldValue, Undo};

/// What readers stumble over.
const PIECES: [&[u8]; 24] = [
    b"\"",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\n",
    b"\0",
    b"\xff",
    b"\xc3",
    b"\\ud800",
    b"-1",
    b"1e999",
    b"null",
    b"18446744073709551616",
    b"999999999999999999999999999999999999999999",
    b"{\"a\":",
    b"[[[[[[[[",
    b"\\u0000",
    b"true",
    b"\"kind\":\"file\"",
    b"..",
    b"/",
];
const LARGE: usize = 100_000;
/// The most additional address space of a reader.
const MEMORY_BYTES: u64 = 2 << 30;
/// Of processor time for all inputs of one reader, for each thousand of them.
const CPU_SECONDS: u64 = 60;

/// xorshift64* (Vigna, 2016).
struct Source(u64);

impl Source {
    fn next(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit.max(1)
    }

    /// `seed` with a few places cut out, repeated or replaced.
    /// Sometimes very many.
    fn mutated(&mut self, seed: &[u8]) -> Vec<u8> {
        let mut bytes = seed.to_vec();
        for _ in 0..1 + self.next(4) {
            let start = self.next(bytes.len() + 1);
            let end = (start + [0, 0, 1, 2, 5, 20, 200][self.next(7)]).min(bytes.len());
            let middle = match self.next(8) {
                0 => bytes[start..end].repeat(2),
                1 => vec![self.next(256) as u8],
                _ => {
                    let piece = PIECES[self.next(PIECES.len())];
                    let times = if self.next(200) == 0 { LARGE / piece.len() } else { [1, 1, 2, 30][self.next(4)] };
                    piece.repeat(times)
                }
            };
            bytes.splice(start..end, middle);
        }
        bytes
    }
}

fn examples(place: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contract").join(place);
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

fn limit(resource: libc::__rlimit_resource_t, value: u64) {
    let limit = libc::rlimit { rlim_cur: value, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the structure is whole; a process may lower its soft limits.
    assert_eq!(unsafe { libc::setrlimit(resource, &limit) }, 0);
}

/// Give `read` all inputs, in a separate process with its own limits.
fn judge(name: &str, seeds: &[Vec<u8>], read: impl Fn(&[u8])) {
    let inputs: usize = std::env::var("AJUSTE_FUZZ").ok().and_then(|text| text.parse().ok()).unwrap_or(3000);
    // SAFETY: the child only computes, writes to its standard error and leaves by
    // `_exit`.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        limit(libc::RLIMIT_AS, MEMORY_BYTES);
        limit(libc::RLIMIT_CPU, CPU_SECONDS * (1 + inputs as u64 / 1000));
        let mut source = Source(0x9e37_79b9_7f4a_7c15);
        for number in 0..inputs {
            let seed = source.next(seeds.len());
            let bytes = source.mutated(&seeds[seed]);
            if catch_unwind(AssertUnwindSafe(|| read(&bytes))).is_err() {
                let shown = bytes.escape_ascii().to_string();
                let words = format!("{name}: input {number}: {}\n", &shown[..shown.len().min(3000)]);
                let _ = std::io::stderr().write_all(words.as_bytes());
                // SAFETY: ends the process.
                unsafe { libc::_exit(1) };
            }
        }
        // SAFETY: ends the process.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: our own child, and a place for its status.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0, "{name}: a reader failed (wait status {status:#x})");
}

#[test]
fn no_bytes_break_the_reader_of_plans() {
    judge("plan", &examples("plan"), |bytes| {
        if let Ok(plan) = Plan::parse(bytes) {
            let written = serde_json::to_vec(&plan).unwrap();
            Plan::parse(&written).expect("what was read can be read again");
        }
    });
}

#[test]
fn no_bytes_break_the_reader_of_events() {
    judge("event", &examples("events"), |bytes| {
        for line in bytes.split(|byte| *byte == b'\n') {
            let _ = serde_json::from_slice::<Event>(line);
        }
    });
}

const BOOT: &str = "0f5e1c6a-2b0b-4a6e-9f57-3c0d6f1f2a11";

/// A journal of this agent, and an older one without checksums.
fn journals() -> [Vec<u8>; 2] {
    let step = |name: &str, before: &str| {
        let location = Location::File(FileLocation { path: format!("/proc/sys/{name}") });
        let (tunable, before) = (name.to_owned(), before.to_owned());
        Undo::Value(OldValue { tunable, location, before, companion: false, appeared: false, watched: false })
    };
    let steps = [step("a", "1"), step("b", "2\t\u{e9}"), step("a", "3")];
    let (session, boot, machine) = ("1-2".to_owned(), BOOT.to_owned(), None);
    let header = Header { journal: JOURNAL_VERSION, session, boot, machine, pid: 1, started_ticks: 2, began_s: 3 };
    let now = [
        record::sealed(BOOT, &header).unwrap(),
        record::step_lines(BOOT, 0, &steps).unwrap(),
        record::done_lines(JOURNAL_VERSION, BOOT, &[1]).unwrap(),
    ];
    let header = format!(r#"{{"journal":1,"session":"1-2","boot":"{BOOT}","pid":1,"started_ticks":2,"began_s":3}}"#);
    let before = steps.iter().map(|step| serde_json::to_string(step).unwrap());
    let before: Vec<String> = std::iter::once(header).chain(before).chain([r#"{"done":1}"#.to_owned()]).collect();
    [now.concat(), (before.join("\n") + "\n").into_bytes()]
}

#[test]
fn no_bytes_break_the_reader_of_journals() {
    let written = journals();
    for journal in &written {
        let contents = record::parse(journal, BOOT).unwrap();
        assert_eq!((contents.steps.len(), contents.damaged), (3, 0));
    }
    judge("journal", &written, |bytes| {
        if let Ok(contents) = record::parse(bytes, BOOT) {
            assert!(contents.open_steps().count() <= contents.steps.len());
        }
    });
}

#[test]
#[should_panic(expected = "planted: a reader failed")]
fn a_reader_that_panics_is_found() {
    judge("planted", &examples("plan"), |bytes| {
        let text = std::str::from_utf8(bytes).unwrap_or("");
        assert!(!text.contains("-1"));
    });
}

#[test]
#[should_panic(expected = "planted: a reader failed")]
fn a_reader_without_end_is_found() {
    judge("planted", &examples("plan"), |bytes| {
        let mut kept = Vec::new();
        while bytes.len() > LARGE {
            kept.push(bytes.to_vec());
        }
    });
}
