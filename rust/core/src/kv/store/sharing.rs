//! Who needs a node: its holders, who need its content, and its users, who need it on the device and are charged for
//! it.

use super::{NodeId, PageStore, Tier};
use crate::ids::UserId;

impl PageStore {
    /// Adds a holder.
    pub(crate) fn hold(&mut self, id: NodeId) {
        match self.nodes.get_mut(id.0) {
            Some(node) => node.holders += 1,
            None => self.faults.count("a node that is to be held is missing"),
        }
    }

    /// Drops a holder.
    pub(crate) fn unhold(&mut self, id: NodeId) {
        let Some(node) = self.nodes.get_mut(id.0) else {
            return self.faults.count("a node that is held is missing");
        };
        let is_held = node.holders > 0;
        node.holders = node.holders.saturating_sub(1);
        self.faults
            .expect(is_held, "a node is let go once too often");
        self.settle(id);
    }

    /// Adds a user to a node on the device: it and its ancestors stay there.
    pub(crate) fn pin(&mut self, id: NodeId) {
        let mut next = Some(id);
        while let Some(id) = next {
            let Some(node) = self.nodes.get_mut(id.0) else {
                return self.faults.count("a node that is to be pinned is missing");
            };
            let is_there = matches!(node.tier, Tier::Device(_));
            self.faults
                .expect(is_there, "a node is pinned where it is not");
            node.users += 1;
            if node.users > 1 {
                return;
            }
            self.idle.remove(&(node.stamp, id));
            self.n_idle -= 1;
            let owner = node.owner;
            next = node.parent;
            self.charge(owner, 1);
        }
    }

    /// Drops a user.
    pub(crate) fn unpin(&mut self, id: NodeId) {
        self.clock += 1;
        let mut next = Some(id);
        while let Some(id) = next {
            let Some(node) = self.nodes.get_mut(id.0) else {
                return self.faults.count("a node that is pinned is missing");
            };
            self.faults
                .expect(node.users > 0, "a node is unpinned once too often");
            node.users = node.users.saturating_sub(1);
            if node.users > 0 {
                return;
            }
            node.stamp = self.clock;
            self.n_idle += 1;
            let (owner, parent) = (node.owner, node.parent);
            self.discharge(owner, 1);
            self.settle(id);
            next = parent;
        }
    }

    /// Puts a node without users where it belongs: among the idle ones, or out of the tree where nobody can want it.
    pub(super) fn settle(&mut self, id: NodeId) {
        let mut next = Some(id);
        while let Some(id) = next.take() {
            let Some(node) = self.nodes.get(id.0) else {
                return self.faults.count("a node that is to be settled is missing");
            };
            if node.users > 0 {
                return;
            }
            let on_device = matches!(node.tier, Tier::Device(_));
            if on_device && node.moving.is_some() {
                // It stays as it is until the batch that brings it is done.
                return;
            }
            let useless = node.holders == 0 && !(node.is_indexed() && on_device);
            if !useless {
                if on_device && node.n_device_children == 0 {
                    self.idle.insert((node.stamp, id));
                }
                return;
            }
            let Some(node) = self.nodes.remove(id.0) else {
                return self.faults.count("a node that is of no use is missing");
            };
            self.idle.remove(&(node.stamp, id));
            if let Some(hash) = node.hash
                && let Ok(entry) = self.index.find_entry(hash, |&other| other == id)
            {
                entry.remove();
            }
            match node.tier {
                Tier::Device(page) => {
                    self.n_idle -= 1;
                    self.pool.release(page);
                }
                // A slot that a batch still writes becomes free when the batch is done.
                Tier::Host(slot) if node.moving.is_none() => self.host.release(slot),
                Tier::Host(_) | Tier::Gone => {}
            }
            let Some(parent) = node.parent else {
                return;
            };
            let Some(parent_node) = self.nodes.get_mut(parent.0) else {
                return self.faults.count("the parent of a node is missing");
            };
            parent_node.holders -= 1;
            parent_node.n_device_children -= u32::from(matches!(node.tier, Tier::Device(_)));
            next = Some(parent);
        }
    }

    pub(super) fn charge(&mut self, owner: UserId, n: u32) {
        if n > 0 {
            *self.n_used.entry(owner).or_insert(0) += n;
        }
    }

    pub(super) fn discharge(&mut self, owner: UserId, n: u32) {
        let Some(used) = self.n_used.get_mut(&owner) else {
            return self.faults.count("a user is charged for no page");
        };
        let is_charged = *used >= n;
        *used = used.saturating_sub(n);
        if *used == 0 {
            self.n_used.remove(&owner);
        }
        self.faults
            .expect(is_charged, "a user is charged for too few pages");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(
        debug_assertions,
        should_panic(expected = "a node that is to be held is missing")
    )]
    fn a_node_that_is_missing_is_a_fault() {
        let mut store = PageStore::new(4, 8, 0);
        store.hold(NodeId(1 << 32));
        store.pin(NodeId(1 << 32));
        let first = "a node that is to be held is missing";
        assert_eq!(store.faults.first(), Some((2, first)));
    }
}
