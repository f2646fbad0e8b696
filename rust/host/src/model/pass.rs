//! Passes as sources of futures.

#![expect(
    unreachable_pub,
    reason = "the generated bindings re-export the types behind handles, which must be public for that"
)]

use std::sync::Arc;
use std::time::Duration;

use pie_core::{Answer, Engine, Entering, RequestId, Submission};
use tokio::sync::oneshot;

use super::Model;
use crate::Error;
use crate::futures::{Future, Operation};
use crate::limits::Limits;

/// A pass in the core. Its effect on the context becomes final when its answer is taken.
#[derive(Debug)]
pub(crate) struct Pass {
    model: Arc<Model>,
    request: RequestId,
}

impl Pass {
    /// Submits a pass; the receiver learns when its answer can be taken.
    pub(crate) fn submit(
        model: &Arc<Model>,
        submission: Submission,
    ) -> (Self, oneshot::Receiver<Result<(), Error>>) {
        let (request, receiver) = model.submit(submission);
        (
            Self {
                model: model.clone(),
                request,
            },
            receiver,
        )
    }

    /// The name of its request.
    pub(crate) const fn request(&self) -> RequestId {
        self.request
    }

    /// Takes the answer.
    ///
    /// # Errors
    /// Those of the pass.
    pub(crate) fn take(&self) -> Result<Answer, Error> {
        self.take_paid(|_| Ok(()))
    }

    /// The same, where `pay` is asked before anything enters the context.
    ///
    /// # Errors
    /// Those of the pass, and that of `pay`: the context is as it was then.
    pub(crate) fn take_paid(
        &self,
        pay: impl FnOnce(Entering) -> Result<(), Error>,
    ) -> Result<Answer, Error> {
        self.model.with_engine(|engine| self.take_in(engine, pay))
    }

    /// The same, within the lock of the core.
    ///
    /// # Errors
    /// As [`Self::take_paid`].
    pub(crate) fn take_in(
        &self,
        engine: &mut Engine,
        pay: impl FnOnce(Entering) -> Result<(), Error>,
    ) -> Result<Answer, Error> {
        let answer = engine.take_paid(self.request, pay);
        answer.unwrap_or_else(|| Err(Error::internal("a pass that was ready has no answer")))
    }

    /// Gives the pass up: the context is as it was before.
    pub(crate) fn cancel(&self) {
        self.model.cancel(self.request);
    }
}

/// The computing of what is pending and buffered in a context.
#[derive(Debug)]
pub struct Flush(Pass);

impl Flush {
    /// Submits the pass and gives its future.
    pub(crate) fn submit(model: &Arc<Model>, submission: Submission) -> Future<Self> {
        let (pass, receiver) = Pass::submit(model, submission);
        Future::new(Self(pass), receiver)
    }
}

impl Operation for Flush {
    type Raw = ();
    type Answer = ();

    fn finish(&mut self, (): ()) -> Result<(), Error> {
        self.0.take().map(drop)
    }

    fn abandon(&mut self, _answer: Option<Result<(), Error>>) {
        self.0.cancel();
    }

    fn limit(&self, limits: &Limits) -> Option<Duration> {
        limits.pass
    }
}
