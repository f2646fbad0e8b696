//! How long a batch may take for the sake of those who decode in it.
//!
//! Whoever draws a token waits for the whole batch, and whoever comes next waits for the batch that runs. Long prompts
//! or many generations of one user must not make the tokens of another slow. So a batch has a bound on its estimated
//! time while there are several users, or were a moment ago, and they share that time. Whoever decodes has one row in
//! any case, and one prefill has a few tokens, so that nobody stands still. A user who is alone has no bound. No token
//! depends on any of this.
//!
//! Shares are equal over some batches, not in each. A user who had more than an equal part owes the excess, up to the
//! time of one batch, and leaves that much to the others before all have the same. So the prompt of a user who seldom
//! computes runs at once, and not in as many pieces as there are others who compute all the time.

use std::collections::BTreeMap;

use super::cost::{Cost, Prices, Work};
use super::ticket::{Admission, BatchRoom, Ticket};
use crate::ids::UserId;

/// A batch may take so many times as long as it would if every user decoded as little as the one who decodes the least.
/// This is what others can cost that user. At least a third of each batch is then computing, not the cost of having a
/// batch.
const STRETCH: f64 = 1.5;
/// A batch may take so many times the configured step, or the shortest step that there can be, in any case: somebody
/// who decodes little may come and wait for it. At least three quarters of such a batch are computing.
const LONGEST: f64 = 4.0;
/// Tokens of a prefill that may run in any case, as far as they take no more than this part of the batch, and one at
/// least.
pub(super) const MIN_CHUNK: u32 = 16;
const MIN_PART: f64 = 0.25;
/// How long it counts that there was another user.
const MEMORY_NS: u64 = 10_000_000_000;

/// What the bounds follow from.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// The configured bound; 0: none.
    step_ns: u64,
    cost: Cost,
    now_ns: u64,
    /// The two users that last waited to decode, the latest first, and when.
    recent: [Option<(UserId, u64)>; 2],
    /// Until when somebody else is expected to come.
    shared_until_ns: u64,
    /// Users that there are.
    n_users: usize,
    /// Nanoseconds that users had beyond an equal part of late; those who owe nothing are not in it.
    owed: BTreeMap<UserId, f64>,
    /// When a batch was last shared: what is owed for longer is forgotten.
    settled_ns: u64,
}

/// What a user asks of a batch.
#[derive(Clone, Copy, Debug, Default)]
struct Demand {
    n_decodes: u32,
    decode_ns: f64,
    prefill_ns: f64,
    /// One of its prefills is soon done, and draws a token then.
    is_quick: bool,
}

impl Pace {
    pub(crate) fn new(step_ns: u64) -> Self {
        Self {
            step_ns,
            ..Self::default()
        }
    }

    #[cfg(test)]
    pub(crate) fn with_prices(step_ns: u64, prices: Prices) -> Self {
        let mut pace = Self::new(step_ns);
        pace.cost.prices = prices;
        pace
    }

    /// What time it is, and how many users there are.
    pub(crate) fn tell(&mut self, now_ns: u64, n_users: usize) {
        if now_ns.saturating_sub(self.settled_ns) > MEMORY_NS {
            self.owed.clear();
        }
        self.now_ns = now_ns;
        self.n_users = n_users;
        if n_users > 1 {
            self.shared_until_ns = now_ns.saturating_add(MEMORY_NS);
        }
    }

    /// A batch took so long.
    pub(crate) fn ran(&mut self, work: &Work, took_ns: u64) {
        self.cost.learn(work, took_ns);
    }

    /// Whether there is another user, or was a moment ago.
    pub(crate) const fn is_shared(&self) -> bool {
        self.now_ns < self.shared_until_ns
    }

    /// Whether a batch needs no bound.
    pub(super) fn is_short(&self, work: &Work) -> bool {
        self.step_ns == 0 || self.cost.prices.batch(work) <= self.step_ns as f64
    }

    /// A user waits to decode.
    pub(super) fn note_decode(&mut self, user: UserId) {
        let [latest, before] = &mut self.recent;
        if latest.is_none_or(|(other, _)| other != user) {
            *before = *latest;
        }
        *latest = Some((user, self.now_ns));
    }

    /// What each user may have of the time of a batch for which these wait. None: as much as it asks for.
    pub(super) fn shares<'a>(
        &mut self,
        waiting: impl Iterator<Item = &'a Ticket> + Clone,
        limits: BatchRoom,
    ) -> Option<TimeShares> {
        let prices = self.cost.prices;
        if self.step_ns == 0 || !prices.are_known() || self.is_alone(waiting.clone()) {
            return None;
        }
        let demands = self.demands(waiting, limits);
        let budget = self.bound(&demands)? - prices.base();
        let asked = |demand: &Demand| demand.prefill_ns + demand.decode_ns;
        let least_ns = MIN_PART * budget;
        // An equal part for everybody who is there, whether they compute or not.
        let part = budget / self.n_users.max(demands.len()) as f64;
        if demands.values().map(asked).sum::<f64>() <= budget {
            self.settle(part, |_| 0.0, budget);
            return None;
        }
        let owes = |user: &UserId| self.owed.get(user).copied().unwrap_or(0.0);
        let level = level(
            demands
                .iter()
                .map(|(user, demand)| (owes(user), asked(demand))),
            budget,
        );
        let left = demands.iter().map(|(user, demand)| {
            let ns = asked(demand).min((level - owes(user)).max(0.0));
            let left = Left {
                ns,
                had_ns: 0.0,
                decodes: false,
            };
            (*user, left)
        });
        let left = left.collect();
        Some(TimeShares {
            prices,
            left,
            least_ns,
            part_ns: part,
            budget_ns: budget,
        })
    }

    /// The batch is planned: users owe what they had of it beyond their part, and less of what they owed where they had
    /// less.
    pub(super) fn settle_shares(&mut self, shares: &TimeShares) {
        for user in shares.left.keys() {
            self.owed.entry(*user).or_insert(0.0);
        }
        let had = |user: &UserId| shares.left.get(user).map_or(0.0, |left| left.had_ns);
        self.settle(shares.part_ns, had, shares.budget_ns);
    }

    fn settle(&mut self, part_ns: f64, had_ns: impl Fn(&UserId) -> f64, most_ns: f64) {
        self.settled_ns = self.now_ns;
        self.owed.retain(|user, owed| {
            *owed = (*owed + had_ns(user) - part_ns).min(most_ns);
            *owed > 0.0
        });
    }

    /// Whether one user waits, and no other has waited for as long as is remembered.
    fn is_alone<'a>(&self, mut waiting: impl Iterator<Item = &'a Ticket>) -> bool {
        let Some(first) = waiting.next().map(|ticket| ticket.user) else {
            return true;
        };
        let is_past = |at_ns: u64| self.now_ns.saturating_sub(at_ns) > MEMORY_NS;
        let mut recent = self.recent.iter().flatten();
        !self.is_shared()
            && waiting.all(|ticket| ticket.user == first)
            && recent.all(|&(user, at_ns)| user == first || is_past(at_ns))
    }

    fn demands<'a>(
        &self,
        waiting: impl Iterator<Item = &'a Ticket>,
        limits: BatchRoom,
    ) -> BTreeMap<UserId, Demand> {
        let mut demands: BTreeMap<UserId, Demand> = BTreeMap::new();
        for ticket in waiting {
            let demand = demands.entry(ticket.user).or_default();
            let most = limits.prefill_chunk.min(limits.n_tokens);
            let n = ticket.chunk(limits);
            let ns = self.cost.prices.sequence(ticket.n_before, n);
            if ticket.is_step() {
                demand.n_decodes += 1;
                demand.decode_ns += ns;
            } else {
                demand.prefill_ns += ns;
                demand.is_quick |= ticket.n_tokens <= most && 2.0 * ns <= self.step_ns as f64;
            }
        }
        demands
    }

    /// Nanoseconds that the batch may take. None: any time.
    fn bound(&self, demands: &BTreeMap<UserId, Demand>) -> Option<f64> {
        let (prices, step) = (self.cost.prices, self.step_ns as f64);
        let n_rows: u32 = demands.values().map(|demand| demand.n_decodes).sum();
        let decode_ns: f64 = demands.values().map(|demand| demand.decode_ns).sum();
        let row_ns = if n_rows > 0 {
            decode_ns / f64::from(n_rows)
        } else {
            prices.sequence(0, 1)
        };
        let longest = LONGEST * step.max(prices.base() + row_ns);
        let is_recent = |(user, at_ns): &(UserId, u64)| {
            !demands.contains_key(user) && self.now_ns.saturating_sub(*at_ns) as f64 <= longest
        };
        let n_absent = self
            .recent
            .iter()
            .flatten()
            .filter(|it| is_recent(it))
            .count();
        let n_users = demands.len() + n_absent;
        let rows = demands
            .values()
            .filter_map(|demand| match demand.n_decodes {
                0 => demand.is_quick.then_some(1),
                n => Some(n),
            });
        // Of the one who decodes the least.
        let n_least = rows.chain((n_absent > 0).then_some(1)).min();
        match n_least {
            Some(n_least) if n_users > 1 => {
                let alike = prices.base() + n_users as f64 * f64::from(n_least) * row_ns;
                Some(step.max((STRETCH * alike).min(longest)))
            }
            _ if demands.len() > 1 || self.is_shared() => Some(longest),
            _ => None,
        }
    }
}

/// What is left of the time of a batch, by user.
#[derive(Debug)]
pub(super) struct TimeShares {
    prices: Prices,
    left: BTreeMap<UserId, Left>,
    /// What one prefill may take in any case.
    least_ns: f64,
    /// An equal part, and what all have.
    part_ns: f64,
    budget_ns: f64,
}

#[derive(Debug)]
struct Left {
    ns: f64,
    /// Nanoseconds that it was given.
    had_ns: f64,
    /// It has a row.
    decodes: bool,
}

impl TimeShares {
    /// How many tokens of a request its user has time for. `n_prefilled` prefills have a place.
    pub(super) fn n_tokens(&self, ticket: &Ticket, n_prefilled: u32) -> u32 {
        let Some(left) = self.left.get(&ticket.user) else {
            return u32::MAX;
        };
        let least = match ticket.is_step() {
            true => u32::from(!left.decodes),
            false if n_prefilled == 0 => {
                let n = self.prices.n_within(ticket.n_before, self.least_ns);
                n.clamp(1, MIN_CHUNK)
            }
            false => 0,
        };
        self.prices.n_within(ticket.n_before, left.ns).max(least)
    }

    /// Counts what a request was given.
    pub(super) fn note(&mut self, ticket: &Ticket, admission: Admission) {
        if let Admission::Planned(n @ 1..) = admission
            && let Some(left) = self.left.get_mut(&ticket.user)
        {
            let ns = self.prices.sequence(ticket.n_before, n);
            left.ns -= ns;
            left.had_ns += ns;
            left.decodes |= ticket.is_step();
        }
    }
}

/// The level up to which all users have the same. At this level, what users ask for fills the budget, where each begins
/// at what it owes.
fn level(users: impl Iterator<Item = (f64, f64)>, budget: f64) -> f64 {
    // Where a user begins to have something, and where it has all it asks for.
    let mut edges: Vec<(f64, f64)> = users
        .flat_map(|(owes, asks)| [(owes, 1.0), (owes + asks, -1.0)])
        .collect();
    edges.sort_unstable_by(|(a, one), (b, other)| a.total_cmp(b).then(other.total_cmp(one)));
    let (mut level, mut n_below, mut left) = (0.0, 0.0, budget);
    for (edge, change) in edges {
        let taken = n_below * (edge - level);
        if taken >= left {
            return level + left / n_below;
        }
        left -= taken;
        level = edge;
        n_below += change;
    }
    level
}
