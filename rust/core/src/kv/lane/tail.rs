//! What lies behind the full pages of a lane.

use std::collections::VecDeque;

use super::super::content::Content;
use super::super::store::{NodeId, PageStore};
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
pub(super) struct Parked {
    pub(super) node: NodeId,
    pub(super) n_ready: u32,
}

/// The partial page, what is kept of one that is not ready, and the pages for tokens to come.
#[derive(Debug, Default)]
pub(super) struct Tail {
    partial: Partial,
    /// The part of a page behind `reach` that was ready when the lane was suspended.
    parked: Option<Parked>,
    /// Own pages for tokens to come.
    reserved: VecDeque<PageId>,
}

/// What there is.
impl Tail {
    pub(super) const fn has_partial(&self) -> bool {
        !matches!(self.partial, Partial::None)
    }

    /// Whether others may see the partial page: it is copied before it is written.
    pub(super) const fn is_shared(&self) -> bool {
        matches!(self.partial, Partial::Node(_))
    }

    /// The partial page that others may see.
    pub(super) const fn shared(&self) -> Option<NodeId> {
        match self.partial {
            Partial::Node(id) => Some(id),
            Partial::None | Partial::Own(_) => None,
        }
    }

    /// Whether the partial page is of use to nobody else.
    pub(super) fn is_sole_user(&self, store: &PageStore) -> bool {
        match self.partial {
            Partial::None => false,
            Partial::Own(_) => true,
            Partial::Node(id) => store.n_users_of(id) == 1,
        }
    }

    pub(super) const fn parked(&self) -> Option<Parked> {
        self.parked
    }

    pub(super) fn n_reserved(&self) -> u32 {
        self.reserved.len() as u32
    }

    /// Pages on the device.
    pub(super) fn n_pages(&self) -> u32 {
        u32::from(self.has_partial()) + self.n_reserved()
    }

    /// The page of the partial one.
    fn partial_page(&self, store: &PageStore) -> Option<PageId> {
        match self.partial {
            Partial::None => None,
            Partial::Own(page) => Some(page),
            Partial::Node(id) => store.page(id),
        }
    }

    /// The first of them in the order of storage.
    pub(super) fn first_page(&self, store: &PageStore) -> Option<PageId> {
        match self.partial {
            Partial::Own(page) => Some(page),
            Partial::None => self.reserved.front().copied(),
            Partial::Node(id) => store.page(id),
        }
    }

    /// The pages in the order of storage, those for tokens to come last.
    pub(super) fn pages(&self, store: &PageStore) -> impl Iterator<Item = PageId> + '_ {
        let reserved = self.reserved.iter().copied();
        self.partial_page(store).into_iter().chain(reserved)
    }

    /// Lists the same. Every sequence of every batch has its pages listed, and few have any reserved.
    pub(super) fn list(&self, store: &PageStore, pages: &mut Vec<PageId>) {
        pages.clear();
        if let Some(page) = self.partial_page(store) {
            pages.push(page);
        }
        if !self.reserved.is_empty() {
            pages.extend(&self.reserved);
        }
    }

    /// The pages that are in no node.
    pub(super) fn own_pages(&self) -> impl Iterator<Item = PageId> + '_ {
        let partial = match self.partial {
            Partial::Own(page) => Some(page),
            Partial::None | Partial::Node(_) => None,
        };
        partial.into_iter().chain(self.reserved.iter().copied())
    }

    /// The nodes that are held.
    pub(super) fn held(&self) -> impl Iterator<Item = NodeId> + use<> {
        let parked = self.parked.map(|parked| parked.node);
        parked.into_iter().chain(self.shared())
    }
}

/// The partial page changes.
impl Tail {
    /// A page that the caller holds and uses is the partial one.
    pub(super) fn share(&mut self, node: NodeId) {
        debug_assert!(!self.has_partial(), "there is a partial page already");
        self.partial = Partial::Node(node);
    }

    /// An own page is the partial one.
    pub(super) fn own(&mut self, page: PageId) {
        debug_assert!(!self.has_partial(), "there is a partial page already");
        self.partial = Partial::Own(page);
    }

    /// Makes the partial page its own where nobody else wants it.
    pub(super) fn reclaim_partial(&mut self, store: &mut PageStore) {
        if let Partial::Node(id) = self.partial {
            store.unpin(id);
            match store.reclaim(id) {
                Some(page) => self.partial = Partial::Own(page),
                None => store.pin(id),
            }
        }
    }

    /// Makes the partial page a node behind `parent`, so that others can see it: its tokens up to `n_ready`, whose
    /// content `tail` gives.
    pub(super) fn share_partial(
        &mut self,
        store: &mut PageStore,
        owner: UserId,
        parent: Option<NodeId>,
        n_ready: u32,
        tail: impl FnOnce(std::ops::Range<u32>) -> Content,
    ) {
        if let Partial::Own(page) = self.partial {
            let start = store.end(parent);
            if start == n_ready {
                self.drop_partial(store, owner);
                return;
            }
            let node = store.park(parent, owner, tail(start..n_ready), page);
            store.pin(node);
            self.partial = Partial::Node(node);
        }
    }

    pub(super) fn drop_partial(&mut self, store: &mut PageStore, owner: UserId) {
        match std::mem::take(&mut self.partial) {
            Partial::None => {}
            Partial::Own(page) => store.release(owner, page),
            Partial::Node(id) => {
                store.unpin(id);
                store.unhold(id);
            }
        }
    }

    /// Takes out the lane's own page that becomes full next: the partial one, or else the first reserved one. None:
    /// there is none, or others may see the partial one.
    pub(super) fn take_first(&mut self) -> Option<PageId> {
        match self.partial {
            Partial::Own(page) => {
                self.partial = Partial::None;
                Some(page)
            }
            Partial::None => self.reserved.pop_front(),
            Partial::Node(_) => None,
        }
    }

    /// Tokens lie behind the full pages: where there is no partial page, the first that is reserved is it.
    pub(super) fn begin_partial(&mut self) {
        if !self.has_partial()
            && let Some(page) = self.reserved.pop_front()
        {
            self.partial = Partial::Own(page);
        }
    }
}

/// What is parked, and what is reserved, changes.
impl Tail {
    /// A part of a page, up to `n_ready`, is wanted and is not ready.
    pub(super) fn park(&mut self, store: &mut PageStore, node: NodeId, n_ready: u32) {
        self.forget_parked(store);
        store.hold(node);
        self.parked = Some(Parked { node, n_ready });
    }

    /// No more of the parked page counts than the tokens up to `n_ready`.
    pub(super) fn cut_parked(&mut self, n_ready: u32) {
        if let Some(parked) = &mut self.parked {
            parked.n_ready = parked.n_ready.min(n_ready);
        }
    }

    /// What was parked is ready, and used: it is the partial page.
    pub(super) fn unpark(&mut self) {
        if let Some(parked) = self.parked.take() {
            self.share(parked.node);
        }
    }

    pub(super) fn forget_parked(&mut self, store: &mut PageStore) {
        if let Some(parked) = self.parked.take() {
            store.unhold(parked.node);
        }
    }

    /// The same, where nothing is ready.
    pub(super) fn absent(&self, store: &mut PageStore) -> Self {
        if let Some(parked) = self.parked {
            store.hold(parked.node);
        }
        Self {
            parked: self.parked,
            ..Self::default()
        }
    }

    pub(super) fn reserve(&mut self, pages: Vec<PageId>) {
        self.reserved.extend(pages);
    }

    /// Takes the last reserved page out.
    pub(super) fn take_last(&mut self) -> Option<PageId> {
        self.reserved.pop_back()
    }

    pub(super) fn drop_reserved(&mut self, store: &mut PageStore, owner: UserId) {
        for page in self.reserved.drain(..) {
            store.release(owner, page);
        }
    }
}
