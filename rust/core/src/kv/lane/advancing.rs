//! Tokens become ready, or are given up.

use super::super::content::Content;
use super::super::store::{NodeId, PageStore};
use super::Lane;

impl Lane {
    /// The tokens up to `length` are ready. `page` gives the content of a page that became full, by its index.
    pub(crate) fn advance(
        &mut self,
        store: &mut PageStore,
        length: u32,
        mut page: impl FnMut(u32) -> Content,
    ) {
        let page_size = store.page_size();
        while (self.pages.len() + 1) * page_size <= length {
            let Some(own) = self.tail.take_first() else {
                break;
            };
            let node = match self.path.pop() {
                Some(node) if store.revive(node, self.owner, own) => node,
                Some(_) => {
                    // Another batch is bringing it back and may fail. This lane waits for that at the next attempt.
                    self.path.clear();
                    self.n_ready = self.pages.len() * page_size;
                    return;
                }
                None => {
                    let content = page(self.pages.len());
                    let node = store.commit(self.pin, self.owner, content, own);
                    self.set_reach(store, Some(node));
                    self.tail.forget_parked(store);
                    node
                }
            };
            store.pin(node);
            self.step_to(store, node);
        }
        if length > self.pages.len() * page_size {
            self.tail.begin_partial();
        }
        self.n_ready = length;
        if self.pin == self.reach && self.tail.has_partial() {
            self.tail.forget_parked(store);
        }
    }

    /// Keeps the first `n_tokens` tokens of what was computed, and gives up the pages for tokens to come.
    pub(crate) fn roll_back(&mut self, store: &mut PageStore, n_tokens: u32) {
        self.tail.drop_reserved(store, self.owner);
        let page_size = store.page_size();
        let end = n_tokens / page_size * page_size;
        let full = store.ancestor(self.reach, end);
        let behind = store
            .ancestor(self.reach, end + page_size)
            .filter(|&node| Some(node) != full);
        if self.n_ready > n_tokens {
            if self.pages.len() * page_size > end {
                // The last tokens lie in a page that was full.
                self.tail.drop_partial(store, self.owner);
                if n_tokens > end
                    && let Some(node) = store.ancestor(self.pin, end + page_size)
                {
                    store.hold(node);
                    store.pin(node);
                    self.tail.share(node);
                }
                let pin = store.ancestor(self.pin, end);
                if let Some(pin) = pin {
                    store.pin(pin);
                }
                if let Some(old) = std::mem::replace(&mut self.pin, pin) {
                    store.unpin(old);
                }
                self.pages.truncate(store, end / page_size);
            } else if n_tokens == end {
                self.tail.drop_partial(store, self.owner);
            }
            self.n_ready = n_tokens;
        }
        self.park_behind(store, n_tokens, full, behind);
    }

    /// Rolls back what was computed and is not ready, to the node `full`. Its child `behind` is given where a part of
    /// that is wanted.
    fn park_behind(
        &mut self,
        store: &mut PageStore,
        n_tokens: u32,
        full: Option<NodeId>,
        behind: Option<NodeId>,
    ) {
        if self.reach != full {
            self.path.clear();
            self.tail.forget_parked(store);
            let wanted = n_tokens > store.end(full) && !self.tail.has_partial();
            if let Some(node) = behind.filter(|_| wanted) {
                self.tail.park(store, node, n_tokens);
            }
            self.set_reach(store, full);
        } else {
            self.tail.cut_parked(n_tokens);
        }
        if self.tail.parked().is_some() && n_tokens <= store.end(self.reach) {
            self.tail.forget_parked(store);
        }
    }
}
