//! The agent: carries out plans on its machine and reports events as JSON lines.
//!
//! It runs as a program on a host ([`host`]) and, as the very same binary, as the first process of a guest
//! ([`guest`]), so that both are measured by the same code ([`trial`]). It knows no statistics.

pub mod clock;
pub mod counters;
pub mod disk;
pub mod errno;
pub mod event;
pub mod failure;
pub mod guest;
pub mod host;
pub mod journals;
pub mod machine;
pub mod measurement;
pub mod place;
pub mod plan;
#[cfg_attr(not(target_arch = "x86_64"), path = "no_ports.rs")]
pub mod ports;
pub mod process;
pub mod safety;
pub mod sampling;
pub mod scratch;
pub mod serve;
pub mod stream;
pub mod sweep;
pub mod trace;
pub mod trial;
