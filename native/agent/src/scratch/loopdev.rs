//! A loop device over an unnamed file.
//! The kernel removes both after their last use.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use linux_raw_sys::loop_device::{
    LO_FLAGS_AUTOCLEAR, LO_FLAGS_DIRECT_IO, LOOP_CONFIGURE, LOOP_CTL_GET_FREE, loop_config,
};

use crate::disk::fs::{self, File, OpenOptions};
use crate::disk::{FallocateFlags, fallocate};
use crate::errno;

const CONTROL: &str = "/dev/loop-control";
/// Another process may take a free device first.
const TRIES: usize = 16;

/// A device and the descriptor that keeps it from being cleared.
/// A mount keeps it as well.
pub struct LoopDevice {
    file: File,
    path: PathBuf,
}

impl LoopDevice {
    /// A device of `size_bytes` on a new file in `directory`.
    /// The error says what could not be had.
    pub fn create(directory: &str, size_bytes: u64) -> Result<LoopDevice, String> {
        let image = image(Path::new(directory)).map_err(errno::at(directory))?;
        let refused = |reason| format!("{size_bytes} bytes in {directory}: {reason}");
        grow(&image, size_bytes).map_err(|error| refused(errno::of(error)))?;
        LoopDevice::over(&image)
    }

    fn over(image: &File) -> Result<LoopDevice, String> {
        let control = OpenOptions::new().read(true).write(true).open(CONTROL);
        let control = control.map_err(errno::at(CONTROL))?;
        let mut reason = String::new();
        for _ in 0..TRIES {
            // SAFETY: a descriptor of ours and no argument.
            let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE as _) };
            if number < 0 {
                return Err(format!("no free loop device: {}", errno::of(io::Error::last_os_error())));
            }
            let path = PathBuf::from(format!("/dev/loop{number}"));
            match open_device(&path).and_then(|file| configure(&file, image).map(|()| file)) {
                Ok(file) => return Ok(LoopDevice { file, path }),
                Err(error) => reason = format!("{}: {}", path.display(), errno::of(error)),
            }
        }
        Err(reason)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Have everything on the device that was written to it.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }
}

fn open_device(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(path)
}

/// A file without a name, from its first moment where the file system can do that.
fn image(directory: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    match options.clone().custom_flags(libc::O_TMPFILE).open(directory) {
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {}
        result => return result,
    }
    let path = directory.join(format!(".ajuste-scratch-{}", std::process::id()));
    let file = options.create_new(true).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

/// Allocate all blocks, so that a full disk is noticed now.
/// Where that is not possible, only set the size.
fn grow(image: &File, size_bytes: u64) -> io::Result<()> {
    match fallocate(image, FallocateFlags::empty(), 0, size_bytes) {
        Err(rustix::io::Errno::OPNOTSUPP) => image.set_len(size_bytes),
        result => Ok(result?),
    }
}

/// LOOP_CONFIGURE, if possible without the page cache of the image.
fn configure(device: &File, image: &File) -> io::Result<()> {
    let result = configure_with(device, image, LO_FLAGS_AUTOCLEAR as u32 | LO_FLAGS_DIRECT_IO as u32);
    match result {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            configure_with(device, image, LO_FLAGS_AUTOCLEAR as u32)
        }
        result => result,
    }
}

fn configure_with(device: &File, image: &File, flags: u32) -> io::Result<()> {
    // SAFETY: zeros are a valid structure, and it and the descriptors live through the
    // call.
    let result = unsafe {
        let mut configuration: loop_config = std::mem::zeroed();
        configuration.fd = image.as_raw_fd() as u32;
        configuration.info.lo_flags = flags;
        for (place, byte) in configuration.info.lo_file_name.iter_mut().zip(b"ajuste scratch") {
            *place = *byte;
        }
        libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE as _, &configuration)
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
