//! What QEMU exports: to plugins, and, if it can load modules, all else.

use std::ffi::{c_void, CStr};

/// The address of QEMU's function of that name, as a pointer of type `T`; `None` if this QEMU lacks it.
pub fn function<T: Copy>(name: &CStr) -> Option<T> {
    const { assert!(size_of::<T>() == size_of::<*mut c_void>()) };
    // SAFETY: the name ends in a zero.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    // SAFETY: every `T` here is the type that QEMU's header declares for that name.
    (!found.is_null()).then(|| unsafe { std::mem::transmute_copy(&found) })
}

/// ... which it must have.
pub fn required<T: Copy>(name: &CStr) -> Result<T, String> {
    function(name).ok_or_else(|| format!("this QEMU has no {}", name.to_string_lossy()))
}
