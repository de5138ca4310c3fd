//! What processes print, kept without disturbing them.
//! Each stream is a file in memory that the process writes itself and the agent reads at the end. Nothing wakes up for
//! it.
//!
//! A process that prints without end would fill the memory. So the first write to any stream wakes the agent once
//! (inotify(7)), and from then on it looks at the sizes, at intervals that double as long as little is printed, and
//! gives the memory behind the limit back. The process never notices.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::disk::fs::{self, File, OpenOptions};
use crate::disk::inotify::{self, CreateFlags, WatchFlags};
use crate::disk::{FallocateFlags, MemfdFlags, fallocate, memfd_create};
use crate::plan::User;

const FIRST_LOOK: Duration = Duration::from_millis(20);
/// More than this between two looks is much.
const MUCH_BYTES: u64 = 1 << 20;
const PAGE_BYTES: u64 = 4096;

/// One stream of one process.
pub struct Capture {
    file: File,
    limit_bytes: u64,
    seen_bytes: u64,
}

impl Capture {
    pub fn create(limit_bytes: u64) -> io::Result<Capture> {
        // A file of a tmpfs, because newer kernels do not notify about those of
        // memfd_create(2).
        let flags = libc::O_TMPFILE | libc::O_APPEND;
        let file = OpenOptions::new().read(true).write(true).mode(0o600).custom_flags(flags).open("/dev/shm");
        let file = match file {
            Ok(file) => file,
            Err(_) => File::from(memfd_create("output", MemfdFlags::CLOEXEC)?),
        };
        Ok(Capture { file, limit_bytes, seen_bytes: 0 })
    }

    /// Give it to the user of its process, where the agent may.
    pub fn give(&self, user: &User) -> io::Result<()> {
        if !rustix::process::geteuid().is_root() {
            return Ok(());
        }
        fs::fchown(&self.file, Some(user.uid), Some(user.gid))
    }

    /// Give back what lies behind the limit.
    /// True if much was printed since the last time.
    fn trim(&mut self) -> io::Result<bool> {
        let size = self.file.metadata()?.len();
        let much = size.saturating_sub(self.seen_bytes) >= MUCH_BYTES;
        let keep = self.limit_bytes.div_ceil(PAGE_BYTES) * PAGE_BYTES;
        let from = keep.max(self.seen_bytes / PAGE_BYTES * PAGE_BYTES);
        let to = size.div_ceil(PAGE_BYTES) * PAGE_BYTES;
        if to > from {
            fallocate(&self.file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, from, to - from)?;
        }
        self.seen_bytes = size;
        Ok(much)
    }

    /// The text within the limit, and the number of bytes after it.
    /// Bytes that are not UTF-8 become U+FFFD.
    pub fn text(&self) -> io::Result<(String, u64)> {
        let size = self.file.metadata()?.len();
        let mut bytes = vec![0; size.min(self.limit_bytes) as usize];
        self.file.read_exact_at(&mut bytes, 0)?;
        if size > self.limit_bytes {
            bytes.truncate(whole_characters(&bytes));
        }
        let dropped = size - bytes.len() as u64;
        let text = String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into());
        Ok((text, dropped))
    }
}

impl AsFd for Capture {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The length of `bytes` without a character that was cut in two at the end.
fn whole_characters(bytes: &[u8]) -> usize {
    let tail = &bytes[bytes.len().saturating_sub(3)..];
    let Some(back) = tail.iter().rev().position(|byte| byte & 0xc0 != 0x80) else { return bytes.len() };
    let start = bytes.len() - 1 - back;
    match std::str::from_utf8(&bytes[start..]) {
        Err(error) if error.error_len().is_none() => start,
        _ => bytes.len(),
    }
}

/// Keeps streams from filling the memory.
pub struct Watch {
    /// Until something is printed.
    inotify: Option<BorrowedFd<'static>>,
    /// Afterwards: when to look again, and how long that is after the last time.
    look: Option<(Instant, Duration)>,
}

impl Watch {
    pub fn start() -> Watch {
        Watch { inotify: first_writes(), look: None }
    }

    pub fn add(&self, capture: &Capture) {
        if let Some(inotify) = self.inotify {
            let path = format!("/proc/self/fd/{}", capture.file.as_raw_fd());
            let _ = inotify::add_watch(inotify, path, WatchFlags::MODIFY | WatchFlags::ONESHOT);
        }
    }

    /// Readable at the first write to any stream; `None` from then on.
    pub fn first_write(&self) -> Option<BorrowedFd<'_>> {
        self.inotify
    }

    /// When [`Watch::look`] wants to be called next.
    pub fn next_look(&self) -> Option<Instant> {
        self.look.map(|(when, _)| when)
    }

    /// Something was printed for the first time: look from now on.
    pub fn printed(&mut self, now: Instant) {
        self.inotify = None;
        self.look = Some((now + FIRST_LOOK, FIRST_LOOK));
    }

    pub fn look<'a>(&mut self, captures: impl Iterator<Item = &'a mut Capture>, now: Instant) {
        let Some((_, interval)) = self.look else { return };
        let mut much = false;
        for capture in captures {
            much |= capture.trim().unwrap_or(false);
        }
        let interval = if much { FIRST_LOOK } else { interval * 2 };
        self.look = Some((now + interval, interval));
    }
}

/// One for all trials, empty.
/// Closing one takes the kernel several milliseconds (an RCU grace period), during which the agent would not see the
/// end of a process.
fn first_writes() -> Option<BorrowedFd<'static>> {
    static INOTIFY: OnceLock<Option<OwnedFd>> = OnceLock::new();
    let inotify = INOTIFY.get_or_init(|| inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()).as_ref()?;
    // What is left of earlier trials.
    while rustix::io::read(inotify, &mut [0; 4096]).is_ok_and(|count| count > 0) {}
    Some(inotify.as_fd())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::linux::fs::MetadataExt;

    #[test]
    fn what_is_beyond_the_limit_is_counted_and_takes_no_memory() {
        let mut capture = Capture::create(5000).unwrap();
        let line = [b'a'; 1000];
        for _ in 0..3000 {
            capture.file.write_all(&line).unwrap();
        }
        assert!(capture.trim().unwrap());
        assert!(capture.file.metadata().unwrap().st_blocks() * 512 <= 8192);
        capture.file.write_all(&line).unwrap();
        assert!(!capture.trim().unwrap());
        assert_eq!(capture.text().unwrap(), ("a".repeat(5000), 3_001_000 - 5000));
    }

    #[test]
    fn a_character_is_not_cut_in_two() {
        let mut capture = Capture::create(4).unwrap();
        capture.file.write_all("aé€".as_bytes()).unwrap();
        assert_eq!(capture.text().unwrap(), ("aé".to_owned(), 3));
        assert_eq!(whole_characters("a😀".as_bytes()), 5);
        assert_eq!(whole_characters(&"a😀".as_bytes()[..4]), 1);
        assert_eq!(whole_characters(b"\x80\x80\x80\x80"), 4);
        assert_eq!(whole_characters(b""), 0);
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        let mut capture = Capture::create(100).unwrap();
        capture.file.write_all(b"a\xff\0b").unwrap();
        assert_eq!(capture.text().unwrap(), ("a\u{fffd}\0b".to_owned(), 0));
    }

    #[test]
    fn looking_begins_with_the_first_write_and_becomes_rare() {
        let mut capture = Capture::create(10).unwrap();
        let mut watch = Watch::start();
        watch.add(&capture);
        assert!(watch.first_write().is_some() && watch.next_look().is_none());
        capture.file.write_all(b"x").unwrap();
        let inotify = watch.inotify.unwrap();
        let mut waiting = [rustix::event::PollFd::new(&inotify, rustix::event::PollFlags::IN)];
        assert_eq!(rustix::event::poll(&mut waiting, Some(&Default::default())).unwrap(), 1);
        let now = Instant::now();
        watch.printed(now);
        watch.look(std::iter::once(&mut capture), now);
        watch.look(std::iter::once(&mut capture), now);
        assert_eq!(watch.next_look(), Some(now + 4 * FIRST_LOOK));
        assert!(watch.first_write().is_none());
    }
}
