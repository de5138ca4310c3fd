//! Ring sizes of a network interface (ETHTOOL_GRINGPARAM, ETHTOOL_SRINGPARAM).

use crate::place::ethtool::Interface;

const ETHTOOL_GRINGPARAM: u32 = 0x10;
const ETHTOOL_SRINGPARAM: u32 = 0x11;

/// struct ethtool_ringparam: the command, four maximum and four current sizes.
const NAMES: [&str; 4] = ["rx", "rx-mini", "rx-jumbo", "tx"];
const GREATEST: usize = 1;
const PRESENT: usize = GREATEST + NAMES.len();
const WORDS: usize = PRESENT + NAMES.len();

/// The present number of entries.
pub fn read(device: &str, name: &str) -> Result<String, String> {
    let (words, index) = sizes(&Interface::open(device)?, device, name)?;
    Ok(words[PRESENT + index].to_string())
}

pub fn write(device: &str, name: &str, value: &str) -> Result<(), String> {
    let interface = Interface::open(device)?;
    let (mut words, index) = sizes(&interface, device, name)?;
    let size: u32 = value.parse().map_err(|_| format!("ring {name} of {device}: {value:?} is no number of entries"))?;
    let greatest = words[GREATEST + index];
    if size > greatest {
        return Err(format!("ring {name} of {device} has {greatest} entries at most, not {size}"));
    }
    if size == words[PRESENT + index] {
        // Many drivers take the link down for any request.
        return Ok(());
    }
    words[0] = ETHTOOL_SRINGPARAM;
    words[PRESENT + index] = size;
    interface.ask(&mut words).map_err(|error| interface.refused(&format!("ring {name}"), error))?;
    Ok(())
}

fn sizes(interface: &Interface<'_>, device: &str, name: &str) -> Result<([u32; WORDS], usize), String> {
    let missing = || format!("{device} has no ring {name}");
    let index = NAMES.iter().position(|known| *known == name).ok_or_else(missing)?;
    let mut words = [0; WORDS];
    words[0] = ETHTOOL_GRINGPARAM;
    interface.ask(&mut words).map_err(|error| interface.refused("rings", error))?;
    if words[GREATEST + index] == 0 {
        return Err(missing());
    }
    Ok((words, index))
}
