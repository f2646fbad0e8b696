//! Makes ready what was computed before, by this lane or another one.

use super::super::content::Content;
use super::super::store::{Moves, NodeId, PageDemand, PageStore, Tier};
use super::{Lane, Obstacle};

impl Lane {
    /// Makes ready what the store has of the tokens behind those that are ready: first what this lane computed before,
    /// then full pages of the content that `wanted` gives by their index, from any lane of the same owner. Copies from
    /// the host ride in the batch.
    pub(crate) fn adopt(
        &mut self,
        store: &mut PageStore,
        demand: PageDemand,
        moves: &mut Moves,
        mut wanted: impl FnMut(u32) -> Option<Content>,
    ) -> Result<(), Obstacle> {
        loop {
            let is_whole = self.pin == self.reach;
            if !is_whole && self.path.is_empty() {
                self.path = self.path_to_pin(store);
            }
            match self.next_node(store, self.pin, &self.path, &mut wanted) {
                Some(node) if self.enter(store, demand, moves, node)? => self.go_to(store, node),
                _ if is_whole => return self.unpark(store, demand, moves),
                _ => return Ok(()),
            }
        }
    }

    /// The node behind `at` to make ready: the last of `path` on the way to what this lane computed before; behind
    /// that, the full page that `wanted` gives, if any lane of the same owner computed it.
    fn next_node(
        &self,
        store: &PageStore,
        at: Option<NodeId>,
        path: &[NodeId],
        wanted: &mut impl FnMut(u32) -> Option<Content>,
    ) -> Option<NodeId> {
        path.last().copied().or_else(|| {
            let content = wanted(store.end(at) / store.page_size())?;
            store.find(at, self.owner, &content)
        })
    }

    /// From `reach` up to the child of `pin`.
    fn path_to_pin(&self, store: &PageStore) -> Vec<NodeId> {
        let mut path = Vec::new();
        let mut next = self.reach;
        while let Some(node) = next.filter(|_| next != self.pin) {
            path.push(node);
            next = store.parent(node);
        }
        path
    }

    /// A node that was pinned comes next.
    fn go_to(&mut self, store: &mut PageStore, node: NodeId) {
        self.tail.drop_partial(store, self.owner);
        if self.path.last() == Some(&node) {
            self.path.pop();
        } else {
            self.path.clear();
            self.set_reach(store, Some(node));
            self.tail.forget_parked(store);
        }
        self.step_to(store, node);
        self.n_ready = store.end(Some(node));
    }

    /// Pins a node, after bringing it back from the host where it is there. False: it has to be computed.
    fn enter(
        &mut self,
        store: &mut PageStore,
        demand: PageDemand,
        moves: &mut Moves,
        node: NodeId,
    ) -> Result<bool, Obstacle> {
        if cost(store, demand, node)?.is_none() {
            return Ok(false);
        }
        if matches!(store.tier(node), Tier::Host(_)) {
            let page = match self.tail.take_last() {
                Some(page) => page,
                None => {
                    if store.n_available() == 0 && self.tail.is_sole_user(store) {
                        // The page behind the full ones is dropped for the node in any case.
                        self.tail.drop_partial(store, self.owner);
                        self.n_ready = store.end(self.pin);
                    }
                    store
                        .allocate(self.owner, 1, demand, moves)
                        .and_then(|mut pages| pages.pop())
                        .ok_or(Obstacle::Short)?
                }
            };
            store.bring_back(node, self.owner, page, demand.batch, moves);
        }
        store.pin(node);
        Ok(true)
    }

    /// Takes back the part of a page that was parked.
    fn unpark(
        &mut self,
        store: &mut PageStore,
        demand: PageDemand,
        moves: &mut Moves,
    ) -> Result<(), Obstacle> {
        let Some(parked) = self.tail.parked().filter(|_| !self.tail.has_partial()) else {
            return Ok(());
        };
        if self.enter(store, demand, moves, parked.node)? {
            self.tail.unpark();
            self.n_ready = parked.n_ready;
            self.tail.reclaim_partial(store);
        } else {
            self.tail.forget_parked(store);
        }
        Ok(())
    }

    /// At most so many pages have to be allocated, emptied or copied back before the tokens up to `length` can be
    /// ready.
    pub(crate) fn n_missing_at_most(&self, store: &PageStore, length: u32) -> u32 {
        if self.is_whole() {
            return self.n_missing(store, length);
        }
        (length.div_ceil(store.page_size()) + 1).saturating_sub(self.n_pages())
    }

    /// The same number, exactly: what others use already costs nothing. Walks where [`Self::adopt`] would.
    pub(crate) fn survey(
        &self,
        store: &PageStore,
        demand: PageDemand,
        length: u32,
        mut wanted: impl FnMut(u32) -> Option<Content>,
    ) -> Result<u32, Obstacle> {
        let (mut n_full, mut n_missing) = (self.pages.len(), 0);
        let mut take = |node: NodeId| {
            let cost = cost(store, demand, node)?;
            n_missing += cost.unwrap_or(0);
            n_full += u32::from(cost.is_some());
            Ok(cost.is_some())
        };
        let (mut at, mut path) = (self.pin, self.path_to_pin(store));
        let mut copies = self.tail.is_shared();
        let mut n_behind = u32::from(self.tail.has_partial());
        while let Some(node) = self.next_node(store, at, &path, &mut wanted)
            && take(node)?
        {
            let is_found = path.pop().is_none();
            // The partial page is dropped for it, unless it is the same.
            if is_found && at == self.reach {
                let is_let_go = self.tail.is_sole_user(store) && self.tail.shared() != Some(node);
                (n_behind, copies) = (u32::from(is_let_go), false);
            }
            at = Some(node);
        }
        if let Some(parked) = self.tail.parked().filter(|_| at == self.reach) {
            take(parked.node)?;
            copies = true;
        }
        let wanted = n_missing + length.div_ceil(store.page_size()) + u32::from(copies);
        let n_held = n_full + n_behind + self.tail.n_reserved();
        Ok(wanted.saturating_sub(n_held))
    }
}

/// Pages that it takes to make a node ready; none where it has to be computed.
fn cost(store: &PageStore, demand: PageDemand, node: NodeId) -> Result<Option<u32>, Obstacle> {
    match (store.tier(node), store.moving(node)) {
        (Tier::Gone, _) => Ok(None),
        (Tier::Device(_), Some(batch)) if batch != demand.batch => Err(Obstacle::Moving),
        (Tier::Host(_), Some(_)) => Err(Obstacle::Moving),
        (Tier::Device(_), _) => Ok(Some(u32::from(!store.is_used(node)))),
        (Tier::Host(_), None) => Ok(Some(1)),
    }
}
