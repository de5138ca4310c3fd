//! What the kernel's scheduler does beside a workload: its own events (tracefs), reduced to figures in the agent.
//!
//! They are kept in the kernel's buffer while the workload runs and read afterwards, so that nobody is woken for them.

mod format;
mod moment;
mod page;
mod reckoning;
mod recorder;
pub mod recording;
pub mod spread;

pub use recorder::{instance, Recorder};
