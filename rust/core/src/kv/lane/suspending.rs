//! Gives up all pages, or shares them with another lane that has the same ready.

use std::ops::Range;

use super::super::content::Content;
use super::super::store::PageStore;
use super::Lane;
use super::full::FullPages;

impl Lane {
    /// Gives up all pages. What was computed stays wanted: `tail` gives the content of slots behind the last full page.
    pub(crate) fn suspend(
        &mut self,
        store: &mut PageStore,
        tail: impl FnOnce(Range<u32>) -> Content,
    ) {
        self.tail.drop_reserved(store, self.owner);
        if self.pin == self.reach {
            self.share_partial(store, tail);
            if let Some(node) = self.tail.shared() {
                self.tail.park(store, node, self.n_ready);
            }
        }
        self.drop_resident(store);
    }

    /// Gives up all pages, because those that a failed batch should have filled must not be used again.
    pub(crate) fn reset(&mut self, store: &mut PageStore) {
        self.tail.drop_reserved(store, self.owner);
        self.drop_resident(store);
    }

    fn drop_resident(&mut self, store: &mut PageStore) {
        self.tail.drop_partial(store, self.owner);
        if let Some(pin) = self.pin.take() {
            store.unpin(pin);
        }
        self.path.clear();
        self.pages = FullPages::default();
        self.n_ready = 0;
    }

    /// Makes the partial page a node, so that others can see it.
    fn share_partial(&mut self, store: &mut PageStore, tail: impl FnOnce(Range<u32>) -> Content) {
        self.tail
            .share_partial(store, self.owner, self.pin, self.n_ready, tail);
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
        if let Some(node) = self.tail.shared() {
            store.hold(node);
            store.pin(node);
            fork.tail.share(node);
        }
        fork.pin = self.pin;
        fork.pages = self.pages.fork(store);
        fork.n_ready = self.n_ready;
        fork
    }

    /// A lane that wants the same and has nothing ready.
    fn absent(&self, store: &mut PageStore) -> Self {
        if let Some(reach) = self.reach {
            store.hold(reach);
        }
        Self {
            reach: self.reach,
            tail: self.tail.absent(store),
            ..Self::new(self.owner)
        }
    }

    /// Drops everything that it holds and uses.
    pub(crate) fn release(mut self, store: &mut PageStore) {
        self.reset(store);
        self.tail.forget_parked(store);
        self.set_reach(store, None);
    }
}
