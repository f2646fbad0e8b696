//! Operations on the pages of a context, for loops of one's own, sliding windows, and rollback after speculation.

use std::ops::Deref;
use std::rc::Rc;

use crate::Result;
use crate::bindings::pie::core::context as raw;
use crate::shared::Shared;

/// The context of the engine behind a [`Context`](crate::Context), by [`Context::inner`](crate::Context::inner).
///
/// A page is committed once it is full: its tokens can be dropped only as a whole page, and other contexts may share
/// it. Before that it is a working page. Errors of calls without `Result` are kept by the context.
#[derive(Debug)]
pub struct RawContext {
    shared: Rc<Shared>,
}

impl RawContext {
    pub(crate) fn new(raw: raw::Context) -> Self {
        Self {
            shared: Rc::new(Shared::new(raw)),
        }
    }

    pub(crate) const fn shared(&self) -> &Rc<Shared> {
        &self.shared
    }

    /// Makes room for `n` more pages, so that the passes that follow need none.
    ///
    /// # Errors
    /// A kept error; `out-of-pages`, `context-busy`, `context-released`.
    pub fn reserve_working_pages(&self, n: u32) -> Result<()> {
        self.check()?;
        Ok(self.shared.raw.reserve_working_pages(n)?)
    }

    /// Commits the first `k` full working pages.
    ///
    /// # Errors
    /// A kept error; `invalid-argument` where fewer are full; `context-busy`, `context-released`.
    pub fn commit_working_pages(&self, k: u32) -> Result<()> {
        self.check()?;
        Ok(self.shared.raw.commit_working_pages(k)?)
    }

    /// Gives up the last `n` working pages, all of them where there are fewer, with their tokens and what is pending
    /// behind those.
    pub fn release_working_pages(&self, n: u32) {
        let released = self.shared.raw.release_working_pages(n);
        self.shared.keeper.value_of(released);
    }

    /// Drops the last `n` tokens of working pages, all of them where there are fewer, the pending one first. The pages
    /// stay reserved.
    pub fn truncate_working_page_tokens(&self, n: u32) {
        let truncated = self.shared.raw.truncate_working_page_tokens(n);
        self.shared.keeper.value_of(truncated);
    }

    /// Drops the last `n` committed pages, where there is neither a working page nor a pending token. Pages that others
    /// share stay theirs.
    ///
    /// # Errors
    /// A kept error; `truncate-range` for more; `context-busy`, `context-released`.
    pub fn drop_committed_pages(&self, n: u32) -> Result<()> {
        self.check()?;
        Ok(self.shared.raw.drop_committed_pages(n)?)
    }

    /// Committed pages. 0 where the call fails: its error is kept.
    pub fn committed_page_count(&self) -> u32 {
        let count = self.shared.raw.committed_page_count();
        self.shared.keeper.value_of(count)
    }

    /// Working pages, with those that were reserved. 0 where the call fails: its error is kept.
    pub fn working_page_count(&self) -> u32 {
        let count = self.shared.raw.working_page_count();
        self.shared.keeper.value_of(count)
    }

    /// Tokens in the last working page that holds any. 0 where the call fails: its error is kept.
    pub fn working_page_token_count(&self) -> u32 {
        let count = self.shared.raw.working_page_token_count();
        self.shared.keeper.value_of(count)
    }

    /// Returns the error that an earlier call on the context kept, once.
    ///
    /// # Errors
    /// That error.
    pub fn check(&self) -> Result<()> {
        self.shared.keeper.meet()
    }
}

/// Itself, for what takes either kind of context.
impl AsRef<Self> for RawContext {
    fn as_ref(&self) -> &Self {
        self
    }
}

/// The resource itself, for raw passes.
impl Deref for RawContext {
    type Target = raw::Context;

    fn deref(&self) -> &raw::Context {
        &self.shared.raw
    }
}
