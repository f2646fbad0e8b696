//! What each user may have of the tokens of a batch.

use std::collections::HashMap;

use super::ticket::{Admission, BatchRoom, Ticket};
use crate::ids::UserId;

/// What each user may have of a batch, where several want to prefill.
pub(super) struct Shares {
    quotas: Option<HashMap<UserId, u32>>,
    /// Tokens planned for each user that was offered a place.
    used: HashMap<UserId, u32>,
}

impl Shares {
    /// Those of a batch; of one for a queue in which nothing could run, each user may have all.
    pub(super) fn new(order: &[Ticket], limits: BatchRoom, is_stuck: bool) -> Self {
        Self {
            quotas: quotas(order, limits).filter(|_| !is_stuck),
            used: HashMap::new(),
        }
    }

    /// Tokens that a user may still have. A second place in the batch leaves one for each other user that had none.
    /// Otherwise users that decode with many programs would take every place before another user's prefill has its
    /// first. A user that has to leave its place gets no other in this batch, so that its requests keep their order.
    pub(super) fn left(&mut self, user: UserId, n_places: u32) -> u32 {
        let Some(quotas) = &self.quotas else {
            return u32::MAX;
        };
        let quota = quotas.get(&user).copied().unwrap_or(0);
        let n_without = quotas.len() - self.used.len();
        match self.used.get(&user) {
            None => quota,
            Some(used) if n_places as usize > n_without => quota.saturating_sub(*used),
            Some(_) => {
                self.used.insert(user, u32::MAX);
                0
            }
        }
    }

    pub(super) fn note(&mut self, user: UserId, admission: Option<Admission>) {
        if self.quotas.is_some()
            && let Some(admission) = admission
        {
            let n = match admission {
                Admission::Planned(n) => n,
                Admission::Refused | Admission::NotYet => 0,
            };
            let used = self.used.entry(user).or_insert(0);
            *used = used.saturating_add(n);
        }
    }
}

/// How many tokens of a batch each user may have, where several want to prefill. The numbers are as equal as the
/// demands of the users allow. None: there is one user at most.
fn quotas(order: &[Ticket], limits: BatchRoom) -> Option<HashMap<UserId, u32>> {
    let mut prefills = order.iter().filter(|ticket| !ticket.is_step());
    let first = prefills.next()?.user;
    if order.iter().all(|ticket| ticket.user == first) {
        return None;
    }
    let mut demands: HashMap<UserId, u64> = HashMap::new();
    for ticket in order {
        *demands.entry(ticket.user).or_insert(0) += u64::from(ticket.chunk(limits));
    }
    let mut by_demand: Vec<(u64, UserId)> = demands
        .into_iter()
        .map(|(user, demand)| (demand, user))
        .collect();
    by_demand.sort_unstable();
    let (mut left, mut n_users) = (u64::from(limits.n_tokens), by_demand.len() as u64);
    let mut quotas = HashMap::with_capacity(by_demand.len());
    for (demand, user) in by_demand {
        // At least one, even if there are more users than tokens: the first in the order may lack pages, and then
        // another one runs.
        let quota = demand.min(left.div_ceil(n_users)).max(1);
        quotas.insert(user, quota as u32);
        left -= quota.min(left);
        n_users -= 1;
    }
    Some(quotas)
}
