//! Commands to the driver, at the wish of the operator of the engine, or of a program.

use pie_core::{Answer, Command, ErrorCode, PageMove, RequestId, Submission};

use super::Model;
use crate::Error;
use crate::errors::stopped;
use crate::sync::lock;

/// A command that a program waits for: it is cancelled where the program waits no more.
struct AwaitedCommand<'a> {
    model: &'a Model,
    request: RequestId,
    is_taken: bool,
}

impl Drop for AwaitedCommand<'_> {
    fn drop(&mut self) {
        if !self.is_taken {
            lock(&self.model.commanded).remove(&self.request);
            self.model.cancel(self.request);
        }
    }
}

impl Model {
    /// Has the driver carry out a command, in order with batches, and blocks this thread until it has.
    ///
    /// # Errors
    /// `unsupported` where the driver has no adapters, `driver-failed`, `driver-lost`, `invalid-argument`,
    /// `limit-queue`, `model-unavailable`, and `engine-stopped` where the model is stopped meanwhile.
    pub fn carry_out(&self, command: Command) -> Result<(), Error> {
        self.carried(Submission::Command(None, command)).map(drop)
    }

    /// Has the driver move pages, and blocks this thread until it has. Returns how many, from the first on, are where
    /// they were wanted.
    ///
    /// # Errors
    /// As [`Model::carry_out`].
    pub(super) fn move_pages(&self, pages: PageMove) -> Result<u32, Error> {
        match self.carried(Submission::Pages(pages))? {
            Answer::Moved(n) => Ok(n),
            _ => Err(Error::internal(
                "a move of pages was answered as another command",
            )),
        }
    }

    fn carried(&self, submission: Submission) -> Result<Answer, Error> {
        let (request, receiver) = self.submit(submission);
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
        answer.unwrap_or_else(|| Err(Error::internal("a command that was ready has no answer")))
    }

    /// What [`Model::carry_out`] does for a program, which waits without a thread. A command that nobody waits for any
    /// more is not given; one that is carried out is carried out to its end.
    ///
    /// # Errors
    /// As [`Model::carry_out`], and those that the driver has for adapters.
    pub(super) async fn commanded(&self, submission: Submission) -> Result<(), Error> {
        let (request, receiver) = self.submit(submission);
        let mut asked = AwaitedCommand {
            model: self,
            request,
            is_taken: false,
        };
        lock(&self.commanded).insert(request);
        if self.is_stopped() {
            self.wake_commanded();
        }
        let Ok(ready) = receiver.await else {
            return Err(stopped());
        };
        asked.is_taken = true;
        lock(&self.commanded).remove(&request);
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
