//! Room: free pages, and pages that are evicted for it.

use super::moving::Move;
use super::{Displace, Moves, NodeId, PageDemand, PageStore, Tier};
use crate::ids::{BatchId, PageId, UserId};

impl PageStore {
    /// Allocates pages for tokens to come, each with one reference, the caller's: all or none. Idle pages are evicted
    /// for it.
    pub(crate) fn allocate(
        &mut self,
        owner: UserId,
        n: u32,
        demand: PageDemand,
        moves: &mut Moves,
    ) -> Option<Vec<PageId>> {
        if n > self.n_available() {
            return None;
        }
        let (mut pages, mut others) = (Vec::with_capacity(n as usize), Vec::new());
        while pages.len() < n as usize {
            match self.pool.allocate() {
                Some(page) if self.leaves_with_another(page, demand.batch) => others.push(page),
                Some(page) => pages.push(page),
                None if self.evict(demand, moves).is_some() => {}
                None => break,
            }
        }
        for page in others {
            self.pool.release(page);
        }
        if pages.len() < n as usize {
            for page in pages {
                self.pool.release(page);
            }
            return None;
        }
        self.charge(owner, n);
        Some(pages)
    }

    pub(super) fn leaves_with_another(&self, page: PageId, batch: BatchId) -> bool {
        let leaves_with = self.leaving.get(&page);
        leaves_with.is_some_and(|&other| other != batch)
    }

    /// Frees a page that is in no node.
    pub(crate) fn release(&mut self, owner: UserId, page: PageId) {
        self.pool.release(page);
        self.discharge(owner, 1);
    }

    /// Empties the page that was idle for the longest.
    pub(super) fn evict(&mut self, demand: PageDemand, moves: &mut Moves) -> Option<()> {
        let &(_, id) = self.idle.first()?;
        let Some(node) = self.nodes.get_mut(id.0) else {
            self.faults.count("a node that is idle is missing");
            return None;
        };
        let Tier::Device(page) = node.tier else {
            self.faults.count("a node that is idle is not there");
            return None;
        };
        let slot = if node.holders > 0 && demand.displace == Displace::Copy {
            self.host.allocate()
        } else {
            None
        };
        match slot {
            Some(slot) => {
                node.moving = Some(demand.batch);
                self.leaving.insert(page, demand.batch);
                moves.outs.push(Move {
                    node: id,
                    page,
                    slot,
                });
                self.totals.n_copied_out += 1;
                self.leave(id, Tier::Host(slot));
            }
            None => {
                let counter = if node.holders > 0 {
                    &mut self.totals.n_dropped
                } else {
                    &mut self.totals.n_evicted
                };
                *counter += 1;
                self.leave(id, Tier::Gone);
            }
        }
        Some(())
    }

    /// A node without users leaves the device for another tier.
    pub(super) fn leave(&mut self, id: NodeId, tier: Tier) {
        let Some(node) = self.nodes.get_mut(id.0) else {
            return self.faults.count("a node that leaves is missing");
        };
        let Tier::Device(page) = node.tier else {
            return self.faults.count("a node that leaves is not there");
        };
        let is_idle = node.users == 0 && node.n_device_children == 0;
        self.faults.expect(is_idle, "a node leaves that is used");
        self.idle.remove(&(node.stamp, id));
        node.tier = tier;
        self.n_idle -= 1;
        self.pool.release(page);
        let (stamp, parent) = (node.stamp, node.parent);
        if let Some(parent) = parent {
            let Some(node) = self.nodes.get_mut(parent.0) else {
                return self.faults.count("the parent of a node is missing");
            };
            node.n_device_children -= 1;
            if node.n_device_children == 0 && node.users == 0 {
                self.idle.remove(&(node.stamp, parent));
                node.stamp = node.stamp.max(stamp);
            }
            self.settle(parent);
        }
        self.settle(id);
    }
}
