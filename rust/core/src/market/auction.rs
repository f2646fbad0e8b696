//! The bids of one batch in the making, for which pages are short.

use std::collections::HashMap;

use crate::ids::ContextId;

/// What was bid for the pages of a batch, and what lost.
#[derive(Debug, Default)]
pub(crate) struct Auction {
    bids: HashMap<ContextId, u64>,
    highest_lost: u64,
}

impl Auction {
    /// One in which these contexts bid.
    pub(crate) fn new(bids: impl Iterator<Item = (ContextId, u64)>) -> Self {
        Self {
            bids: bids.collect(),
            highest_lost: 0,
        }
    }

    /// What a context bids; one that takes no part bids nothing.
    pub(crate) fn bid(&self, context: ContextId) -> u64 {
        self.bids.get(&context).copied().unwrap_or(0)
    }

    /// A context has to do without pages, or to give its own up.
    pub(crate) fn lose(&mut self, context: ContextId) {
        self.highest_lost = self.highest_lost.max(self.bid(context));
    }

    /// The clearing price: the highest bid that lost, in micro-credits a page.
    pub(crate) const fn clearing_price(&self) -> u64 {
        self.highest_lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_bid_that_lost_is_the_price() {
        let mut auction = Auction::new([(ContextId(1), 5), (ContextId(2), 9)].into_iter());
        assert_eq!(auction.clearing_price(), 0);
        auction.lose(ContextId(3));
        assert_eq!(auction.clearing_price(), 0);
        auction.lose(ContextId(1));
        auction.lose(ContextId(1));
        assert_eq!(auction.clearing_price(), 5);
        auction.lose(ContextId(2));
        auction.lose(ContextId(1));
        assert_eq!(auction.clearing_price(), 9);
    }
}
