//! The store against a model of device and host memory: whatever lanes and batches may ask of it, in any order, each
//! page that a node has holds what was written for it, nothing is lost, and nothing is there twice. And the two pools
//! below it against plain counts.

use std::collections::HashMap;

use proptest::prelude::*;

use super::store::Tier;
use super::*;
use crate::hash::fold;
use crate::ids::{BatchId, HostSlot, PageId, UserId};

type Outcome = Result<(), TestCaseError>;

const MAX_RUNNING: usize = 3;

/// Slots of a page, pages of the device, slots of the host.
pub(crate) fn sizes() -> impl Strategy<Value = (u32, u32, u32)> {
    (1u32..4, 1u32..9, prop_oneof![1 => Just(0u32), 3 => 1u32..6])
}

/// What is asked of a store. Numbers choose among what is there, and wrap around.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// A batch that brings nodes back from the host and takes pages for what it computes.
    Plan {
        owner: u64,
        n: u32,
        back: Vec<usize>,
        displace: Displace,
    },
    /// A batch ends, the driver has run it or not.
    Conclude {
        which: usize,
        runs: bool,
        fails: bool,
    },
    /// A page that was computed becomes a node behind one in use.
    Commit {
        own: usize,
        parent: usize,
        token: u32,
    },
    Park {
        own: usize,
        parent: usize,
        n: u32,
    },
    Revive {
        own: usize,
        node: usize,
    },
    Reclaim(usize),
    Release(usize),
    Hold(usize),
    Unhold(usize),
    Pin(usize),
    Unpin(usize),
}

pub(crate) fn op() -> impl Strategy<Value = Op> {
    let which = || 0usize..16;
    let displace = prop_oneof![3 => Just(Displace::Copy), 1 => Just(Displace::Replay)];
    prop_oneof![
        6 => (0u64..2, 0u32..4, prop::collection::vec(which(), 0..3), displace)
            .prop_map(|(owner, n, back, displace)| Op::Plan { owner, n, back, displace }),
        6 => (which(), any::<bool>(), prop::bool::weighted(0.25))
            .prop_map(|(which, runs, fails)| Op::Conclude { which, runs, fails }),
        6 => (which(), which(), 0u32..2).prop_map(|(own, parent, token)| Op::Commit { own, parent, token }),
        2 => (which(), which(), 1u32..3).prop_map(|(own, parent, n)| Op::Park { own, parent, n }),
        2 => (which(), which()).prop_map(|(own, node)| Op::Revive { own, node }),
        2 => which().prop_map(Op::Reclaim),
        1 => which().prop_map(Op::Release),
        2 => which().prop_map(Op::Hold),
        2 => which().prop_map(Op::Unhold),
        2 => which().prop_map(Op::Pin),
        5 => which().prop_map(Op::Unpin),
    ]
}

/// How often each thing happened that a proof needs: pages evicted, copied out, copied in and dropped; contents found,
/// batches failed, parts taken back, contents computed again.
pub(crate) type Counts = [u64; 8];

struct Running {
    id: BatchId,
    moves: Moves,
    /// Pages for what it computes.
    own: Vec<(UserId, PageId)>,
    /// Nodes that it brings back, held and pinned.
    back: Vec<NodeId>,
}

struct World {
    store: PageStore,
    /// What lies in each page and each slot: the path of a node.
    device: Vec<u64>,
    host: HashMap<HostSlot, u64>,
    /// What has to lie in the pages of each node, by all that was written up to its end.
    paths: HashMap<NodeId, u64>,
    owners: HashMap<NodeId, UserId>,
    own: Vec<(UserId, PageId)>,
    held: Vec<NodeId>,
    pinned: Vec<NodeId>,
    running: Vec<Running>,
    n_batches: u64,
    n_found: u64,
    n_failed: u64,
    n_reclaimed: u64,
    n_revived: u64,
}

/// Applies operations to a store of that size, and lets go of everything in the end.
pub(crate) fn run(sizes: (u32, u32, u32), ops: Vec<Op>) -> Result<Counts, TestCaseError> {
    let mut world = World::new(sizes);
    for op in ops {
        world.apply(op)?;
        world.verify()?;
    }
    world.end()
}

fn pick<T: Copy>(all: &[T], which: usize) -> Option<T> {
    all.get(which.checked_rem(all.len())?).copied()
}

fn take<T>(all: &mut Vec<T>, which: usize) -> Option<T> {
    let index = which.checked_rem(all.len())?;
    Some(all.swap_remove(index))
}

impl World {
    fn new((page_size, n_pages, host_pages): (u32, u32, u32)) -> Self {
        Self {
            store: PageStore::new(page_size, n_pages, host_pages),
            device: vec![0; n_pages as usize],
            host: HashMap::new(),
            paths: HashMap::new(),
            owners: HashMap::new(),
            own: Vec::new(),
            held: Vec::new(),
            pinned: Vec::new(),
            running: Vec::new(),
            n_batches: 0,
            n_found: 0,
            n_failed: 0,
            n_reclaimed: 0,
            n_revived: 0,
        }
    }

    /// Live nodes for which that holds, in the order of their making.
    fn nodes(&self, is_wanted: impl Fn(NodeId) -> bool) -> Vec<NodeId> {
        let mut nodes: Vec<NodeId> = self.store.nodes().map(|(id, _)| id).collect();
        nodes.retain(|&id| is_wanted(id));
        nodes.sort_unstable();
        nodes
    }

    fn apply(&mut self, op: Op) -> Outcome {
        match op {
            Op::Plan {
                owner,
                n,
                back,
                displace,
            } => {
                if self.running.len() < MAX_RUNNING {
                    self.plan(UserId(owner), n, &back, displace)?;
                }
            }
            Op::Conclude { which, runs, fails } => {
                if let Some(batch) = take(&mut self.running, which) {
                    self.conclude(batch, runs || !fails, fails)?;
                }
            }
            Op::Commit { own, parent, token } => {
                if let Some((owner, page)) = take(&mut self.own, own) {
                    self.commit(owner, page, parent, token)?;
                }
            }
            Op::Park { own, parent, n } => {
                if let Some((owner, page)) = take(&mut self.own, own) {
                    self.park(owner, page, parent, n);
                }
            }
            Op::Revive { own, node } => self.revive(own, node),
            Op::Reclaim(which) => {
                if let Some(node) = pick(&self.held, which)
                    && let Some(page) = self.store.reclaim(node)
                {
                    let of_node = |held: &&NodeId| **held == node;
                    prop_assert_eq!(self.held.iter().filter(of_node).count(), 1);
                    self.held.retain(|held| *held != node);
                    self.own.push((self.owners[&node], page));
                    self.n_reclaimed += 1;
                }
            }
            Op::Release(which) => {
                if let Some((owner, page)) = take(&mut self.own, which) {
                    self.store.release(owner, page);
                }
            }
            Op::Hold(which) => {
                if let Some(node) = pick(&self.nodes(|_| true), which) {
                    self.hold(node);
                }
            }
            Op::Unhold(which) => {
                if let Some(node) = take(&mut self.held, which) {
                    self.store.unhold(node);
                }
            }
            Op::Pin(which) => {
                let is_there =
                    |id| self.store.page(id).is_some() && self.store.moving(id).is_none();
                if let Some(node) = pick(&self.nodes(is_there), which) {
                    self.pin(node);
                }
            }
            Op::Unpin(which) => {
                if let Some(node) = take(&mut self.pinned, which) {
                    self.store.unpin(node);
                }
            }
        }
        Ok(())
    }

    fn hold(&mut self, node: NodeId) {
        self.store.hold(node);
        self.held.push(node);
    }

    fn pin(&mut self, node: NodeId) {
        self.store.pin(node);
        self.pinned.push(node);
    }

    fn plan(&mut self, owner: UserId, n: u32, back: &[usize], displace: Displace) -> Outcome {
        self.n_batches += 1;
        let batch = BatchId(self.n_batches);
        let mut running = Running {
            id: batch,
            moves: Moves::default(),
            own: Vec::new(),
            back: Vec::new(),
        };
        for &which in back {
            // What comes back comes behind what is there, or comes with the same batch.
            let nodes = self.nodes(|id| {
                let on_host = matches!(self.store.tier(id), Tier::Host(_));
                let behind = self.store.parent(id).is_none_or(|parent| {
                    let moved_by = self.store.moving(parent);
                    self.store.page(parent).is_some() && moved_by.is_none_or(|mover| mover == batch)
                });
                on_host && self.store.moving(id).is_none() && behind
            });
            let Some(node) = pick(&nodes, which) else {
                continue;
            };
            // Neither may go while room is made for it.
            let parent = self.store.parent(node);
            parent.into_iter().for_each(|parent| self.store.pin(parent));
            self.store.hold(node);
            let owner = self.owners[&node];
            let page = self
                .allocate(owner, 1, batch, displace, &mut running.moves)?
                .pop();
            if let Some(page) = page {
                self.store
                    .bring_back(node, owner, page, batch, &mut running.moves);
                self.store.pin(node);
                running.back.push(node);
            } else {
                self.store.unhold(node);
            }
            parent
                .into_iter()
                .for_each(|parent| self.store.unpin(parent));
        }
        let pages = self.allocate(owner, n, batch, displace, &mut running.moves)?;
        running
            .own
            .extend(pages.into_iter().map(|page| (owner, page)));
        self.running.push(running);
        Ok(())
    }

    /// All or nothing, and nothing only where so many are not to be had.
    fn allocate(
        &mut self,
        owner: UserId,
        n: u32,
        batch: BatchId,
        displace: Displace,
        moves: &mut Moves,
    ) -> Result<Vec<PageId>, TestCaseError> {
        let n_available = self.store.n_available();
        let pages = self
            .store
            .allocate(owner, n, PageDemand { batch, displace }, moves);
        prop_assert_eq!(pages.is_some(), n <= n_available);
        let pages = pages.unwrap_or_default();
        prop_assert!(pages.is_empty() || pages.len() == n as usize);
        Ok(pages)
    }

    fn conclude(&mut self, batch: Running, runs: bool, fails: bool) -> Outcome {
        if runs {
            for out in &batch.moves.outs {
                self.host.insert(out.slot, self.device[out.page.0 as usize]);
            }
            for back in &batch.moves.ins {
                let kept = self.host.get(&back.slot).copied();
                prop_assert!(kept.is_some(), "nothing was swapped out to {:?}", back.slot);
                self.device[back.page.0 as usize] = kept.unwrap_or_default();
            }
        }
        self.n_failed += u64::from(fails);
        if fails {
            batch.back.iter().for_each(|&node| self.store.unpin(node));
        }
        self.store.conclude(batch.id, batch.moves, !fails);
        if !fails {
            self.pinned.extend(&batch.back);
        }
        self.held.extend(&batch.back);
        self.own.extend(batch.own);
        Ok(())
    }

    /// A node of that owner behind which pages can be put: one that is pinned and no batch moves, or the root.
    fn parent(&self, owner: UserId, which: usize) -> Option<NodeId> {
        let is_whole = |node: &&NodeId| {
            let content = self.store.content(**node);
            content.is_some_and(|content| content.len() == self.store.page_size())
        };
        let whole = self.pinned.iter().filter(is_whole);
        let mut parents: Vec<Option<NodeId>> = whole
            .filter(|node| self.owners[node] == owner && self.store.moving(**node).is_none())
            .map(|&node| Some(node))
            .collect();
        parents.push(None);
        pick(&parents, which).flatten()
    }

    /// What lies in a page of that content behind `parent`, of that owner.
    fn path(&self, parent: Option<NodeId>, owner: UserId, content: &Content) -> u64 {
        let start = parent.map_or(owner.0 + 1, |parent| self.paths[&parent]);
        let words = content.tokens().iter().map(|&token| u64::from(token));
        words.fold(fold(start, u64::from(content.len())), fold)
    }

    fn commit(&mut self, owner: UserId, page: PageId, parent: usize, token: u32) -> Outcome {
        let parent = self.parent(owner, parent);
        let content = Content::plain(vec![token; self.store.page_size() as usize]);
        let path = self.path(parent, owner, &content);
        let known = self.store.find(parent, owner, &content);
        self.device[page.0 as usize] = path;
        let node = self.store.commit(parent, owner, content.clone(), page);
        self.paths.insert(node, path);
        self.owners.insert(node, owner);
        self.hold(node);
        self.pin(node);
        // A second copy is made only of what is on its way.
        let found = self.store.find(parent, owner, &content);
        prop_assert_eq!(known.unwrap_or(node), found.unwrap_or(node));
        if known.is_none_or(|known| self.store.moving(known).is_none()) {
            prop_assert_eq!(found, Some(node));
        }
        self.n_found += u64::from(known == Some(node));
        Ok(())
    }

    fn park(&mut self, owner: UserId, page: PageId, parent: usize, n: u32) {
        let parent = self.parent(owner, parent);
        let content = Content::plain(vec![9; n.min(self.store.page_size()) as usize]);
        let path = self.path(parent, owner, &content);
        self.device[page.0 as usize] = path;
        let node = self.store.park(parent, owner, content, page);
        self.paths.insert(node, path);
        self.owners.insert(node, owner);
        self.held.push(node);
    }

    /// A page that is held was computed again.
    fn revive(&mut self, own: usize, node: usize) {
        let is_wanted = |id: NodeId| {
            let parent = self.store.parent(id);
            let is_whole = self.store.content(id).map(Content::len) == Some(self.store.page_size());
            let is_behind = parent.is_none_or(|parent| self.pinned.contains(&parent));
            let is_ready = parent.is_none_or(|parent| self.store.moving(parent).is_none());
            is_whole && is_behind && is_ready && self.held.contains(&id)
        };
        let Some(node) = pick(&self.nodes(is_wanted), node) else {
            return;
        };
        let owner = self.owners[&node];
        let of_owner = |page: &(UserId, PageId)| page.0 == owner;
        let mut pages: Vec<(UserId, PageId)> = self.own.iter().copied().filter(of_owner).collect();
        let Some((_, page)) = take(&mut pages, own) else {
            return;
        };
        self.own.retain(|other| other.1 != page);
        self.device[page.0 as usize] = self.paths[&node];
        if self.store.revive(node, owner, page) {
            self.pin(node);
            self.n_revived += 1;
        }
    }

    fn verify(&self) -> Outcome {
        let mut references = References::default();
        let of_batches = || self.running.iter().flat_map(|batch| &batch.back);
        for &node in self.held.iter().chain(of_batches()) {
            *references.held.entry(node).or_insert(0) += 1;
        }
        for &node in self.pinned.iter().chain(of_batches()) {
            *references.pinned.entry(node).or_insert(0) += 1;
        }
        let own = self
            .own
            .iter()
            .chain(self.running.iter().flat_map(|batch| &batch.own));
        references.own.extend(own.map(|(_, page)| page));
        for batch in &self.running {
            references.add_batch(batch.id, &batch.moves, [], &[]);
        }
        self.store.check(&references).map_err(TestCaseError::fail)?;
        for (id, node) in self.store.nodes().filter(|(_, node)| node.moving.is_none()) {
            let found = match node.tier {
                Tier::Device(page) => self.device.get(page.0 as usize),
                Tier::Host(slot) => self.host.get(&slot),
                Tier::Gone => continue,
            };
            prop_assert_eq!(found, self.paths.get(&id), "{:?} in {:?}", id, node.tier);
        }
        Ok(())
    }

    /// Ends all batches and lets go of everything.
    fn end(mut self) -> Result<Counts, TestCaseError> {
        while let Some(batch) = self.running.pop() {
            self.conclude(batch, true, false)?;
            self.verify()?;
        }
        for (owner, page) in std::mem::take(&mut self.own) {
            self.store.release(owner, page);
        }
        for node in std::mem::take(&mut self.pinned) {
            self.store.unpin(node);
        }
        self.verify()?;
        for node in std::mem::take(&mut self.held) {
            self.store.unhold(node);
        }
        self.verify()?;
        let store = &self.store;
        prop_assert_eq!(
            (store.n_in_use(), store.n_on_host(), store.n_users()),
            (0, 0, 0)
        );
        let totals = store.totals();
        Ok([
            totals.n_evicted,
            totals.n_copied_out,
            totals.n_copied_in,
            totals.n_dropped,
            self.n_found,
            self.n_failed,
            self.n_reclaimed,
            self.n_revived,
        ])
    }
}

/// What is asked of the pools.
#[derive(Clone, Debug)]
pub(crate) enum PoolOp {
    Page,
    Retain(usize),
    ReleasePage(usize),
    Slot,
    ReleaseSlot(usize),
}

pub(crate) fn pool_op() -> impl Strategy<Value = PoolOp> {
    let which = || 0usize..16;
    prop_oneof![
        3 => Just(PoolOp::Page),
        1 => which().prop_map(PoolOp::Retain),
        3 => which().prop_map(PoolOp::ReleasePage),
        2 => Just(PoolOp::Slot),
        1 => which().prop_map(PoolOp::ReleaseSlot),
    ]
}

/// Applies operations to a pool of pages and one of slots: each is given out once, as long as there are some, and is
/// free again after its last reference.
pub(crate) fn run_pools((_, n_pages, n_slots): (u32, u32, u32), ops: Vec<PoolOp>) -> Outcome {
    let (mut pool, mut host) = (PagePool::new(n_pages), HostPool::new(n_slots));
    // One entry for each reference.
    let (mut pages, mut slots): (Vec<PageId>, Vec<HostSlot>) = (Vec::new(), Vec::new());
    for op in ops {
        match op {
            PoolOp::Page => {
                let n_free = pool.n_free();
                let page = pool.allocate();
                prop_assert_eq!(page.is_some(), n_free > 0);
                prop_assert!(page.is_none_or(|page| page.0 < n_pages && !pages.contains(&page)));
                pages.extend(page);
            }
            PoolOp::Retain(which) => {
                if let Some(page) = pick(&pages, which) {
                    pool.retain(page);
                    pages.push(page);
                }
            }
            PoolOp::ReleasePage(which) => {
                take(&mut pages, which)
                    .into_iter()
                    .for_each(|page| pool.release(page));
            }
            PoolOp::Slot => {
                let slot = host.allocate();
                prop_assert_eq!(slot.is_some(), (slots.len() as u32) < n_slots);
                prop_assert!(slot.is_none_or(|slot| slot.0 < n_slots && !slots.contains(&slot)));
                slots.extend(slot);
            }
            PoolOp::ReleaseSlot(which) => {
                take(&mut slots, which)
                    .into_iter()
                    .for_each(|slot| host.release(slot));
            }
        }
        let mut distinct = pages.clone();
        distinct.sort_unstable();
        distinct.dedup();
        prop_assert_eq!(pool.n_used() as usize, distinct.len());
        prop_assert_eq!(pool.n_used() + pool.n_free(), n_pages);
        prop_assert_eq!(host.n_used() as usize, slots.len());
    }
    Ok(())
}
