//! The agent: takes one plan, carries it out on the machine it runs on, and says what happened as JSON lines.
//!
//! It runs as a program on a host ([`host`]) and, as the very same binary, as the first process of a guest
//! ([`guest`]), so that both are measured by the same code ([`trial`]). It knows no statistics.

pub mod boot;
pub mod capture;
pub mod cgroup;
pub mod clock;
pub mod coalesce;
pub mod counters;
pub mod errno;
pub mod ethtool;
pub mod event;
pub mod failure;
pub mod feature;
pub mod figures;
pub mod firmware;
pub mod formatter;
pub mod gate;
pub mod guest;
pub mod host;
pub mod image;
pub mod interrupts;
pub mod kernel_file;
pub mod kernel_log;
pub mod latency;
pub mod launch;
pub mod lifted;
pub mod loopdev;
pub mod machine;
pub mod measurement;
pub mod modules;
pub mod mount_options;
pub mod mount_point;
pub mod mounts;
pub mod netlink;
pub mod perturb;
pub mod plan;
pub mod ports;
pub mod process;
pub mod qdisc;
pub mod reader;
pub mod ring;
pub mod sampler;
pub mod scratch;
pub mod stream;
pub mod supervise;
pub mod surroundings;
pub mod sweep;
pub mod trial;
pub mod tunable;
