//! The pages of a model, by content: a tree of full pages, of which those that nobody uses stay as a cache.
//!
//! A node is a page of content behind the content of its parent. Its keys and values are a function of the path from the root, so
//! whoever computes the same path finds them. A node has *users* (contexts and batches that need it on the device now, and children
//! with users), and *holders* (contexts that need its content, suspended or not, and children). Nodes without users are idle: their
//! pages go when others need room, the least recently used first and children before their parents; what still has a holder is
//! copied to the host or computed again when it is wanted, the rest is forgotten.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;

use super::content::Content;
use super::{HostPool, PagePool};
use crate::hash::fold;
use crate::ids::{BatchId, HostSlot, PageId, UserId};
use crate::slab::Slab;

/// A page of content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(u64);

/// Where the keys and values of a node are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Device(PageId),
    Host(HostSlot),
    /// To be computed again.
    Gone,
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) parent: Option<NodeId>,
    pub(super) owner: UserId,
    pub(super) content: Content,
    /// That of its content, by which it is found; none where it is not: it is a part of a page, or a second copy.
    hash: Option<u64>,
    /// Digest of all tokens up to its end.
    digest: u64,
    /// Slots up to its end.
    pub(super) end: u32,
    pub(super) place: Place,
    /// The batch that moves it between device and host.
    pub(super) moving: Option<BatchId>,
    pub(super) holders: u32,
    pub(super) users: u32,
    pub(super) n_device_children: u32,
    /// When it was last used.
    stamp: u64,
}

impl Node {
    /// Whether it is found by its content.
    pub(super) const fn is_indexed(&self) -> bool {
        self.hash.is_some()
    }
}

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

/// What to do with pages that are wanted again when they have to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Displace {
    /// Copy them to the host while it has room.
    Copy,
    /// Compute them again.
    Replay,
}

/// For which batch pages are taken, and how those that have to go are displaced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    pub(crate) batch: BatchId,
    pub(crate) displace: Displace,
}

/// Counts of what became of pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StoreTotals {
    /// Pages that others needed and nobody wanted any more.
    pub(crate) n_evicted: u64,
    /// Pages that others needed, copied to the host.
    pub(crate) n_copied_out: u64,
    /// Pages copied back.
    pub(crate) n_copied_in: u64,
    /// Pages that others needed, to be computed again.
    pub(crate) n_dropped: u64,
}

/// All pages of a model.
#[derive(Debug)]
pub(crate) struct PageStore {
    page_size: u32,
    pool: PagePool,
    host: HostPool,
    nodes: Slab<Node>,
    index: HashTable<NodeId>,
    /// Keyed anew in each store, so that no program can make contents collide.
    hasher: RandomState,
    /// Nodes on the device without users and without children on the device, by the time of their last use.
    idle: BTreeSet<(u64, NodeId)>,
    clock: u64,
    /// Nodes on the device without users.
    n_idle: u32,
    /// Pages that a batch has yet to copy to the host: until it is done no other batch may write them.
    leaving: HashMap<PageId, BatchId>,
    /// Pages in use by each user.
    n_used: HashMap<UserId, u32>,
    totals: StoreTotals,
    is_searched: bool,
}

impl PageStore {
    pub(crate) fn new(page_size: u32, n_pages: u32, n_host_slots: u32) -> Self {
        Self {
            page_size,
            pool: PagePool::new(n_pages),
            host: HostPool::new(n_host_slots),
            nodes: Slab::new(),
            index: HashTable::new(),
            hasher: RandomState::new(),
            idle: BTreeSet::new(),
            clock: 0,
            n_idle: 0,
            leaving: HashMap::new(),
            n_used: HashMap::new(),
            totals: StoreTotals::default(),
            is_searched: true,
        }
    }

    /// The same, in which a pass does not look for what was computed before.
    pub(crate) const fn unsearched(mut self) -> Self {
        self.is_searched = false;
        self
    }

    /// Whether a pass looks here for what was computed before.
    pub(crate) const fn is_searched(&self) -> bool {
        self.is_searched
    }

    pub(crate) const fn page_size(&self) -> u32 {
        self.page_size
    }

    pub(crate) const fn n_pages(&self) -> u32 {
        self.pool.n_pages()
    }

    /// Pages that contexts and batches use.
    pub(crate) fn n_in_use(&self) -> u32 {
        self.pool.n_used() - self.n_idle
    }

    /// Pages on the device that nobody uses.
    pub(crate) const fn n_cached(&self) -> u32 {
        self.n_idle
    }

    /// Pages that can be allocated, those included that are emptied for it.
    pub(crate) fn n_available(&self) -> u32 {
        self.pool.n_free() + self.n_idle
    }

    /// Slots of the host that hold pages.
    pub(crate) fn n_on_host(&self) -> u32 {
        self.host.n_used()
    }

    /// Pages that a user uses.
    pub(crate) fn n_used_by(&self, owner: UserId) -> u32 {
        self.n_used.get(&owner).copied().unwrap_or(0)
    }

    pub(crate) const fn totals(&self) -> StoreTotals {
        self.totals
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        self.nodes.iter().map(|(id, node)| (NodeId(id), node))
    }

    pub(super) fn n_used_pages(&self) -> u32 {
        self.pool.n_used()
    }

    pub(super) fn n_charged(&self) -> u32 {
        self.n_used.values().sum()
    }

    pub(super) fn is_listed_idle(&self, id: NodeId, node: &Node) -> bool {
        self.idle.contains(&(node.stamp, id))
    }

    pub(super) fn parent_end(&self, id: NodeId) -> u32 {
        self.end(self.parent(id))
    }

    fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id.0)
    }

    pub(crate) fn parent(&self, id: NodeId) -> Option<NodeId> {
        self.node(id)?.parent
    }

    /// Slots up to the end of a node; 0 for none.
    pub(crate) fn end(&self, id: Option<NodeId>) -> u32 {
        id.and_then(|id| self.node(id)).map_or(0, |node| node.end)
    }

    /// Digest of all tokens up to the end of a node.
    pub(crate) fn digest(&self, id: Option<NodeId>) -> u64 {
        id.and_then(|id| self.node(id))
            .map_or(0, |node| node.digest)
    }

    pub(crate) fn content(&self, id: NodeId) -> Option<&Content> {
        self.node(id).map(|node| &node.content)
    }

    /// The page of a node on the device.
    pub(crate) fn page(&self, id: NodeId) -> Option<PageId> {
        match self.place(id) {
            Place::Device(page) => Some(page),
            Place::Host(_) | Place::Gone => None,
        }
    }

    pub(crate) fn place(&self, id: NodeId) -> Place {
        self.node(id).map_or(Place::Gone, |node| node.place)
    }

    /// Whether anybody needs it on the device.
    pub(crate) fn is_used(&self, id: NodeId) -> bool {
        self.node(id).is_some_and(|node| node.users > 0)
    }

    /// Contexts, batches and children that need it on the device.
    pub(crate) fn n_users_of(&self, id: NodeId) -> u32 {
        self.node(id).map_or(0, |node| node.users)
    }

    /// Users that use pages.
    pub(crate) fn n_users(&self) -> u32 {
        self.n_used.len() as u32
    }

    /// The batch that moves the node.
    pub(crate) fn moving(&self, id: NodeId) -> Option<BatchId> {
        self.node(id)?.moving
    }

    /// The ancestor of a node, itself included, that ends at `end`; none at the root.
    pub(crate) fn ancestor(&self, mut id: Option<NodeId>, end: u32) -> Option<NodeId> {
        while let Some(node) = id
            .and_then(|id| self.node(id))
            .filter(|node| node.end > end)
        {
            id = node.parent;
        }
        id
    }

    /// The node of that content behind `parent`.
    pub(crate) fn find(
        &self,
        parent: Option<NodeId>,
        owner: UserId,
        content: &Content,
    ) -> Option<NodeId> {
        self.find_hashed(self.hash(parent, owner, content), parent, owner, content)
    }

    fn find_hashed(
        &self,
        hash: u64,
        parent: Option<NodeId>,
        owner: UserId,
        content: &Content,
    ) -> Option<NodeId> {
        self.index
            .find(hash, |&id| {
                self.node(id).is_some_and(|node| {
                    node.parent == parent && node.owner == owner && node.content == *content
                })
            })
            .copied()
    }

    fn hash(&self, parent: Option<NodeId>, owner: UserId, content: &Content) -> u64 {
        self.hasher.hash_one((parent, owner, content))
    }

    /// Adds a holder.
    pub(crate) fn hold(&mut self, id: NodeId) {
        if let Some(node) = self.nodes.get_mut(id.0) {
            node.holders += 1;
        }
    }

    /// Drops a holder.
    pub(crate) fn unhold(&mut self, id: NodeId) {
        if let Some(node) = self.nodes.get_mut(id.0) {
            debug_assert!(node.holders > 0, "{id:?} is let go once too often");
            node.holders = node.holders.saturating_sub(1);
        }
        self.settle(id);
    }

    /// Adds a user to a node on the device: it and its ancestors stay there.
    pub(crate) fn pin(&mut self, id: NodeId) {
        let mut next = Some(id);
        while let Some(id) = next {
            let Some(node) = self.nodes.get_mut(id.0) else {
                return;
            };
            debug_assert!(
                matches!(node.place, Place::Device(_)),
                "{id:?} is pinned where it is not"
            );
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
                return;
            };
            debug_assert!(node.users > 0, "{id:?} is unpinned once too often");
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

    /// Puts a full page that was computed behind `parent`, which is pinned, into the tree. The page is the caller's and is so no more. Answers the
    /// node, which the caller holds and pins at once: another one's, where somebody computed the same before.
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
            // Of one that is on its way to the device for a batch that may yet fail there is a second copy, which nobody finds.
            _ => self.insert(
                parent,
                owner,
                content,
                page,
                known.is_none().then_some(hash),
            ),
        }
    }

    /// Puts a page that was computed again into its node, whose parent is pinned; the caller pins it at once. The page is the caller's and is so no
    /// more. False where a batch that runs brings the node back.
    pub(crate) fn revive(&mut self, id: NodeId, owner: UserId, page: PageId) -> bool {
        self.discharge(owner, 1);
        let received = self.receive(id, page);
        if !received {
            self.pool.release(page);
        }
        received
    }

    /// Takes a page that was computed for a node. False, and the page is the caller's still: a batch that runs brings the node back.
    fn receive(&mut self, id: NodeId, page: PageId) -> bool {
        match (self.place(id), self.moving(id)) {
            (Place::Device(_), Some(_)) => return false,
            (Place::Device(_), None) => self.pool.release(page),
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

    /// Puts a part of a page, which the caller will want again, behind `parent`. Nobody finds it. Answers the node, with a holder.
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

    /// Takes the page out of a node that nobody else holds or uses, and drops the caller's hold. None: it is shared, or not on the device; the hold
    /// stays.
    pub(crate) fn reclaim(&mut self, id: NodeId) -> Option<PageId> {
        let node = self.nodes.get_mut(id.0)?;
        let Place::Device(page) = node.place else {
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

    /// Pages for tokens to come, each with one reference that is the caller's: all or none. Idle pages make room.
    pub(crate) fn allocate(
        &mut self,
        owner: UserId,
        n: u32,
        claim: Claim,
        moves: &mut Moves,
    ) -> Option<Vec<PageId>> {
        if n > self.n_available() {
            return None;
        }
        let (mut pages, mut others) = (Vec::with_capacity(n as usize), Vec::new());
        while pages.len() < n as usize {
            match self.pool.allocate() {
                Some(page) if self.leaves_with_another(page, claim.batch) => others.push(page),
                Some(page) => pages.push(page),
                None if self.evict(claim, moves).is_some() => {}
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

    fn leaves_with_another(&self, page: PageId, batch: BatchId) -> bool {
        let leaves_with = self.leaving.get(&page);
        leaves_with.is_some_and(|&other| other != batch)
    }

    /// Frees a page that is in no node.
    pub(crate) fn release(&mut self, owner: UserId, page: PageId) {
        self.pool.release(page);
        self.discharge(owner, 1);
    }

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
        if let Place::Host(slot) = self.place(id) {
            self.arrive_from(id, page, Some(batch));
            moves.ins.push(Move {
                node: id,
                page,
                slot,
            });
            self.totals.n_copied_in += 1;
        }
    }

    /// The batch is done. After a failure what it should have copied is as it was before, or to be computed again; whoever pinned what it brought back
    /// has let go of it.
    pub(crate) fn conclude(&mut self, batch: BatchId, moves: Moves, succeeded: bool) {
        for Move {
            node: id,
            page,
            slot,
        } in moves.outs
        {
            self.leaving.remove(&page);
            match self.nodes.get_mut(id.0) {
                Some(node) if node.place == Place::Host(slot) && node.moving == Some(batch) => {
                    node.moving = None;
                    if !succeeded {
                        node.place = Place::Gone;
                        self.host.release(slot);
                    }
                }
                // It was let go, or computed again by another, on the way.
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
                Some(node) if node.place == Place::Device(page) && node.moving == Some(batch) => {
                    node.moving = None;
                    if succeeded {
                        self.host.release(slot);
                        self.settle(id);
                    } else {
                        self.leave(id, Place::Host(slot));
                    }
                }
                _ => self.host.release(slot),
            }
        }
    }

    /// The device is gone, and the memory of its host: what is held has to be computed again, everything else is forgotten. Nobody uses a node, and
    /// no batch runs.
    pub(crate) fn lose(&mut self) {
        while let Some((_, id)) = self.idle.pop_first() {
            self.leave(id, Place::Gone);
        }
        let on_host = |(id, node): (NodeId, &Node)| match node.place {
            Place::Host(slot) => Some((id, slot)),
            Place::Device(_) | Place::Gone => None,
        };
        for (id, slot) in self.nodes().filter_map(on_host).collect::<Vec<_>>() {
            // It may have been let go with a child.
            if let Some(node) = self.nodes.get_mut(id.0) {
                node.place = Place::Gone;
                self.host.release(slot);
                self.settle(id);
            }
        }
        debug_assert_eq!((self.pool.n_used(), self.host.n_used()), (0, 0));
    }

    /// Adds a node behind `parent`, that is found by its content where `indexed` is the hash of it.
    fn insert(
        &mut self,
        parent: Option<NodeId>,
        owner: UserId,
        content: Content,
        page: PageId,
        indexed: Option<u64>,
    ) -> NodeId {
        let digest = content
            .tokens()
            .iter()
            .fold(self.digest(parent), |digest, &token| {
                fold(digest, u64::from(token))
            });
        self.clock += 1;
        let node = Node {
            end: self.end(parent) + content.len(),
            parent,
            owner,
            content,
            hash: indexed,
            digest,
            place: Place::Gone,
            moving: None,
            holders: 0,
            users: 0,
            n_device_children: 0,
            stamp: self.clock,
        };
        let id = NodeId(self.nodes.insert(node));
        if let Some(parent) = parent {
            self.hold(parent);
        }
        if let Some(hash) = indexed {
            let nodes = &self.nodes;
            let rehash = |id: &NodeId| nodes.get(id.0).and_then(|node| node.hash).unwrap_or(0);
            self.index.insert_unique(hash, id, rehash);
        }
        self.arrive(id, page);
        id
    }

    fn arrive(&mut self, id: NodeId, page: PageId) {
        if let Some(node) = self.nodes.get(id.0)
            && let (Place::Host(slot), None) = (node.place, node.moving)
        {
            self.host.release(slot);
        }
        self.arrive_from(id, page, None);
    }

    /// A node that was not on the device is there, without users; whoever calls gives it one, or settles it.
    fn arrive_from(&mut self, id: NodeId, page: PageId, moving: Option<BatchId>) {
        let Some(node) = self.nodes.get_mut(id.0) else {
            return;
        };
        (node.place, node.moving) = (Place::Device(page), moving);
        self.n_idle += 1;
        if let Some(parent) = node.parent
            && let Some(parent_node) = self.nodes.get_mut(parent.0)
        {
            parent_node.n_device_children += 1;
            self.idle.remove(&(parent_node.stamp, parent));
        }
    }

    /// A node without users leaves the device for `place`.
    fn leave(&mut self, id: NodeId, place: Place) {
        let Some(node) = self.nodes.get_mut(id.0) else {
            return;
        };
        let Place::Device(page) = node.place else {
            return;
        };
        debug_assert_eq!((node.users, node.n_device_children), (0, 0));
        self.idle.remove(&(node.stamp, id));
        node.place = place;
        self.n_idle -= 1;
        self.pool.release(page);
        let (stamp, parent) = (node.stamp, node.parent);
        if let Some(parent) = parent
            && let Some(node) = self.nodes.get_mut(parent.0)
        {
            node.n_device_children -= 1;
            if node.n_device_children == 0 && node.users == 0 {
                self.idle.remove(&(node.stamp, parent));
                node.stamp = node.stamp.max(stamp);
            }
            self.settle(parent);
        }
        self.settle(id);
    }

    /// Empties the page that was idle for the longest.
    fn evict(&mut self, claim: Claim, moves: &mut Moves) -> Option<()> {
        let &(_, id) = self.idle.first()?;
        let node = self.node(id)?;
        let Place::Device(page) = node.place else {
            return None;
        };
        let slot = if node.holders > 0 && claim.displace == Displace::Copy {
            self.host.allocate()
        } else {
            None
        };
        let node = self.nodes.get_mut(id.0)?;
        match slot {
            Some(slot) => {
                node.moving = Some(claim.batch);
                self.leaving.insert(page, claim.batch);
                moves.outs.push(Move {
                    node: id,
                    page,
                    slot,
                });
                self.totals.n_copied_out += 1;
                self.leave(id, Place::Host(slot));
            }
            None => {
                let counter = if node.holders > 0 {
                    &mut self.totals.n_dropped
                } else {
                    &mut self.totals.n_evicted
                };
                *counter += 1;
                self.leave(id, Place::Gone);
            }
        }
        Some(())
    }

    /// Brings a node without users to where it belongs: among the idle, or out of the tree where nobody can want it.
    fn settle(&mut self, id: NodeId) {
        let mut next = Some(id);
        while let Some(id) = next.take() {
            let Some(node) = self.nodes.get(id.0).filter(|node| node.users == 0) else {
                return;
            };
            let on_device = matches!(node.place, Place::Device(_));
            if on_device && node.moving.is_some() {
                // It stays as it is until the batch is done that brings it.
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
                return;
            };
            self.idle.remove(&(node.stamp, id));
            if let Some(hash) = node.hash
                && let Ok(entry) = self.index.find_entry(hash, |&other| other == id)
            {
                entry.remove();
            }
            match node.place {
                Place::Device(page) => {
                    self.n_idle -= 1;
                    self.pool.release(page);
                }
                // A slot that a batch still writes is let go when the batch is done.
                Place::Host(slot) if node.moving.is_none() => self.host.release(slot),
                Place::Host(_) | Place::Gone => {}
            }
            if let Some(parent) = node.parent
                && let Some(parent_node) = self.nodes.get_mut(parent.0)
            {
                parent_node.holders -= 1;
                parent_node.n_device_children -= u32::from(matches!(node.place, Place::Device(_)));
                next = Some(parent);
            }
        }
    }

    fn charge(&mut self, owner: UserId, n: u32) {
        if n > 0 {
            *self.n_used.entry(owner).or_insert(0) += n;
        }
    }

    fn discharge(&mut self, owner: UserId, n: u32) {
        if let Some(used) = self.n_used.get_mut(&owner) {
            debug_assert!(*used >= n);
            *used = used.saturating_sub(n);
            if *used == 0 {
                self.n_used.remove(&owner);
            }
        }
    }
}
