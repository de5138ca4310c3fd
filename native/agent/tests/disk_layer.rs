//! Files are touched in `safety/` by the layer only, so that a fault can be met at every operation.

use std::path::{Path, PathBuf};

fn sources(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    files.into_iter().chain(folders.iter().flat_map(|folder| sources(folder))).collect()
}

#[test]
fn no_file_operation_of_safety_goes_past_the_layer() {
    let found = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/safety"));
    assert!(found.len() > 10, "{found:?}");
    for path in found {
        let text = std::fs::read_to_string(&path).unwrap();
        for (number, line) in text.lines().enumerate() {
            let past = ["std::fs", "rustix::fs", "fs::", "File::open", "File::create", "OpenOptions", "libc::open("];
            let exempt = line.contains("/dev/null") || line.trim_start().starts_with("//");
            let is_past = past.iter().any(|word| line.contains(word)) && !exempt;
            assert!(!is_past, "{}:{}: {line}", path.display(), number + 1);
        }
    }
}
