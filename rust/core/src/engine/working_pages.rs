//! The pages of a context behind the committed ones, for programs that manage them by themselves.
//!
//! Counts are a matter of the context, not of where pages are: a reserved page is one that the context may fill, and it
//! is taken from the pool when a pass does.

use super::Engine;
use super::requests::never_fits;
use crate::context::Context;
use crate::errors::{Error, ErrorCode, Result};
use crate::generation::Retirement;
use crate::ids::ContextId;

/// Pages of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageCounts {
    /// Full pages that cannot be truncated any more.
    pub n_committed: u32,
    /// The others, reserved ones included.
    pub n_working: u32,
    /// Tokens in the last working page that holds any.
    pub n_last: u32,
}

impl Engine {
    /// Pages of a context.
    ///
    /// # Errors
    /// `context-released`.
    pub fn page_counts(&self, context: ContextId) -> Result<PageCounts> {
        let state = self.owned.live(context)?;
        let page_size = self.config.driver.page_size;
        let (n_tokens, n_committed) = match &state.before {
            Some(before) => (before.n_tokens, before.n_committed),
            None => (state.n_tokens(), state.n_committed),
        };
        let n_working_tokens = n_tokens - n_committed * page_size;
        let n_pages = n_tokens.div_ceil(page_size).max(state.n_reserved);
        Ok(PageCounts {
            n_committed,
            n_working: n_pages - n_committed,
            n_last: match n_working_tokens {
                0 => 0,
                n => (n - 1) % page_size + 1,
            },
        })
    }

    /// Adds `n` working pages.
    ///
    /// # Errors
    /// `out-of-pages` where the pool could never hold them; `context-busy`, `context-released`.
    pub fn reserve_working_pages(&mut self, context: ContextId, n: u32) -> Result<()> {
        let (page_size, limit) = (self.config.driver.page_size, self.device.store.n_pages());
        let state = self.idle_context(context, "given pages")?;
        state.settle(page_size);
        let n_pages = state.n_pages(page_size).saturating_add(n);
        if n_pages > limit {
            return Err(never_fits(n_pages, limit, &self.config));
        }
        state.n_reserved = n_pages;
        Ok(())
    }

    /// Commits the first `n` working pages: their tokens cannot be truncated any more.
    ///
    /// # Errors
    /// `invalid-argument` where fewer than `n` are full; `context-busy`, `context-released`.
    pub fn commit_working_pages(&mut self, context: ContextId, n: u32) -> Result<()> {
        let page_size = self.config.driver.page_size;
        let state = self.idle_context(context, "committed")?;
        state.settle(page_size);
        let n_full = state.n_tokens() / page_size - state.n_committed;
        if n > n_full {
            return Err(Error::with_values(
                ErrorCode::InvalidArgument,
                format!(
                    "{n} working pages cannot be committed: {n_full} are full; commit at most {n_full}"
                ),
                &[("pages", u64::from(n)), ("full", u64::from(n_full))],
            ));
        }
        state.n_committed += n;
        Ok(())
    }

    /// Drops the last `n` working pages, all of them where there are fewer, the tokens in them and what is pending
    /// behind those. An idle generator of the context is retired.
    ///
    /// # Errors
    /// `context-busy`, `context-released`.
    pub fn release_working_pages(&mut self, context: ContextId, n: u32) -> Result<()> {
        let page_size = self.config.driver.page_size;
        let state = self.idle_context(context, "truncated")?;
        state.settle(page_size);
        let n_pages = state.n_pages(page_size);
        let n_kept = n_pages.saturating_sub(n).max(state.n_committed);
        let n_slots = n_kept.saturating_mul(page_size);
        // Pending tokens lie in no page: they go where one before them goes.
        let n_left = if n_slots < state.n_tokens() {
            n_slots
        } else {
            state.seq_len()
        };
        let n_dropped = state.seq_len() - n_left;
        state.n_reserved = n_kept;
        self.drop_tokens(context, n_dropped)
    }

    /// Drops the last `n` tokens in working pages, all of them where there are fewer; the pages stay. An idle generator
    /// of the context is retired.
    ///
    /// # Errors
    /// `context-busy`, `context-released`.
    pub fn truncate_working_page_tokens(&mut self, context: ContextId, n: u32) -> Result<()> {
        let page_size = self.config.driver.page_size;
        let state = self.idle_context(context, "truncated")?;
        state.settle(page_size);
        state.n_reserved = state.n_pages(page_size);
        let most = state.seq_len() - state.n_committed * page_size;
        self.drop_tokens(context, n.min(most))
    }

    /// Drops the last `n` committed pages with the tokens in them; pages that others share stay theirs. Nothing may
    /// stand behind them: no working token, and none that is pending. Reserved pages and the buffer stay. An idle
    /// generator of the context is retired.
    ///
    /// # Errors
    /// `truncate-range` where something stands behind them, or where fewer are committed; `context-busy`,
    /// `context-released`.
    pub fn drop_committed_pages(&mut self, context: ContextId, n: u32) -> Result<()> {
        let page_size = self.config.driver.page_size;
        let state = self.idle_context(context, "truncated")?;
        state.settle(page_size);
        let (n_committed, n_behind) = (
            state.n_committed,
            state.seq_len() - state.n_committed * page_size,
        );
        if n_behind > 0 {
            return Err(Error::with_values(
                ErrorCode::TruncateRange,
                format!(
                    "committed pages cannot be dropped while {n_behind} tokens stand behind them; truncate those first"
                ),
                &[("tokens", u64::from(n_behind))],
            ));
        }
        if n > n_committed {
            return Err(Error::with_values(
                ErrorCode::TruncateRange,
                format!(
                    "{n} pages cannot be dropped: {n_committed} are committed; drop at most {n_committed}"
                ),
                &[("pages", u64::from(n)), ("most", u64::from(n_committed))],
            ));
        }
        let n_reserved = state.n_pages(page_size) - n_committed;
        state.n_committed = n_committed - n;
        // Those that come in their place are new.
        state.n_paid = state.n_paid.min(state.n_committed);
        state.n_reserved = n_committed - n + n_reserved;
        self.drop_tokens(context, n * page_size)
    }

    /// Drops the last `n` tokens, the pending ones first, and retires the generator that would have gone on from them.
    pub(super) fn drop_tokens(&mut self, context: ContextId, n: u32) -> Result<()> {
        let state = self.owned.live_mut(context)?;
        let generator = state.generator.take();
        let n_pending = n.min(state.pending.len() as u32);
        let n_left = state.pending.len() - n_pending as usize;
        state.pending.truncate(n_left);
        state.drop_last(&mut self.device.store, n - n_pending);
        if let Some(generator) = generator {
            self.retire(generator, Retirement::Truncation);
        }
        Ok(())
    }
}

impl Context {
    /// Pages that it fills or has reserved.
    const fn n_pages(&self, page_size: u32) -> u32 {
        let n_filled = self.n_tokens().div_ceil(page_size);
        if n_filled > self.n_reserved {
            n_filled
        } else {
            self.n_reserved
        }
    }
}
