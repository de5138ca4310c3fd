//! LINPACK in the kernel with interrupts off: the file of native/module/linpack.

use std::fs::File;
use std::io::{Read, Write};

use crate::linpack::solve::N;

const PLACE: &str = "/proc/ajuste_linpack";

/// What the module says of its last repetitions.
#[derive(Debug, PartialEq)]
pub struct Report {
    pub cpu: usize,
    pub total_ns: u64,
    pub factoring_ns: u64,
    pub solving_ns: u64,
    /// Of this CPU, from the begin of the first repetition to the end of the last.
    pub interrupts: u64,
    pub solution: [f64; N],
}

/// Have the module do them, on the CPU where we are.
pub fn repeat(repetitions: u64) -> Result<Report, String> {
    let opened = File::options().read(true).write(true).open(PLACE);
    let mut file = opened.map_err(|error| {
        format!("{PLACE}: {error}; the module ajuste_linpack is needed, which is loaded in guests only")
    })?;
    file.write_all(repetitions.to_string().as_bytes()).map_err(|error| match error.raw_os_error() {
        Some(libc::EXDEV) => "in the kernel it runs on one CPU: pin it to one".to_owned(),
        _ => format!("{PLACE}: {error}"),
    })?;
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(|error| format!("{PLACE}: {error}"))?;
    read(&text).ok_or_else(|| format!("{PLACE} says something unexpected: {text:.200}"))
}

fn read(text: &str) -> Option<Report> {
    let find = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let number = |name: &str| find(name)?.parse().ok();
    let bits = find("solution")?.split(' ').map(|word| u64::from_str_radix(word, 16).map(f64::from_bits));
    Some(Report {
        cpu: usize::try_from(number("cpu")?).ok()?,
        total_ns: number("total_ns")?,
        factoring_ns: number("factoring_ns")?,
        solving_ns: number("solving_ns")?,
        interrupts: number("interrupts")?,
        solution: bits.collect::<Result<Vec<_>, _>>().ok()?.try_into().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(words: usize) -> String {
        let solution = " 3ff0000000000000".repeat(words);
        format!("repetitions 2\ncpu 1\ntotal_ns 90\nfactoring_ns 70\nsolving_ns 5\ninterrupts 3\nsolution{solution}\n")
    }

    #[test]
    fn what_the_module_says() {
        let report = read(&text(N)).unwrap();
        assert_eq!((report.cpu, report.total_ns, report.factoring_ns, report.solving_ns), (1, 90, 70, 5));
        assert_eq!((report.interrupts, report.solution), (3, [1.0; N]));
    }

    #[test]
    fn half_of_a_solution_is_none() {
        assert_eq!(read(&text(N - 1)), None);
        assert_eq!(read(&text(N).replace("cpu", "gpu")), None);
        assert_eq!(read(""), None);
    }
}
