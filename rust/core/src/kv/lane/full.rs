//! The full pages of a lane that are ready, in the order of storage.

use std::sync::Arc;

use super::super::store::PageStore;
use crate::ids::PageId;

/// A list of pages. It grows under its name, and has another one once it was cut: so whoever knows the first of a list
/// by its name need not look at them again.
#[derive(Debug, Default)]
pub(super) struct FullPages {
    pages: Arc<Vec<PageId>>,
    /// How many there are: every step asks, and the list itself lies elsewhere.
    n: u32,
    /// No other list of the store has it; 0 where there are no pages.
    name: u64,
}

impl FullPages {
    pub(super) const fn len(&self) -> u32 {
        self.n
    }

    pub(super) const fn name(&self) -> u64 {
        self.name
    }

    pub(super) fn list(&self) -> &Vec<PageId> {
        &self.pages
    }

    pub(super) fn push(&mut self, store: &mut PageStore, page: PageId) {
        if self.name == 0 {
            self.name = store.name_list();
        }
        Arc::make_mut(&mut self.pages).push(page);
        self.n += 1;
    }

    /// Keeps the first `n`.
    pub(super) fn truncate(&mut self, store: &mut PageStore, n: u32) {
        Arc::make_mut(&mut self.pages).truncate(n as usize);
        self.n = self.n.min(n);
        self.name = if n == 0 { 0 } else { store.name_list() };
    }

    /// The same, of another lane: each goes on by itself.
    pub(super) fn fork(&self, store: &mut PageStore) -> Self {
        Self {
            pages: self.pages.clone(),
            n: self.n,
            name: if self.n == 0 { 0 } else { store.name_list() },
        }
    }

    /// Verifies that its count and its name are those of its pages.
    pub(super) fn is_sound(&self) -> bool {
        self.n as usize == self.pages.len() && (self.n == 0) == (self.name == 0)
    }
}
