//! Where tunables are: kernel files, network interfaces, the latency bound, servers.

pub mod coalesce;
pub mod ethtool;
pub mod feature;
pub mod kernel_file;
pub mod latency;
pub mod location;
pub mod netlink;
pub mod postgresql;
pub mod qdisc;
pub mod redis;
pub mod ring;
pub mod server;
pub mod tunable;
