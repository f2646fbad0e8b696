//! What programs do with contexts. Each call takes effect at once.

use std::sync::Arc;

use super::Engine;
use super::requests::RequestState;
use crate::context::{Context, Pass, PassKind};
use crate::errors::{Error, ErrorCode, Result};
use crate::generation::Retirement;
use crate::ids::{ContextId, ProcessId};
use crate::kv::Lane;

impl Engine {
    /// A fresh, empty context.
    ///
    /// # Errors
    /// `limit-resources` when too many live, of the process or in all; `invalid-argument` for an unknown process.
    pub fn new_context(&mut self, process: ProcessId) -> Result<ContextId> {
        let user = self.check_room_for_context(process)?;
        Ok(self
            .owned
            .add_context(Context::new(process, Lane::new(user))))
    }

    /// A copy of everything: tokens, pending token and buffer. Pages are shared until one of the two writes into them.
    ///
    /// # Errors
    /// `context-released`, `context-busy`, `limit-resources`.
    pub fn fork(&mut self, context: ContextId) -> Result<ContextId> {
        let process = self.idle_context(context, "forked")?.process;
        self.check_room_for_context(process)?;
        let page_size = self.config.driver.page_size;
        let parent = self.owned.live_mut(context)?;
        parent.settle(page_size);
        let child = parent.fork(&mut self.device.store);
        let child = self.owned.add_context(child);
        self.rest(child);
        Ok(child)
    }

    /// Frees the pages now, or when the batch that uses them is done. A pass under way fails with `context-released`. A
    /// second release does nothing.
    pub fn release(&mut self, context: ContextId) {
        let Ok(state) = self.owned.live_mut(context) else {
            return;
        };
        state.released = true;
        self.waiting.hold.forget(context);
        let (process, pass, generator) = (state.process, state.pass.take(), state.generator.take());
        let counts = state.counts_requests();
        self.owned.disown(context, process);
        if let Some(pass) = pass {
            self.waiting.queue.remove(pass.id);
            if let Some(request) = pass.request() {
                self.undo_generation(&pass);
                let failed = RequestState::Failed {
                    process,
                    counts,
                    error: super::owned::released(),
                };
                self.owned.requests.insert(request, failed);
                if !pass.is_ready() {
                    self.ready.push(request);
                }
            }
        }
        self.undo_collection(context);
        if let Some(generator) = generator {
            self.retire(generator, Retirement::Release);
        }
        self.bury(context);
    }

    /// Removes a released context whose pages no batch uses.
    pub(super) fn bury(&mut self, context: ContextId) {
        if self
            .owned
            .contexts
            .get(context.0)
            .is_some_and(|state| state.released && state.lease.is_none())
            && let Some(state) = self.owned.contexts.remove(context.0)
        {
            state.lane.release(&mut self.device.store);
        }
    }

    /// Adds tokens to the buffer.
    ///
    /// # Errors
    /// `invalid-token` for an id outside the vocabulary; `context-full` when the context would become longer than the
    /// model allows; `token-budget` where the process may not add as many; `context-busy` while a run to the end or a
    /// collection is under way; `context-released`.
    pub fn append(&mut self, context: ContextId, tokens: &[u32]) -> Result<()> {
        self.check_tokens(tokens)?;
        if !tokens.is_empty() {
            self.drop_ahead(context);
        }
        let (limit, page_size) = (self.config.max_context(), self.config.driver.page_size);
        let state = self.owned.live_mut(context)?;
        let pass = state.pass.as_ref();
        if state.before.is_some() || pass.is_some_and(|pass| matches!(pass.kind, PassKind::Run(_)))
        {
            return Err(busy("appended to while a generation runs to its end"));
        }
        // A pass under way may add tokens.
        let length = state.length() + state.pass.as_ref().map_or(0, Pass::n_to_come);
        let room = limit.saturating_sub(length);
        if tokens.len() as u64 > u64::from(room) {
            return Err(context_full(tokens.len(), length, limit));
        }
        let state = self.owned.live(context)?;
        if let Some(budget) = self.owned.budget_of(state) {
            budget.spend(tokens.len())?;
        }
        let state = self.owned.live_mut(context)?;
        state.settle(page_size);
        Arc::make_mut(&mut state.buffer).extend_from_slice(tokens);
        Ok(())
    }

    /// The tokens that the program appended and that no pass has taken.
    ///
    /// # Errors
    /// `context-released`.
    pub fn buffer(&self, context: ContextId) -> Result<Vec<u32>> {
        let state = self.owned.live(context)?;
        let before = state.before.as_ref().map(|before| &before.buffer);
        Ok(before.unwrap_or(&state.buffer).to_vec())
    }

    /// Tokens in pages, and the pending one.
    ///
    /// # Errors
    /// `context-released`.
    pub fn seq_len(&self, context: ContextId) -> Result<u32> {
        let state = self.owned.live(context)?;
        let before = state.before.as_ref();
        Ok(before.map_or_else(|| state.seq_len(), |before| before.seq_len()))
    }

    /// The same, with what a collection under way has accepted.
    ///
    /// # Errors
    /// `context-released`.
    pub fn seq_len_within(&self, context: ContextId) -> Result<u32> {
        Ok(self.owned.live(context)?.seq_len())
    }

    /// Tokens in pages that no pass of the context had to compute, because a program of the same user had. Forks and
    /// snapshots copy the count. It depends on what others did, and when.
    ///
    /// # Errors
    /// `context-released`.
    pub fn cached_tokens(&self, context: ContextId) -> Result<u32> {
        let state = self.owned.live(context)?;
        let before = state.before.as_ref().map(|before| before.n_cached);
        Ok(before.unwrap_or(state.n_cached))
    }

    /// Tokens in pages, the pending one, and those in the buffer.
    ///
    /// # Errors
    /// `context-released`.
    pub fn length(&self, context: ContextId) -> Result<u32> {
        let state = self.owned.live(context)?;
        let before = state.before.as_ref();
        Ok(before.map_or_else(|| state.length(), |before| before.length()))
    }

    /// The last `n` tokens, the pending one and the buffer included; all of them when there are fewer.
    ///
    /// # Errors
    /// `context-released`.
    pub fn tail(&self, context: ContextId, n: u32) -> Result<Vec<u32>> {
        Ok(self
            .owned
            .live(context)?
            .last_tokens(&self.device.store, n as usize))
    }

    /// Drops the last `n` tokens: the pending one first, then those outside committed pages. The buffer stays. An idle
    /// generator of the context is retired.
    ///
    /// # Errors
    /// `truncate-range` naming both numbers; `context-busy`, `context-released`.
    pub fn truncate(&mut self, context: ContextId, n: u32) -> Result<()> {
        let page_size = self.config.driver.page_size;
        let state = self.idle_context(context, "truncated")?;
        state.settle(page_size);
        let most = state.seq_len() - state.n_committed * page_size;
        if n > most {
            return Err(Error::with_values(
                ErrorCode::TruncateRange,
                format!(
                    "{n} tokens cannot be dropped: {most} lie outside committed pages; drop at most {most}, or fork before the point to go back to"
                ),
                &[("tokens", u64::from(n)), ("most", u64::from(most))],
            ));
        }
        self.drop_tokens(context, n)
    }

    /// Gives all pages back, now or when the batch that uses them is done; the next pass takes them again. What the
    /// program sees does not change.
    ///
    /// # Errors
    /// `context-busy`, `context-released`.
    pub fn suspend(&mut self, context: ContextId) -> Result<()> {
        self.idle_context(context, "suspended")?;
        self.owned
            .live_mut(context)?
            .give_back(&mut self.device.store);
        // A batch that waited for its next pass would keep others waiting.
        self.waiting.hold.forget(context);
        Ok(())
    }

    /// Checks that ids lie within the vocabulary.
    ///
    /// # Errors
    /// `invalid-token`, naming the first that does not.
    pub fn check_tokens(&self, tokens: &[u32]) -> Result<()> {
        check_tokens(tokens, self.config.driver.vocab_size)
    }

    /// A context without a pass. `what` completes "the context cannot be ...".
    pub(super) fn idle_context(&mut self, context: ContextId, what: &str) -> Result<&mut Context> {
        self.drop_ahead(context);
        let state = self.owned.live_mut(context)?;
        // Between the steps of a collection the next one is entered.
        let is_whole = state.before.as_ref().is_some_and(|it| it.is_whole);
        if state.pass.is_some() || is_whole {
            Err(pass_under_way(what))
        } else {
            Ok(state)
        }
    }
}

/// So many tokens more do not fit.
pub(super) fn context_full(n_tokens: usize, length: u32, limit: u32) -> Error {
    let room = limit.saturating_sub(length);
    Error::with_values(
        ErrorCode::ContextFull,
        format!(
            "{n_tokens} tokens do not fit: the context has {length} of at most {limit}; append at most {room}, or truncate or begin another context"
        ),
        &[
            ("tokens", n_tokens as u64),
            ("length", u64::from(length)),
            ("limit", u64::from(limit)),
        ],
    )
}

pub(super) fn pass_under_way(what: &str) -> Error {
    busy(&format!("{what} while a pass is under way"))
}

fn busy(what: &str) -> Error {
    Error::new(
        ErrorCode::ContextBusy,
        format!(
            "the context cannot be {what}; take or drop the result of the pass first. To generate several at once, \
             fork the context for each of them before the first one begins"
        ),
    )
}

/// Checks that tokens are some of a vocabulary of so many.
///
/// # Errors
/// `invalid-token`, naming the first that is not.
pub fn check_tokens(tokens: &[u32], vocab_size: u32) -> Result<()> {
    match tokens.iter().find(|&&token| token >= vocab_size) {
        None => Ok(()),
        Some(&token) => Err(Error::with_values(
            ErrorCode::InvalidToken,
            format!("token {token} is outside the vocabulary; use ids below {vocab_size}"),
            &[
                ("token", u64::from(token)),
                ("vocab_size", u64::from(vocab_size)),
            ],
        )),
    }
}
