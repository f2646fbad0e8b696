//! Which request runs next. The scheduler knows requests by their tickets and never sees a page.

mod hold;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod modelled_queue;
mod queue;
#[cfg(test)]
mod queue_tests;

pub(crate) use hold::{Hold, smoothed};
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use queue::MAX_REFUSED;
pub(crate) use queue::{Admission, Admit, Limits, Queue, Ticket};
