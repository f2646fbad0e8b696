//! Which waiting request gives up its pages for which other one, where pages are short.
//!
//! A pass that nobody has asked for gives way first, then those of a user who has more than an equal share of the pool.
//! Among the others, the lowest bid gives way first, then prefills, then the youngest. Displacing costs work, so a bid
//! has to be higher by an eighth; between bids that are closer to each other age decides. A share is a floor: between
//! users who have no more than theirs no bid counts. Users who wait without a page have a share too. A request that was
//! passed over too often gives way to none.

use std::cmp::Reverse;

use super::ticket::Ticket;
use crate::ids::PassId;

/// The part of a bid by which another one has to be higher, so that the work of displacing is worth it.
const PREMIUM: u64 = 8;

/// A request that needs pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claimant<'a> {
    pub(crate) ticket: &'a Ticket,
    /// What its context bids for its pages.
    pub(crate) bid: u64,
    /// Its program bade so much by itself.
    pub(crate) insists: bool,
    /// Nothing else can run: it displaces every other.
    pub(crate) is_urgent: bool,
    /// With these pages its user would have more than a share.
    pub(crate) exceeds: bool,
}

/// A request that waits and holds pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holder<'a> {
    pub(crate) ticket: &'a Ticket,
    /// What its context bids for its pages.
    pub(crate) bid: u64,
    /// Its user has more than a share.
    pub(crate) exceeds: bool,
}

impl Claimant<'_> {
    /// Whether the pages of another request may be taken for this one.
    pub(crate) fn may_displace(&self, holder: &Holder<'_>) -> bool {
        let (own, other) = (self.ticket, holder.ticket);
        if self.is_urgent || other.is_starved() {
            return self.is_urgent;
        }
        let is_of_another = own.user != other.user;
        match (holder.exceeds && is_of_another, self.exceeds) {
            (true, false) => true,
            (false, true) if is_of_another => own.is_starved(),
            _ => other.is_ahead || own.is_starved() || self.outranks(holder),
        }
    }

    /// Whether the pages of another request may be taken for this one because its program bade more for them: also
    /// those that are spared for others.
    pub(crate) fn insists_on(&self, holder: &Holder<'_>) -> bool {
        let bids = self.bids_against(holder);
        self.insists && bids && outbids(self.bid, holder.bid) && self.may_displace(holder)
    }

    /// Of the requests that it may displace, the one of the highest rank is displaced.
    pub(crate) fn rank(&self, holder: &Holder<'_>) -> (bool, bool, Reverse<u64>, bool, PassId) {
        let ticket = holder.ticket;
        let bid = if self.bids_against(holder) {
            holder.bid
        } else {
            0
        };
        (
            ticket.is_ahead,
            holder.exceeds,
            Reverse(bid),
            !ticket.is_step(),
            ticket.pass,
        )
    }

    /// Whether bids decide between it and another one. Not where both are within the shares of two users.
    fn bids_against(&self, holder: &Holder<'_>) -> bool {
        self.ticket.user == holder.ticket.user || self.exceeds || holder.exceeds
    }

    /// Whether it comes before another one of the same standing.
    fn outranks(&self, holder: &Holder<'_>) -> bool {
        let (own, other) = (self.ticket, holder.ticket);
        let is_first = own.pass < other.pass || own.is_step() && !other.is_step();
        if !self.bids_against(holder) {
            return is_first;
        }
        outbids(self.bid, holder.bid) || !outbids(holder.bid, self.bid) && is_first
    }
}

/// Whether a bid is so much higher than another one that it is worth displacing for it.
const fn outbids(bid: u64, other: u64) -> bool {
    bid > other.saturating_add(other / PREMIUM)
}

#[cfg(test)]
mod tests {
    use super::super::kind::Wants;
    use super::super::ticket::MAX_REFUSED;
    use super::*;
    use crate::ids::{ContextId, ProcessId, UserId};

    /// A decode.
    fn ticket(pass: u64, user: u64) -> Ticket {
        Ticket {
            context: ContextId(pass),
            process: ProcessId(user),
            user: UserId(user),
            wants: Wants::Draw { n_drafts: 0 },
            n_tokens: 1,
            n_before: 0,
            pass: PassId(pass),
            served: 0,
            n_refused: 0,
            refused_in: 0,
            is_ahead: false,
            follows: None,
        }
    }

    /// Whether a request displaces another one, for each case of which users have more than a share: neither, the
    /// other's, its own, both.
    fn check(own: &Ticket, other: &Ticket, expected: [bool; 4]) {
        check_bids((own, 5), (other, 5), expected);
    }

    /// The same of requests that bid.
    fn check_bids(
        (own, own_bid): (&Ticket, u64),
        (other, other_bid): (&Ticket, u64),
        expected: [bool; 4],
    ) {
        let found = [(false, false), (false, true), (true, false), (true, true)];
        let found = found.map(|(own_exceeds, other_exceeds)| {
            let claimant = Claimant {
                ticket: own,
                bid: own_bid,
                insists: false,
                is_urgent: false,
                exceeds: own_exceeds,
            };
            claimant.may_displace(&Holder {
                ticket: other,
                bid: other_bid,
                exceeds: other_exceeds,
            })
        });
        assert_eq!(
            found, expected,
            "{own:?} for {own_bid} and {other:?} for {other_bid}"
        );
    }

    #[test]
    fn who_displaces_whom() {
        let (older, younger) = (ticket(1, 1), ticket(2, 2));
        let prefill = |ticket: Ticket| Ticket {
            n_tokens: 9,
            ..ticket
        };
        let starved = |ticket: Ticket| Ticket {
            n_refused: MAX_REFUSED,
            ..ticket
        };
        let ahead = |ticket: Ticket| Ticket {
            is_ahead: true,
            ..ticket
        };
        // Of two users: what they have decides, and among equals who is older.
        check(&older, &younger, [true, true, false, true]);
        check(&younger, &older, [false, true, false, false]);
        // Of one user: its share plays no part.
        let sibling = ticket(2, 1);
        check(&older, &sibling, [true; 4]);
        check(&sibling, &older, [false; 4]);
        // A decode before a prefill, and a higher bid before either.
        check(&sibling, &prefill(older), [true; 4]);
        check(&prefill(sibling), &older, [false; 4]);
        check_bids((&prefill(sibling), 6), (&older, 5), [true; 4]);
        check_bids((&older, 4), (&prefill(sibling), 5), [false; 4]);
        // By an eighth: what is closer is decided by age.
        check_bids((&sibling, 900), (&older, 800), [false; 4]);
        check_bids((&older, 800), (&sibling, 900), [true; 4]);
        check_bids((&sibling, 901), (&older, 800), [true; 4]);
        check_bids((&older, 800), (&sibling, 901), [false; 4]);
        // Between two users bids count where both have more than a share, and never within their shares.
        check_bids((&younger, 9), (&older, 5), [false, true, false, true]);
        check_bids((&older, 5), (&younger, 9), [true, true, false, false]);
        // What nobody asked for gives way, but not to a user who has too much.
        check(&younger, &ahead(older), [true, true, false, true]);
        check(&sibling, &ahead(older), [true; 4]);
        // Who was passed over too often goes before all, and gives way to none.
        check(&starved(younger), &older, [true; 4]);
        check(&older, &starved(younger), [false; 4]);
        check(&starved(older), &starved(younger), [false; 4]);
    }

    #[test]
    fn the_urgent_displaces_every_other() {
        let (older, younger) = (ticket(1, 1), ticket(2, 2));
        let starved = Ticket {
            n_refused: MAX_REFUSED,
            ..older
        };
        let claimant = Claimant {
            ticket: &younger,
            bid: 0,
            insists: false,
            is_urgent: true,
            exceeds: true,
        };
        assert!(claimant.may_displace(&Holder {
            ticket: &starved,
            bid: 9,
            exceeds: false,
        }));
    }

    #[test]
    fn who_bade_more_insists_where_bids_count() {
        let (own, sibling, other) = (ticket(2, 1), ticket(3, 1), ticket(3, 2));
        let insists = |bid, insists, exceeds, (holder, holder_exceeds): (&Ticket, bool)| {
            let claimant = Claimant {
                ticket: &own,
                bid,
                insists,
                is_urgent: false,
                exceeds,
            };
            claimant.insists_on(&Holder {
                ticket: holder,
                bid: 5,
                exceeds: holder_exceeds,
            })
        };
        assert!(insists(6, true, false, (&sibling, false)));
        assert!(insists(6, true, true, (&sibling, true)));
        assert!(insists(6, true, false, (&other, true)));
        assert!(insists(6, true, true, (&other, true)));
        // Though it is older: what is spared within the share of another user stays.
        assert!(!insists(6, true, false, (&other, false)));
        assert!(!insists(6, true, true, (&other, false)));
        assert!(!insists(6, false, false, (&sibling, false)));
        assert!(!insists(5, true, false, (&sibling, false)));
    }

    #[test]
    fn who_is_displaced_first() {
        let base = ticket(1, 1);
        let ahead = Ticket {
            is_ahead: true,
            ..base
        };
        let prefill = Ticket {
            n_tokens: 2,
            ..base
        };
        let younger = ticket(2, 1);
        let order = [
            (ahead, 9, false),
            (base, 5, true),
            (base, 4, false),
            (prefill, 5, false),
            (younger, 5, false),
            (base, 5, false),
        ];
        let rank = |claimant: &Ticket, (holder, bid, exceeds): (&Ticket, u64, bool)| {
            let claimant = Claimant {
                ticket: claimant,
                bid: 9,
                insists: false,
                is_urgent: false,
                exceeds: false,
            };
            claimant.rank(&Holder {
                ticket: holder,
                bid,
                exceeds,
            })
        };
        let (own, other) = (ticket(0, 1), ticket(0, 2));
        let ranks = order.map(|(ticket, bid, exceeds)| rank(&own, (&ticket, bid, exceeds)));
        assert!(ranks.is_sorted_by(|a, b| a > b), "{ranks:?}");
        // Within the shares of others what they bid plays no part.
        let foreign = |bid, exceeds| rank(&other, (&base, bid, exceeds));
        assert_eq!(foreign(1, false), foreign(9, false));
        assert!(foreign(1, true) > foreign(9, true));
    }
}
