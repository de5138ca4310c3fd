//! The scheduler's events during a workload (tracefs), reduced to figures.
//!
//! The kernel buffers them while the workload runs and the agent reads them afterwards: nothing wakes up for them.

mod format;
mod moment;
mod page;
mod reckoning;
mod recorder;
pub mod recording;
pub mod spread;

pub use recorder::{Recorder, instance};
