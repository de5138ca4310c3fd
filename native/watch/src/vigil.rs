//! Waiting for the end of the slice, or for a reason to end it now.

use std::fmt::{Display, Formatter};
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, read};

use crate::request::Request;

const BEAT: u8 = b'.';
/// Of what is told; the rest is not kept.
const LONGEST: usize = 1000;

/// Why a slice ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    Over,
    Told(String),
    Silence,
}

impl Display for Ending {
    fn fmt(&self, formatter: &mut Formatter) -> std::fmt::Result {
        match self {
            Ending::Over => formatter.write_str("over"),
            Ending::Told(why) => formatter.write_str(why),
            Ending::Silence => formatter.write_str("nobody checked the guards"),
        }
    }
}

/// Wait as `request` says.
pub fn watch(request: &Request) -> io::Result<Ending> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fifo = open(&request.fifo, flags, Mode::empty())?;
    let end = Instant::now() + request.length;
    let mut silent_at = Instant::now() + request.silence;
    let mut line = Vec::new();
    loop {
        let now = Instant::now();
        if now >= end {
            return Ok(Ending::Over);
        }
        if now >= silent_at {
            return Ok(Ending::Silence);
        }
        match wait(&fifo, end.min(silent_at) - now)? {
            Heard::Nothing => {}
            Heard::End => return Ok(Ending::Silence),
            Heard::Bytes(bytes) => {
                for byte in bytes {
                    match byte {
                        BEAT if line.is_empty() => silent_at = Instant::now() + request.silence,
                        b'\n' if !line.is_empty() => {
                            return Ok(Ending::Told(String::from_utf8_lossy(&line).into_owned()));
                        }
                        _ if line.len() < LONGEST => line.push(byte),
                        _ => {}
                    }
                }
            }
        }
    }
}

enum Heard {
    Nothing,
    Bytes(Vec<u8>),
    End,
}

fn wait(fifo: &OwnedFd, longest: Duration) -> io::Result<Heard> {
    // Rounded up, or the last wait would turn into many of no length.
    let longest = longest + Duration::from_micros(100);
    let limit = Timespec { tv_sec: longest.as_secs() as i64, tv_nsec: longest.subsec_nanos().into() };
    match poll(&mut [PollFd::new(fifo, PollFlags::IN)], Some(&limit)) {
        Ok(0) | Err(Errno::INTR) => return Ok(Heard::Nothing),
        Ok(_) => {}
        Err(error) => return Err(error.into()),
    }
    let mut chunk = [0; 512];
    match read(fifo, &mut chunk) {
        Ok(0) => Ok(Heard::End),
        Ok(count) => Ok(Heard::Bytes(chunk[..count].to_vec())),
        Err(Errno::INTR | Errno::AGAIN) => Ok(Heard::Nothing),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;
    use std::io::Write;
    use std::path::{Path, PathBuf};
    use std::thread;

    fn fifo(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("ajuste-watch-{name}-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, Mode::RWXU, 0).unwrap();
        path
    }

    fn descriptors_of(path: &Path) -> usize {
        let descriptors = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        descriptors.filter(|entry| std::fs::read_link(entry.path()).is_ok_and(|target| target == path)).count()
    }

    fn request(fifo: PathBuf, length: u64, silence: u64) -> Request {
        Request { length: Duration::from_millis(length), silence: Duration::from_millis(silence), fifo }
    }

    #[test]
    fn beats_keep_it_to_the_end() {
        let path = fifo("beats");
        let mut pipe = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let watching = thread::spawn({
            let request = request(path, 400, 250);
            move || watch(&request)
        });
        while !watching.is_finished() {
            pipe.write_all(b".").unwrap();
            thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(watching.join().unwrap().unwrap(), Ending::Over);
    }

    #[test]
    fn a_line_ends_it_with_its_words() {
        let path = fifo("line");
        let mut pipe = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        pipe.write_all(b"..p99 is 60 ms. Too much\n").unwrap();
        assert_eq!(watch(&request(path, 60_000, 60_000)).unwrap(), Ending::Told("p99 is 60 ms. Too much".into()));
    }

    #[test]
    fn silence_and_the_end_of_the_writer_end_it() {
        let path = fifo("silence");
        let pipe = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        assert_eq!(watch(&request(path.clone(), 60_000, 50)).unwrap(), Ending::Silence);
        let watching = thread::spawn({
            let request = request(path.clone(), 60_000, 60_000);
            move || watch(&request)
        });
        while descriptors_of(&path) < 2 {
            thread::sleep(Duration::from_millis(1));
        }
        drop(pipe);
        assert_eq!(watching.join().unwrap().unwrap(), Ending::Silence);
    }
}
