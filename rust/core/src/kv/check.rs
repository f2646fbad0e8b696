//! The invariants of the store, verified from scratch.

use std::collections::{HashMap, HashSet};

use super::lane::{Lane, PageCopy};
use super::store::{Moves, Node, NodeId, PageStore, Tier};
use crate::ids::{BatchId, HostSlot, PageId};

/// What lanes and batches refer to.
#[derive(Debug, Default)]
pub(crate) struct References {
    /// How often each node is held.
    pub(super) held: HashMap<NodeId, u32>,
    /// How often each node is pinned.
    pub(super) pinned: HashMap<NodeId, u32>,
    /// Pages in no node.
    pub(super) own: Vec<PageId>,
    /// Pages that batches have in their arenas, whoever else has them.
    pub(super) lent: Vec<PageId>,
    /// Slots that batches read or write, with the node and the batch.
    pub(super) moving: Vec<(HostSlot, NodeId, BatchId)>,
}

impl References {
    /// Adds what a lane holds and uses.
    pub(crate) fn add_lane(&mut self, lane: &Lane) {
        for node in lane.held() {
            *self.held.entry(node).or_insert(0) += 1;
        }
        for node in lane.pinned() {
            *self.pinned.entry(node).or_insert(0) += 1;
        }
        self.own.extend(lane.own_pages());
    }

    /// Adds the pages of a command: those that it reads, which are lent to it, and those that it fills.
    pub(crate) fn add_command(&mut self, lent: &[PageId], filled: impl Iterator<Item = PageId>) {
        self.lent.extend_from_slice(lent);
        self.own.extend(filled);
    }

    /// Adds what a batch in flight moves, and the pages that it copies into.
    pub(crate) fn add_batch(
        &mut self,
        batch: BatchId,
        moves: &Moves,
        copies: impl IntoIterator<Item = PageCopy>,
        lent: &[PageId],
    ) {
        self.lent.extend_from_slice(lent);
        self.own.extend(copies.into_iter().map(|copy| copy.dst));
        let slots = moves.outs.iter().chain(&moves.ins);
        self.moving
            .extend(slots.map(|moved| (moved.slot, moved.node, batch)));
    }
}

impl PageStore {
    /// Verifies every invariant: references, users and holders, pages and slots without loss or double use, the idle,
    /// the index.
    ///
    /// # Errors
    /// A sentence that names the first that is broken.
    pub(crate) fn check(&self, references: &References) -> Result<(), String> {
        let mut children: HashMap<NodeId, Children> = HashMap::new();
        for (id, node) in self.nodes() {
            let Some(parent) = node.parent else { continue };
            let counts = children.entry(parent).or_default();
            counts.n += 1;
            counts.n_on_device += u32::from(matches!(node.tier, Tier::Device(_)));
            counts.n_used += u32::from(node.users > 0);
            if self.parent_end(id) + node.content.len() != node.end {
                return Err(format!("{id:?} does not end where its content does"));
            }
        }
        let (mut pages, mut slots) = (HashSet::new(), HashSet::new());
        let mut n_idle = 0;
        for (id, node) in self.nodes() {
            let of_children = children.get(&id).copied().unwrap_or_default();
            self.check_node(id, node, of_children, references)?;
            match node.tier {
                Tier::Device(page) if !pages.insert(page) => {
                    return Err(format!("{page:?} has two contents, one is {id:?}"));
                }
                Tier::Host(slot) if !slots.insert(slot) => {
                    return Err(format!("{slot:?} has two contents, one is {id:?}"));
                }
                _ => {}
            }
            n_idle += u32::from(matches!(node.tier, Tier::Device(_)) && node.users == 0);
        }
        for page in &references.own {
            if !pages.insert(*page) {
                return Err(format!("{page:?} is owned and has another content"));
            }
        }
        pages.extend(&references.lent);
        for (slot, _, _) in &references.moving {
            slots.insert(*slot);
        }
        let counts = [
            ("pages in use", self.n_used_pages(), pages.len() as u32),
            ("slots in use", self.n_on_host(), slots.len() as u32),
            ("idle pages", self.n_cached(), n_idle),
        ];
        for (what, counted, found) in counts {
            if counted != found {
                return Err(format!(
                    "{counted} {what} are counted and {found} are there"
                ));
            }
        }
        self.check_charges(references)
    }

    fn check_node(
        &self,
        id: NodeId,
        node: &Node,
        children: Children,
        references: &References,
    ) -> Result<(), String> {
        let held = references.held.get(&id).copied().unwrap_or(0) + children.n;
        let pinned = references.pinned.get(&id).copied().unwrap_or(0) + children.n_used;
        let counts = [
            ("holders", node.holders, held),
            ("users", node.users, pinned),
            (
                "children on the device",
                node.n_device_children,
                children.n_on_device,
            ),
        ];
        for (what, counted, found) in counts {
            if counted != found {
                return Err(format!("{id:?} counts {counted} {what} and has {found}"));
            }
        }
        let on_device = matches!(node.tier, Tier::Device(_));
        if !on_device && (node.users > 0 || node.n_device_children > 0) {
            return Err(format!("{id:?} is needed on the device and is not there"));
        }
        let arriving = on_device && node.moving.is_some();
        let idle = on_device && node.users == 0 && node.n_device_children == 0 && !arriving;
        if idle != self.is_listed_idle(id, node) {
            return Err(format!("{id:?} is idle or listed as such, and not both"));
        }
        if node.users == 0 && node.holders == 0 && !arriving && !(on_device && node.is_indexed()) {
            return Err(format!("{id:?} is of no use to anybody"));
        }
        if node.is_indexed() && self.find(node.parent, node.owner, &node.content) != Some(id) {
            return Err(format!("{id:?} is not found by its content"));
        }
        let moves = |(_, moved, batch): &(HostSlot, NodeId, BatchId)| {
            *moved == id && Some(*batch) == node.moving
        };
        if node.moving.is_some() && !references.moving.iter().any(moves) {
            return Err(format!(
                "{id:?} is moved by {:?}, which does not",
                node.moving
            ));
        }
        Ok(())
    }

    /// The pages that users are charged for are those in use.
    fn check_charges(&self, references: &References) -> Result<(), String> {
        let n_nodes = self.nodes().filter(|(_, node)| node.users > 0).count() as u32;
        let (charged, used) = (self.n_charged(), n_nodes + references.own.len() as u32);
        if charged == used {
            return Ok(());
        }
        Err(format!(
            "users are charged for {charged} pages and use {used}"
        ))
    }
}

#[derive(Clone, Copy, Default)]
struct Children {
    n: u32,
    n_on_device: u32,
    n_used: u32,
}
