//! Which request runs next. The scheduler knows requests by their tickets and never sees a page.

mod cost;
mod hold;
mod kind;
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
mod ticket;

pub(crate) use cost::Work;
pub(crate) use hold::{Habit, Hold};
#[cfg(test)]
pub(crate) use kind::Kind;
pub(crate) use kind::Wants;
pub(crate) use pace::Pace;
pub(crate) use precedence::{Claimant, Holder};
pub(crate) use queue::Queue;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use ticket::MAX_REFUSED;
pub(crate) use ticket::{Admission, Admit, BatchRoom, Ticket};
