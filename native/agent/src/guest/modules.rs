//! Kernel modules of a guest.

use std::ffi::CString;

use rustix::io::Errno;
use rustix::system::finit_module;

use crate::disk::fs::File;
use crate::errno;

/// Load `.ko` files in the given order.
/// The parameters of each may follow its path after a space. One that is loaded already is fine. The error names the
/// file.
pub fn load(lines: &[String]) -> Result<(), String> {
    for line in lines {
        let (path, parameters) = line.split_once(' ').unwrap_or((line, ""));
        let parameters = CString::new(parameters).map_err(|error| format!("{line:?}: {error}"))?;
        let refused = |reason: String| format!("cannot load the module {path}: {reason}");
        let file = File::open(path).map_err(|error| refused(errno::of(error)))?;
        match finit_module(&file, &parameters, 0) {
            Ok(()) | Err(Errno::EXIST) => {}
            // The file is open: what was not found is a symbol in it (init_module(2)).
            Err(Errno::NOENT) => return Err(refused("it needs a module that was not loaded before".to_owned())),
            Err(error) => return Err(refused(errno::of(error))),
        }
    }
    Ok(())
}
