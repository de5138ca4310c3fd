//! Tunables: reading and writing what a plan names, and nothing outside of `/proc/sys` and `/sys`.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

use crate::errno;
use crate::plan::Location;

const ROOTS: [&str; 2] = ["/proc/sys/", "/sys/"];
/// A kernel file of a tunable is a few words; more is cut off.
const READ_LIMIT_BYTES: u64 = 65536;

const NO_FILE: &str = "this kind of place is not in this version";

impl Location {
    /// The file it is in, if it is one.
    fn path(&self) -> Result<&str, String> {
        match self {
            Location::File(location) => Ok(&location.path),
            Location::Flag(location) => Ok(&location.path),
            Location::Choice(location) => Ok(&location.path),
            _ => Err(NO_FILE.to_owned()),
        }
    }
}

/// The current value, without the final newline. The error says why there is none.
pub fn read(location: &Location) -> Result<String, String> {
    let path = location.path()?;
    let text = content(&permitted(path)?)?;
    match location {
        Location::File(_) => Ok(text),
        Location::Flag(flag) => flag_value(&text, &flag.name).ok_or(format!("no flag {} in {path}", flag.name)),
        Location::Choice(_) => current_choice(&text).ok_or(format!("no current choice is marked in {path}")),
        _ => Err(NO_FILE.to_owned()),
    }
}

/// Write `value` with one write(2), as `echo` would.
pub fn write(location: &Location, value: &str) -> Result<(), String> {
    let path = location.path()?;
    let real = permitted(path)?;
    let text = match location {
        Location::Flag(flag) if value == "1" => format!("{}\n", flag.name),
        Location::Flag(flag) => format!("NO_{}\n", flag.name),
        _ => format!("{value}\n"),
    };
    let refused = |error| format!("writing {value:?} to {path}: {}", errno::of::<std::io::Error>(error));
    let mut file =
        OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(real).map_err(refused)?;
    let taken = file.write(text.as_bytes()).map_err(refused)?;
    if taken < text.trim_end().len() {
        return Err(format!("writing {value:?} to {path}: only {taken} bytes were taken"));
    }
    Ok(())
}

/// The real path behind `path`, if both are below one of the roots.
fn permitted(path: &str) -> Result<PathBuf, String> {
    let below = |path: &Path| ROOTS.iter().any(|root| path.starts_with(root) && path != Path::new(root));
    let plain = Path::new(path).components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    if !plain || !below(Path::new(path)) {
        return Err(format!("{path} is not a plain path below /proc/sys or /sys"));
    }
    let real = fs::canonicalize(path).map_err(|error| format!("{path}: {}", errno::of(error)))?;
    if !below(&real) {
        return Err(format!("{path} leads to {}, out of /proc/sys and /sys", real.display()));
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
    use crate::plan::{FileLocation, FlagLocation};

    fn file(path: &str) -> Location {
        Location::File(FileLocation { path: path.to_owned() })
    }

    #[test]
    fn only_proc_sys_and_sys_are_touched() {
        for path in [
            "/etc/passwd",
            "proc/sys/kernel/ostype",
            "/proc/sys/../version",
            "/proc/sysrq-trigger",
            "/proc/sys",
            "/sys/",
            "/proc/self/root/proc/sys/kernel/ostype",
            "",
        ] {
            assert!(read(&file(path)).unwrap_err().contains("plain path"), "{path}");
            assert!(write(&file(path), "1").unwrap_err().contains("plain path"), "{path}");
        }
        assert_eq!(read(&file("/proc/sys/kernel/ostype")).unwrap(), "Linux");
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        assert_eq!(
            read(&file("/proc/sys/kernel/none")).unwrap_err(),
            "/proc/sys/kernel/none: No such file or directory"
        );
        let flag = FlagLocation { path: "/proc/sys/kernel/ostype".to_owned(), name: "X".to_owned() };
        assert_eq!(read(&Location::Flag(flag)).unwrap_err(), "no flag X in /proc/sys/kernel/ostype");
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
