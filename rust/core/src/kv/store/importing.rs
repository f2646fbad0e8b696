//! Pages between the pool and files, whose keys and values are those that were computed once: nobody runs meanwhile.

use super::moving::{Displace, Moves, PageDemand};
use super::{NodeId, PageStore, Tier};
use crate::ids::{BatchId, PageId, UserId};

/// A page that is read from a file for a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) node: NodeId,
    pub(crate) owner: UserId,
    pub(crate) page: PageId,
}

impl PageStore {
    /// How many of these nodes are on the device, up to the first that is not.
    pub(crate) fn n_there(&self, nodes: impl Iterator<Item = NodeId>) -> u32 {
        nodes.take_while(|&node| self.page(node).is_some()).count() as u32
    }

    /// Lends the pages of nodes that are all on the device, and that no batch moves; none where one is not.
    pub(crate) fn lend_all(&mut self, nodes: &[NodeId]) -> Option<Vec<PageId>> {
        let resting = |&node: &NodeId| self.page(node).filter(|_| self.moving(node).is_none());
        let pages: Vec<PageId> = nodes.iter().map(resting).collect::<Option<_>>()?;
        for page in &pages {
            self.lend(*page);
        }
        Some(pages)
    }

    /// Takes pages for those of these nodes that are to be computed again, one behind the other, with the place of each
    /// among them. Where nobody has room without another giving up what it wants, the rest gets none. Nothing runs.
    pub(crate) fn begin_import(&mut self, nodes: &[NodeId]) -> Vec<(u32, Arrival)> {
        let mut arrivals: Vec<(u32, Arrival)> = Vec::new();
        for (&node, place) in nodes.iter().zip(0..) {
            let Some(state) = self.node(node) else { break };
            let (owner, parent, at) = (state.owner, state.parent, state.tier);
            let last = arrivals.last().map(|(_, arrival)| arrival.node);
            let follows = parent.is_none_or(|it| last == Some(it) || self.page(it).is_some());
            match at {
                Tier::Device(_) => continue,
                Tier::Gone if follows => {}
                Tier::Gone | Tier::Host(_) => break,
            }
            let Some(page) = self.allocate_spare(owner) else {
                break;
            };
            arrivals.push((place, Arrival { node, owner, page }));
        }
        arrivals
    }

    /// The pages were read, or not. Returns how many nodes have theirs now.
    pub(crate) fn end_import(
        &mut self,
        arrivals: impl Iterator<Item = Arrival>,
        succeeded: bool,
    ) -> u32 {
        self.clock += 1;
        let mut n_arrived = 0;
        for Arrival { node, owner, page } in arrivals {
            let state = self.node(node).filter(|_| succeeded);
            let is_wanted = state.is_some_and(|state| {
                let parent = state.parent;
                state.tier == Tier::Gone && parent.is_none_or(|it| self.page(it).is_some())
            });
            if !is_wanted {
                self.release(owner, page);
                continue;
            }
            if let Some(state) = self.nodes.get_mut(node.0) {
                state.stamp = self.clock;
            }
            n_arrived += u32::from(self.revive(node, owner, page));
            self.settle(node);
        }
        n_arrived
    }

    /// A free page, or one that nobody wants any more; it is the caller's.
    fn allocate_spare(&mut self, owner: UserId) -> Option<PageId> {
        // Nothing runs, so no page leaves with a batch.
        let demand = PageDemand {
            batch: BatchId(0),
            displace: Displace::Replay,
        };
        let mut moves = Moves::default();
        loop {
            if let Some(page) = self.pool.allocate() {
                self.charge(owner, 1);
                return Some(page);
            }
            let &(_, oldest) = self.idle.first()?;
            let is_held = self.node(oldest).is_none_or(|node| node.holders > 0);
            if is_held {
                return None;
            }
            self.evict(demand, &mut moves)?;
        }
    }
}
