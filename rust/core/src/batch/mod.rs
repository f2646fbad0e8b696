//! Batches: what a driver gets, and what comes back.

use std::sync::Arc;

use crate::ids::BatchId;

/// A batch for a driver.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Its name, by which it is completed.
    pub id: BatchId,
    /// What the driver reads.
    pub arena: Arc<[u32]>,
    /// What is drawn from its logits.
    pub jobs: SampleJobs,
}

/// What is drawn from the logits of a batch.
#[derive(Clone, Debug)]
pub struct SampleJobs {}

/// The tokens drawn from the logits of a batch.
#[derive(Clone, Debug)]
pub struct Sampled {}

/// A driver could not run a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverFailure {
    /// For people.
    pub message: String,
}

impl SampleJobs {
    /// Draws a token from each row of `logits`, float32 `[R, V]`, C-contiguous. `failures` names sequences of the batch
    /// that the driver could not compute, by index.
    pub fn sample(&self, _logits: &[f32], _failures: &[(u32, String)]) -> Sampled {
        Sampled {}
    }
}
