//! The lines of journals and registry entries: JSON, each with a checksum.
//!
//! A line is eight hexadecimal digits, a space and the JSON text. The digits are the CRC-32C of the id of the boot and
//! of the text: a line that was damaged, or that is of another boot, is known as such even where the header is lost.
//! Steps are numbered, so that a line that is lost does not shift the others.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::process::roll::Leader;
use crate::safety::registry::Entry;
use crate::safety::undo::Undo;

pub const JOURNAL_VERSION: u32 = 2;
/// An older agent's version: no checksums, no numbers, no machine.
const OLDER_VERSION: u32 = 1;
const DIGITS: usize = 8;
const MOST_NAMED: usize = 20;

/// Whose journal it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    pub journal: u32,
    pub session: String,
    pub boot: String,
    /// `/etc/machine-id`, where there is one.
    #[serde(default)]
    pub machine: Option<String>,
    pub pid: i32,
    /// The start of the process, in clock ticks since the boot.
    /// Its number may be used again.
    pub started_ticks: u64,
    /// Seconds since 1970.
    pub began_s: u64,
}

impl Header {
    /// The agent whose session it is.
    pub fn owner(&self) -> Leader {
        Leader { pid: self.pid, started_ticks: self.started_ticks }
    }
}

/// A line after the header.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Line {
    Step {
        step: usize,
        back: Undo,
    },
    /// The step with this number is done for good.
    Done {
        done: usize,
    },
}

/// The same in the older version, where a step has the number of its line.
#[derive(Deserialize)]
#[serde(untagged)]
enum OlderLine {
    Done { done: usize },
    Step(Undo),
}

/// A step and its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub number: usize,
    pub back: Undo,
    pub done: bool,
}

/// What a journal says.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// `None` if it was not written, or cannot be read.
    pub header: Option<Header>,
    pub steps: Vec<Step>,
    /// How many lines cannot be read.
    /// One that is cut off at the end does not count: it is of a change that was never made.
    pub damaged: usize,
    /// Of which tunables a step is lost, where that is known.
    pub lost: Vec<String>,
}

impl Contents {
    /// The steps that count: not done, and the last ones of their place.
    pub fn open_steps(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().enumerate().filter_map(|(index, step)| {
            let later = &self.steps[index + 1..];
            (!step.done && !later.iter().any(|later| later.back.same_place(&step.back))).then_some(step)
        })
    }

    /// Count the missing ones of the first `noted` steps as damage.
    /// The agent continued only after they were on disk. Lines beyond them belong to changes that were never made, and
    /// are no damage.
    pub fn count_missing(&mut self, noted: usize) {
        let is_missing = |number: &usize| !self.steps.iter().any(|step| step.number == *number);
        self.damaged = (0..noted).filter(is_missing).count();
    }

    /// Count the missing ones of the steps that the registry knows of.
    pub fn compare(&mut self, entry: &Entry) {
        entry.steps.into_iter().for_each(|noted| self.count_missing(noted));
        let here: BTreeSet<&str> = self.steps.iter().filter_map(|step| step.back.tunable()).collect();
        self.lost = entry.tunables.iter().filter(|name| !here.contains(name.as_str())).cloned().collect();
    }

    /// What the damage means, in words.
    pub fn damage(&self) -> String {
        let lines = if self.damaged == 1 { "1 line of it".to_owned() } else { format!("{} lines of it", self.damaged) };
        let lost = match self.lost.as_slice() {
            [] => "what else is to be put back is unknown".to_owned(),
            names => format!("these values may still be changed: {}", listed(names)),
        };
        format!("{lines} cannot be read, so {lost}")
    }

    fn add(&mut self, line: Line) {
        match line {
            Line::Step { step, back } => self.steps.push(Step { number: step, back, done: false }),
            Line::Done { done } => match self.steps.iter_mut().find(|step| step.number == done) {
                Some(step) => step.done = true,
                // The step itself is among the damaged lines.
                None if self.damaged > 0 => {}
                None => self.damaged += 1,
            },
        }
    }
}

/// Names for people: each once, and of many only the first.
pub fn listed(names: &[String]) -> String {
    let all: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    let first: Vec<&str> = all.iter().copied().take(MOST_NAMED).collect();
    let more = all.len() - first.len();
    let rest = if more == 0 { String::new() } else { format!(", and {more} more") };
    format!("{}{rest}", first.join(", "))
}

/// A line as it is written, of the boot with the id `boot`.
pub fn sealed<T: Serialize>(boot: &str, content: &T) -> Result<Vec<u8>, String> {
    let text = serde_json::to_string(content).map_err(|error| error.to_string())?;
    Ok(format!("{:08x} {text}\n", checksum(boot, text.as_bytes())).into_bytes())
}

/// What a line says, if it is as it was written in that boot.
pub fn unsealed<T: DeserializeOwned>(boot: &str, line: &[u8]) -> Option<T> {
    let text = text_of(line)?;
    let expected = format!("{:08x}", checksum(boot, text));
    (line[..DIGITS] == *expected.as_bytes()).then(|| serde_json::from_slice(text).ok()).flatten()
}

/// The first line of a file, which names its boot; `boot_of` finds it.
pub fn unsealed_header<T: DeserializeOwned>(line: &[u8], boot_of: impl Fn(&T) -> &str) -> Option<T> {
    let header: T = serde_json::from_slice(text_of(line)?).ok()?;
    unsealed::<T>(boot_of(&header), line)
}

fn text_of(line: &[u8]) -> Option<&[u8]> {
    line.get(DIGITS).filter(|byte| **byte == b' ').map(|_| &line[DIGITS + 1..])
}

/// The whole lines of a file.
pub fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    // Empty, or cut off.
    lines.pop();
    lines
}

/// The lines of these steps, of which the first gets `number`.
pub fn step_lines(boot: &str, number: usize, steps: &[Undo]) -> Result<Vec<u8>, String> {
    let numbered =
        steps.iter().enumerate().map(|(index, back)| Line::Step { step: number + index, back: back.clone() });
    gathered(boot, numbered)
}

/// The lines that mark the steps with these numbers as done.
/// In the format of the journal's `version`.
pub fn done_lines(version: u32, boot: &str, numbers: &[usize]) -> Result<Vec<u8>, String> {
    if version == OLDER_VERSION {
        return Ok(numbers.iter().flat_map(|number| format!("{{\"done\":{number}}}\n").into_bytes()).collect());
    }
    gathered(boot, numbers.iter().map(|number| Line::Done { done: *number }))
}

fn gathered(boot: &str, lines: impl Iterator<Item = Line>) -> Result<Vec<u8>, String> {
    let lines = lines.map(|line| sealed(boot, &line)).collect::<Result<Vec<_>, _>>()?;
    Ok(lines.concat())
}

/// Read a journal.
/// `boot` is this boot, of which the lines are if they fit and the header is lost. The error says what it is instead of
/// a journal.
pub fn parse(bytes: &[u8], boot: &str) -> Result<Contents, String> {
    let mut contents = Contents::default();
    let lines = lines(bytes);
    let Some((first, rest)) = lines.split_first() else { return Ok(contents) };
    // A header whose end got to the disk and whose beginning did not: nothing was ever
    // added to it.
    if first.first() == Some(&0) && bytes.len() == first.len() + 1 {
        return Ok(contents);
    }
    if let Ok(header) = serde_json::from_slice::<Header>(first) {
        return older(header, rest);
    }
    contents.header = unsealed_header(first, |header: &Header| &header.boot);
    let boot = match &contents.header {
        Some(header) if header.journal != JOURNAL_VERSION => {
            return Err(format!("it is of version {}, this agent understands {JOURNAL_VERSION}", header.journal));
        }
        Some(header) => header.boot.clone(),
        None => boot.to_owned(),
    };
    contents.damaged += usize::from(contents.header.is_none());
    for line in rest {
        match unsealed(&boot, line) {
            Some(line) => contents.add(line),
            None => contents.damaged += 1,
        }
    }
    // The last line may only have lost its end.
    let tail = bytes.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    if let Some(line) = unsealed(&boot, tail) {
        contents.add(line);
    } else if let Some(line) = unsealed(&boot, &tail[..tail.len().saturating_sub(1)]) {
        contents.add(line);
        contents.damaged += 1;
    }
    match contents.header.is_none() && contents.steps.is_empty() {
        true => Err("no line of it can be read".to_owned()),
        false => Ok(contents),
    }
}

fn older(header: Header, lines: &[&[u8]]) -> Result<Contents, String> {
    if header.journal != OLDER_VERSION {
        return Err(format!("it is of version {}, this agent understands {JOURNAL_VERSION}", header.journal));
    }
    let mut contents = Contents { header: Some(header), ..Contents::default() };
    let mut number = 0;
    for line in lines {
        match serde_json::from_slice(line) {
            // After a line that is lost the numbers mean nothing; what is done is done again.
            Ok(OlderLine::Done { done }) if contents.damaged == 0 => contents.add(Line::Done { done }),
            Ok(OlderLine::Done { .. }) => {}
            Ok(OlderLine::Step(back)) => {
                contents.add(Line::Step { step: number, back });
                number += 1;
            }
            Err(_) => contents.damaged += 1,
        }
    }
    Ok(contents)
}

/// CRC-32C (RFC 3720, B.4) of the boot's id and the text.
fn checksum(boot: &str, text: &[u8]) -> u32 {
    let divided = boot.bytes().chain(text.iter().copied()).fold(u32::MAX, |rest, byte| {
        (0..8).fold(rest ^ u32::from(byte), |rest, _| (rest >> 1) ^ (0x82f6_3b78 & (rest & 1).wrapping_neg()))
    });
    !divided
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{FileLocation, Location};
    use crate::safety::undo::OldValue;

    fn back(name: &str, before: &str) -> Undo {
        let location = Location::File(FileLocation { path: format!("/proc/sys/{name}") });
        let (tunable, before) = (name.to_owned(), before.to_owned());
        Undo::Value(OldValue { tunable, location, before, companion: false, appeared: false, watched: false })
    }

    fn header() -> Header {
        let (session, boot) = ("s".to_owned(), "b".to_owned());
        Header { journal: JOURNAL_VERSION, session, boot, machine: None, pid: 1, started_ticks: 2, began_s: 3 }
    }

    fn journal() -> Vec<u8> {
        let steps = step_lines("b", 0, &[back("a", "1"), back("b", "é"), back("c", "3")]).unwrap();
        [sealed("b", &header()).unwrap(), steps, done_lines(JOURNAL_VERSION, "b", &[1]).unwrap()].concat()
    }

    fn numbers(contents: &Contents) -> Vec<usize> {
        contents.open_steps().map(|step| step.number).collect()
    }

    #[test]
    fn the_checksum_is_crc_32c() {
        assert_eq!(checksum("1234", b"56789"), 0xe306_9283);
    }

    #[test]
    fn wherever_it_is_cut_off_the_whole_lines_count() {
        let text = journal();
        for length in 0..=text.len() {
            let whole = text[..length].iter().filter(|byte| **byte == b'\n').count();
            let whole = whole + usize::from(whole > 0 && text[length..].starts_with(b"\n"));
            let contents = parse(&text[..length], "b").unwrap();
            assert_eq!(contents.header.is_some(), whole > 0);
            assert_eq!((contents.steps.len(), contents.damaged), (whole.saturating_sub(1).min(3), 0));
        }
    }

    #[test]
    fn a_flipped_bit_anywhere_costs_one_line_and_is_noticed() {
        let text = journal();
        let all = parse(&text, "b").unwrap();
        for position in 0..text.len() * 8 {
            let mut flipped = text.clone();
            flipped[position / 8] ^= 1 << (position % 8);
            let found = parse(&flipped, "b").unwrap();
            // A newline that is gone makes one line of two, or a line that is cut off of the
            // last.
            let lost = all.steps.len() - found.steps.len();
            assert!(lost <= 2, "bit {position}");
            assert!(found.damaged > 0, "bit {position} went unnoticed");
            assert!(found.steps.iter().all(|step| all.steps.iter().any(|one| one.back == step.back)));
        }
    }

    #[test]
    fn without_its_header_the_lines_of_this_boot_count_and_others_do_not() {
        let mut text = journal();
        text[20] ^= 1;
        let contents = parse(&text, "b").unwrap();
        assert_eq!((contents.header.is_none(), numbers(&contents), contents.damaged), (true, vec![0, 2], 1));
        assert_eq!(parse(&text, "another boot").unwrap_err(), "no line of it can be read");
    }

    #[test]
    fn a_header_without_its_beginning_is_an_empty_journal_unless_something_follows() {
        let whole = journal();
        let length = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        let mut header = whole[..length].to_vec();
        header[..30].fill(0);
        assert_eq!(parse(&header, "b"), Ok(Contents::default()));
        let followed = parse(&[&header, &whole[length..]].concat(), "b").unwrap();
        assert_eq!((followed.steps.len(), followed.damaged), (3, 1));
        assert!(parse(b"something else\n", "b").is_err());
    }

    #[test]
    fn what_the_agent_never_acted_on_is_no_damage_and_what_it_did_act_on_is_missed() {
        let text = journal();
        let second = text.iter().position(|byte| *byte == b'\n').unwrap() + 20;
        let mut torn = text.clone();
        torn[second..second + 40].fill(0);
        for (bytes, noted, damaged) in [(&torn, 0, 0), (&torn, 3, 1), (&text, 3, 0), (&text, 5, 2)] {
            let mut contents = parse(bytes, "b").unwrap();
            contents.count_missing(noted);
            assert_eq!(contents.damaged, damaged, "{noted} noted");
        }
    }

    #[test]
    fn one_of_the_older_version_is_understood() {
        let text = r#"{"journal":1,"session":"s","boot":"b","pid":1,"started_ticks":2,"began_s":3}
{"undo":"made","path":"/a"}
no step
{"undo":"made","path":"/b"}
{"undo":"made","path":"/c"}
{"done":2}
"#;
        let contents = parse(text.as_bytes(), "b").unwrap();
        assert_eq!((numbers(&contents), contents.damaged), (vec![0, 1, 2], 1));
        let done = parse(text.replace("no step\n", "").as_bytes(), "b").unwrap();
        assert_eq!((numbers(&done), done.damaged), (vec![0, 1], 0));
        assert!(parse(text.replace("\"journal\":1", "\"journal\":7").as_bytes(), "b").is_err());
    }
}
