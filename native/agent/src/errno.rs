//! The words for what the kernel refuses, the same on every machine.

use std::ffi::CStr;
use std::fmt::Display;
use std::io;

/// `No such file or directory` for ENOENT.
pub fn text(number: i32) -> String {
    // SAFETY: the agent has one thread, and strerror(3) returns a string that is valid
    // until its next call.
    unsafe { CStr::from_ptr(libc::strerror(number)) }.to_string_lossy().into_owned()
}

/// The same for an error of `std` or rustix, without "(os error 2)".
pub fn of<E: Into<io::Error>>(error: E) -> String {
    let error = error.into();
    error.raw_os_error().map_or_else(|| error.to_string(), text)
}

/// Puts `place` before the words: `/etc/machine-id: No such file or directory`.
pub fn at<P: Display, E: Into<io::Error>>(place: P) -> impl FnOnce(E) -> String {
    move |error| format!("{place}: {}", of(error))
}
