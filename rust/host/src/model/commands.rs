//! Commands to the driver, at the wish of the operator of the engine.

use std::thread;
use std::time::Duration;

use pie_core::{Command, ErrorCode, Submission};
use tokio::sync::oneshot::error::TryRecvError;

use super::Model;
use crate::Error;

/// How often is looked for an answer: commands are rare, and read files.
const SLICE: Duration = Duration::from_millis(2);

impl Model {
    /// Has the driver carry out a command, in order with batches, and waits until it has.
    ///
    /// # Errors
    /// `unsupported` where the driver has no adapters, `driver-failed`, `driver-lost`, `invalid-argument`,
    /// `limit-queue`, `model-unavailable`, and `engine-stopped` where the model is stopped meanwhile.
    pub fn carry_out(&self, command: Command) -> Result<(), Error> {
        let (request, mut receiver) = self.submit(Submission::Command(None, command));
        loop {
            match receiver.try_recv() {
                Ok(ready) => {
                    ready?;
                    let answer = self.with_engine(|engine| engine.take(request));
                    let missing = || Err(Error::internal("a command that was ready has no answer"));
                    return answer.unwrap_or_else(missing).map(|_| ());
                }
                Err(TryRecvError::Empty) if !self.is_stopped() => thread::sleep(SLICE),
                Err(TryRecvError::Empty | TryRecvError::Closed) => {
                    self.cancel(request);
                    let message = "the model was stopped before the command was carried out";
                    return Err(Error::new(ErrorCode::EngineStopped, message));
                }
            }
        }
    }
}
