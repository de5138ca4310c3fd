//! What QEMU exports: to plugins, and, if it can load modules, all else.

use std::ffi::{CStr, c_void};

/// The type of what has a name in QEMU. To use a value of it is unsafe: who does knows what QEMU's header declares.
///
/// # Safety
/// It is as large as a pointer, and any address but 0 is a value of it.
pub unsafe trait Export: Copy {}

// SAFETY: a pointer may have any address.
unsafe impl<T> Export for *const T {}
// SAFETY: as above.
unsafe impl<T> Export for *mut T {}

macro_rules! functions {
    ($($argument:ident)*) => {
        // SAFETY: that of a function may be any address but 0 until it is called.
        unsafe impl<R, $($argument),*> Export for unsafe extern "C" fn($($argument),*) -> R {}
    };
}

functions!();
functions!(A);
functions!(A B);
functions!(A B C);
functions!(A B C D);
functions!(A B C D E);
functions!(A B C D E F);
functions!(A B C D E F G);

/// The address of QEMU's function of that name, as a pointer of type `T`; `None` if this QEMU lacks it.
pub fn function<T: Export>(name: &CStr) -> Option<T> {
    const { assert!(size_of::<T>() == size_of::<*mut c_void>()) };
    // SAFETY: the name ends in a zero.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    // SAFETY: it is as large, and not 0.
    (!found.is_null()).then(|| unsafe { std::mem::transmute_copy(&found) })
}

/// ... which it must have.
pub fn required<T: Export>(name: &CStr) -> Result<T, String> {
    function(name).ok_or_else(|| format!("this QEMU has no {}", name.to_string_lossy()))
}
