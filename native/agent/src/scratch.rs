//! A file system for one trial, visible only to the agent and the trial.
//!
//! Nothing of it stays: the mount is in a namespace of the agent's, which ends with the last of its processes; the loop
//! device is cleared when the mount is gone, and with it the file, which has no name.

pub mod kernel_log;
pub mod loopdev;
pub mod mount_options;
pub mod mount_point;

use std::ffi::CString;
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::mount::{MountPropagationFlags, UnmountFlags, mount, mount_change, unmount};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::disk::fs;
use crate::errno;
use crate::plan::{Scratch, User};
use crate::scratch::kernel_log::KernelLog;
use crate::scratch::loopdev::LoopDevice;
use crate::scratch::mount_point::MountPoint;

/// What is formatted and mounted.
pub enum Device {
    Loop(LoopDevice),
    Given(PathBuf),
}

impl Device {
    /// The one that the plan names, or a new one.
    /// The error says why it cannot be used, or not be mounted where the plan says.
    pub fn prepare(scratch: &Scratch) -> Result<Device, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("a scratch file system is mounted, and only root may do that".to_owned());
        }
        mount_point::missing(&scratch.mount)?;
        if scratch.device.is_empty() {
            return LoopDevice::create(&scratch.directory, scratch.size_bytes).map(Device::Loop);
        }
        free_device(&scratch.device).map(Device::Given)
    }

    pub fn path(&self) -> &Path {
        match self {
            Device::Loop(device) => device.path(),
            Device::Given(path) => path,
        }
    }

    /// What formatting wrote must not be written back while something is measured.
    fn sync(&self) -> io::Result<()> {
        match self {
            Device::Loop(device) => device.sync(),
            Device::Given(path) => fs::File::open(path)?.sync_all(),
        }
    }
}

/// An unused block device.
/// The kernel opens it exclusively only if it is not mounted, swapped to or part of another device.
fn free_device(path: &str) -> Result<PathBuf, String> {
    let real = fs::canonicalize(path).map_err(errno::at(path))?;
    let about = fs::metadata(&real).map_err(errno::at(path))?;
    if !about.file_type().is_block_device() {
        return Err(format!("{path} is no block device"));
    }
    let opened = fs::OpenOptions::new().read(true).write(true).custom_flags(libc::O_EXCL).open(&real);
    match opened {
        Ok(_) => Ok(real),
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
            Err(format!("{path} is in use: mounted, swapped to or part of another device"))
        }
        Err(error) => Err(format!("{path}: {}", errno::of(error))),
    }
}

/// A file system that is mounted. Dropping it unmounts it.
pub struct Mounted {
    point: MountPoint,
    attached: bool,
    /// Keeps the loop device open from before the mount until after it.
    _device: Device,
}

impl Mounted {
    /// Mount a device that was formatted. The error has the kernel's words.
    pub fn mount(scratch: &Scratch, device: Device) -> Result<Mounted, String> {
        device.sync().map_err(errno::at(device.path().display()))?;
        enter_namespace()?;
        let point = MountPoint::prepare(&scratch.mount)?;
        attach(scratch, device.path())?;
        let mounted = Mounted { point, attached: true, _device: device };
        if let Some(user) = &scratch.user {
            give(mounted.point.path(), user)?;
        }
        Ok(mounted)
    }

    /// Unmount, and remove the directory if it was made for it.
    pub fn take_down(mut self) -> Result<(), String> {
        self.detach()?;
        self.point.remove()
    }

    fn detach(&mut self) -> Result<(), String> {
        if !std::mem::take(&mut self.attached) {
            return Ok(());
        }
        let place = self.point.path();
        // A dying process may still have a file open there: the mount ends with it.
        let done = unmount(place, UnmountFlags::NOFOLLOW)
            .or_else(|_| unmount(place, UnmountFlags::NOFOLLOW | UnmountFlags::DETACH));
        done.map_err(|error| format!("cannot unmount {}: {}", place.display(), errno::of(error)))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = self.detach();
    }
}

/// Mounts of the agent are its own from now on; it still sees those of others.
fn enter_namespace() -> Result<(), String> {
    static ENTERED: OnceLock<()> = OnceLock::new();
    if ENTERED.get().is_some() {
        return Ok(());
    }
    let refused = |error: rustix::io::Errno| format!("no mount namespace of its own: {}", errno::of(error));
    // SAFETY: it changes nothing that memory depends on.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }.map_err(refused)?;
    mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC).map_err(refused)?;
    let _ = ENTERED.set(());
    Ok(())
}

fn attach(scratch: &Scratch, device: &Path) -> Result<(), String> {
    let options = mount_options::parse(&scratch.options);
    let data = CString::new(options.data).map_err(|error| error.to_string())?;
    let mut log = KernelLog::from_now();
    let done = mount(device, scratch.mount.as_str(), scratch.filesystem.as_str(), options.flags, Some(data.as_c_str()));
    done.map_err(|error| {
        let name = device.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let words = log.last_about(&[&format!("({name})"), &format!("{}:", scratch.filesystem)]);
        let words = words.map_or_else(String::new, |words| format!(" ({words})"));
        let options = if scratch.options.is_empty() { String::new() } else { format!(" with {}", scratch.options) };
        format!("cannot mount {}{options} at {}: {}{words}", scratch.filesystem, scratch.mount, errno::of(error))
    })
}

fn give(place: &Path, user: &User) -> Result<(), String> {
    fs::chown(place, Some(user.uid), Some(user.gid))
        .map_err(|error| format!("{} for the user {}: {}", place.display(), user.uid, errno::of(error)))
}
