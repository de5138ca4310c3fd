//! Kernel modules of a guest.

use std::fs::File;

use rustix::io::Errno;
use rustix::system::finit_module;

use crate::errno;

/// Load plain `.ko` files in the given order. One that is loaded already is fine. The error names the file.
pub fn load(paths: &[String]) -> Result<(), String> {
    for path in paths {
        let refused = |reason: String| format!("cannot load the module {path}: {reason}");
        let file = File::open(path).map_err(|error| refused(errno::of(error)))?;
        match finit_module(&file, c"", 0) {
            Ok(()) | Err(Errno::EXIST) => {}
            // The file is open: what was not found is a symbol in it (init_module(2)).
            Err(Errno::NOENT) => return Err(refused("it needs a module that was not loaded before".to_owned())),
            Err(error) => return Err(refused(errno::of(error))),
        }
    }
    Ok(())
}
