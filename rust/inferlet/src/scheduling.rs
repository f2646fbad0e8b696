//! The market for pages: what this program has, and what pages cost.
//!
//! Where pages are short, contexts bid for theirs, and whoever holds some pays rent, which returns to all programs as
//! dividends. A bid follows from what the program has, unless it says its own ([`Context::set_bid`]). No token depends
//! on any of it, but on what a program does with these numbers.
//!
//! [`Context::set_bid`]: crate::Context::set_bid

use crate::bindings::pie::core::scheduling;
use crate::{Model, RawContext};

/// Credits that this program has for a model. What its bids win is paid from them; with none left it loses every
/// auction, and goes on all the same.
pub fn balance(model: &Model) -> f64 {
    scheduling::balance(model.raw())
}

/// Credits that a page costs whoever holds it: the highest bid that lost when the last batch was planned. It is of the
/// device that the context is on, and 0 where pages are not short.
pub fn rent(context: &impl AsRef<RawContext>) -> f64 {
    scheduling::rent(context.as_ref())
}

/// Credits that this program got as its last share of the rent, in proportion to what it began with. It is 0 until
/// pages were short while the program ran: nobody pays rent otherwise. From then on it is the share of the last
/// auction.
pub fn dividend(model: &Model) -> f64 {
    scheduling::dividend(model.raw())
}

/// Seconds that a batch takes on the device of the context, as of late; 0 before the first.
pub fn latency(context: &impl AsRef<RawContext>) -> f64 {
    scheduling::latency(context.as_ref())
}

/// Credits that a page of a context costs once, when it is full.
pub fn price() -> f64 {
    scheduling::price()
}
