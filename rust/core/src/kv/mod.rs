//! Where keys and values live: a store of pages by content, and the lane of each context, which is what it has ready.

mod check;
mod content;
mod host;
mod lane;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod modelled_lanes;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod modelled_store;
mod pool;
#[cfg(test)]
mod property_tests;
mod store;

pub(crate) use check::References;
pub(crate) use content::{Content, Traits};
use host::HostPool;
pub(crate) use lane::{Lane, Obstacle, PageCopy};
pub(crate) use pool::PagePool;
pub(crate) use store::{Arrival, Displace, Moves, NodeId, PageDemand, PageStore};

/// Pages that hold `n_tokens` tokens.
pub(crate) const fn pages_for(n_tokens: u32, page_size: u32) -> u32 {
    n_tokens.div_ceil(page_size)
}
