//! Batches: what a driver gets, and what is drawn from its answer.

mod answer;
mod builder;
mod capabilities;
mod checks;
mod jobs;
#[cfg(test)]
mod jobs_tests;
mod late;
pub mod layout;
mod page_lists;
#[cfg(test)]
mod page_lists_tests;
#[cfg(test)]
mod property_tests;
mod reads;
mod view;
mod writer;

use std::sync::Arc;

use crate::ids::BatchId;

pub use answer::{DriverAnswer, NOT_FINITE};
pub(crate) use builder::Step;
pub use builder::{Adapter, ArenaBuilder, Masks, Positions, Row, Sequence};
pub use capabilities::Capabilities;
pub(crate) use capabilities::{DUMMY_EMBEDDINGS, MAX_BATCH_TOKENS, MAX_POSITIONS, MAX_VOCABULARY};
pub(crate) use jobs::RowReads;
pub use jobs::{DriverFailure, RowResult, SampleJobs, Sampled, SequenceRows};
pub use late::{LateDraw, LateDrawn, LateMask, LateRow};
pub use layout::Keep;
pub use page_lists::Pages;
pub use reads::RowOutput;
pub(crate) use reads::{MaskFault, Read, Reads};
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
    /// What may come late: rows that were planned without their token mask.
    pub late: Vec<LateRow>,
}
