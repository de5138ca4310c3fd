//! Where a tunable is: the kinds of place that a plan can name.

use serde::{Deserialize, Serialize};

/// Where a tunable is, and how its value is written there.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Location {
    /// A file of its own: a sysctl, a debugfs or sysfs file.
    File(FileLocation),
    /// One word in a file of words: `NAME` is on (`"1"`), `NO_NAME` is off (`"0"`).
    Flag(FlagLocation),
    /// A file that lists its choices with the current one in brackets or parentheses.
    Choice(ChoiceLocation),
    /// An offload of a network interface, `"1"` or `"0"`.
    Feature(DeviceLocation),
    /// A ring size of a network interface.
    Ring(DeviceLocation),
    /// An interrupt coalescing parameter of a network interface.
    Coalesce(DeviceLocation),
    /// The root queueing discipline of a network interface, by its kind.
    Qdisc(QdiscLocation),
    /// The bound on wake-up latency from idle states, held open for the trial.
    Latency(LatencyLocation),
    /// A setting of a running Redis or Valkey.
    Redis(ServerLocation),
    /// A setting of a running PostgreSQL.
    Postgresql(ServerLocation),
}

impl Location {
    /// Whether it is a file of the kernel, alone or with others.
    pub fn is_file(&self) -> bool {
        matches!(self, Location::File(_) | Location::Flag(_) | Location::Choice(_))
    }

    /// Whether a value outlives the boot of the machine.
    pub fn outlives_boot(&self) -> bool {
        matches!(self, Location::Postgresql(_))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceLocation {
    pub device: String,
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QdiscLocation {
    pub device: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencyLocation {}

/// A socket, or an address and port of the loopback interface, and the name that the server has for the setting.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerLocation {
    pub address: String,
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileLocation {
    pub path: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlagLocation {
    pub path: String,
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChoiceLocation {
    pub path: String,
}
