//! Tunables that are kernel files, below a few roots and nowhere else.

use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

use crate::disk::fs::{self, File, OpenOptions};
use crate::errno;

const ROOTS: [&str; 3] = ["/proc/sys/", "/proc/irq/", "/sys/"];
const ROOT_WORDS: &str = "/proc/sys, /proc/irq or /sys";
/// A kernel file of a tunable is a few words; more is cut off.
const READ_LIMIT_BYTES: u64 = 65536;

/// The content of a file, without the final newline.
pub fn read(path: &str) -> Result<String, String> {
    content(&permitted(path)?)
}

/// Write `value` and a newline with one write(2), as `echo` would.
pub fn write(path: &str, value: &str) -> Result<(), String> {
    let real = permitted(path)?;
    let refused = |error| format!("writing {value:?} to {path}: {}", errno::of::<std::io::Error>(error));
    let mut file =
        OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(real).map_err(refused)?;
    let taken = file.write(format!("{value}\n").as_bytes()).map_err(refused)?;
    if taken < value.trim_end().len() {
        return Err(format!("writing {value:?} to {path}: only {taken} bytes were taken"));
    }
    Ok(())
}

/// Whether the flag `name` is on (`"1"`) in a file of words.
/// `NO_` means that it is off.
pub fn read_flag(path: &str, name: &str) -> Result<String, String> {
    flag_value(&read(path)?, name).ok_or(format!("no flag {name} in {path}"))
}

/// Turn a flag on (`"1"`) or off.
pub fn write_flag(path: &str, name: &str, value: &str) -> Result<(), String> {
    let word = if value == "1" { name.to_owned() } else { format!("NO_{name}") };
    write(path, &word)
}

/// The choice that is marked as the current one.
pub fn read_choice(path: &str) -> Result<String, String> {
    current_choice(&read(path)?).ok_or(format!("no current choice is marked in {path}"))
}

/// The real path behind `path`, if both are below one of the roots.
fn permitted(path: &str) -> Result<PathBuf, String> {
    let below = |path: &Path| ROOTS.iter().any(|root| path.starts_with(root) && path != Path::new(root));
    let plain = Path::new(path).components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    if !plain || !below(Path::new(path)) {
        return Err(format!("{path} is not a plain path below {ROOT_WORDS}"));
    }
    let real = fs::canonicalize(path).map_err(errno::at(path))?;
    if !below(&real) {
        return Err(format!("{path} leads to {}, out of {ROOT_WORDS}", real.display()));
    }
    Ok(real)
}

fn content(path: &Path) -> Result<String, String> {
    let refused = |error| format!("{}: {}", path.display(), errno::of::<std::io::Error>(error));
    // Some files (trace_pipe) would wait for ever.
    let file: File =
        OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path).map_err(refused)?;
    let mut bytes = Vec::new();
    file.take(READ_LIMIT_BYTES).read_to_end(&mut bytes).map_err(refused)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
}

fn flag_value(text: &str, name: &str) -> Option<String> {
    text.split_whitespace().find_map(|word| match word.strip_prefix("NO_") {
        _ if word == name => Some("1".to_owned()),
        Some(rest) if rest == name => Some("0".to_owned()),
        _ => None,
    })
}

fn current_choice(text: &str) -> Option<String> {
    let marked = |word: &str| {
        let inner = word.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        inner.or_else(|| word.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'))).map(str::to_owned)
    };
    text.split_whitespace().find_map(marked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_roots_are_touched() {
        for path in [
            "/etc/passwd",
            "proc/sys/kernel/ostype",
            "/proc/sys/../version",
            "/proc/sysrq-trigger",
            "/proc/irq",
            "/proc/interrupts",
            "/proc/sys",
            "/sys/",
            "/proc/self/root/proc/sys/kernel/ostype",
            "",
        ] {
            assert!(read(path).unwrap_err().contains("plain path"), "{path}");
            assert!(write(path, "1").unwrap_err().contains("plain path"), "{path}");
        }
        assert_eq!(read("/proc/sys/kernel/ostype").unwrap(), "Linux");
        assert!(!read("/proc/irq/default_smp_affinity").unwrap().is_empty());
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        assert_eq!(read("/proc/sys/kernel/none").unwrap_err(), "/proc/sys/kernel/none: No such file or directory");
        let missing = read_flag("/proc/sys/kernel/ostype", "X");
        assert_eq!(missing.unwrap_err(), "no flag X in /proc/sys/kernel/ostype");
    }

    #[test]
    fn flags_are_words() {
        let text = "GENTLE_FAIR_SLEEPERS START_DEBIT NO_NEXT_BUDDY NO_WA";
        assert_eq!(flag_value(text, "START_DEBIT").as_deref(), Some("1"));
        assert_eq!(flag_value(text, "NEXT_BUDDY").as_deref(), Some("0"));
        assert_eq!(flag_value(text, "BUDDY"), None);
        assert_eq!(flag_value("NO_TTWU", "NO_TTWU").as_deref(), Some("1"), "a flag's own name comes first");
    }

    #[test]
    fn the_marked_choice_is_current() {
        assert_eq!(current_choice("none [mq-deadline] kyber").as_deref(), Some("mq-deadline"));
        assert_eq!(current_choice("none (voluntary) full").as_deref(), Some("voluntary"));
        assert_eq!(current_choice("none"), None);
    }
}
