//! The words of mount(8)'s option `-o`: flags of mount(2), or file system data.

use rustix::mount::MountFlags;

/// What mount(2) is given.
#[derive(Debug, PartialEq, Eq)]
pub struct MountOptions {
    pub flags: MountFlags,
    pub data: String,
}

/// Words that set (or clear) a flag. `None` is what holds anyway.
fn flag(word: &str) -> Option<(MountFlags, bool)> {
    Some(match word {
        "defaults" => (MountFlags::empty(), true),
        "ro" => (MountFlags::RDONLY, true),
        "rw" => (MountFlags::RDONLY, false),
        "nosuid" => (MountFlags::NOSUID, true),
        "suid" => (MountFlags::NOSUID, false),
        "nodev" => (MountFlags::NODEV, true),
        "dev" => (MountFlags::NODEV, false),
        "noexec" => (MountFlags::NOEXEC, true),
        "exec" => (MountFlags::NOEXEC, false),
        "sync" => (MountFlags::SYNCHRONOUS, true),
        "async" => (MountFlags::SYNCHRONOUS, false),
        "dirsync" => (MountFlags::DIRSYNC, true),
        "noatime" => (MountFlags::NOATIME, true),
        "atime" => (MountFlags::NOATIME, false),
        "nodiratime" => (MountFlags::NODIRATIME, true),
        "diratime" => (MountFlags::NODIRATIME, false),
        "relatime" => (MountFlags::RELATIME, true),
        "norelatime" => (MountFlags::RELATIME, false),
        "strictatime" => (MountFlags::STRICTATIME, true),
        "nostrictatime" => (MountFlags::STRICTATIME, false),
        "lazytime" => (MountFlags::LAZYTIME, true),
        "nolazytime" => (MountFlags::LAZYTIME, false),
        "silent" => (MountFlags::SILENT, true),
        "loud" => (MountFlags::SILENT, false),
        _ => return None,
    })
}

/// Of two words for one flag the later counts.
pub fn parse(words: &str) -> MountOptions {
    let mut flags = MountFlags::empty();
    let mut data = Vec::new();
    for word in words.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        match flag(word) {
            Some((flag, on)) => flags.set(flag, on),
            None => data.push(word),
        }
    }
    MountOptions { flags, data: data.join(",") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_and_the_file_systems_own_words_are_told_apart() {
        let options = parse("noatime,data=journal,nodev, commit=5,sync");
        assert_eq!(options.flags, MountFlags::NOATIME | MountFlags::NODEV | MountFlags::SYNCHRONOUS);
        assert_eq!(options.data, "data=journal,commit=5");
    }

    #[test]
    fn the_later_word_counts() {
        assert_eq!(parse("ro,rw"), MountOptions { flags: MountFlags::empty(), data: String::new() });
        assert_eq!(parse("defaults,noexec,exec,noexec").flags, MountFlags::NOEXEC);
        assert_eq!(parse(""), parse("defaults,,"));
    }
}
