//! What the kernel logs during a step (`/dev/kmsg`), such as a failed mount.

use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

use crate::disk::fs::{File, OpenOptions};

const PLACE: &str = "/dev/kmsg";
/// The longest record (CONSOLE_EXT_LOG_MAX).
const RECORD_BYTES: usize = 8192;

/// The log from the moment on when it was opened.
/// Where it may not be read it is empty.
pub struct KernelLog(Option<File>);

impl KernelLog {
    pub fn from_now() -> KernelLog {
        let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(PLACE);
        let at_end = opened.and_then(|mut file| file.seek(SeekFrom::End(0)).map(|_| file));
        KernelLog(at_end.ok())
    }

    /// The last message so far that has one of these words in it.
    pub fn last_about(&mut self, words: &[&str]) -> Option<String> {
        let file = self.0.as_mut()?;
        let mut record = [0; RECORD_BYTES];
        let mut last = None;
        while let Ok(length) = file.read(&mut record) {
            let text = String::from_utf8_lossy(&record[..length]);
            if let Some(message) = message(&text).filter(|message| words.iter().any(|word| message.contains(word))) {
                last = Some(message.to_owned());
            }
        }
        last
    }
}

/// `PRIORITY,SEQUENCE,TIME,FLAGS;MESSAGE`, then lines of keys.
/// (Documentation/ABI/testing/dev-kmsg)
fn message(record: &str) -> Option<&str> {
    record.split_once(';')?.1.lines().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_records_message_is_its_first_line() {
        let record = "3,1046,90012345,-;EXT4-fs (loop0): bad; really\n SUBSYSTEM=block\n DEVICE=b7:0\n";
        assert_eq!(message(record), Some("EXT4-fs (loop0): bad; really"));
        assert_eq!(message("nothing"), None);
    }
}
