//! Whose pages go when others need room.
//!
//! First those of contexts without a pass, the longest idle first: a program that waits for one context while it holds
//! another can so never keep the pool. Then those of requests that come later, in the order of `sched/precedence.rs`. A
//! prefill that began is spared until it is done, and so is what was passed over too often: who is displaced runs again
//! before others can be displaced for it. Who had to compute again what was lost is spared for several times as long as
//! that took, so that the work is worth it; a program that bade more by itself takes these pages all the same. Bids
//! (`bidding`) are looked at from here on alone, where pages are short.

use super::Engine;
use super::planner::Planner;
use crate::context::Pass;
use crate::ids::{ContextId, UserId};
use crate::kv::{Obstacle, PageCopy};
use crate::market::{Auction, Bid};
use crate::sched::{Claimant, Holder, Ticket};

/// How many times its usual time a program may take to come back before the pages of its context go.
const RETURNS: u64 = 4;
/// The most of that, in limits of a hold.
const MOST_LIMITS: u64 = 16;

impl Engine {
    /// A context has no pass any more, or none that runs: its pages may go when its program has had the time that it
    /// usually takes to come back.
    pub(super) fn rest(&mut self, id: ContextId) {
        let Some(context) = self.owned.contexts.get(id.0) else {
            // It was released, and its batch is done.
            return;
        };
        let usual_ns = context.habit.usual_ns().unwrap_or(0);
        let limit_ns = self.waiting.hold.limit_ns();
        let grace_ns = usual_ns
            .saturating_mul(RETURNS)
            .clamp(limit_ns, limit_ns.saturating_mul(MOST_LIMITS));
        let until_ns = self.now_ns.saturating_add(grace_ns);
        self.waiting
            .idle
            .add(id, until_ns, &mut self.owned.contexts);
    }
}

impl Planner<'_> {
    /// Makes ready what of the request's tokens is to be had without computing it, and room for all others; displaces
    /// contexts where pages are short. Returns the copy that the batch has to make.
    pub(super) fn make_ready(
        &mut self,
        ticket: &Ticket,
        others: &[Ticket],
    ) -> Result<Option<PageCopy>, Obstacle> {
        let n_moves = self.batch.moves.ins.len();
        let context = self.owned.contexts.get(ticket.context.0);
        let was_resident = context.is_some_and(|context| context.lane.is_resident());
        let made = self.try_to_make_ready(ticket, others);
        if made == Err(Obstacle::Short)
            && !was_resident
            && self.batch.moves.ins.len() == n_moves
            && let Some(context) = self.owned.contexts.get_mut(ticket.context.0)
        {
            // What it found is of no use to it yet.
            context.suspend(&mut self.device.store);
        }
        made
    }

    fn try_to_make_ready(
        &mut self,
        ticket: &Ticket,
        others: &[Ticket],
    ) -> Result<Option<PageCopy>, Obstacle> {
        loop {
            let context = self
                .owned
                .contexts
                .get_mut(ticket.context.0)
                .ok_or(Obstacle::Short)?;
            let mut missing = context.n_missing_at_most(&self.device.store);
            if missing > self.device.store.n_available() {
                // Anew each time: what it shared with one that was displaced is now its own to keep.
                missing = context.survey(&self.device.store, self.demand)?;
            }
            if missing > self.device.store.n_available() {
                if ticket.is_ahead {
                    return Err(Obstacle::Short);
                }
                if self.displace(missing, ticket, others) {
                    continue;
                }
            }
            let context = self
                .owned
                .contexts
                .get_mut(ticket.context.0)
                .ok_or(Obstacle::Short)?;
            let adopted = context.adopt(&mut self.device.store, self.demand, &mut self.batch.moves);
            let end = context.end();
            let (store, moves) = (&mut self.device.store, &mut self.batch.moves);
            let reserved = match adopted {
                Ok(()) => context.lane.reserve(store, self.demand, moves, end),
                Err(obstacle) => {
                    context.lane.drop_spare(store, end);
                    Err(obstacle)
                }
            };
            if reserved != Err(Obstacle::Short) {
                return reserved;
            }
            if ticket.is_ahead {
                return Err(Obstacle::Short);
            }
            if !self.displace(missing, ticket, others) && !self.give_up_shared(ticket) {
                self.auction(others).lose(ticket.context);
                self.note_outbidding(missing, ticket, others);
                return Err(Obstacle::Short);
            }
        }
    }

    fn displace(&mut self, missing: u32, ticket: &Ticket, others: &[Ticket]) -> bool {
        self.displace_idle() || self.displace_waiting(missing, ticket, others)
    }

    /// A context that fills the pool has no room for a copy of a page that others hold, too: it computes that part
    /// again.
    fn give_up_shared(&mut self, ticket: &Ticket) -> bool {
        let context = self.owned.contexts.get_mut(ticket.context.0);
        context.is_some_and(|context| context.lane.give_up_shared(&mut self.device.store))
    }

    /// Suspends the context that has been without a pass for the longest, of those whose programs are not expected
    /// back.
    fn displace_idle(&mut self) -> bool {
        let (contexts, retry_ns) = (&mut self.owned.contexts, &mut self.fates.retry_ns);
        let found = self.idle.take(contexts, self.now_ns, retry_ns);
        let Some(id) = found else {
            return false;
        };
        let Some(context) = contexts.get_mut(id.0) else {
            self.totals.faults.count("what is at rest has no context");
            return false;
        };
        context.suspend(&mut self.device.store);
        self.totals.n_suspended += 1;
        true
    }

    /// Suspends one of the requests that wait and come later.
    fn displace_waiting(&mut self, n: u32, ticket: &Ticket, others: &[Ticket]) -> bool {
        self.auction(others);
        let share = self.share();
        let claimant = self.claimant(n, ticket, share);
        let holders = || {
            let others = others.iter().filter(|other| other.pass != ticket.pass);
            let holders = others.map(|other| self.holder(other, share));
            holders.filter(|holder| claimant.may_displace(holder))
        };
        let mut victim = holders()
            .filter(|holder| self.can_go(holder, &claimant, false))
            .max_by_key(|holder| claimant.rank(holder));
        if victim.is_some_and(|it| it.ticket.user != ticket.user && !it.exceeds) {
            // What a user's contexts owe is for that user to bear, before others who have no more than their share.
            victim = holders()
                .filter(|holder| holder.ticket.user == ticket.user)
                .filter(|holder| self.can_go(holder, &claimant, true))
                .max_by_key(|holder| claimant.rank(holder))
                .or(victim);
        }
        let Some(victim) = victim.map(|holder| holder.ticket.context) else {
            return false;
        };
        let Some(context) = self.owned.contexts.get_mut(victim.0) else {
            self.totals.faults.count("what is queued has no context");
            return false;
        };
        context.suspend(&mut self.device.store);
        self.totals.n_suspended += 1;
        self.auction(others).lose(victim);
        true
    }

    /// A request that needs `n` pages more.
    fn claimant<'t>(&self, n: u32, ticket: &'t Ticket, share: u32) -> Claimant<'t> {
        let bid = self.bid(ticket);
        Claimant {
            ticket,
            bid: bid.amount,
            insists: bid.is_given,
            is_urgent: self.urgent == Some(ticket.pass),
            exceeds: self.exceeds(ticket.user, n, share),
        }
    }

    fn holder<'t>(&self, ticket: &'t Ticket, share: u32) -> Holder<'t> {
        Holder {
            ticket,
            bid: self.bid(ticket).amount,
            exceeds: self.exceeds(ticket.user, 0, share),
        }
    }

    fn bid(&self, ticket: &Ticket) -> Bid {
        let auction = self.auction.as_ref();
        auction.map_or_else(Bid::default, |auction| auction.bid(ticket.context))
    }

    /// The equal share of each user that uses pages or waits for some.
    fn share(&self) -> u32 {
        let store = &self.device.store;
        let waiting = self.auction.iter().flat_map(Auction::users);
        let n_without = waiting.filter(|user| store.n_used_by(*user) == 0).count();
        self.share_with(n_without as u32)
    }

    /// The equal share of each user that uses pages, with so many others.
    fn share_with(&self, n_others: u32) -> u32 {
        let store = &self.device.store;
        store.n_pages() / store.n_users().saturating_add(n_others).max(1)
    }

    /// Whether a user would have more than a share of the pool with `n` pages more.
    fn exceeds(&self, user: UserId, n: u32, share: u32) -> bool {
        self.device.store.n_used_by(user).saturating_add(n) > share
    }

    /// A request lacks `n` pages, and those who were offered a place before it may hold them. Where its program bade
    /// for it, and more than they, it comes before them in the next plan.
    fn note_outbidding(&mut self, n: u32, ticket: &Ticket, others: &[Ticket]) {
        let share = self.share();
        let claimant = self.claimant(n, ticket, share);
        if !claimant.insists {
            return;
        }
        let has_place = |other: &&Ticket| {
            let context = self.owned.contexts.get(other.context.0);
            context.is_some_and(|context| context.lease == Some(self.demand.batch))
        };
        let mut placed = others.iter().filter(has_place);
        if placed.any(|other| claimant.insists_on(&self.holder(other, share))) {
            self.fates.outbidding.insert(ticket.pass);
        }
    }

    /// Whether the context of a request that waits holds pages that may be taken away; also where it owes tokens, if
    /// that is forgiven.
    fn can_go(&self, holder: &Holder<'_>, claimant: &Claimant<'_>, forgives: bool) -> bool {
        let ticket = holder.ticket;
        self.owned
            .contexts
            .get(ticket.context.0)
            .is_some_and(|context| {
                let began = context.pass.as_ref().is_some_and(Pass::is_partway);
                let has_all = context.lane.n_missing(&self.device.store, context.end()) == 0;
                // A user who has less than a share does not wait for more than the time, unless the other one has too
                // much only because of those who wait: who loses all by turns would compute the same again and again.
                let share = self.share_with(0);
                let is_below = self.exceeds(ticket.user, 0, share) && !claimant.exceeds;
                let owes = context.n_owed > 0 && !is_below && !forgives;
                let may_wait = !claimant.is_urgent && !claimant.insists_on(holder);
                let repays = (context.spared_until_ns > self.now_ns || owes) && may_wait;
                let is_spared = began && has_all || repays;
                context.lease.is_none() && context.lane.is_resident() && !is_spared
            })
    }
}
