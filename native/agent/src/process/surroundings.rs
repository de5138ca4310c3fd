//! What surrounds the processes of a trial, on a host and in a guest.

use crate::process::roll::Roll;

/// What is the same for every process of a trial.
#[derive(Clone, Copy, Default)]
pub struct Surroundings {
    /// Of a guest: the ports that its processes must not inherit.
    pub event_port: Option<u16>,
    /// Whether processes get SIGKILL when the agent dies; only on a host.
    /// A guest dies with its agent.
    pub die_with_agent: bool,
    /// The default nice value: the agent's before it was lifted.
    pub nice: Option<i32>,
    /// Of a host: where processes are entered for the guardian.
    pub roll: Option<Roll>,
}

impl Surroundings {
    /// Whether the machine is the agent's own.
    pub fn is_guest(&self) -> bool {
        self.event_port.is_some()
    }
}
