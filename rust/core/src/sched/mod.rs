//! Which request runs next. The scheduler knows requests by their tickets and never sees a page.

mod cost;
mod hold;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod modelled_queue;
mod pace;
#[cfg(test)]
mod pace_tests;
mod precedence;
mod queue;
#[cfg(test)]
mod queue_tests;
mod shares;

pub(crate) use cost::Work;
pub(crate) use hold::{Hold, smoothed};
pub(crate) use pace::Pace;
pub(crate) use precedence::{Claimant, Holder};
#[cfg(test)]
pub(crate) use queue::Kind;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use queue::MAX_REFUSED;
pub(crate) use queue::{Admission, Admit, Limits, Queue, Ticket, Wants};
