//! What undoes a change, as written down before the change.

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
    /// The plan does not name it: the kernel changes it along with `tunable`.
    #[serde(default)]
    pub companion: bool,
    /// The plan's first writes created it, and undoing them may remove it.
    #[serde(default)]
    pub appeared: bool,
    /// The plan does not write it: another program may.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub watched: bool,
}

/// A control group, a mount directory or a trace instance.
/// The group is removed with its processes, the directory if it is empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Made {
    pub path: String,
}

impl Undo {
    /// Whether both concern the same place.
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

    pub fn location(&self) -> Option<&Location> {
        match self {
            Undo::Value(old) => Some(&old.location),
            Undo::Made(_) => None,
        }
    }

    pub fn tunable(&self) -> Option<&str> {
        match self {
            Undo::Value(old) => Some(&old.tunable),
            Undo::Made(_) => None,
        }
    }
}
