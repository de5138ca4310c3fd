//! Reads and writes a plan's tunables, each by the interface of its kind.

use std::ffi::CString;

use crate::disk::fs;
use crate::place::coalesce;
use crate::place::feature;
use crate::place::kernel_file;
use crate::place::latency;
use crate::place::location::{DeviceLocation, Location, QdiscLocation};
use crate::place::postgresql;
use crate::place::qdisc;
use crate::place::redis;
use crate::place::ring;

/// Whether the place is there at all, readable or not.
pub fn is_there(location: &Location) -> bool {
    match location {
        Location::File(file) => fs::metadata(&file.path).is_ok(),
        Location::Flag(flag) => fs::metadata(&flag.path).is_ok(),
        Location::Choice(choice) => fs::metadata(&choice.path).is_ok(),
        Location::Feature(DeviceLocation { device, .. })
        | Location::Ring(DeviceLocation { device, .. })
        | Location::Coalesce(DeviceLocation { device, .. })
        | Location::Qdisc(QdiscLocation { device }) => is_interface(device),
        Location::Redis(of) => redis::is_there(&of.address),
        // One that is down keeps its settings.
        Location::Latency(_) | Location::Postgresql(_) => true,
    }
}

/// Asked of the kernel: what sysfs shows may be another network than the agent's.
fn is_interface(name: &str) -> bool {
    // SAFETY: a string with its final zero.
    CString::new(name).is_ok_and(|name| unsafe { libc::if_nametoindex(name.as_ptr()) } != 0)
}

/// The current value as a person knows it. The error says why there is none.
pub fn read(location: &Location) -> Result<String, String> {
    match location {
        Location::File(file) => kernel_file::read(&file.path),
        Location::Flag(flag) => kernel_file::read_flag(&flag.path, &flag.name),
        Location::Choice(choice) => kernel_file::read_choice(&choice.path),
        Location::Feature(of) => feature::read(&of.device, &of.name),
        Location::Ring(of) => ring::read(&of.device, &of.name),
        Location::Coalesce(of) => coalesce::read(&of.device, &of.name),
        Location::Qdisc(of) => qdisc::read(&of.device),
        Location::Latency(_) => latency::read(),
        Location::Redis(of) => redis::read(&of.address, &of.name),
        Location::Postgresql(of) => postgresql::read(&of.address, &of.name),
    }
}

/// The current state, as [`write`] takes it.
/// It may say more than the value does (which members of a group of features, the options of a queueing discipline).
pub fn state(location: &Location) -> Result<String, String> {
    match location {
        Location::Feature(of) => feature::state(&of.device, &of.name),
        Location::Qdisc(of) => qdisc::state(&of.device),
        Location::Latency(_) => Ok(latency::state().to_owned()),
        Location::Postgresql(of) => postgresql::state(&of.address, &of.name),
        _ => read(location),
    }
}

/// The state, for the journal. The error says why there would be no way back to it.
pub fn keep(location: &Location) -> Result<String, String> {
    match location {
        Location::Qdisc(of) => qdisc::keep(&of.device),
        Location::Postgresql(of) => postgresql::keep(&of.address, &of.name),
        _ => state(location),
    }
}

/// Write a value, or restore a [`state`].
pub fn write(location: &Location, value: &str) -> Result<(), String> {
    match location {
        Location::File(file) => kernel_file::write(&file.path, value),
        Location::Flag(flag) => kernel_file::write_flag(&flag.path, &flag.name, value),
        Location::Choice(choice) => kernel_file::write(&choice.path, value),
        Location::Feature(of) => feature::write(&of.device, &of.name, value),
        Location::Ring(of) => ring::write(&of.device, &of.name, value),
        Location::Coalesce(of) => coalesce::write(&of.device, &of.name, value),
        Location::Qdisc(of) => qdisc::write(&of.device, value),
        Location::Latency(_) => latency::write(value),
        Location::Redis(of) => redis::write(&of.address, &of.name, value),
        Location::Postgresql(of) => postgresql::write(&of.address, &of.name, value),
    }
}
