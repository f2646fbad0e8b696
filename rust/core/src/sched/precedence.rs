//! Which waiting request gives up its pages for which other one, where pages are short.
//!
//! A pass that nobody has asked for gives way first, then those of a user who has more than an equal share of the pool.
//! Among the others, the lowest bid gives way first, then prefills, then the youngest. A request that was passed over
//! too often gives way to none.

use std::cmp::Reverse;

use super::ticket::Ticket;
use crate::ids::PassId;

/// A request that needs pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claimant<'a> {
    pub(crate) ticket: &'a Ticket,
    /// Nothing else can run: it displaces every other.
    pub(crate) is_urgent: bool,
    /// With these pages its user would have more than a share.
    pub(crate) exceeds: bool,
}

/// A request that waits and holds pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holder<'a> {
    pub(crate) ticket: &'a Ticket,
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
            _ => other.is_ahead || own.is_starved() || self.outranks(other),
        }
    }

    /// Whether it comes before another one of the same standing.
    const fn outranks(&self, other: &Ticket) -> bool {
        let own = self.ticket;
        own.bid > other.bid
            || own.bid == other.bid
                && (own.pass.0 < other.pass.0 || own.is_step() && !other.is_step())
    }
}

impl Holder<'_> {
    /// Of the requests that may be displaced, the one of the highest rank is displaced.
    pub(crate) const fn rank(&self) -> (bool, bool, Reverse<u64>, bool, PassId) {
        let ticket = self.ticket;
        (
            ticket.is_ahead,
            self.exceeds,
            Reverse(ticket.bid),
            !ticket.is_step(),
            ticket.pass,
        )
    }
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
            bid: 5,
            is_ahead: false,
            follows: None,
        }
    }

    /// Whether a request displaces another one, for each case of which users have more than a share: neither, the
    /// other's, its own, both.
    fn check(own: &Ticket, other: &Ticket, expected: [bool; 4]) {
        let found = [(false, false), (false, true), (true, false), (true, true)];
        let found = found.map(|(own_exceeds, other_exceeds)| {
            let claimant = Claimant {
                ticket: own,
                is_urgent: false,
                exceeds: own_exceeds,
            };
            claimant.may_displace(&Holder {
                ticket: other,
                exceeds: other_exceeds,
            })
        });
        assert_eq!(found, expected, "{own:?} and {other:?}");
    }

    #[test]
    fn who_displaces_whom() {
        let (older, younger) = (ticket(1, 1), ticket(2, 2));
        let prefill = |ticket: Ticket| Ticket {
            n_tokens: 9,
            ..ticket
        };
        let bid = |ticket: Ticket, bid| Ticket { bid, ..ticket };
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
        check(&bid(prefill(sibling), 6), &older, [true; 4]);
        check(&bid(older, 4), &prefill(sibling), [false; 4]);
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
            is_urgent: true,
            exceeds: true,
        };
        assert!(claimant.may_displace(&Holder {
            ticket: &starved,
            exceeds: false,
        }));
    }

    #[test]
    fn who_is_displaced_first() {
        let base = ticket(1, 1);
        let ahead = Ticket {
            is_ahead: true,
            bid: 9,
            ..base
        };
        let cheap = Ticket { bid: 4, ..base };
        let prefill = Ticket {
            n_tokens: 2,
            ..base
        };
        let younger = ticket(2, 1);
        let order = [
            (ahead, false),
            (base, true),
            (cheap, false),
            (prefill, false),
            (younger, false),
            (base, false),
        ];
        let ranks = order.map(|(ticket, exceeds)| {
            Holder {
                ticket: &ticket,
                exceeds,
            }
            .rank()
        });
        assert!(ranks.is_sorted_by(|a, b| a > b), "{ranks:?}");
    }
}
