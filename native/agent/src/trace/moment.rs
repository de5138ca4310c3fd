//! One event of the scheduler, decoded from a record by the kernel's formats.

use std::ops::Range;

use super::format::{Format, number};

/// A command's name as the kernel has it.
pub type Name = [u8; 16];

/// The flags for "must reschedule" in `common_flags` (linux/trace_events.h).
/// The running task is to give up the CPU at once, or (from 6.13 on, where x86 has not used that bit before) at the
/// next tick.
const RESCHEDULE: u64 = 0x04 | 0x02;

/// Why a task left the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// It wanted to go on.
    Runnable,
    /// It waits for something, and a signal may end that.
    Slept,
    /// It waits for something that will come, mostly a disk.
    Blocked,
    Stopped,
    Exited,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    Switch { previous: u32, previous_name: Name, left: Left, next: u32, next_name: Name },
    Wakeup { task: u32, cpu: usize, new: bool },
    Migration { task: u32, cpu: usize },
    Fork { parent: u32, child: u32 },
}

/// One record.
/// `reschedule`: whether the running task had to give up the CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    pub at_ns: u64,
    pub cpu: usize,
    pub reschedule: bool,
    pub what: What,
}

/// The tracepoints that are needed, by name.
pub const TRACEPOINTS: [&str; 5] =
    ["sched_switch", "sched_wakeup", "sched_wakeup_new", "sched_migrate_task", "sched_process_fork"];

/// Reads records.
#[derive(Debug)]
pub struct Decoder {
    kind: Range<usize>,
    flags: Range<usize>,
    switch: Switch,
    wakeup: Wakeup,
    wakeup_new: Wakeup,
    migration: Pair,
    fork: Pair,
}

#[derive(Debug)]
struct Switch {
    format: Format,
    previous: Range<usize>,
    previous_name: Range<usize>,
    state: Range<usize>,
    next: Range<usize>,
    next_name: Range<usize>,
}

#[derive(Debug)]
struct Wakeup {
    id: u64,
    task: Range<usize>,
    cpu: Range<usize>,
}

/// Two numbers.
#[derive(Debug)]
struct Pair {
    id: u64,
    first: Range<usize>,
    second: Range<usize>,
}

impl Decoder {
    /// By the formats of [`TRACEPOINTS`], in their order.
    /// The error says what this kernel does not have.
    pub fn new(formats: [Format; TRACEPOINTS.len()]) -> Result<Decoder, String> {
        let [switch, wakeup, wakeup_new, migration, fork] = formats;
        if switch.known_bits() == 0 {
            return Err("this kernel's sched_switch does not say what its states mean".to_owned());
        }
        Ok(Decoder {
            kind: switch.place("common_type")?,
            flags: switch.place("common_flags")?,
            wakeup: Wakeup::new(&wakeup)?,
            wakeup_new: Wakeup::new(&wakeup_new)?,
            migration: Pair::new(&migration, "pid", "dest_cpu")?,
            fork: Pair::new(&fork, "parent_pid", "child_pid")?,
            switch: Switch {
                previous: switch.place("prev_pid")?,
                previous_name: switch.place("prev_comm")?,
                state: switch.place("prev_state")?,
                next: switch.place("next_pid")?,
                next_name: switch.place("next_comm")?,
                format: switch,
            },
        })
    }

    /// What a record of `cpu` says; `None` for one of another kind.
    pub fn decode(&self, at_ns: u64, cpu: usize, record: &[u8]) -> Option<Moment> {
        let kind = number(record, &self.kind)?;
        let reschedule = number(record, &self.flags)? & RESCHEDULE != 0;
        let what = if kind == self.switch.format.id {
            self.switch.decode(record)?
        } else if kind == self.wakeup.id {
            self.wakeup.decode(record, false)?
        } else if kind == self.wakeup_new.id {
            self.wakeup_new.decode(record, true)?
        } else if kind == self.migration.id {
            let (task, cpu) = self.migration.decode(record)?;
            What::Migration { task, cpu: cpu as usize }
        } else if kind == self.fork.id {
            let (parent, child) = self.fork.decode(record)?;
            What::Fork { parent, child }
        } else {
            return None;
        };
        Some(Moment { at_ns, cpu, reschedule, what })
    }
}

impl Switch {
    fn decode(&self, record: &[u8]) -> Option<What> {
        let state = number(record, &self.state)? & self.format.known_bits();
        let left = match self.format.letter(state) {
            None => Left::Runnable,
            Some('D') => Left::Blocked,
            Some('T' | 't') => Left::Stopped,
            Some('X' | 'Z') => Left::Exited,
            Some(_) => Left::Slept,
        };
        Some(What::Switch {
            previous: number(record, &self.previous)? as u32,
            previous_name: record.get(self.previous_name.clone())?.try_into().ok()?,
            left,
            next: number(record, &self.next)? as u32,
            next_name: record.get(self.next_name.clone())?.try_into().ok()?,
        })
    }
}

impl Wakeup {
    fn new(format: &Format) -> Result<Wakeup, String> {
        Ok(Wakeup { id: format.id, task: format.place("pid")?, cpu: format.place("target_cpu")? })
    }

    fn decode(&self, record: &[u8], new: bool) -> Option<What> {
        let (task, cpu) = (number(record, &self.task)? as u32, number(record, &self.cpu)? as usize);
        Some(What::Wakeup { task, cpu, new })
    }
}

impl Pair {
    fn new(format: &Format, first: &str, second: &str) -> Result<Pair, String> {
        Ok(Pair { id: format.id, first: format.place(first)?, second: format.place(second)? })
    }

    fn decode(&self, record: &[u8]) -> Option<(u32, u32)> {
        Some((number(record, &self.first)? as u32, number(record, &self.second)? as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMON: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n";

    fn format(id: u64, fields: &[(&str, usize, usize)]) -> Format {
        let lines: Vec<String> = fields
            .iter()
            .map(|(name, offset, size)| format!("\tfield:x {name};\toffset:{offset};\tsize:{size};\tsigned:1;\n"))
            .collect();
        Format::parse(&format!(
            "ID: {id}\n{COMMON}{}print fmt: {{ 0x0001, \"S\" }}, {{ 0x0002, \"D\" }}, {{ 0x0010, \"X\" }}\n",
            lines.concat()
        ))
    }

    fn decoder() -> Decoder {
        let switch = [
            ("prev_comm[16]", 8, 16),
            ("prev_pid", 24, 4),
            ("prev_state", 32, 8),
            ("next_comm[16]", 40, 16),
            ("next_pid", 56, 4),
        ];
        let wakeup = [("pid", 24, 4), ("target_cpu", 36, 4)];
        Decoder::new([
            format(1, &switch),
            format(2, &wakeup),
            format(3, &wakeup),
            format(4, &[("pid", 12, 4), ("dest_cpu", 24, 4)]),
            format(5, &[("parent_pid", 12, 4), ("child_pid", 20, 4)]),
        ])
        .unwrap()
    }

    fn record(kind: u16, flags: u8, words: &[(usize, u32)]) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..2].copy_from_slice(&kind.to_ne_bytes());
        bytes[2] = flags;
        for (place, word) in words {
            bytes[*place..place + 4].copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    #[test]
    fn each_tracepoint_says_what_happened() {
        let decode = |record: &[u8]| decoder().decode(9, 1, record).map(|moment| moment.what);
        assert_eq!(decode(&record(3, 0, &[(24, 7), (36, 1)])), Some(What::Wakeup { task: 7, cpu: 1, new: true }));
        assert_eq!(decode(&record(4, 0, &[(12, 7), (24, 3)])), Some(What::Migration { task: 7, cpu: 3 }));
        assert_eq!(decode(&record(5, 0, &[(12, 7), (20, 8)])), Some(What::Fork { parent: 7, child: 8 }));
        assert_eq!(decode(&record(99, 0, &[])), None);
        assert_eq!(decode(&record(1, 0, &[])[..40]), None);
    }

    #[test]
    fn a_state_is_read_by_the_letters_of_the_kernel() {
        for (state, left) in
            [(0, Left::Runnable), (0x100, Left::Runnable), (1, Left::Slept), (2, Left::Blocked), (0x10, Left::Exited)]
        {
            let moment = decoder().decode(9, 0, &record(1, 0, &[(24, 5), (32, state), (56, 6)])).unwrap();
            let found = match moment.what {
                What::Switch { left, previous: 5, next: 6, .. } => Some(left),
                _ => None,
            };
            assert_eq!(found, Some(left));
        }
    }

    #[test]
    fn the_flags_tell_who_is_to_give_up_the_cpu() {
        let told = |flags| decoder().decode(9, 0, &record(2, flags, &[])).unwrap().reschedule;
        assert_eq!([0, 1, 4, 0x0c, 2].map(told), [false, false, true, true, true]);
    }

    #[test]
    fn a_kernel_without_a_field_is_refused() {
        let refused = Decoder::new([1, 2, 3, 4, 5].map(|id| format(id, &[])));
        assert!(refused.unwrap_err().contains("no field"));
    }
}
