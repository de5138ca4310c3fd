//! What undoes every change of a host: journal, guardian, restoring.

pub mod candidates;
pub mod guardian;
pub mod journal;
pub mod keeper;
pub mod leftovers;
pub mod record;
pub mod recovery;
pub mod registry;
pub mod restore;
pub mod session;
#[cfg(test)]
mod simulation;
pub mod system;
pub mod undo;
