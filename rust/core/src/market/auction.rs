//! The bids of one batch in the making, for which pages are short.

use std::collections::{BTreeSet, HashMap};

use super::offer::Bid;
use crate::ids::{ContextId, UserId};

/// What was bid for the pages of a batch, and what lost.
#[derive(Debug, Default)]
pub(crate) struct Auction {
    bids: HashMap<ContextId, Bid>,
    /// Users whose requests wait.
    users: BTreeSet<UserId>,
    highest_lost: u64,
}

impl Auction {
    /// One in which these contexts bid, while requests of these users wait.
    pub(crate) fn new(
        bids: impl Iterator<Item = (ContextId, Bid)>,
        users: impl Iterator<Item = UserId>,
    ) -> Self {
        Self {
            bids: bids.collect(),
            users: users.collect(),
            highest_lost: 0,
        }
    }

    /// What a context bids; one that takes no part bids nothing.
    pub(crate) fn bid(&self, context: ContextId) -> Bid {
        self.bids.get(&context).copied().unwrap_or_default()
    }

    /// The users whose requests wait, each once.
    pub(crate) fn users(&self) -> impl Iterator<Item = UserId> {
        self.users.iter().copied()
    }

    /// A context has to do without pages, or to give its own up.
    pub(crate) fn lose(&mut self, context: ContextId) {
        self.highest_lost = self.highest_lost.max(self.bid(context).amount);
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
        let bids = [(1, 5), (2, 9)].map(|(context, amount)| {
            let is_given = false;
            (ContextId(context), Bid { amount, is_given })
        });
        let mut auction = Auction::new(bids.into_iter(), [].into_iter());
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

    #[test]
    fn a_user_with_several_requests_is_one_user() {
        let users = [3, 1, 3].map(UserId);
        let auction = Auction::new([].into_iter(), users.into_iter());
        assert_eq!(auction.users().collect::<Vec<_>>(), [1, 3].map(UserId));
    }
}
