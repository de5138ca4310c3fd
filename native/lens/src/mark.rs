//! The agent's events, read while it says them: they mark the window, and tell what each process is for.
//!
//! QEMU writes each byte to the file at once, so after an instruction that puts out a byte the file has it.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use serde::Deserialize;

use crate::task::Role;

/// Before each line that the agent itself has written.
const KEY_BYTES: usize = 32;
/// Of a longer line only the beginning is read.
const LONGEST_LINE: usize = 1 << 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    Started(Role),
    Exited(Role),
    /// Something else that the agent said.
    Said,
}

#[derive(Deserialize)]
struct Line {
    event: String,
    #[serde(default)]
    role: String,
}

pub struct Marks {
    events: File,
    position: u64,
    key: Vec<u8>,
    line: Vec<u8>,
}

impl Marks {
    /// Open the file of events, and take the key from the beginning of the plan.
    pub fn open(events: &Path, plan: &Path) -> Result<Marks, String> {
        let says = |file: &Path, error: std::io::Error| format!("{}: {error}", file.display());
        let mut key = vec![0; KEY_BYTES];
        File::open(plan).and_then(|file| file.read_exact_at(&mut key, 0)).map_err(|error| says(plan, error))?;
        let events = File::options().create(true).append(true).read(true).open(events);
        let events = events.map_err(|error| says(plan, error))?;
        Ok(Marks { events, position: 0, key, line: Vec::new() })
    }

    /// What the agent has said since it was asked last.
    pub fn news(&mut self) -> Vec<Mark> {
        let mut found = Vec::new();
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = self.events.read_at(&mut bytes, self.position) {
            self.position += count as u64;
            for byte in &bytes[..count] {
                if *byte == b'\n' {
                    found.extend(self.mark());
                    self.line.clear();
                } else if self.line.len() < LONGEST_LINE {
                    self.line.push(*byte);
                }
            }
        }
        found
    }

    fn mark(&self) -> Option<Mark> {
        let said = self.line.strip_prefix(self.key.as_slice())?;
        let Ok(line) = serde_json::from_slice::<Line>(said) else { return Some(Mark::Said) };
        let role = Role::of_process(&line.role);
        Some(match (line.event.as_str(), role) {
            ("started", Some(role)) => Mark::Started(role),
            ("exited", Some(role)) => Mark::Exited(role),
            _ => Mark::Said,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::*;

    const KEY: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn only_lines_with_the_key_are_marks() {
        let folder = std::env::temp_dir().join(format!("lens-marks-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (events, plan) = (folder.join("events"), folder.join("plan"));
        fs::write(&plan, format!("{KEY}{{}}")).unwrap();
        let mut marks = Marks::open(&events, &plan).unwrap();
        assert_eq!(marks.news(), []);
        let mut file = File::options().append(true).open(&events).unwrap();
        let started = r#"{"event":"started","at_ns":5,"role":"workload","index":0,"pid":7}"#;
        write!(file, "{started}\n{KEY}{started}").unwrap();
        assert_eq!(marks.news(), []);
        writeln!(file, "\n{KEY}{{}}\n{KEY}{{\"event\":\"exited\",\"role\":\"background\"}}").unwrap();
        assert_eq!(marks.news(), [Mark::Started(Role::Workload), Mark::Said, Mark::Exited(Role::Background)]);
        fs::remove_dir_all(folder).unwrap();
    }
}
