//! What undoes a change of this machine, as it is written down before the change is made.

use serde::{Deserialize, Serialize};

use crate::plan::Location;

/// One step back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "undo", rename_all = "lowercase")]
pub enum Undo {
    /// A place gets its old value.
    Value(OldValue),
    /// What was made is removed.
    Made(Made),
}

/// A place and what was there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OldValue {
    pub tunable: String,
    pub location: Location,
    pub before: String,
    /// The plan did not name it as a tunable of its own: the kernel changes it along with `tunable`.
    #[serde(default)]
    pub companion: bool,
    /// It was not there until the plan's first writes had been carried out, and may be gone when they are undone.
    #[serde(default)]
    pub appeared: bool,
}

/// A control group, removed with all processes in it, a directory to mount on, removed if nothing is in it, or an
/// instance of the kernel's tracing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Made {
    pub path: String,
}

impl Undo {
    /// Whether both are about the same place, whatever was there.
    pub fn same_place(&self, other: &Undo) -> bool {
        match (self, other) {
            (Undo::Value(one), Undo::Value(other)) => one.location == other.location,
            (Undo::Made(one), Undo::Made(other)) => one.path == other.path,
            _ => false,
        }
    }

    /// Whether both would leave the same behind in the same place.
    pub fn same_end(&self, other: &Undo) -> bool {
        match (self, other) {
            (Undo::Value(one), Undo::Value(other)) => one.location == other.location && one.before == other.before,
            _ => self.same_place(other),
        }
    }

    pub fn tunable(&self) -> Option<&str> {
        match self {
            Undo::Value(old) => Some(&old.tunable),
            Undo::Made(_) => None,
        }
    }
}
