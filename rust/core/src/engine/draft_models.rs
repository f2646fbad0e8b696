//! Another model drafts for a generation.
//!
//! An engine has one model, so whoever has both brings them together. A generation that wants drafts says so
//! ([`Engine::drain_draft_events`]) and is in no batch until it has some, or none ([`Engine::give_drafts`]). The engine
//! of the other model has a context that says what the generation has so far ([`Engine::follow`]), and goes on from
//! there. Such a context is charged as any other, but for token budgets: drafts enter no context of a program. Its
//! generators and its requests count among those of nobody: when there are some depends on load, and what a program may
//! have does not.

use std::sync::Arc;

use super::Engine;
use super::contexts::context_full;
use super::forwarding::refused;
use super::requests::{RequestState, ticket};
use crate::context::PassKind;
use crate::errors::Result;
use crate::generation::{DraftEvent, Drafter, DraftsWanted, Generator, RowProbe};
use crate::ids::{ContextId, GeneratorId, ProcessId, RequestId};

impl Engine {
    /// What happened to drafts of other models since this was last asked. Ask after every call.
    pub fn drain_draft_events(&mut self) -> Vec<DraftEvent> {
        std::mem::take(&mut self.draft_events)
    }

    /// Gives a generation the drafts that it wanted when its context had `length` tokens, at most as many as it wanted,
    /// or none: then it goes on without, and is told all tokens of its context the next time. Drafts that nobody waits
    /// for any more change nothing.
    ///
    /// Whoever could not draft says why, and a step fails with that: how many tokens it accepts can be seen, and must
    /// not depend on what happened to another model. A run to the end shows none of its steps, and goes on without.
    pub fn give_drafts(&mut self, request: RequestId, length: u32, drafts: Result<&[u32]>) {
        let Some(RequestState::Active(id)) = self.owned.requests.get(&request) else {
            return;
        };
        let id = *id;
        let vocab_size = self.config.driver.vocab_size;
        let context = self.owned.contexts.get_mut(id.0);
        let Some(context) = context.filter(|context| context.end() == length) else {
            return;
        };
        let Some(pass) = context.pass.as_mut().filter(|pass| pass.is_drafting()) else {
            return;
        };
        let drafts = match (drafts, pass.kind) {
            (Ok(drafts), _) => drafts,
            (Err(error), PassKind::Step(_)) => {
                let pass = pass.id;
                return self.fail(id, pass, error);
            }
            (Err(_), _) => &[],
        };
        let generator = pass.kind.generator();
        let generator = generator.and_then(|id| self.owned.generators.get_mut(id.0));
        let Some(generator) = generator else {
            let faults = &mut self.totals.faults;
            return faults.count("a generation that wants drafts has no generator");
        };
        // No model of the same vocabulary draws another one.
        let known = drafts.iter().take_while(|&&draft| draft < vocab_size);
        let n_wanted = pass.n_to_come() - 1;
        let drafts: Vec<u32> = known.copied().take(n_wanted as usize).collect();
        if let Some(drafter) = generator.drafter().filter(|_| drafts.is_empty()) {
            drafter.forget();
            drafter.turn(n_wanted, 0);
        }
        let probes: &[RowProbe] = match pass.kind {
            PassKind::Step(_) => &generator.step.probes,
            _ => &[],
        };
        let ends = pass.end_drafting(&drafts, probes);
        let faults = &mut self.totals.faults;
        faults.expect(ends, "what wants drafts does not wait for them");
        self.waiting
            .queue
            .extend(ticket(id, context, self.totals.n_batches));
    }

    /// Says that the pass of a context, which is drafting, wants so many drafts.
    pub(super) fn want_drafts(&mut self, id: ContextId, n_drafts: u32) {
        let context = self.owned.contexts.get(id.0);
        let found = context.and_then(|context| {
            let pass = context.pass.as_ref().filter(|pass| pass.is_drafting())?;
            let name = pass.kind.generator()?;
            let generator = self.owned.generators.get_mut(name.0)?;
            let (length, mask) = (context.end(), generator.mask.clone());
            let n_known = generator.drafter()?.tell(length);
            let tokens = context.content_at(&self.device.store, n_known..length);
            let wanted = DraftsWanted {
                request: pass.request()?,
                n_known,
                tokens: tokens.tokens().to_vec(),
                seed: pass.seed()?,
                mask,
                n_drafts,
            };
            Some(DraftEvent::Wanted(name, wanted))
        });
        let faults = &mut self.totals.faults;
        faults.expect(found.is_some(), "what is drafting has no drafter");
        self.draft_events.extend(found);
    }

    /// Tells whoever drafts for a generator, if another model does.
    pub(super) fn tell_drafter(
        &mut self,
        id: GeneratorId,
        event: impl FnOnce(GeneratorId) -> DraftEvent,
    ) {
        let generator = self.owned.generators.get(id.0);
        let drafter = generator.and_then(|generator: &Generator| generator.drafter.as_deref());
        if drafter.is_some_and(Drafter::asks) {
            self.draft_events.push(event(id));
        }
    }

    /// A fresh, empty context that follows that of another model.
    ///
    /// # Errors
    /// Those of [`Engine::new_context`].
    pub fn new_draft_context(&mut self, process: ProcessId) -> Result<ContextId> {
        let id = self.new_context(process)?;
        self.owned.live_mut(id)?.drafts = true;
        Ok(id)
    }

    /// Has a context say `tokens` behind its first `n_known`, and no more. What it said before and says again stays
    /// computed. Its generator is retired.
    ///
    /// # Errors
    /// `invalid-token`; `context-full` when it would become longer than the model allows; `invalid-argument` where it
    /// has fewer than `n_known` tokens; `context-busy`, `context-released`.
    pub fn follow(&mut self, id: ContextId, n_known: u32, tokens: &[u32]) -> Result<()> {
        self.check_tokens(tokens)?;
        let (limit, page_size) = (self.config.max_context(), self.config.driver.page_size);
        let length = self.idle_context(id, "changed")?.length();
        let Some(n_changing) = length.checked_sub(n_known) else {
            return Err(refused(&format!(
                "the context has {length} tokens, of which {n_known} should be kept; give all of them"
            )));
        };
        let room = limit.saturating_sub(n_known);
        if tokens.len() as u64 > u64::from(room) {
            return Err(context_full(tokens.len(), n_known, limit));
        }
        let state = self.owned.live_mut(id)?;
        let before = state.last_tokens(&self.device.store, n_changing as usize);
        let alike = before.iter().zip(tokens);
        let n_alike = alike.take_while(|(old, new)| old == new).count();
        let n_dropped = before.len() - n_alike;
        let buffer = Arc::make_mut(&mut state.buffer);
        let n_unread = n_dropped.min(buffer.len());
        buffer.truncate(buffer.len() - n_unread);
        buffer.extend_from_slice(&tokens[n_alike..]);
        let n_left = n_known + n_alike as u32;
        state.n_committed = state.n_committed.min(n_left / page_size);
        self.drop_tokens(id, (n_dropped - n_unread) as u32)
    }
}
