//! The guest's instructions from its initramfs: `/ajuste/boot.json`.

use serde::Deserialize;

use crate::disk::fs;
use crate::errno;
use crate::ports::EVENT_PORT;

pub const BOOT_FILE: &str = "/ajuste/boot.json";

/// `{"version":1,"modules":["/lib/modules/…/x.ko size=1"],"event_port":1184,"gate":true,"quiet_gate":true}`
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Boot {
    pub version: u32,
    /// `.ko` files in loading order.
    /// After a space come the parameters of one.
    #[serde(default)]
    pub modules: Vec<String>,
    /// The I/O port of QEMU's isa-debugcon.
    #[serde(default = "event_port")]
    pub event_port: u16,
    /// Whether the machine pauses before it takes its plan.
    #[serde(default)]
    pub gate: bool,
    /// Whether the watchdog pauses the machine, and not the guest itself.
    /// The virtual clock needs that, see `Ports::arm_watchdog`.
    #[serde(default)]
    pub quiet_gate: bool,
}

fn event_port() -> u16 {
    EVENT_PORT
}

impl Boot {
    /// Read [`BOOT_FILE`]. The error says what is wrong with it.
    pub fn read() -> Result<Boot, String> {
        let document = fs::read(BOOT_FILE).map_err(errno::at(BOOT_FILE))?;
        Boot::parse(&document)
    }

    fn parse(document: &[u8]) -> Result<Boot, String> {
        let boot: Boot = serde_json::from_slice(document).map_err(|error| format!("{BOOT_FILE}: {error}"))?;
        if boot.version != 1 {
            return Err(format!("{BOOT_FILE}: version is {}, this agent understands 1", boot.version));
        }
        Ok(boot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_has_a_default() {
        let boot = Boot::parse(br#"{"version":1}"#).unwrap();
        assert_eq!(boot, Boot { version: 1, modules: vec![], event_port: 0x4a0, gate: false, quiet_gate: false });
    }

    #[test]
    fn another_version_and_unknown_words_are_refused() {
        assert!(Boot::parse(br#"{"version":2}"#).unwrap_err().contains("version is 2"));
        assert!(Boot::parse(br#"{"version":1,"x":1}"#).unwrap_err().contains("unknown field"));
    }
}
