//! The bound on the wake-up latency from idle states: `/dev/cpu_dma_latency`.
//! It holds while the file is open (Documentation/power/pm_qos_interface.rst of the kernel).

use std::io::{Read, Write};
use std::sync::Mutex;

use crate::disk::fs::{File, OpenOptions};
use crate::errno;

const PLACE: &str = "/dev/cpu_dma_latency";

/// Written to give up the bound.
/// Nothing is left to restore after the end of the agent: the kernel drops its bound.
pub const RELEASED: &str = "released";

/// What [`state`] says while there is a bound of the agent's own.
const BOUND: &str = "bound";

/// What keeps the agent's own bound alive.
static HELD: Mutex<Option<File>> = Mutex::new(None);

/// The current bound in µs, the strictest of all processes.
pub fn read() -> Result<String, String> {
    let mut bytes = [0; 4];
    let file = File::open(PLACE).and_then(|mut file| file.read_exact(&mut bytes));
    file.map_err(refused)?;
    Ok(i32::from_ne_bytes(bytes).to_string())
}

/// Whether the agent has a bound.
/// The kernel's bound is shared by all processes; it cannot be restored.
pub fn state() -> &'static str {
    let held = HELD.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if held.is_some() { BOUND } else { RELEASED }
}

/// Ask for a bound in µs until it is [`RELEASED`].
pub fn write(value: &str) -> Result<(), String> {
    let mut held = HELD.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if value == RELEASED {
        *held = None;
        return Ok(());
    }
    let bound: i32 = value.parse().map_err(|_| format!("{PLACE}: {value:?} is no number of µs"))?;
    if bound < 0 {
        return Err(format!("{PLACE}: a bound of {bound} µs is below 0"));
    }
    let mut file = match held.take() {
        Some(file) => file,
        None => OpenOptions::new().write(true).open(PLACE).map_err(refused)?,
    };
    file.write_all(&bound.to_ne_bytes()).map_err(refused)?;
    *held = Some(file);
    Ok(())
}

fn refused(error: std::io::Error) -> String {
    format!("{PLACE}: {}", errno::of(error))
}
