//! Why a trial stops before it is done.

use std::io;

use crate::event::Stage;

/// To be said as a `failed` event.
#[derive(Debug)]
pub struct Failure {
    pub stage: Stage,
    pub message: String,
    pub tunable: Option<String>,
}

impl Failure {
    /// Of one tunable.
    pub fn of(tunable: &str, stage: Stage, message: String) -> Failure {
        Failure { stage, message, tunable: Some(tunable.to_owned()) }
    }
}

/// Nobody listens any more, or the plan cannot be carried out.
#[derive(Debug)]
pub enum Stop {
    Deaf(io::Error),
    Failed(Failure),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        Stop::Deaf(error)
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        Stop::Failed(failure)
    }
}

/// What turns a message into a stop at `stage`.
pub fn failure(stage: Stage) -> impl Fn(String) -> Stop {
    move |message| Stop::Failed(Failure { stage, message, tunable: None })
}
