//! Batches: what a driver gets, and what is drawn from its answer.

mod builder;
mod capabilities;
mod checks;
mod jobs;
#[cfg(test)]
mod jobs_tests;
pub mod layout;
#[cfg(test)]
mod property_tests;
mod reads;
mod view;
mod writer;

use std::sync::Arc;

use crate::ids::BatchId;

pub use builder::{Adapter, ArenaBuilder, Masks, Positions, Row, Sequence};
pub use capabilities::Capabilities;
pub(crate) use capabilities::{MAX_BATCH_TOKENS, MAX_POSITIONS};
pub use jobs::{DriverFailure, SampleJobs, Sampled, SequenceRows};
pub use reads::RowOutput;
pub(crate) use reads::{Read, Reads};
pub use view::{ArenaView, RowView, SequenceView};

/// A batch for a driver.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Its name, by which it is completed.
    pub id: BatchId,
    /// What the driver reads; see [`layout`].
    pub arena: Arc<[u32]>,
    /// What is drawn from the driver's answer.
    pub jobs: SampleJobs,
}
