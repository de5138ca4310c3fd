//! What a service writes: a file in memory, which nobody else has, and of which only the end is kept.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::{MemfdFlags, OFlags, fcntl_setfl, memfd_create};

/// When there is more, it is emptied but for its end.
const MOST: u64 = 4 << 20;
/// Of the log's end that is shown.
const SHOWN: usize = 2048;
const LINES: usize = 8;

pub struct Log {
    file: File,
    seen: u64,
    partial: Vec<u8>,
    earlier: String,
}

impl Log {
    pub fn create() -> io::Result<Log> {
        let memory = memfd_create("service", MemfdFlags::CLOEXEC)?;
        // Every writer appends, so that it can be emptied meanwhile.
        fcntl_setfl(&memory, OFlags::APPEND)?;
        Ok(Log { file: File::from(memory), seen: 0, partial: Vec::new(), earlier: String::new() })
    }

    /// For the service to write to.
    pub fn writer(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// The lines that were completed since the last time.
    pub fn new_lines(&mut self) -> Vec<String> {
        let mut bytes = std::mem::take(&mut self.partial);
        let before = bytes.len();
        let size = self.size().saturating_sub(self.seen).min(MOST) as usize;
        bytes.resize(before + size, 0);
        let read = self.file.read_at(&mut bytes[before..], self.seen).unwrap_or(0);
        bytes.truncate(before + read);
        self.seen += read as u64;
        let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |place| place + 1);
        self.partial = bytes.split_off(end);
        String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect()
    }

    /// Keep it small.
    pub fn limit(&mut self) {
        if self.size() > MOST {
            self.earlier = self.end();
            let _ = self.file.set_len(0);
            self.seen = 0;
            self.partial.clear();
        }
    }

    /// The last lines, for people.
    pub fn end(&self) -> String {
        let size = self.size();
        let begin = size.saturating_sub(SHOWN as u64);
        let mut bytes = vec![0; (size - begin) as usize];
        let read = self.file.read_at(&mut bytes, begin).unwrap_or(0);
        let text = String::from_utf8_lossy(&bytes[..read]).into_owned();
        let lines: Vec<&str> = self.earlier.lines().chain(text.lines()).map(str::trim_end).collect();
        let lines: Vec<&str> = lines.into_iter().filter(|line| !line.is_empty()).collect();
        lines[lines.len().saturating_sub(LINES)..].join("\n")
    }

    fn size(&self) -> u64 {
        self.file.metadata().map_or(0, |about| about.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn lines_are_read_once_and_only_when_they_are_complete() {
        let mut log = Log::create().unwrap();
        let mut writer = log.writer().unwrap();
        writer.write_all(b"one\ntw").unwrap();
        assert_eq!(log.new_lines(), ["one"]);
        writer.write_all(b"o\n\n").unwrap();
        assert_eq!(log.new_lines(), ["two", ""]);
        assert_eq!(log.end(), "one\ntwo");
    }

    #[test]
    fn a_long_log_is_cut_but_for_its_end() {
        let mut log = Log::create().unwrap();
        let mut writer = log.writer().unwrap();
        let line = [vec![b'x'; 1023], vec![b'\n']].concat();
        (0..5000).for_each(|_| writer.write_all(&line).unwrap());
        writer.write_all(b"the last\n").unwrap();
        log.limit();
        assert_eq!(log.size(), 0);
        assert!(log.end().ends_with("the last"));
        writer.write_all(b"more\n").unwrap();
        assert!(log.end().ends_with("the last\nmore"));
    }
}
