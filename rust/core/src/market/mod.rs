//! The market for pages: who may keep them where they are short, and what that costs.
//!
//! Each process has an account of credits in each model. A context bids for its pages. Where pages are short the higher
//! bid keeps them (`sched/precedence.rs` has the whole order), and whoever holds pages pays rent for them: the clearing
//! price, which is the highest bid that lost, and never more than its own bid. The rent returns to all accounts as
//! dividends, in proportion to their endowments, so that nobody is ruined for ever. A full page costs a price of its
//! own, once, which is gone.
//!
//! A tick of the market is a batch that was planned while pages were short. Without shortage there is no tick, and
//! nothing is computed. Amounts are whole millionths of a credit, and none is ever made or lost by rounding.

mod account;
mod amount;
mod auction;
mod ledger;
#[cfg(test)]
mod modelled_ledger;
mod offer;
mod rent;

pub use account::Account;
pub use amount::{MAX_CREDITS, MICRO, credits, micro_credits};
pub(crate) use auction::Auction;
pub(crate) use ledger::Ledger;
pub(crate) use offer::{Bid, Offer, Outlook};
pub(crate) use rent::{Resident, rents};
