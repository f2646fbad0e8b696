//! What a context has on the device: apart from what it says, which `context` keeps.
//!
//! A lane has computed tokens up to `reach` and a part of a page behind it, and has ready what lies up to `pin` and in
//! its partial page. It is in one of four states ([`Lane::state`]), and [`Lane::check`] verifies the rows of this
//! table:
//!
//! | state | `pin` | `partial` | `parked` | ready | becomes |
//! |---|---|---|---|---|---|
//! | away | none, below a `reach` | none | any | nothing | behind, torn or whole, by `adopt` and `advance` |
//! | behind | above `reach` | none or its own | any | up to `pin`, a part of the next page | torn or whole |
//! | torn | `reach` | none | a part | the pages up to `reach` | whole, by `adopt` (`unpark`) or `advance` (again) |
//! | whole | `reach` | any | none | all that was computed | away, by `suspend` and `reset`; torn (below) |
//!
//! `fork` and `roll_back` tear a whole one where others use the partial page. In each of them there may be `reserved`
//! pages for tokens to come. A partial page that others may see (`Partial::Node`) is copied before it is written, and
//! is there in a whole lane alone: what is behind computes on pages of its own.

mod adopting;
mod advancing;
mod check;
mod full;
mod reserving;
mod suspending;
mod tail;

use super::content::Content;
use super::store::{NodeId, PageStore};
use crate::batch::Pages;
use crate::ids::{PageId, UserId};
use full::FullPages;
use tail::Tail;

/// The part of a context's tokens whose keys and values are on the device, in the order of storage, and the pages for
/// those to come.
///
/// What a lane computed may leave the device ([`Lane::suspend`]) without the context changing: the lane then starts
/// again from what is left in the store, and the rest is copied back or computed again. Nothing of a lane changes while
/// a batch uses it, but by that batch and the one that follows it. What tokens there are is the context's to tell: by
/// slots behind the last full page, or by the index of a page.
#[derive(Debug)]
pub(crate) struct Lane {
    owner: UserId,
    /// The deepest full page that was computed, held, on the device or not.
    reach: Option<NodeId>,
    /// The deepest full page that is ready, pinned: `reach` or an ancestor.
    pin: Option<NodeId>,
    /// From `reach` up to the child of `pin`, while they differ; empty when it was not looked up.
    path: Vec<NodeId>,
    /// The pages up to `pin`.
    pages: FullPages,
    tail: Tail,
    /// Tokens that are ready: those up to `pin`, and those of the partial page that count.
    n_ready: u32,
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
            pin: None,
            path: Vec::new(),
            pages: FullPages::default(),
            tail: Tail::default(),
            n_ready: 0,
        }
    }

    /// Nothing is ready of full pages of that content, one behind the other, which count as computed: what others have
    /// of them is adopted, and the rest is computed again, as for a lane that gave up all its pages.
    pub(crate) fn of_pages(
        store: &mut PageStore,
        owner: UserId,
        pages: impl Iterator<Item = Content>,
    ) -> Self {
        let mut lane = Self::new(owner);
        for content in pages {
            let node = store.plant(lane.reach, owner, content);
            // The node has a holder of its own: that of the lane comes on top, and takes its place.
            lane.set_reach(store, Some(node));
            store.unhold(node);
        }
        lane
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
        self.pin.is_some() || self.tail.n_pages() > 0
    }

    /// Its pages in the order of storage, those for tokens to come last.
    pub(crate) fn pages<'a>(&'a self, store: &PageStore) -> impl Iterator<Item = PageId> + 'a {
        let full = self.pages.list().iter().copied();
        full.chain(self.tail.pages(store))
    }

    /// Pages that hold its tokens up to `length`. Mostly those are all that it has, and nothing is divided.
    pub(crate) fn n_pages_of(&self, store: &PageStore, length: u32) -> u32 {
        let (n_pages, page_size) = (self.n_pages(), store.page_size());
        let n_slots = n_pages * page_size;
        if length <= n_slots && n_slots < length + page_size {
            n_pages
        } else {
            length.div_ceil(page_size)
        }
    }

    /// How many full pages are ready.
    pub(crate) const fn n_full(&self) -> u32 {
        self.pages.len()
    }

    /// The first `n` full pages that are ready, in the order of storage.
    pub(crate) fn full_pages(&self, n: u32) -> Pages<'_> {
        Pages {
            list: self.pages.name(),
            ids: self.pages.list(),
            n: n as usize,
        }
    }

    /// Lists its first `n` pages behind the full ones.
    pub(crate) fn list_behind(&self, store: &PageStore, n: usize, pages: &mut Vec<PageId>) {
        self.tail.list(store, pages);
        pages.truncate(n);
    }

    /// The page behind the full ones; none where there is none.
    pub(crate) fn page_behind(&self, store: &PageStore) -> Option<PageId> {
        self.tail.first_page(store)
    }

    /// The pages that are in no node.
    pub(crate) fn own_pages(&self) -> impl Iterator<Item = PageId> + '_ {
        self.tail.own_pages()
    }

    /// The nodes that it holds.
    pub(crate) fn held(&self) -> impl Iterator<Item = NodeId> {
        self.reach.into_iter().chain(self.tail.held())
    }

    /// The nodes that it uses.
    pub(crate) fn pinned(&self) -> impl Iterator<Item = NodeId> {
        self.pin.into_iter().chain(self.tail.shared())
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
        match (self.pin == self.reach, self.tail.parked().is_some()) {
            (true, false) => LaneState::Whole,
            (true, true) => LaneState::Torn,
            (false, _) if self.pin.is_none() && !self.tail.has_partial() => LaneState::Away,
            (false, _) => LaneState::Behind,
        }
    }

    /// Whether all that was computed is ready.
    pub(crate) fn is_whole(&self) -> bool {
        self.state() == LaneState::Whole
    }

    /// Its pages, those for tokens to come included.
    fn n_pages(&self) -> u32 {
        self.pages.len() + self.tail.n_pages()
    }

    /// Whether the partial page has to be copied before the tokens up to `length` are written.
    const fn must_copy(&self, length: u32) -> bool {
        self.tail.is_shared() && length > self.n_ready
    }

    /// The pages up to a node that was pinned are ready.
    fn step_to(&mut self, store: &mut PageStore, node: NodeId) {
        if let Some(old) = self.pin.replace(node) {
            store.unpin(old);
        }
        if let Some(page) = store.page(node) {
            self.pages.push(store, page);
        }
    }

    fn set_reach(&mut self, store: &mut PageStore, reach: Option<NodeId>) {
        if let Some(reach) = reach {
            store.hold(reach);
        }
        if let Some(old) = std::mem::replace(&mut self.reach, reach) {
            store.unhold(old);
        }
    }
}
