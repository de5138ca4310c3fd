//! Where tunables are: kernel files, network interfaces, the latency bound.

pub mod coalesce;
pub mod ethtool;
pub mod feature;
pub mod kernel_file;
pub mod latency;
pub mod location;
pub mod netlink;
pub mod qdisc;
pub mod ring;
pub mod tunable;
