//! What a context has on the device: apart from what it says, which `context` keeps.
//!
//! A lane has computed tokens up to `reach` and a part of a page behind it, and has ready what lies up to `pin` and in its partial page. It is in one of four states
//! ([`Lane::state`]), and [`Lane::check`] verifies the rows of this table:
//!
//! | state | `pin` | `partial` | `parked` | ready | becomes |
//! |---|---|---|---|---|---|
//! | away | none, below a `reach` | none | any | nothing | behind, torn or whole, by `adopt` and `advance` |
//! | behind | a proper ancestor of `reach` | none, or its own | any | the pages up to `pin`, a part of the next | torn or whole |
//! | torn | `reach` | none | a part | the pages up to `reach` | whole, by `adopt` (`unpark`), or `advance`, which computes it again |
//! | whole | `reach` | any | none | all that was computed | away, by `suspend` and `reset`; torn, by `fork` and `roll_back` where others use the page |
//!
//! In each of them there may be `reserved` pages for tokens to come. A partial page that others may see (`Partial::Node`) is copied before it is written, and is there
//! in a whole lane alone: what is behind computes on pages of its own.

mod check;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use super::content::Content;
use super::store::{Claim, Moves, NodeId, PageStore, Place};
use crate::ids::{PageId, UserId};

/// The page behind the full ones, which holds the last tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Partial {
    #[default]
    None,
    /// The lane's own, to be written on.
    Own(PageId),
    /// A node that the lane holds and uses, and that others may see: it is copied before it is written.
    Node(NodeId),
}

/// A held node behind the full pages, of which the tokens up to `n_ready` count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parked {
    node: NodeId,
    n_ready: u32,
}

/// The part of a context's tokens whose keys and values are on the device, in the order of storage, and the pages for those to come.
///
/// What a lane computed may leave the device ([`Lane::suspend`]) without the context changing: the lane then starts again from what is left in the
/// store, and the rest is copied back or computed again. Nothing of a lane changes while a batch uses it, but by that batch and the one that follows it. What tokens there are is the
/// context's to tell: by slots behind the last full page, or by the index of a page.
#[derive(Debug)]
pub(crate) struct Lane {
    owner: UserId,
    /// The deepest full page that was computed, held, on the device or not.
    reach: Option<NodeId>,
    /// The part of a page behind `reach` that was ready when the lane was suspended.
    parked: Option<Parked>,
    /// The deepest full page that is ready, pinned: `reach` or an ancestor.
    pin: Option<NodeId>,
    /// From `reach` up to the child of `pin`, while they differ; empty when it was not looked up.
    path: Vec<NodeId>,
    /// The pages up to `pin`.
    pages: Arc<Vec<PageId>>,
    partial: Partial,
    /// Tokens that are ready: those up to `pin`, and those of the partial page that count.
    n_ready: u32,
    /// Own pages for tokens to come.
    reserved: VecDeque<PageId>,
}

/// A page to be copied before a pass writes into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageCopy {
    pub(crate) src: PageId,
    pub(crate) dst: PageId,
}

/// Why tokens cannot be made ready now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// A batch that runs has to end first.
    Moving,
    /// Pages are short.
    Short,
}

/// How much of what a lane computed is ready: see the table of the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaneState {
    Away,
    Behind,
    Torn,
    Whole,
}

impl Lane {
    /// Nothing was computed.
    pub(crate) fn new(owner: UserId) -> Self {
        Self {
            owner,
            reach: None,
            parked: None,
            pin: None,
            path: Vec::new(),
            pages: Arc::default(),
            partial: Partial::None,
            n_ready: 0,
            reserved: VecDeque::new(),
        }
    }

    /// Whom its pages are for.
    pub(crate) const fn owner(&self) -> UserId {
        self.owner
    }

    /// Tokens that are ready.
    pub(crate) const fn n_ready(&self) -> u32 {
        self.n_ready
    }

    /// The deepest full page that was computed, on the device or not.
    pub(crate) const fn reach(&self) -> Option<NodeId> {
        self.reach
    }

    /// Whether it uses any page.
    pub(crate) fn is_resident(&self) -> bool {
        self.pin.is_some() || !matches!(self.partial, Partial::None) || !self.reserved.is_empty()
    }

    /// Its pages in the order of storage, those for tokens to come last.
    pub(crate) fn pages<'a>(&'a self, store: &PageStore) -> impl Iterator<Item = PageId> + 'a {
        let full = self.pages.iter().copied();
        full.chain(self.pages_behind(store))
    }

    /// Its full pages that are ready, in the order of storage.
    pub(crate) fn full_pages(&self) -> &[PageId] {
        &self.pages
    }

    /// Its pages behind the full ones.
    pub(crate) fn pages_behind<'a>(
        &'a self,
        store: &PageStore,
    ) -> impl Iterator<Item = PageId> + 'a {
        let partial = match self.partial {
            Partial::None => None,
            Partial::Own(page) => Some(page),
            Partial::Node(id) => store.page(id),
        };
        partial.into_iter().chain(self.reserved.iter().copied())
    }

    /// The pages that are in no node.
    pub(crate) fn own_pages(&self) -> impl Iterator<Item = PageId> + '_ {
        let partial = match self.partial {
            Partial::Own(page) => Some(page),
            Partial::None | Partial::Node(_) => None,
        };
        partial.into_iter().chain(self.reserved.iter().copied())
    }

    /// The nodes that it holds.
    pub(crate) fn held(&self) -> impl Iterator<Item = NodeId> {
        let parked = self.parked.map(|parked| parked.node);
        let behind = parked.into_iter().chain(self.partial_node());
        self.reach.into_iter().chain(behind)
    }

    /// The nodes that it uses.
    pub(crate) fn pinned(&self) -> impl Iterator<Item = NodeId> {
        self.pin.into_iter().chain(self.partial_node())
    }

    const fn partial_node(&self) -> Option<NodeId> {
        match self.partial {
            Partial::Node(id) => Some(id),
            Partial::None | Partial::Own(_) => None,
        }
    }

    /// Makes ready what the store has of the tokens behind those that are: what this lane computed before, then full pages of the content that
    /// `wanted` gives by their index, of whoever shares the owner. Copies from the host ride in the batch.
    pub(crate) fn adopt(
        &mut self,
        store: &mut PageStore,
        claim: Claim,
        moves: &mut Moves,
        mut wanted: impl FnMut(u32) -> Option<Content>,
    ) -> Result<(), Obstacle> {
        loop {
            let page_idx = self.pages.len() as u32;
            let whole = self.pin == self.reach;
            let node = if whole {
                wanted(page_idx).and_then(|content| store.find(self.pin, self.owner, &content))
            } else {
                if self.path.is_empty() {
                    self.path = self.path_to_pin(store);
                }
                self.path.last().copied()
            };
            match node {
                Some(node) if self.enter(store, claim, moves, node)? => self.go_to(store, node),
                _ if whole => return self.unpark(store, claim, moves),
                _ => return Ok(()),
            }
        }
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
        self.drop_partial(store);
        if self.path.last() == Some(&node) {
            self.path.pop();
        } else {
            self.path.clear();
            self.set_reach(store, Some(node));
            self.forget_parked(store);
        }
        self.step_to(store, node);
        self.n_ready = store.end(Some(node));
    }

    /// The pages up to a node that was pinned are ready.
    fn step_to(&mut self, store: &mut PageStore, node: NodeId) {
        if let Some(old) = self.pin.replace(node) {
            store.unpin(old);
        }
        if let Some(page) = store.page(node) {
            Arc::make_mut(&mut self.pages).push(page);
        }
    }

    /// Pins a node, brought back from the host if need be. False: it has to be computed.
    fn enter(
        &mut self,
        store: &mut PageStore,
        claim: Claim,
        moves: &mut Moves,
        node: NodeId,
    ) -> Result<bool, Obstacle> {
        if cost(store, claim, node)?.is_none() {
            return Ok(false);
        }
        if matches!(store.place(node), Place::Host(_)) {
            let page = match self.reserved.pop_back() {
                Some(page) => page,
                None => {
                    if store.n_available() == 0 && self.is_sole_user(store) {
                        // What lies behind the full pages goes for the node anyway.
                        self.drop_partial(store);
                        self.n_ready = store.end(self.pin);
                    }
                    store
                        .allocate(self.owner, 1, claim, moves)
                        .and_then(|mut pages| pages.pop())
                        .ok_or(Obstacle::Short)?
                }
            };
            store.bring_back(node, self.owner, page, claim.batch, moves);
        }
        store.pin(node);
        Ok(true)
    }

    /// Takes the part of a page back that was parked.
    fn unpark(
        &mut self,
        store: &mut PageStore,
        claim: Claim,
        moves: &mut Moves,
    ) -> Result<(), Obstacle> {
        let Some(Parked { node, n_ready }) = self.parked else {
            return Ok(());
        };
        if !matches!(self.partial, Partial::None) {
            return Ok(());
        }
        if self.enter(store, claim, moves, node)? {
            self.parked = None;
            self.partial = Partial::Node(node);
            self.n_ready = n_ready;
            self.own_partial(store);
        } else {
            self.forget_parked(store);
        }
        Ok(())
    }

    /// Makes the node of the partial page its own where nobody else wants it.
    fn own_partial(&mut self, store: &mut PageStore) {
        if let Partial::Node(id) = self.partial {
            store.unpin(id);
            match store.reclaim(id) {
                Some(page) => self.partial = Partial::Own(page),
                None => store.pin(id),
            }
        }
    }

    /// Pages that have to be allocated before the tokens up to `length` can be ready.
    pub(crate) fn n_missing(&self, store: &PageStore, length: u32) -> u32 {
        let n_pages = self.n_pages();
        if length <= n_pages * store.page_size() && !self.must_copy(length) {
            return 0;
        }
        let n_needed = length.div_ceil(store.page_size());
        n_needed.saturating_sub(n_pages) + u32::from(self.must_copy(length))
    }

    /// Whether exactly the pages for the tokens up to `length` are there, the last of them to be written on.
    pub(crate) fn is_exact(&self, store: &PageStore, length: u32) -> bool {
        let n_slots = self.n_pages() * store.page_size();
        !self.must_copy(length) && length <= n_slots && n_slots < length + store.page_size()
    }

    /// How much of what it computed is ready.
    pub(crate) fn state(&self) -> LaneState {
        match (self.pin == self.reach, self.parked.is_some()) {
            (true, false) => LaneState::Whole,
            (true, true) => LaneState::Torn,
            (false, _) if self.pin.is_none() && matches!(self.partial, Partial::None) => {
                LaneState::Away
            }
            (false, _) => LaneState::Behind,
        }
    }

    /// Whether all that was computed is ready.
    pub(crate) fn is_whole(&self) -> bool {
        self.state() == LaneState::Whole
    }

    /// At most so many pages have to be allocated, emptied or copied back before the tokens up to `length` can be ready.
    pub(crate) fn n_missing_at_most(&self, store: &PageStore, length: u32) -> u32 {
        if self.is_whole() {
            return self.n_missing(store, length);
        }
        (length.div_ceil(store.page_size()) + 1).saturating_sub(self.n_pages())
    }

    /// The same, exactly: what others use already costs nothing.
    pub(crate) fn survey(
        &self,
        store: &PageStore,
        claim: Claim,
        length: u32,
        wanted: impl Fn(u32) -> Option<Content>,
    ) -> Result<u32, Obstacle> {
        let (mut n_full, mut n_missing) = (self.pages.len() as u32, 0);
        let mut path = self.path_to_pin(store);
        let mut take = |node: NodeId| {
            let cost = cost(store, claim, node)?;
            n_missing += cost.unwrap_or(0);
            n_full += u32::from(cost.is_some());
            Ok(cost.is_some())
        };
        let mut last = self.pin;
        let mut whole = true;
        while let Some(node) = path.pop() {
            if !take(node)? {
                whole = false;
                break;
            }
            last = Some(node);
        }
        let mut copies = matches!(self.partial, Partial::Node(_));
        let mut n_behind = u32::from(!matches!(self.partial, Partial::None));
        if whole {
            let mut next = store.end(last) / store.page_size();
            while let Some(node) =
                wanted(next).and_then(|content| store.find(last, self.owner, &content))
            {
                if !take(node)? {
                    break;
                }
                // The partial page is let go for it, unless it is the same.
                if last == self.reach {
                    let is_let_go = self.is_sole_user(store)
                        && !matches!(self.partial, Partial::Node(id) if id == node);
                    (n_behind, copies) = (u32::from(is_let_go), false);
                }
                (last, next) = (Some(node), next + 1);
            }
            if let Some(parked) = self.parked.filter(|_| last == self.reach) {
                take(parked.node)?;
                copies = true;
            }
        }
        let wanted = n_missing + length.div_ceil(store.page_size()) + u32::from(copies);
        let n_held = n_full + n_behind + self.reserved.len() as u32;
        Ok(wanted.saturating_sub(n_held))
    }

    /// Whether the partial page is of use to nobody else.
    fn is_sole_user(&self, store: &PageStore) -> bool {
        match self.partial {
            Partial::None => false,
            Partial::Own(_) => true,
            Partial::Node(id) => store.n_users_of(id) == 1,
        }
    }

    fn n_pages(&self) -> u32 {
        (self.pages.len()
            + usize::from(!matches!(self.partial, Partial::None))
            + self.reserved.len()) as u32
    }

    const fn must_copy(&self, length: u32) -> bool {
        matches!(self.partial, Partial::Node(_)) && length > self.n_ready
    }

    /// Makes room for the tokens up to `length`: pages for all of them, and a copy of the partial page where others may see it. All or nothing.
    pub(crate) fn reserve(
        &mut self,
        store: &mut PageStore,
        claim: Claim,
        moves: &mut Moves,
        length: u32,
    ) -> Result<Option<PageCopy>, Obstacle> {
        if self.must_copy(length) {
            self.own_partial(store);
        }
        let n_needed = length.div_ceil(store.page_size());
        while self.n_pages() > n_needed
            && let Some(page) = self.reserved.pop_back()
        {
            store.release(self.owner, page);
        }
        let n_missing = self.n_missing(store, length);
        if n_missing == 0 {
            return Ok(None);
        }
        let mut pages = store
            .allocate(self.owner, n_missing, claim, moves)
            .ok_or(Obstacle::Short)?;
        let copy = match self.partial {
            Partial::Node(id) if length > self.n_ready => {
                let (dst, src) = (pages.pop(), store.page(id));
                dst.zip(src).map(|(dst, src)| PageCopy { src, dst })
            }
            _ => None,
        };
        self.reserved.extend(pages);
        Ok(copy)
    }

    /// Makes room for the tokens up to `length` behind those that a batch computes, which uses the lane. False: there is none, or the batch copies the
    /// last page, which is the lane's own when that is done and not before.
    pub(crate) fn extend(
        &mut self,
        store: &mut PageStore,
        claim: Claim,
        moves: &mut Moves,
        length: u32,
    ) -> bool {
        !self.must_copy(length) && self.reserve(store, claim, moves, length).is_ok()
    }

    /// Lets go of the part of a page that would have to be copied; it is computed again. False: there is none.
    pub(crate) fn give_up_shared(&mut self, store: &mut PageStore) -> bool {
        if self.parked.is_some() {
            self.forget_parked(store);
            return true;
        }
        let shared = matches!(self.partial, Partial::Node(_));
        if shared {
            self.drop_partial(store);
            self.n_ready = store.end(self.pin);
        }
        shared
    }

    /// The batch made the copy: the partial page is the lane's own.
    pub(crate) fn take_copy(&mut self, store: &mut PageStore, copy: PageCopy) {
        self.drop_partial(store);
        self.partial = Partial::Own(copy.dst);
    }

    /// Lets go of the pages for tokens to come, and of what a copy was to be made into, which no batch makes.
    pub(crate) fn give_up_room(&mut self, store: &mut PageStore, copy: Option<PageCopy>) {
        self.drop_reserved(store);
        if let Some(copy) = copy {
            self.drop_copy(store, copy);
        }
    }

    /// The copy is not made.
    pub(crate) fn drop_copy(&self, store: &mut PageStore, copy: PageCopy) {
        store.release(self.owner, copy.dst);
    }

    /// The tokens up to `length` are ready. `page` gives the content of a page that became full, by its index.
    pub(crate) fn advance(
        &mut self,
        store: &mut PageStore,
        length: u32,
        mut page: impl FnMut(u32) -> Content,
    ) {
        let page_size = store.page_size();
        while (self.pages.len() as u32 + 1) * page_size <= length {
            let own = match self.partial {
                Partial::Own(page) => Some(page),
                Partial::None => self.reserved.pop_front(),
                Partial::Node(_) => None,
            };
            let Some(own) = own else { break };
            self.partial = Partial::None;
            let node = match self.path.pop() {
                Some(node) if store.revive(node, self.owner, own) => node,
                Some(_) => {
                    // Another batch is bringing it back and may fail: this lane waits for it at the next attempt.
                    self.path.clear();
                    self.n_ready = self.pages.len() as u32 * page_size;
                    return;
                }
                None => {
                    let content = page(self.pages.len() as u32);
                    let node = store.commit(self.pin, self.owner, content, own);
                    self.set_reach(store, Some(node));
                    self.forget_parked(store);
                    node
                }
            };
            store.pin(node);
            self.step_to(store, node);
        }
        if length > self.pages.len() as u32 * page_size
            && matches!(self.partial, Partial::None)
            && let Some(page) = self.reserved.pop_front()
        {
            self.partial = Partial::Own(page);
        }
        self.n_ready = length;
        if self.pin == self.reach && !matches!(self.partial, Partial::None) {
            self.forget_parked(store);
        }
    }

    /// Keeps the first `n_tokens` tokens of what was computed, and lets go of pages for tokens to come.
    pub(crate) fn roll_back(&mut self, store: &mut PageStore, n_tokens: u32) {
        self.drop_reserved(store);
        let page_size = store.page_size();
        let end = n_tokens / page_size * page_size;
        let full = store.ancestor(self.reach, end);
        let behind = store
            .ancestor(self.reach, end + page_size)
            .filter(|&node| Some(node) != full);
        if self.n_ready > n_tokens {
            if self.pages.len() as u32 * page_size > end {
                // The last tokens lie in a page that was full.
                self.drop_partial(store);
                if n_tokens > end
                    && let Some(node) = store.ancestor(self.pin, end + page_size)
                {
                    store.hold(node);
                    store.pin(node);
                    self.partial = Partial::Node(node);
                }
                let pin = store.ancestor(self.pin, end);
                if let Some(pin) = pin {
                    store.pin(pin);
                }
                if let Some(old) = std::mem::replace(&mut self.pin, pin) {
                    store.unpin(old);
                }
                Arc::make_mut(&mut self.pages).truncate((end / page_size) as usize);
            } else if n_tokens == end {
                self.drop_partial(store);
            }
            self.n_ready = n_tokens;
        }
        self.park_behind(store, n_tokens, full, behind);
    }

    /// Rolls what was computed and is not ready back to the node `full`, whose child `behind` is where a part is wanted.
    fn park_behind(
        &mut self,
        store: &mut PageStore,
        n_tokens: u32,
        full: Option<NodeId>,
        behind: Option<NodeId>,
    ) {
        if self.reach != full {
            self.path.clear();
            self.forget_parked(store);
            let wanted = n_tokens > store.end(full) && matches!(self.partial, Partial::None);
            if let Some(node) = behind.filter(|_| wanted) {
                store.hold(node);
                self.parked = Some(Parked {
                    node,
                    n_ready: n_tokens,
                });
            }
            self.set_reach(store, full);
        } else if let Some(parked) = &mut self.parked
            && parked.n_ready > n_tokens
        {
            parked.n_ready = n_tokens;
        }
        if self.parked.is_some() && n_tokens <= store.end(self.reach) {
            self.forget_parked(store);
        }
    }

    /// Lets go of all pages. What was computed stays wanted: `tail` gives the content of slots behind the last full page.
    pub(crate) fn suspend(
        &mut self,
        store: &mut PageStore,
        tail: impl FnOnce(Range<u32>) -> Content,
    ) {
        self.drop_reserved(store);
        if self.pin == self.reach {
            self.share_partial(store, tail);
            if let Partial::Node(node) = self.partial {
                self.forget_parked(store);
                store.hold(node);
                self.parked = Some(Parked {
                    node,
                    n_ready: self.n_ready,
                });
            }
        }
        self.drop_resident(store);
    }

    /// Lets go of all pages, of which those that a failed batch should have filled are not to be used again.
    pub(crate) fn reset(&mut self, store: &mut PageStore) {
        self.drop_reserved(store);
        self.drop_resident(store);
    }

    fn drop_resident(&mut self, store: &mut PageStore) {
        self.drop_partial(store);
        if let Some(pin) = self.pin.take() {
            store.unpin(pin);
        }
        self.path.clear();
        self.pages = Arc::default();
        self.n_ready = 0;
    }

    /// Makes the partial page a node, so that others can see it.
    fn share_partial(&mut self, store: &mut PageStore, tail: impl FnOnce(Range<u32>) -> Content) {
        if let Partial::Own(page) = self.partial {
            let start = store.end(self.pin);
            if start == self.n_ready {
                self.drop_partial(store);
                return;
            }
            let node = store.park(self.pin, self.owner, tail(start..self.n_ready), page);
            store.pin(node);
            self.partial = Partial::Node(node);
        }
    }

    /// A lane that has the same ready. While a batch uses this one, the other has to make it ready by itself.
    pub(crate) fn fork(
        &mut self,
        store: &mut PageStore,
        leased: bool,
        tail: impl FnOnce(Range<u32>) -> Content,
    ) -> Self {
        if leased || self.pin != self.reach {
            return self.absent(store);
        }
        self.share_partial(store, tail);
        let mut fork = self.absent(store);
        if let Some(pin) = self.pin {
            store.pin(pin);
        }
        if let Partial::Node(node) = self.partial {
            store.hold(node);
            store.pin(node);
        }
        fork.pin = self.pin;
        fork.partial = self.partial;
        fork.pages = self.pages.clone();
        fork.n_ready = self.n_ready;
        fork
    }

    /// A lane that wants the same and has nothing ready.
    fn absent(&self, store: &mut PageStore) -> Self {
        for node in self
            .reach
            .iter()
            .chain(self.parked.as_ref().map(|parked| &parked.node))
        {
            store.hold(*node);
        }
        Self {
            reach: self.reach,
            parked: self.parked,
            ..Self::new(self.owner)
        }
    }

    /// Lets go of everything.
    pub(crate) fn release(mut self, store: &mut PageStore) {
        self.reset(store);
        self.forget_parked(store);
        self.set_reach(store, None);
    }

    fn set_reach(&mut self, store: &mut PageStore, reach: Option<NodeId>) {
        if let Some(reach) = reach {
            store.hold(reach);
        }
        if let Some(old) = std::mem::replace(&mut self.reach, reach) {
            store.unhold(old);
        }
    }

    fn forget_parked(&mut self, store: &mut PageStore) {
        if let Some(parked) = self.parked.take() {
            store.unhold(parked.node);
        }
    }

    fn drop_partial(&mut self, store: &mut PageStore) {
        match std::mem::take(&mut self.partial) {
            Partial::None => {}
            Partial::Own(page) => store.release(self.owner, page),
            Partial::Node(id) => {
                store.unpin(id);
                store.unhold(id);
            }
        }
    }

    fn drop_reserved(&mut self, store: &mut PageStore) {
        for page in self.reserved.drain(..) {
            store.release(self.owner, page);
        }
    }
}

/// Pages that it takes to have a node ready; none where it has to be computed.
fn cost(store: &PageStore, claim: Claim, node: NodeId) -> Result<Option<u32>, Obstacle> {
    match (store.place(node), store.moving(node)) {
        (Place::Gone, _) => Ok(None),
        (Place::Device(_), Some(batch)) if batch != claim.batch => Err(Obstacle::Moving),
        (Place::Host(_), Some(_)) => Err(Obstacle::Moving),
        (Place::Device(_), _) => Ok(Some(u32::from(!store.is_used(node)))),
        (Place::Host(_), None) => Ok(Some(1)),
    }
}
