//! Figures of the system, read again and again beside the workload.

pub mod figures;
pub mod reader;
pub mod sampler;
