//! Interrupt coalescing of a network interface (ETHTOOL_{G,S}COALESCE).

use crate::place::ethtool::Interface;

const ETHTOOL_GCOALESCE: u32 = 0x0e;
const ETHTOOL_SCOALESCE: u32 = 0x0f;

/// The fields of struct ethtool_coalesce by their names in ethtool(8).
/// In their order, after the command. The adaptive ones are `"1"` or `"0"`.
const NAMES: [&str; 22] = [
    "rx-usecs",
    "rx-frames",
    "rx-usecs-irq",
    "rx-frames-irq",
    "tx-usecs",
    "tx-frames",
    "tx-usecs-irq",
    "tx-frames-irq",
    "stats-block-usecs",
    "adaptive-rx",
    "adaptive-tx",
    "pkt-rate-low",
    "rx-usecs-low",
    "rx-frames-low",
    "tx-usecs-low",
    "tx-frames-low",
    "pkt-rate-high",
    "rx-usecs-high",
    "rx-frames-high",
    "tx-usecs-high",
    "tx-frames-high",
    "sample-interval",
];
const WORDS: usize = 1 + NAMES.len();

/// The present number: µs, frames, packets a second or seconds, as the name says.
pub fn read(device: &str, name: &str) -> Result<String, String> {
    let (words, index) = parameters(&Interface::open(device)?, name)?;
    Ok(words[index].to_string())
}

pub fn write(device: &str, name: &str, value: &str) -> Result<(), String> {
    let interface = Interface::open(device)?;
    let (mut words, index) = parameters(&interface, name)?;
    let number: u32 = value.parse().map_err(|_| format!("coalesce {name} of {device}: {value:?} is no number"))?;
    if number == words[index] {
        return Ok(());
    }
    words[0] = ETHTOOL_SCOALESCE;
    words[index] = number;
    interface.ask(&mut words).map_err(|error| interface.refused(&format!("coalesce {name}"), error))?;
    Ok(())
}

fn parameters(interface: &Interface<'_>, name: &str) -> Result<([u32; WORDS], usize), String> {
    let known = NAMES.iter().position(|known| *known == name);
    let index = known.ok_or_else(|| format!("ethtool has no coalescing parameter {name}"))? + 1;
    let mut words = [0; WORDS];
    words[0] = ETHTOOL_GCOALESCE;
    interface.ask(&mut words).map_err(|error| interface.refused("coalescing", error))?;
    Ok((words, index))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_are_where_the_kernel_has_them() {
        // linux/ethtool.h: struct ethtool_coalesce is 23 words with rate_sample_interval
        // as the last.
        assert_eq!(WORDS, 23);
        let place = |name| NAMES.iter().position(|known| *known == name).map(|index| (index + 1) * 4);
        assert_eq!(place("tx-usecs"), Some(20));
        assert_eq!(place("adaptive-rx"), Some(40));
        assert_eq!(place("pkt-rate-high"), Some(68));
    }
}
