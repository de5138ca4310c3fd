//! Why a trial stops before it is done.

use std::io;

use thiserror::Error;

use crate::event::Stage;

/// What becomes a `failed` event.
#[derive(Debug, Error)]
#[error("{message}")]
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

/// The plan cannot be carried out, or its events cannot be delivered.
#[derive(Debug, Error)]
pub enum Stop {
    #[error("the reader of the events is gone: {0}")]
    Deaf(#[from] io::Error),
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// What turns a message into a stop at `stage`.
pub fn failure(stage: Stage) -> impl Fn(String) -> Stop {
    move |message| Failure { stage, message, tunable: None }.into()
}
