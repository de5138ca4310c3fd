//! Where a fault is met: every operation of the layer asks here first.
//!
//! In the ordinary build that is nothing at all, and nothing can switch it on. With the cargo feature `faults`, which is
//! for tests, operations are counted, and one of them fails as the environment says: `AJUSTE_FAULT=17:enospc` the 17th,
//! `17+:enospc` all from there on. `AJUSTE_FAULT_LOG` names a file that gets a line for each operation.

pub use at::{length, next};

/// What is about to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Open,
    Create,
    Stat,
    Access,
    Resolve,
    Read,
    Write,
    Seek,
    Truncate,
    Allocate,
    Sync,
    Lock,
    Mode,
    Owner,
    Link,
    Unlink,
    MakeDirectory,
    RemoveDirectory,
    List,
}

#[cfg(not(feature = "faults"))]
mod at {
    use rustix::io::Errno;

    use super::Operation;

    /// Whether `operation` may be done.
    #[inline(always)]
    pub fn next(_: Operation) -> Result<(), Errno> {
        Ok(())
    }

    /// How many of the `wanted` bytes may be read or written by one system call.
    #[inline(always)]
    pub fn length(_: Operation, wanted: usize) -> Result<usize, Errno> {
        Ok(wanted)
    }
}

#[cfg(feature = "faults")]
mod at {
    use std::fs::{File, OpenOptions};
    use std::io::Write;
    use std::sync::Mutex;

    use rustix::io::Errno;

    use super::Operation;

    #[derive(Clone, Copy, PartialEq)]
    enum Kind {
        Error(Errno),
        /// Only half of the bytes.
        Short,
        /// Only half of the bytes, and killed at the next operation.
        Torn,
        Kill,
    }

    #[derive(Clone, Copy)]
    struct Fault {
        first: u64,
        stays: bool,
        kind: Kind,
    }

    /// Of the process that asked first: what it forks meets no faults.
    struct Count {
        process: u32,
        done: u64,
        is_torn: bool,
        fault: Option<Fault>,
        log: Option<File>,
    }

    static COUNT: Mutex<Option<Count>> = Mutex::new(None);

    /// Whether `operation` may be done.
    pub fn next(operation: Operation) -> Result<(), Errno> {
        match ask(operation) {
            // The calls behind this go on by themselves after an interruption, and are never
            // short.
            Some(Kind::Error(error)) if error != Errno::INTR => Err(error),
            _ => Ok(()),
        }
    }

    /// How many of the `wanted` bytes may be read or written by one system call.
    pub fn length(operation: Operation, wanted: usize) -> Result<usize, Errno> {
        match ask(operation) {
            Some(Kind::Error(error)) => Err(error),
            Some(Kind::Short | Kind::Torn) => Ok(wanted.div_ceil(2)),
            _ => Ok(wanted),
        }
    }

    fn ask(operation: Operation) -> Option<Kind> {
        let mut count = COUNT.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let count = count.get_or_insert_with(Count::begin);
        if count.process != std::process::id() {
            return None;
        }
        if let Some(log) = &mut count.log {
            let _ = writeln!(log, "{operation:?}");
        }
        let place = count.done;
        count.done += 1;
        let met = |fault: &Fault| place == fault.first || fault.stays && place > fault.first;
        let kind = count.fault.filter(met).map(|fault| fault.kind);
        if kind == Some(Kind::Kill) || count.is_torn {
            die();
        }
        count.is_torn = kind == Some(Kind::Torn);
        kind
    }

    fn die() {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }

    impl Count {
        fn begin() -> Count {
            let log = std::env::var_os("AJUSTE_FAULT_LOG");
            let log = log.and_then(|path| OpenOptions::new().create(true).append(true).open(path).ok());
            let fault = std::env::var("AJUSTE_FAULT").ok().map(|text| match parsed(&text) {
                Some(fault) => fault,
                None => {
                    eprintln!("AJUSTE_FAULT={text}: not a number, perhaps `+`, a colon and a kind");
                    std::process::exit(2)
                }
            });
            Count { process: std::process::id(), done: 0, is_torn: false, fault, log }
        }
    }

    fn parsed(text: &str) -> Option<Fault> {
        let (place, kind) = text.split_once(':')?;
        let number = place.strip_suffix('+');
        let kind = match kind {
            "enospc" => Kind::Error(Errno::NOSPC),
            "eio" => Kind::Error(Errno::IO),
            "erofs" => Kind::Error(Errno::ROFS),
            "eintr" => Kind::Error(Errno::INTR),
            "short" => Kind::Short,
            "torn" => Kind::Torn,
            "kill" => Kind::Kill,
            _ => return None,
        };
        Some(Fault { first: number.unwrap_or(place).parse().ok()?, stays: number.is_some(), kind })
    }
}
