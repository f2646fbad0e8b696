//! The pages of one context, in the order of its tokens.

use super::{PagePool, pages_for};
use crate::ids::PageId;

/// The pages that hold the tokens of a context, and those reserved for what a pass will write. Every entry owns one reference.
///
/// A page that others share is never written. The tables of a fork share every page; the first pass of each that writes into the
/// shared last page gets a copy of it, which takes effect when the batch that makes the copy has completed.
#[derive(Debug, Default)]
pub(crate) struct PageTable {
    pages: Vec<PageId>,
}

/// A page to be copied before a pass writes into it. It owns the reference of `dst`; the table keeps `src` until the copy is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageCopy {
    pub(crate) page_idx: u32,
    pub(crate) src: PageId,
    pub(crate) dst: PageId,
}

/// The pool has fewer free pages than a pass needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shortage {
    pub(crate) needed: u32,
}

impl PageTable {
    pub(crate) fn pages(&self) -> &[PageId] {
        &self.pages
    }

    /// Makes room for the tokens `[written, length)` to be written: pages for all of them, and a copy of the page that holds
    /// `written` if others share it. All or nothing.
    pub(crate) fn reserve(
        &mut self,
        pool: &mut PagePool,
        page_size: u32,
        written: u32,
        length: u32,
    ) -> Result<Option<PageCopy>, Shortage> {
        let n_held = self.pages.len() as u32;
        let n_new = pages_for(length, page_size).saturating_sub(n_held);
        let page_idx = written / page_size;
        let shared = self
            .pages
            .get(page_idx as usize)
            .copied()
            .filter(|&page| written < length && pool.is_shared(page));
        let needed = n_new + u32::from(shared.is_some());
        if needed == 0 {
            return Ok(None);
        }
        if needed > pool.n_free() {
            return Err(Shortage { needed });
        }
        for _ in 0..n_new {
            self.pages.extend(pool.allocate());
        }
        Ok(shared.and_then(|src| pool.allocate().map(|dst| PageCopy { page_idx, src, dst })))
    }

    /// The copy was made: the table refers to it.
    pub(crate) fn adopt(&mut self, pool: &mut PagePool, copy: PageCopy) {
        match self.pages.get_mut(copy.page_idx as usize) {
            Some(page) => {
                pool.release(*page);
                *page = copy.dst;
            }
            None => pool.release(copy.dst),
        }
    }

    /// A table that shares the pages of the first `n_tokens` tokens.
    pub(crate) fn fork(&self, pool: &mut PagePool, page_size: u32, n_tokens: u32) -> Self {
        let n_pages = (pages_for(n_tokens, page_size) as usize).min(self.pages.len());
        let pages = self.pages[..n_pages].to_vec();
        for &page in &pages {
            pool.retain(page);
        }
        Self { pages }
    }

    /// Drops the pages behind the first `n_tokens` tokens.
    pub(crate) fn truncate(&mut self, pool: &mut PagePool, page_size: u32, n_tokens: u32) {
        let n_pages = (pages_for(n_tokens, page_size) as usize).min(self.pages.len());
        for page in self.pages.drain(n_pages..) {
            pool.release(page);
        }
    }
}
