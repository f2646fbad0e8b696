//! Pages that were computed become nodes, and nodes pages again.

use super::super::content::Content;
use super::{NodeId, PageStore, Tier};
use crate::ids::{BatchId, PageId, UserId};

impl PageStore {
    /// Puts a full page that was computed behind `parent`, which is pinned, into the tree. The page was the caller's
    /// and is the tree's from now on. Returns the node, which the caller holds and pins at once. Where somebody
    /// computed the same before, it is the node of that page.
    pub(crate) fn commit(
        &mut self,
        parent: Option<NodeId>,
        owner: UserId,
        content: Content,
        page: PageId,
    ) -> NodeId {
        debug_assert_eq!(content.len(), self.page_size);
        self.discharge(owner, 1);
        let hash = self.hash(parent, owner, &content);
        let known = self.find_hashed(hash, parent, owner, &content);
        match known {
            Some(id) if self.receive(id, page) => id,
            // A node that is on its way to the device, for a batch that may yet fail, gets a second copy, which nobody
            // finds.
            _ => {
                let is_found = known.is_none() && self.may_be_found(parent, &content);
                self.insert(parent, owner, content, page, is_found.then_some(hash))
            }
        }
    }

    /// Whether a page of content may stay for others when nobody has it any more: neither it nor what it stands behind
    /// has long masks, for which nobody would be charged then.
    pub(super) fn may_be_found(&self, parent: Option<NodeId>, content: &Content) -> bool {
        let parent = parent.and_then(|parent| self.node(parent));
        !content.has_long_masks() && parent.is_none_or(|parent| !parent.has_long_masks)
    }

    /// Puts a page that was computed again into its node, whose parent is pinned; the caller pins it at once. The page
    /// was the caller's and is the node's from now on. False where a batch that runs brings the node back.
    pub(crate) fn revive(&mut self, id: NodeId, owner: UserId, page: PageId) -> bool {
        self.discharge(owner, 1);
        let received = self.receive(id, page);
        if !received {
            self.pool.release(page);
        }
        received
    }

    /// Takes a page that was computed for a node. False: a batch that runs brings the node back, and the page stays the
    /// caller's.
    pub(super) fn receive(&mut self, id: NodeId, page: PageId) -> bool {
        match (self.tier(id), self.moving(id)) {
            (Tier::Device(_), Some(_)) => return false,
            (Tier::Device(_), None) => self.pool.release(page),
            _ => self.arrive(id, page),
        }
        true
    }

    /// Keeps a page from others, whatever becomes of it, until it is taken back: a batch has it in its arena.
    pub(crate) fn lend(&mut self, page: PageId) {
        self.pool.retain(page);
    }

    /// The batch to which a page was lent is done.
    pub(crate) fn take_back(&mut self, page: PageId) {
        self.pool.release(page);
    }

    /// Puts a part of a page, which the caller will want again, behind `parent`. Nobody finds it. Returns the node,
    /// with a holder.
    pub(crate) fn park(
        &mut self,
        parent: Option<NodeId>,
        owner: UserId,
        content: Content,
        page: PageId,
    ) -> NodeId {
        self.discharge(owner, 1);
        let id = self.insert(parent, owner, content, page, None);
        self.hold(id);
        self.settle(id);
        id
    }

    /// The node of a full page of content behind `parent`, which is held; where nobody computed it, one that has to be
    /// computed. Returns it with a holder, so that it stays.
    pub(crate) fn plant(
        &mut self,
        parent: Option<NodeId>,
        owner: UserId,
        content: Content,
    ) -> NodeId {
        debug_assert_eq!(content.len(), self.page_size);
        let hash = self.hash(parent, owner, &content);
        let id = self
            .find_hashed(hash, parent, owner, &content)
            .unwrap_or_else(|| {
                let is_found = self.may_be_found(parent, &content);
                self.insert_gone(parent, owner, content, is_found.then_some(hash))
            });
        self.hold(id);
        id
    }

    /// Takes the page out of a node that nobody else holds or uses, and drops the caller's hold. None: it is shared, or
    /// not on the device; the hold stays.
    pub(crate) fn reclaim(&mut self, id: NodeId) -> Option<PageId> {
        let Some(node) = self.nodes.get(id.0) else {
            self.faults.count("a node that is held is missing");
            return None;
        };
        let Tier::Device(page) = node.tier else {
            return None;
        };
        if node.holders != 1 || node.users != 0 || node.is_indexed() || node.moving.is_some() {
            return None;
        }
        let owner = node.owner;
        self.pool.retain(page);
        self.charge(owner, 1);
        self.unhold(id);
        Some(page)
    }

    pub(super) fn arrive(&mut self, id: NodeId, page: PageId) {
        if let Some(node) = self.nodes.get(id.0)
            && let (Tier::Host(slot), None) = (node.tier, node.moving)
        {
            self.host.release(slot);
        }
        self.arrive_from(id, page, None);
    }

    /// A node that was not on the device is there, without users. The caller adds a user, or settles it.
    pub(super) fn arrive_from(&mut self, id: NodeId, page: PageId, moving: Option<BatchId>) {
        let Some(node) = self.nodes.get_mut(id.0) else {
            return self.faults.count("a node that arrives is missing");
        };
        (node.tier, node.moving) = (Tier::Device(page), moving);
        self.n_idle += 1;
        let Some(parent) = node.parent else {
            return;
        };
        let Some(parent_node) = self.nodes.get_mut(parent.0) else {
            return self.faults.count("the parent of a node is missing");
        };
        parent_node.n_device_children += 1;
        self.idle.remove(&(parent_node.stamp, parent));
    }
}
