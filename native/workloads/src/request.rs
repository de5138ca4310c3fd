//! What a workload is asked to do, and why it did not do it.

use lexopt::ValueExt;
use thiserror::Error;

/// Why a workload did not do what it was asked to.
#[derive(Debug, Error)]
pub enum Fault {
    /// The request was wrong: exit status 2.
    #[error("{0} (see ajuste-workloads --help)")]
    Request(#[from] lexopt::Error),
    /// The result was wrong: exit status 1.
    #[error("{0}")]
    Run(String),
    /// The result could not be printed: exit status 1.
    #[error("cannot print: {0}")]
    Print(#[from] std::io::Error),
}

/// The value of the option `name`, a whole number from `low` to `high`.
pub fn number(arguments: &mut lexopt::Parser, name: &str, low: u64, high: u64) -> Result<u64, lexopt::Error> {
    let text = arguments.value()?.string()?;
    match text.parse() {
        Ok(value) if (low..=high).contains(&value) => Ok(value),
        _ => Err(format!("--{name} must be a whole number from {low} to {high}, not {text:?}").into()),
    }
}
