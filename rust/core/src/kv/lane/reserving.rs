//! Room for tokens to come.

use super::super::store::{Moves, PageDemand, PageStore};
use super::{Lane, Obstacle, PageCopy};

impl Lane {
    /// Makes room for the tokens up to `length`: pages for all of them, and a copy of the partial page where others may
    /// see it. All or nothing.
    pub(crate) fn reserve(
        &mut self,
        store: &mut PageStore,
        demand: PageDemand,
        moves: &mut Moves,
        length: u32,
    ) -> Result<Option<PageCopy>, Obstacle> {
        if self.must_copy(length) {
            self.tail.reclaim_partial(store);
        }
        self.drop_spare(store, length);
        let n_missing = self.n_missing(store, length);
        if n_missing == 0 {
            return Ok(None);
        }
        let mut pages = store
            .allocate(self.owner, n_missing, demand, moves)
            .ok_or(Obstacle::Short)?;
        let shared = self.tail.shared().filter(|_| length > self.n_ready);
        let copy = shared.and_then(|id| {
            let (dst, src) = (pages.pop(), store.page(id));
            dst.zip(src).map(|(dst, src)| PageCopy { src, dst })
        });
        self.tail.reserve(pages);
        Ok(copy)
    }

    /// Gives up the reserved pages that the tokens up to `length` do not need: what was adopted brought pages of its
    /// own.
    pub(crate) fn drop_spare(&mut self, store: &mut PageStore, length: u32) {
        let n_needed = length.div_ceil(store.page_size());
        while self.n_pages() > n_needed
            && let Some(page) = self.tail.take_last()
        {
            store.release(self.owner, page);
        }
    }

    /// Makes room for the tokens up to `length`, behind those that a batch computes that uses the lane. False: there is
    /// no room, or the batch copies the last page, which is the lane's own only when that is done.
    pub(crate) fn extend(
        &mut self,
        store: &mut PageStore,
        demand: PageDemand,
        moves: &mut Moves,
        length: u32,
    ) -> bool {
        !self.must_copy(length) && self.reserve(store, demand, moves, length).is_ok()
    }

    /// Drops the part of a page that would have to be copied; it is computed again. False: there is none.
    pub(crate) fn give_up_shared(&mut self, store: &mut PageStore) -> bool {
        if self.tail.parked().is_some() {
            self.tail.forget_parked(store);
            return true;
        }
        let shared = self.tail.is_shared();
        if shared {
            self.tail.drop_partial(store, self.owner);
            self.n_ready = store.end(self.pin);
        }
        shared
    }

    /// The batch made the copy: the partial page is the lane's own.
    pub(crate) fn take_copy(&mut self, store: &mut PageStore, copy: PageCopy) {
        self.tail.drop_partial(store, self.owner);
        self.tail.own(copy.dst);
    }

    /// Gives up the pages for tokens to come, and the page for a copy that no batch makes.
    pub(crate) fn give_up_room(&mut self, store: &mut PageStore, copy: Option<PageCopy>) {
        self.tail.drop_reserved(store, self.owner);
        if let Some(copy) = copy {
            self.drop_copy(store, copy);
        }
    }

    /// The copy is not made.
    pub(crate) fn drop_copy(&self, store: &mut PageStore, copy: PageCopy) {
        store.release(self.owner, copy.dst);
    }
}
