//! The side of the driver: batches to run, and their logits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pie_core::{DriverFailure, ErrorCode, Plan};

use super::Model;
use super::inbox::Woken;
use crate::Error;

/// A batch that a driver runs. It is answered once: one that is dropped without an answer fails.
#[derive(Debug)]
pub struct Batch {
    model: Arc<Model>,
    batch: pie_core::Batch,
    answered: AtomicBool,
}

impl Batch {
    /// The number of the batch, counted from 1 in each model.
    pub fn id(&self) -> u64 {
        self.batch.id.0
    }

    /// What to compute, in the layout of `pie_core::batch`.
    pub fn arena(&self) -> &[u32] {
        &self.batch.arena
    }

    /// True the first time.
    fn claim(&self) -> bool {
        !self.answered.swap(true, Ordering::AcqRel)
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        if self.claim() {
            let failure = DriverFailure {
                message: "the driver gave the batch up without an answer".to_owned(),
            };
            // A batch that the core does not know any more needs no answer.
            drop(self.model.conclude(&self.batch, Err(failure)));
        }
    }
}

impl Model {
    /// The next batch to run, waiting at most `timeout` for one. None: there is none, the driver has not answered a
    /// batch that is overdue, or the model was stopped.
    pub fn next_batch(self: &Arc<Self>, timeout: Duration) -> Option<Batch> {
        let deadline = Instant::now() + timeout;
        loop {
            if self.is_stopped() {
                return None;
            }
            let now_ns = self.now_ns();
            let until = match self.with_engine(|engine| engine.next_batch(now_ns)) {
                Plan::Batch(batch) => {
                    self.watch.begin();
                    return Some(Batch {
                        model: self.clone(),
                        batch,
                        answered: AtomicBool::new(false),
                    });
                }
                Plan::Idle => deadline,
                Plan::HoldUntil(ns) => deadline.min(self.started + Duration::from_nanos(ns)),
            };
            match self.inbox.wait(until) {
                Woken::Rung => {}
                Woken::TimedOut if until < deadline => {}
                Woken::TimedOut | Woken::Stopped => return None,
            }
        }
    }

    /// Answers a batch with its logits: `n_rows` rows of `vocab_size` numbers, and the sequences that failed with their
    /// reasons. An answer that comes after the requests of the batch have failed is dropped.
    ///
    /// # Errors
    /// `invalid-argument` for a batch that was answered before, or that belongs to another model.
    pub fn complete(
        &self,
        batch: &Batch,
        logits: &[f32],
        failures: &[(u32, String)],
    ) -> Result<(), Error> {
        self.claim(batch)?;
        // Sampling takes the time; it runs outside the lock.
        let sampled = batch.batch.jobs.sample(logits, failures);
        self.conclude(&batch.batch, Ok(sampled))
    }

    /// Answers a batch with the reason why it could not be run; each of its passes fails with it.
    ///
    /// # Errors
    /// `invalid-argument` for a batch that was answered before, or that belongs to another model.
    pub fn fail(&self, batch: &Batch, message: &str) -> Result<(), Error> {
        self.claim(batch)?;
        self.conclude(
            &batch.batch,
            Err(DriverFailure {
                message: message.to_owned(),
            }),
        )
    }

    /// The driver is gone, with all pages. The requests of the batches that run fail, each with the error
    /// `driver-lost`; those that wait continue with the driver that comes next. A batch that it had is not answered: it
    /// is dropped.
    pub fn lose_device(&self, message: &str) {
        let now_ns = self.now_ns();
        self.with_engine(|engine| engine.lose_device(message, now_ns));
    }

    fn claim(&self, batch: &Batch) -> Result<(), Error> {
        if !std::ptr::eq(self, Arc::as_ptr(&batch.model)) {
            let message = format!(
                "batch {} belongs to the model {:?}, not to {:?}",
                batch.id(),
                batch.model.name(),
                self.name()
            );
            return Err(Error::new(ErrorCode::InvalidArgument, message));
        }
        if !batch.claim() {
            return Err(Error::new(
                ErrorCode::InvalidArgument,
                format!(
                    "batch {} was answered before; answer each batch once",
                    batch.id()
                ),
            ));
        }
        Ok(())
    }

    fn conclude(
        &self,
        batch: &pie_core::Batch,
        sampled: Result<pie_core::Sampled, DriverFailure>,
    ) -> Result<(), Error> {
        let now_ns = self.now_ns();
        let concluded = self.with_engine(|engine| engine.complete(batch.id, sampled, now_ns));
        self.inbox.ring();
        concluded
    }
}
