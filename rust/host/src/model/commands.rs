//! Commands to the driver, at the wish of the operator of the engine.

use pie_core::{Command, ErrorCode, RequestId, Submission};

use super::Model;
use crate::Error;
use crate::sync::lock;

impl Model {
    /// Has the driver carry out a command, in order with batches, and blocks this thread until it has.
    ///
    /// # Errors
    /// `unsupported` where the driver has no adapters, `driver-failed`, `driver-lost`, `invalid-argument`,
    /// `limit-queue`, `model-unavailable`, and `engine-stopped` where the model is stopped meanwhile.
    pub fn carry_out(&self, command: Command) -> Result<(), Error> {
        let (request, receiver) = self.submit(Submission::Command(None, command));
        lock(&self.commanded).insert(request);
        // From here on `stop` wakes it; what was stopped before is seen.
        if self.is_stopped() {
            self.wake_commanded();
        }
        let woken = receiver.blocking_recv();
        lock(&self.commanded).remove(&request);
        let Ok(ready) = woken else {
            self.cancel(request);
            let message = "the model was stopped before the command was carried out";
            return Err(Error::new(ErrorCode::EngineStopped, message));
        };
        ready?;
        let answer = self.with_engine(|engine| engine.take(request));
        let missing = || Err(Error::internal("a command that was ready has no answer"));
        answer.unwrap_or_else(missing).map(|_| ())
    }

    /// Whoever waits for a command learns that it is not carried out.
    pub(super) fn wake_commanded(&self) {
        let requests: Vec<RequestId> = lock(&self.commanded).drain().collect();
        let mut waiters = lock(&self.waiters);
        for request in requests {
            // The end of the waker is what they see.
            waiters.remove(&request);
        }
    }
}
