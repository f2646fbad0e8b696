//! The pages of a model, with the number of references to each.

use crate::faults::Faults;
use crate::ids::PageId;

/// A pool of pages. A page without references is free; memory grows with the pages ever used, not with the pool.
#[derive(Debug)]
pub(crate) struct PagePool {
    n_pages: u32,
    /// References to each page that was ever used.
    references: Vec<u32>,
    /// Used before and free again.
    free: Vec<PageId>,
    faults: Faults,
}

impl PagePool {
    pub(crate) const fn new(n_pages: u32) -> Self {
        Self {
            n_pages,
            references: Vec::new(),
            free: Vec::new(),
            faults: Faults::new(),
        }
    }

    /// What was as it cannot be.
    pub(crate) const fn faults(&self) -> &Faults {
        &self.faults
    }

    pub(crate) const fn n_pages(&self) -> u32 {
        self.n_pages
    }

    pub(crate) fn n_used(&self) -> u32 {
        (self.references.len() - self.free.len()) as u32
    }

    pub(crate) fn n_free(&self) -> u32 {
        self.n_pages - self.n_used()
    }

    /// A free page, with one reference; none when all are in use.
    pub(crate) fn allocate(&mut self) -> Option<PageId> {
        let page = match self.free.pop() {
            Some(page) => page,
            None if (self.references.len() as u32) < self.n_pages => {
                self.references.push(0);
                PageId(self.references.len() as u32 - 1)
            }
            None => return None,
        };
        self.retain(page);
        Some(page)
    }

    /// Adds a reference.
    pub(crate) fn retain(&mut self, page: PageId) {
        match self.references.get_mut(page.0 as usize) {
            Some(count) => *count += 1,
            None => self.faults.count("a page that is used is not in the pool"),
        }
    }

    /// Drops a reference; the page is free when it was the last.
    pub(crate) fn release(&mut self, page: PageId) {
        let Some(count) = self.references.get_mut(page.0 as usize) else {
            return self.faults.count("a page that is free is not in the pool");
        };
        if *count == 0 {
            // It is free: were it listed twice, two would get it.
            return self.faults.count("a page is released once too often");
        }
        *count -= 1;
        if *count == 0 {
            self.free.push(page);
        }
    }
}
