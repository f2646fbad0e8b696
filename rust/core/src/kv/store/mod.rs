//! The pages of a model, by content: a tree of full pages. Pages that nobody uses stay as a cache.
//!
//! A node is a page of content behind the content of its parent. Its keys and values are a function of the path from
//! the root, so whoever computes the same path finds them. A node has *users* (contexts and batches that need it on the
//! device now, and children with users), and *holders* (contexts that need its content, suspended or not, and
//! children). Nodes without users are idle: their pages are evicted when others need room, the least recently used
//! first and children before their parents. A node that still has a holder is copied to the host, or computed again
//! when it is wanted. A node without a holder is forgotten.

mod filling;
mod finding;
mod importing;
mod moving;
mod node;
mod room;
mod sharing;

use std::collections::{BTreeSet, HashMap};
use std::hash::RandomState;

use hashbrown::HashTable;

use super::content::Content;
use super::{HostPool, PagePool};
use crate::faults::Faults;
use crate::ids::{BatchId, PageId, UserId};
use crate::slab::Slab;

pub(crate) use importing::Arrival;
pub(crate) use moving::{Displace, Moves, PageDemand};
pub(super) use node::Node;
pub(crate) use node::{NodeId, Tier};

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
    /// Lists of pages that have a name.
    n_lists: u64,
    faults: Faults,
}

impl PageStore {
    pub(crate) fn new(page_size: u32, n_pages: u32, host_pages: u32) -> Self {
        Self {
            page_size,
            pool: PagePool::new(n_pages),
            host: HostPool::new(host_pages),
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
            n_lists: 0,
            faults: Faults::new(),
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

    /// A name for a list of pages, which no other list has.
    pub(super) const fn name_list(&mut self) -> u64 {
        self.n_lists += 1;
        self.n_lists
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

    /// What was as it cannot be.
    pub(crate) const fn faults(&self) -> [&Faults; 2] {
        [&self.faults, self.pool.faults()]
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

    /// A node that there is.
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
        match self.tier(id) {
            Tier::Device(page) => Some(page),
            Tier::Host(_) | Tier::Gone => None,
        }
    }

    pub(crate) fn tier(&self, id: NodeId) -> Tier {
        self.node(id).map_or(Tier::Gone, |node| node.tier)
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
}
