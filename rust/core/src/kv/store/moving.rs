//! Pages between device and host: what a batch copies, and what is left of it when the batch is done or the device
//! lost.

use super::node::Node;
use super::{NodeId, PageStore, Tier};
use crate::ids::{BatchId, HostSlot, PageId, UserId};

/// A page to be copied between device and host by a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    pub(crate) node: NodeId,
    pub(crate) page: PageId,
    pub(crate) slot: HostSlot,
}

/// The copies between device and host that a batch makes before it computes, those to the host first.
#[derive(Debug, Default)]
pub(crate) struct Moves {
    pub(crate) outs: Vec<Move>,
    pub(crate) ins: Vec<Move>,
}

impl Moves {
    pub(crate) const fn is_empty(&self) -> bool {
        self.outs.is_empty() && self.ins.is_empty()
    }
}

/// What to do with evicted pages that will be wanted again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Displace {
    /// Copy them to the host while it has room.
    Copy,
    /// Compute them again.
    Replay,
}

/// For which batch pages are taken, and what becomes of the pages that are evicted for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageDemand {
    pub(crate) batch: BatchId,
    pub(crate) displace: Displace,
}

impl PageStore {
    /// Brings a node of the host back with the batch, into a page of the caller, which pins the node at once.
    pub(crate) fn bring_back(
        &mut self,
        id: NodeId,
        owner: UserId,
        page: PageId,
        batch: BatchId,
        moves: &mut Moves,
    ) {
        self.discharge(owner, 1);
        let Tier::Host(slot) = self.tier(id) else {
            self.pool.release(page);
            return self.faults.count("a node of the host is not there");
        };
        self.arrive_from(id, page, Some(batch));
        moves.ins.push(Move {
            node: id,
            page,
            slot,
        });
        self.totals.n_copied_in += 1;
    }

    /// The batch is done. After a failure, what it should have copied is as it was before, or has to be computed again.
    /// Whoever pinned what it brought back has unpinned it.
    pub(crate) fn conclude(&mut self, batch: BatchId, moves: Moves, succeeded: bool) {
        for Move {
            node: id,
            page,
            slot,
        } in moves.outs
        {
            self.leaving.remove(&page);
            match self.nodes.get_mut(id.0) {
                Some(node) if node.tier == Tier::Host(slot) && node.moving == Some(batch) => {
                    node.moving = None;
                    if !succeeded {
                        node.tier = Tier::Gone;
                        self.host.release(slot);
                    }
                }
                // On the way it lost its last holder, or another lane computed it again.
                _ => self.host.release(slot),
            }
        }
        for Move {
            node: id,
            page,
            slot,
        } in moves.ins.into_iter().rev()
        {
            match self.nodes.get_mut(id.0) {
                Some(node) if node.tier == Tier::Device(page) && node.moving == Some(batch) => {
                    node.moving = None;
                    if succeeded {
                        self.host.release(slot);
                        self.settle(id);
                    } else {
                        self.leave(id, Tier::Host(slot));
                    }
                }
                _ => self.host.release(slot),
            }
        }
    }

    /// The device is lost, and so is the memory of its host. What is held has to be computed again, and everything else
    /// is forgotten. Nobody uses a node, and no batch runs.
    pub(crate) fn lose(&mut self) {
        while let Some((_, id)) = self.idle.pop_first() {
            self.leave(id, Tier::Gone);
        }
        let on_host = |(id, node): (NodeId, &Node)| match node.tier {
            Tier::Host(slot) => Some((id, slot)),
            Tier::Device(_) | Tier::Gone => None,
        };
        for (id, slot) in self.nodes().filter_map(on_host).collect::<Vec<_>>() {
            // It may have been forgotten with a child.
            if let Some(node) = self.nodes.get_mut(id.0) {
                node.tier = Tier::Gone;
                self.host.release(slot);
                self.settle(id);
            }
        }
        let is_empty = self.pool.n_used() == 0 && self.host.n_used() == 0;
        self.faults
            .expect(is_empty, "pages are left of a device that is lost");
    }
}
