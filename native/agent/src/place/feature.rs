//! Offloads of a network interface.
//! Named by the kernel's feature, or by ethtool's group of features.

use crate::place::ethtool::Interface;

const ETHTOOL_GFEATURES: u32 = 0x3a;
const ETHTOOL_SFEATURES: u32 = 0x3b;
const ETH_SS_FEATURES: u32 = 4;

/// ethtool(8)'s groups of kernel features (`off_flag_def` in ethtool.c).
const GROUPS: [(&str, &str); 12] = [
    ("rx-checksumming", "rx-checksum"),
    ("tx-checksumming", "tx-checksum-*"),
    ("scatter-gather", "tx-scatter-gather*"),
    ("tcp-segmentation-offload", "tx-tcp*-segmentation"),
    ("udp-fragmentation-offload", "tx-udp-fragmentation"),
    ("generic-segmentation-offload", "tx-generic-segmentation"),
    ("generic-receive-offload", "rx-gro"),
    ("large-receive-offload", "rx-lro"),
    ("rx-vlan-offload", "rx-vlan-hw-parse"),
    ("tx-vlan-offload", "tx-vlan-hw-insert"),
    ("ntuple-filters", "rx-ntuple-filter"),
    ("receive-hashing", "rx-hashing"),
];

/// The state of an interface's features of one name.
/// Also how many blocks of 32 features its kernel has.
struct Answer {
    members: Vec<Feature>,
    blocks: usize,
}

/// One feature of an interface.
/// What is requested becomes active if the features that it needs are active too.
#[derive(Debug)]
struct Feature {
    name: String,
    bit: usize,
    requested: bool,
    active: bool,
    changeable: bool,
}

/// `"1"` if the feature, or any of the group, is active.
pub fn read(device: &str, name: &str) -> Result<String, String> {
    let answer = ask(&Interface::open(device)?, device, name)?;
    Ok(digit(answer.members.iter().any(|feature| feature.active)).to_owned())
}

/// `name=1,name=0`: what is requested of each feature that can be changed.
pub fn state(device: &str, name: &str) -> Result<String, String> {
    let answer = ask(&Interface::open(device)?, device, name)?;
    let kept = answer.changeable(device, name)?;
    let words: Vec<String> =
        kept.iter().map(|feature| format!("{}={}", feature.name, digit(feature.requested))).collect();
    Ok(words.join(","))
}

/// Set all changeable features to `"1"` or `"0"`, or each to its [`state`].
pub fn write(device: &str, name: &str, value: &str) -> Result<(), String> {
    let interface = Interface::open(device)?;
    let answer = ask(&interface, device, name)?;
    let wanted = match value {
        "0" | "1" => answer.changeable(device, name)?.iter().map(|feature| (feature.bit, value == "1")).collect(),
        kept => each(&answer.members, device, kept)?,
    };
    // struct ethtool_sfeatures: of each block which features are meant, and which of
    // them are requested.
    let mut words = vec![0; 2 + 2 * answer.blocks];
    words[..2].copy_from_slice(&[ETHTOOL_SFEATURES, answer.blocks as u32]);
    for (bit, on) in wanted {
        words[2 + bit / 32 * 2] |= 1 << (bit % 32);
        words[3 + bit / 32 * 2] |= u32::from(on) << (bit % 32);
    }
    interface.ask(&mut words).map_err(|error| interface.refused(&format!("feature {name}"), error))?;
    Ok(())
}

impl Answer {
    fn changeable(&self, device: &str, name: &str) -> Result<Vec<&Feature>, String> {
        let found: Vec<&Feature> = self.members.iter().filter(|feature| feature.changeable).collect();
        if found.is_empty() {
            return Err(format!("feature {name} of {device} is fixed by the driver"));
        }
        Ok(found)
    }
}

fn ask(interface: &Interface<'_>, device: &str, name: &str) -> Result<Answer, String> {
    let pattern = GROUPS.iter().find(|(group, _)| *group == name).map_or(name, |(_, pattern)| pattern);
    let features = features(interface).map_err(|error| interface.refused("features", error))?;
    let blocks = features.len().div_ceil(32);
    let members: Vec<Feature> = features.into_iter().filter(|feature| matches(&feature.name, pattern)).collect();
    if members.is_empty() {
        return Err(format!("{device} has no feature {name}"));
    }
    Ok(Answer { members, blocks })
}

fn features(interface: &Interface<'_>) -> std::io::Result<Vec<Feature>> {
    let names = interface.strings(ETH_SS_FEATURES)?;
    let blocks = names.len().div_ceil(32);
    // struct ethtool_gfeatures: four words a block.
    let mut words = vec![0; 2 + 4 * blocks];
    words[..2].copy_from_slice(&[ETHTOOL_GFEATURES, blocks as u32]);
    interface.ask(&mut words)?;
    let set = |bit: usize, word: usize| words[2 + bit / 32 * 4 + word] >> (bit % 32) & 1 == 1;
    let feature = |(bit, name)| Feature {
        name,
        bit,
        changeable: set(bit, 0) && !set(bit, 3),
        requested: set(bit, 1),
        active: set(bit, 2),
    };
    Ok(names.into_iter().enumerate().map(feature).collect())
}

/// The words `name=1` of a kept value, each of one of the members.
fn each(members: &[Feature], device: &str, kept: &str) -> Result<Vec<(usize, bool)>, String> {
    let word = |word: &str| {
        let (name, digit) = word.split_once('=').filter(|(_, digit)| ["0", "1"].contains(digit))?;
        let feature = members.iter().find(|feature| feature.name == name)?;
        Some((feature.bit, digit == "1"))
    };
    kept.split(',').map(|text| word(text).ok_or(format!("{text:?} is no state of a feature of {device}"))).collect()
}

/// Whether `name` fits a pattern that has at most one `*`.
fn matches(name: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        Some((start, end)) => name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end),
        None => name == pattern,
    }
}

fn digit(on: bool) -> &'static str {
    if on { "1" } else { "0" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_has_one_gap() {
        assert!(matches("tx-tcp-segmentation", "tx-tcp*-segmentation"));
        assert!(matches("tx-tcp6-segmentation", "tx-tcp*-segmentation"));
        assert!(matches("tx-tcp-ecn-segmentation", "tx-tcp*-segmentation"));
        assert!(!matches("tx-tcp-segmentation-x", "tx-tcp*-segmentation"));
        assert!(!matches("ab", "ab*b"));
        assert!(!matches("rx-gro-hw", "rx-gro"));
    }

    #[test]
    fn only_members_are_put_back() {
        let member = Feature { name: "rx-gro".to_owned(), bit: 40, requested: true, active: true, changeable: true };
        let members = [member];
        assert_eq!(each(&members, "eth0", "rx-gro=0").unwrap(), [(40, false)]);
        for wrong in ["rx-gro=2", "rx-lro=1", "rx-gro", "", "rx-gro=1,"] {
            assert!(each(&members, "eth0", wrong).unwrap_err().contains("no state of a feature of eth0"), "{wrong}");
        }
    }
}
