//! When a process began and when it ended, however late the agent gets a CPU to look.
//!
//! The process reads the clocks itself, as its last act before it executes its program. The kernel notes its end
//! (`PERF_RECORD_EXIT` of perf_event_open(2)), where it lets the agent have such notes.

use std::io::{self, Read};
use std::os::fd::FromRawFd;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use perf_event_open_sys as perf;
use perf_event_open_sys::bindings as abi;
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

use crate::disk::fs::File;

const PAGE_BYTES: usize = 4096;
/// Room for the notes of about 1,300 forks; the newest stay.
const NOTES_BYTES: usize = 16 * PAGE_BYTES;
/// An agent that has a CPU sees an end less than this after it.
pub const LATE_NS: u64 = 200_000;

/// The clocks just before the exec, in memory that the process shares with the agent.
pub struct Beginning {
    place: *mut Clocks,
}

/// Zero until they were read.
#[repr(C)]
#[derive(Default)]
pub struct Clocks {
    at_ns: AtomicU64,
    cpu_ns: AtomicU64,
}

impl Beginning {
    pub fn new() -> io::Result<Beginning> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, at a place that the kernel chooses, zeroed.
        let place = unsafe { mmap_anonymous(ptr::null_mut(), PAGE_BYTES, access, MapFlags::SHARED)? };
        Ok(Beginning { place: place.cast() })
    }

    /// For [`Clocks::read`] in the child.
    pub fn place(&self) -> *const Clocks {
        self.place
    }

    /// CLOCK_MONOTONIC_RAW. 0 if it never came to that.
    pub fn at_ns(&self) -> u64 {
        self.clocks().at_ns.load(Ordering::Acquire)
    }

    /// The CPU time that the agent's own preparations took.
    pub fn cpu_ns(&self) -> u64 {
        self.clocks().cpu_ns.load(Ordering::Acquire)
    }

    fn clocks(&self) -> &Clocks {
        // SAFETY: mapped as long as this lives, and only ever changed atomically.
        unsafe { &*self.place }
    }
}

impl Drop for Beginning {
    fn drop(&mut self) {
        // SAFETY: our own mapping; no reference outlives it.
        let _ = unsafe { munmap(self.place.cast(), PAGE_BYTES) };
    }
}

impl Clocks {
    /// In the child: the time first, so that no CPU time of the program is before its beginning.
    pub fn read(&self) {
        self.at_ns.store(now_ns(libc::CLOCK_MONOTONIC_RAW), Ordering::Release);
        self.cpu_ns.store(now_ns(libc::CLOCK_PROCESS_CPUTIME_ID), Ordering::Release);
    }
}

fn now_ns(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is what clock_gettime(2) fills in.
    unsafe { libc::clock_gettime(clock, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// What the agent can say of the end of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// It ended after this.
    pub earliest_ns: u64,
    /// When the agent was woken by it, as far as the kernel tells: hardly later than the end, and perhaps before it.
    pub woken_ns: Option<u64>,
    /// When the agent looked: it ended before this.
    pub at_ns: u64,
}

impl Seen {
    /// By an agent that was awake.
    pub fn at(at_ns: u64) -> Seen {
        Seen { earliest_ns: at_ns, woken_ns: Some(at_ns), at_ns }
    }

    /// The end of a process that began at `began_ns` and used the CPU for `cpu_ns` from then on.
    pub fn end_ns(self, notes: Option<Notes>, began_ns: u64, cpu_ns: u64) -> u64 {
        let noted_ns = notes.and_then(|notes| notes.end_ns(cpu_ns));
        let noted_ns = noted_ns.filter(|end_ns| end_ns.saturating_add(LATE_NS) >= self.earliest_ns);
        let end_ns = noted_ns.max(self.woken_ns).unwrap_or(self.at_ns).min(self.at_ns).max(began_ns);
        // A process that is alone does not use the CPU for longer than it lives.
        let used_ns = began_ns.saturating_add(cpu_ns);
        let alone = notes.is_none_or(|notes| notes.company == Company::None);
        if alone && (end_ns..=self.at_ns).contains(&used_ns) { used_ns } else { end_ns }
    }
}

/// Who else there was in the life of a process, as far as that matters to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Company {
    None,
    /// Processes that it started.
    Children,
    /// More threads, or more notes than there is room for.
    Threads,
}

/// What the kernel noted of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notes {
    /// CLOCK_MONOTONIC_RAW of when its first thread ended, perhaps before its memory was given back.
    pub ended_ns: u64,
    /// The CPU time of that thread until then.
    pub counted_ns: u64,
    pub company: Company,
}

impl Notes {
    /// The end of the whole process, which used the CPU for `cpu_ns`. `None` if the last of several threads decides.
    fn end_ns(self, cpu_ns: u64) -> Option<u64> {
        match self.company {
            Company::None => Some(self.ended_ns + cpu_ns.saturating_sub(self.counted_ns)),
            Company::Children => Some(self.ended_ns),
            Company::Threads => None,
        }
    }
}

/// The kernel's notes on a process: its forks and its end, the newest first.
pub struct Notebook {
    event: File,
    place: *const u8,
    pid: u32,
}

impl Notebook {
    /// On a process that has not executed its program yet. The error says why there is none.
    pub fn open(pid: i32) -> io::Result<Notebook> {
        let mut attributes = abi::perf_event_attr {
            type_: abi::PERF_TYPE_SOFTWARE,
            size: size_of::<abi::perf_event_attr>() as u32,
            config: u64::from(abi::PERF_COUNT_SW_TASK_CLOCK),
            clockid: libc::CLOCK_MONOTONIC_RAW,
            ..Default::default()
        };
        attributes.set_exclude_kernel(1);
        attributes.set_exclude_hv(1);
        attributes.set_task(1);
        attributes.set_use_clockid(1);
        attributes.set_write_backward(1);
        let flags = u64::from(abi::PERF_FLAG_FD_CLOEXEC);
        // SAFETY: the attributes are a valid structure of the size they say.
        let event = match unsafe { perf::perf_event_open(&mut attributes, pid, -1, -1, flags) } {
            -1 => return Err(io::Error::last_os_error()),
            // SAFETY: a new descriptor of our own.
            descriptor => unsafe { File::from_raw_fd(descriptor) },
        };
        let length = PAGE_BYTES + NOTES_BYTES;
        // Without the right to write, old notes make room for new ones. SAFETY: a new mapping.
        let place = unsafe { mmap(ptr::null_mut(), length, ProtFlags::READ, MapFlags::SHARED, &event, 0)? };
        Ok(Notebook { event, place: place.cast(), pid: pid as u32 })
    }

    /// After the end of the process. `None` if its end was not noted.
    pub fn read(&mut self) -> Option<Notes> {
        let mut counted = [0; 8];
        self.event.read_exact(&mut counted).ok()?;
        // SAFETY: the first page is this structure.
        let head =
            unsafe { ptr::read_volatile(&raw const (*self.place.cast::<abi::perf_event_mmap_page>()).data_head) };
        fence(Ordering::Acquire);
        let mut bytes = vec![0; NOTES_BYTES];
        // SAFETY: the notes are behind the first page, and nobody writes any more: the process is dead.
        unsafe { ptr::copy_nonoverlapping(self.place.add(PAGE_BYTES), bytes.as_mut_ptr(), NOTES_BYTES) };
        // The kernel counts down from 0.
        let written = 0_u64.wrapping_sub(head);
        bytes.rotate_left(head as usize % NOTES_BYTES);
        let written_bytes = &bytes[..written.min(NOTES_BYTES as u64) as usize];
        let (ended_ns, company) = read_notes(written_bytes, written > NOTES_BYTES as u64, self.pid)?;
        Some(Notes { ended_ns, counted_ns: u64::from_ne_bytes(counted), company })
    }
}

impl Drop for Notebook {
    fn drop(&mut self) {
        // SAFETY: our own mapping; no reference outlives it.
        let _ = unsafe { munmap(self.place.cast_mut().cast(), PAGE_BYTES + NOTES_BYTES) };
    }
}

/// When the process ended and who else there was, from `bytes` of notes, the newest first; the oldest were `lost`.
fn read_notes(bytes: &[u8], lost: bool, pid: u32) -> Option<(u64, Company)> {
    let mut ended_ns = None;
    let mut company = if lost { Company::Threads } else { Company::None };
    let mut rest = bytes;
    // struct perf_event_header { u32 type; u16 misc; u16 size; }, then of both kinds of records
    // { u32 pid, ppid; u32 tid, ptid; u64 time; }
    while let Some((header, _)) = rest.split_first_chunk::<8>() {
        let size = usize::from(u16::from_ne_bytes([header[6], header[7]]));
        let word = |at: usize| rest.get(at..at + 4).and_then(|four| four.try_into().ok()).map(u32::from_ne_bytes);
        let time = rest.get(24..32).and_then(|eight| eight.try_into().ok()).map(u64::from_ne_bytes);
        if size < 32 || size > rest.len() {
            break;
        }
        match (word(0)?, word(8)? == pid) {
            (abi::PERF_RECORD_EXIT, true) if word(16)? == pid => ended_ns = time,
            (abi::PERF_RECORD_FORK, is_thread) => {
                company = company.max(if is_thread { Company::Threads } else { Company::Children });
            }
            _ => {}
        }
        rest = &rest[size..];
    }
    ended_ns.map(|ended_ns| (ended_ns, company))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    const MS: u64 = 1_000_000;

    const fn seen(earliest_ms: u64, woken_ms: Option<u64>, at_ms: u64) -> Seen {
        let woken_ns = match woken_ms {
            Some(ms) => Some(ms * MS),
            None => None,
        };
        Seen { earliest_ns: earliest_ms * MS, woken_ns, at_ns: at_ms * MS }
    }

    const fn noted(ended_ms: u64, counted_ms: u64, company: Company) -> Option<Notes> {
        Some(Notes { ended_ns: ended_ms * MS, counted_ns: counted_ms * MS, company })
    }

    #[test]
    fn the_kernels_note_is_believed_where_the_agent_was_late() {
        assert_eq!(seen(2, None, 9).end_ns(noted(3, 0, Company::None), 0, 0), 3 * MS);
        assert_eq!(seen(2, Some(2), 9).end_ns(noted(3, 0, Company::None), 0, 0), 3 * MS);
        assert_eq!(seen(2, None, 9).end_ns(noted(3, 0, Company::Children), 0, 8 * MS), 3 * MS);
    }

    #[test]
    fn without_a_note_the_agents_waking_up_is_the_end_or_else_its_look() {
        assert_eq!(seen(2, Some(4), 9).end_ns(None, 0, 0), 4 * MS);
        assert_eq!(seen(2, None, 9).end_ns(None, 0, 0), 9 * MS);
    }

    #[test]
    fn a_note_from_before_the_end_is_not_believed() {
        // The kernel forgets a process that executes a set-user-ID program, and notes that as its end.
        assert_eq!(seen(8, None, 9).end_ns(noted(1, 0, Company::None), 0, 0), 9 * MS);
        // The first thread may end before the others.
        assert_eq!(seen(2, None, 9).end_ns(noted(3, 0, Company::Threads), 0, 0), 9 * MS);
    }

    #[test]
    fn giving_memory_back_after_the_note_belongs_to_the_process() {
        assert_eq!(seen(2, None, 9).end_ns(noted(3, 1, Company::None), 0, 2 * MS), 4 * MS);
    }

    #[test]
    fn nobody_uses_the_cpu_for_longer_than_it_lives() {
        assert_eq!(seen(0, Some(3), 9).end_ns(None, MS, 4 * MS), 5 * MS);
        assert_eq!(seen(0, Some(3), 9).end_ns(None, MS, 40 * MS), 3 * MS, "several did");
        assert_eq!(seen(0, Some(0), 1).end_ns(None, 2 * MS, 0), 2 * MS);
    }

    fn record(kind: u32, pid: u32, tid: u32, time: u64) -> Vec<u8> {
        let head = [kind.to_ne_bytes(), [0, 0, 32, 0]].concat();
        let numbers = [pid, 1, tid, 1].map(u32::to_ne_bytes).concat();
        [head, numbers, time.to_ne_bytes().to_vec()].concat()
    }

    #[test]
    fn notes_say_who_else_there_was() {
        let end = record(abi::PERF_RECORD_EXIT, 7, 7, 55);
        let child = record(abi::PERF_RECORD_FORK, 8, 8, 44);
        let thread = record(abi::PERF_RECORD_FORK, 7, 9, 33);
        assert_eq!(read_notes(&end, false, 7), Some((55, Company::None)));
        assert_eq!(read_notes(&[end.clone(), child.clone()].concat(), false, 7), Some((55, Company::Children)));
        assert_eq!(read_notes(&[end.clone(), child.clone(), thread].concat(), false, 7), Some((55, Company::Threads)));
        assert_eq!(read_notes(&[end.clone(), child.clone()].concat(), true, 7), Some((55, Company::Threads)));
        assert_eq!(read_notes(&child, false, 7), None);
        assert_eq!(read_notes(&end[..31], false, 7), None);
        assert_eq!(read_notes(&record(abi::PERF_RECORD_EXIT, 7, 9, 55), false, 7), None);
    }

    #[test]
    fn a_real_end_is_noted_between_two_looks_at_the_clock() {
        let mut child = Command::new("/bin/cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let Ok(mut notebook) = Notebook::open(child.id() as i32) else {
            child.kill().unwrap();
            child.wait().unwrap();
            return; // Not permitted to everybody (kernel.perf_event_paranoid).
        };
        assert_eq!(notebook.read(), None);
        let before_ns = now_ns(libc::CLOCK_MONOTONIC_RAW);
        drop(child.stdin.take());
        child.wait().unwrap();
        let after_ns = now_ns(libc::CLOCK_MONOTONIC_RAW);
        let notes = notebook.read().unwrap();
        assert_eq!(notes.company, Company::None);
        assert!((before_ns..after_ns).contains(&notes.ended_ns));
    }
}
