//! Where keys and values live: a pool of pages, and the table of the pages of each context.

mod pool;
#[cfg(test)]
mod property_tests;
mod table;

pub(crate) use pool::PagePool;
pub(crate) use table::{PageCopy, PageTable};

/// Pages that hold `n_tokens` tokens.
pub(crate) const fn pages_for(n_tokens: u32, page_size: u32) -> u32 {
    n_tokens.div_ceil(page_size)
}
