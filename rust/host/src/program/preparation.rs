//! A program that is being loaded or compiled, ahead of its launches.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use crate::Error;
use crate::errors::stopped;

/// The work of making launches of a program fast. It continues when this is dropped.
#[derive(Debug)]
pub struct Preparation {
    done: Receiver<Result<(), Error>>,
}

impl Preparation {
    pub(crate) fn new(done: Receiver<Result<(), Error>>) -> Self {
        Self { done }
    }

    /// Waits until the work is done.
    ///
    /// # Errors
    /// What is wrong with the program; `engine-stopped` when the host stops meanwhile.
    pub fn wait(self) -> Result<(), Error> {
        self.done.recv().unwrap_or_else(|_| Err(stopped()))
    }

    /// Waits at most `timeout`; None when the work is not done by then. Once it has answered, the work is over.
    ///
    /// # Errors
    /// Those of [`Preparation::wait`].
    pub fn wait_for(&self, timeout: Duration) -> Result<Option<()>, Error> {
        match self.done.recv_timeout(timeout) {
            Ok(outcome) => outcome.map(Some),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(stopped()),
        }
    }
}
