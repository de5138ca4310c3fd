//! Only the disk layer (`src/disk.rs`, `src/disk/`) touches files.
//! So a test can cause a fault at every operation.

use std::path::{Path, PathBuf};

/// What goes past the layer.
const PAST: [&str; 28] = [
    "std::fs",
    "unix::fs::chown",
    "unix::fs::fchown",
    "unix::fs::symlink",
    "unix::fs::{chown",
    "rustix::fs",
    "rustix::io::read",
    "rustix::io::write",
    "rustix::io::pread",
    "rustix::io::pwrite",
    "io::stdin()",
    "io::stdout()",
    ".exists()",
    "libc::open",
    "libc::creat",
    "libc::read(",
    "libc::write(",
    "libc::pread",
    "libc::pwrite",
    "libc::unlink",
    "libc::mkdir",
    "libc::rmdir",
    "libc::rename",
    "libc::ftruncate",
    "libc::fsync",
    "libc::link",
    "libc::symlink",
    "libc::memfd_create",
];

/// Where that is right, and why.
const EXEMPT: [(&str, &str, &str); 12] = [
    ("process/image.rs", "libc::", "between fork and exec there are raw system calls only"),
    ("process/launch.rs", "rustix::io::read(report", "a pipe"),
    ("process/launch.rs", "rustix::io::write(&self.door", "a pipe"),
    ("process/interrupts.rs", "rustix::io::read(&self.", "signals: signalfd(2)"),
    ("process/capture.rs", "rustix::io::read(inotify", "inotify(7)"),
    ("safety/guardian.rs", "rustix::io::", "pipes"),
    ("safety/guardian.rs", "c\"/dev/null\"", "after a fork, in place of the standard streams"),
    ("journals.rs", "io::std", "the standard streams of a command for people and programs"),
    ("host.rs", "io::stdin()", "a plan, before anything is done"),
    ("host.rs", "rustix::stdio::stdout()", "only the descriptor, to poll(2)"),
    ("serve.rs", "rustix::stdio::stdin()", "only the descriptor, to poll(2)"),
    ("sweep.rs", "io::stdin()", "a pipe whose end is waited for"),
];

fn sources(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    files.into_iter().chain(folders.iter().flat_map(|folder| sources(folder))).collect()
}

#[test]
fn no_file_operation_goes_past_the_layer() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut met = [0; EXEMPT.len()];
    let mut modules = 0;
    for path in sources(&root) {
        let name = path.strip_prefix(&root).unwrap().to_str().unwrap();
        let tests_only = name.ends_with("_test.rs") || name.starts_with("safety/simulation");
        if name == "disk.rs" || name.starts_with("disk/") || tests_only {
            continue;
        }
        modules += 1;
        let text = std::fs::read_to_string(&path).unwrap();
        let own = text.split("#[cfg(test)]\nmod tests").next().unwrap();
        for (number, line) in own.lines().enumerate() {
            if line.trim_start().starts_with("//") || !PAST.iter().any(|word| line.contains(word)) {
                continue;
            }
            if line.starts_with("use ")
                && ["rustix::io::Errno", "rustix::io::{fcntl"].iter().any(|it| line.contains(it))
            {
                continue;
            }
            let exemption = EXEMPT.iter().position(|(file, part, _)| *file == name && line.contains(part));
            let exemption = exemption.unwrap_or_else(|| panic!("{name}:{}: {line}", number + 1));
            met[exemption] += 1;
        }
    }
    assert!(modules > 60, "{modules}");
    let idle: Vec<_> = EXEMPT.iter().zip(met).filter(|(_, count)| *count == 0).map(|(exempt, _)| exempt).collect();
    assert!(idle.is_empty(), "nothing needs these any more: {idle:?}");
}

/// The functions in `text`, each as its lines from the head on.
fn functions(text: &str) -> Vec<Vec<&str>> {
    let lines: Vec<&str> = text.lines().collect();
    let head = |line: &str| ["fn ", "pub fn ", "unsafe fn "].iter().any(|word| line.trim_start().starts_with(word));
    let body = |start: usize| {
        let indent = &lines[start][..lines[start].len() - lines[start].trim_start().len()];
        let end = lines[start..].iter().position(|line| *line == format!("{indent}}}")).unwrap();
        lines[start..start + end].to_vec()
    };
    (0..lines.len()).filter(|start| head(lines[*start]) && lines[*start].ends_with('{')).map(body).collect()
}

#[test]
fn every_operation_of_the_layer_asks_for_a_fault_first() {
    let system = "rustix::fs:: rustix::io:: openat( fchmod( fdatasync( flock( fstat( fsync( ftruncate( mkdir( statat( \
                  unlinkat( unix::fs:: fs:: self.0. self.options.open(";
    // They only describe, or hand on what was opened.
    let harmless =
        ["fn about(stat", "fn flush(", "fn as_fd(", "fn as_raw_fd(", "fn from_raw_fd(", "fn new(", "fn mode("];
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut checked = 0;
    for name in ["disk.rs", "disk/faulty.rs"] {
        let text = std::fs::read_to_string(root.join(name)).unwrap();
        for function in functions(&text) {
            let (head, body) = (function[0], &function[1..]);
            let touches = |line: &&str| system.split_whitespace().any(|call| line.contains(call));
            let is_other = harmless.iter().any(|word| head.contains(word)) || head.contains("fn stdout()");
            let Some(call) = body.iter().position(touches).filter(|_| !is_other) else { continue };
            let asked = body.iter().position(|line| line.contains("fault::") || line.contains("File::open(path)?"));
            assert!(asked.is_some_and(|asked| asked <= call), "{name}: {function:#?}");
            checked += 1;
        }
    }
    assert!(checked > 35, "{checked}");
}
