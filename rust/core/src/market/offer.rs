//! What a context bids for its pages.

use super::amount::{MAX_CREDITS, MICRO};

/// The most that a bid may be, in micro-credits a page.
const MAX_BID: u128 = (MAX_CREDITS * MICRO) as u128;
/// Tokens that a pass is thought to draw where nobody says how many.
const USUAL_TOKENS: u32 = 256;

/// What a context bids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bid {
    /// Micro-credits for each page.
    pub(crate) amount: u64,
    /// Its program said so.
    pub(crate) is_given: bool,
}

/// What the program of a context said of its bid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offer {
    /// Micro-credits for each page, for one pass; none: the bid by default.
    given: Option<u64>,
    /// Scopes that are open in which it bids nothing.
    n_idle: u32,
}

impl Offer {
    /// The next pass bids so much.
    pub(crate) const fn give(&mut self, bid: u64) {
        self.given = Some(bid);
    }

    /// The pass that the bid was for is over.
    pub(crate) const fn spend(&mut self) {
        self.given = None;
    }

    /// Whether the program gave a bid.
    pub(crate) const fn is_given(&self) -> bool {
        self.given.is_some()
    }

    /// It bids nothing until the scope ends.
    pub(crate) const fn begin_idle(&mut self) {
        self.n_idle = self.n_idle.saturating_add(1);
    }

    /// A scope has ended.
    pub(crate) const fn end_idle(&mut self) {
        self.n_idle = self.n_idle.saturating_sub(1);
    }

    /// What it bids. `holds` tells whether what the program gave is for the pass under way.
    pub(crate) fn bid(&self, holds: bool, outlook: &Outlook) -> Bid {
        if self.n_idle > 0 {
            return Bid::default();
        }
        let given = self.given.filter(|_| holds);
        let amount = given.unwrap_or_else(|| outlook.default_bid());
        Bid {
            amount: amount.min(outlook.affordable()),
            is_given: given.is_some(),
        }
    }
}

/// What a bid by default follows from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outlook {
    /// What the process has, in micro-credits.
    pub(crate) balance: u128,
    /// Its last dividend.
    pub(crate) dividend: u128,
    /// What is left of the horizon of the generation, where it has one.
    pub(crate) horizon: Option<u32>,
    /// What is left of its cap on tokens, where it has one.
    pub(crate) max_tokens: Option<u32>,
    /// Pages of the context.
    pub(crate) n_pages: u32,
    /// Tokens of a page.
    pub(crate) page_size: u32,
}

impl Outlook {
    /// `(balance / mu + dividend) / (pages + mu * (1 + cv2) / (2 * page_size))`, rounded down: what the process can
    /// spend a token, over the pages that it will hold on average. `mu` tokens are expected, and `cv2` is the squared
    /// variation of that: 0 where the program says how many, 1 where it does not.
    fn default_bid(&self) -> u64 {
        let mu = self.horizon.or(self.max_tokens).unwrap_or(USUAL_TOKENS);
        let mu = u128::from(mu.max(1));
        let spread = if self.horizon.is_some() { mu } else { 2 * mu };
        let slots = u128::from(self.page_size.max(1)) * 2;
        let income = self
            .balance
            .saturating_add(self.dividend.saturating_mul(mu));
        let pages = u128::from(self.n_pages).saturating_mul(slots) + spread;
        let bid = income.saturating_mul(slots) / (mu * pages);
        u64::try_from(bid.min(MAX_BID)).unwrap_or(u64::MAX)
    }

    /// The most that it can pay for each of its pages once.
    fn affordable(&self) -> u64 {
        let each = self.balance / u128::from(self.n_pages.max(1));
        u64::try_from(each).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTLOOK: Outlook = Outlook {
        balance: 1_000_000_000,
        dividend: 0,
        horizon: None,
        max_tokens: None,
        n_pages: 4,
        page_size: 16,
    };

    fn given(amount: u64) -> Bid {
        Bid {
            amount,
            is_given: true,
        }
    }

    #[test]
    fn the_default_follows_the_rule() {
        let check = |outlook: Outlook, expected: f64| {
            let bid = Offer::default().bid(true, &outlook);
            assert_eq!(bid.amount, expected.floor() as u64, "{outlook:?}");
            assert!(!bid.is_given);
        };
        // 256 tokens in all likelihood: (1000 / 256) / (4 + 256 * 2 / 32).
        check(OUTLOOK, 1e9 / 256.0 / 20.0);
        let capped = Outlook {
            max_tokens: Some(64),
            ..OUTLOOK
        };
        check(capped, 1e9 / 64.0 / 8.0);
        // Whoever knows how many needs half as many pages on average.
        let known = Outlook {
            horizon: Some(64),
            ..capped
        };
        check(known, 1e9 / 64.0 / 6.0);
        let ending = Outlook {
            horizon: Some(0),
            ..known
        };
        check(ending, 1e9 / (4.0 + 1.0 / 32.0));
        let earning = Outlook {
            dividend: 5_000_000,
            ..OUTLOOK
        };
        check(earning, (1e9 / 256.0 + 5e6) / 20.0);
    }

    #[test]
    fn nobody_bids_more_than_it_has() {
        let mut offer = Offer::default();
        offer.give(u64::MAX);
        assert_eq!(offer.bid(true, &OUTLOOK), given(250_000_000));
        let ruined = Outlook {
            balance: 0,
            dividend: 7,
            ..OUTLOOK
        };
        assert_eq!(offer.bid(true, &ruined), given(0));
        assert_eq!(Offer::default().bid(true, &ruined), Bid::default());
    }

    #[test]
    fn a_bid_holds_for_one_pass_and_a_scope_bids_nothing() {
        let mut offer = Offer::default();
        let default = offer.bid(true, &OUTLOOK);
        offer.give(77);
        assert_eq!(offer.bid(true, &OUTLOOK), given(77));
        assert_eq!(offer.bid(false, &OUTLOOK), default);
        offer.begin_idle();
        offer.begin_idle();
        offer.end_idle();
        assert_eq!(offer.bid(true, &OUTLOOK), Bid::default());
        offer.end_idle();
        offer.end_idle();
        assert_eq!(offer.bid(true, &OUTLOOK), given(77));
        offer.spend();
        assert_eq!(offer.bid(true, &OUTLOOK), default);
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        let outlook = Outlook {
            balance: u128::MAX,
            dividend: u128::MAX,
            horizon: Some(u32::MAX),
            max_tokens: Some(u32::MAX),
            n_pages: u32::MAX,
            page_size: u32::MAX,
        };
        for outlook in [
            outlook,
            Outlook {
                horizon: None,
                ..outlook
            },
            Outlook {
                n_pages: 0,
                page_size: 0,
                horizon: Some(0),
                ..outlook
            },
        ] {
            let bid = Offer::default().bid(true, &outlook);
            assert!(u128::from(bid.amount) <= MAX_BID);
        }
    }
}
