//! What undoes every change of a host: journal, guardian, restoring.

pub mod guardian;
pub mod journal;
pub mod keeper;
pub mod leftovers;
pub mod recovery;
pub mod restore;
pub mod roll;
pub mod undo;
