//! What a step accepted is replaced by what its program says.
//!
//! What a step accepted can be replaced until the program goes on: until the next step is opened, or the context is
//! filled, passed through the model, forked, saved, truncated or given another generator. Tokens whose keys and values
//! are not there wait as the pending ones do, and the next pass computes them.

use super::Engine;
use super::folding::spend;
use super::requests::Entering;
use crate::context::Provisional;
use crate::errors::{Error, ErrorCode, Result};
use crate::generation::{Drawn, Next, Standing, fold};
use crate::ids::{ContextId, GeneratorId};

impl Engine {
    /// Puts `tokens` in place of what the last step accepted, its end included, and returns those that are kept: cut
    /// behind a stop token, at the cap, and where the context is full. They are what counts from then on for the cap.
    /// No tokens at all: the next step goes on from where the last one did. It may be called again until the program
    /// goes on.
    ///
    /// The token budget is charged with the most that has stood there since the step, and with one token at least: it
    /// ends a program that takes back whatever is drawn.
    ///
    /// # Errors
    /// `step-pending` where no step can be replaced: none was run, or the program has gone on since; `invalid-token`,
    /// `token-budget` where more tokens are kept than may enter; `generator-retired`, `context-released`;
    /// `context-busy` while a step is under way. Nothing changes then.
    pub fn accept(&mut self, id: GeneratorId, tokens: &[u32]) -> Result<Vec<u32>> {
        self.accept_paid(id, tokens, |_| Ok(()))
    }

    /// The same, where `pay` is asked before anything changes, and may refuse.
    ///
    /// # Errors
    /// Those of [`Engine::accept`], and of `pay`.
    pub fn accept_paid(
        &mut self,
        id: GeneratorId,
        tokens: &[u32],
        pay: impl FnOnce(Entering) -> Result<()>,
    ) -> Result<Vec<u32>> {
        self.check_tokens(tokens)?;
        let max_context = self.config.max_context();
        let context = self.owned.idle_generator(id)?.context;
        let state = self.owned.live(context)?;
        let provisional = state.provisional.filter(|_| state.generator == Some(id));
        let before = provisional.ok_or_else(nothing_to_replace)?;
        let n_before = before.n_tokens;
        let standing = Standing {
            n_replaced: n_before,
            n_drawn: 0,
            length: state.length() - n_before,
            max_context,
            end_tokens: &self.config.end_tokens,
            budget: None,
        };
        let generator = self.owned.generator(id)?;
        let drafts = tokens.split_last().map_or(tokens, |(_, before)| before);
        let verdict = fold(generator, Drawn { drafts, tokens }, &standing);
        let kept = &tokens[..verdict.n_accepted as usize];
        let finish = match verdict.next {
            Next::Done(reason) => Some(reason),
            Next::Go | Next::OverBudget => None,
        };
        let entering = Entering {
            n_tokens: kept.len(),
            length: standing.length as usize + kept.len(),
        };
        let n_charged = before.n_charged.max(entering.n_tokens.max(1) as u32);
        let n_more = (n_charged - before.n_charged) as usize;
        spend(self.owned.budget_of(state), n_more, || pay(entering))?;
        if let Some(generator) = self.owned.generators.get_mut(id.0) {
            generator.refold(n_before, kept.len() as u32, finish);
        }
        self.replace_accepted(context, n_before, kept);
        if let Some(state) = self.owned.contexts.get_mut(context.0) {
            state.provisional = Some(Provisional {
                n_tokens: kept.len() as u32,
                n_charged,
            });
        }
        Ok(kept.to_vec())
    }

    /// Puts tokens in place of the last `n_before` of a context, if they are others.
    fn replace_accepted(&mut self, id: ContextId, n_before: u32, tokens: &[u32]) {
        let Some(context) = self.owned.contexts.get_mut(id.0) else {
            return self
                .totals
                .faults
                .count("what was found to be live is gone");
        };
        if context.accepted(&self.device.store, n_before) == tokens {
            return;
        }
        self.drop_ahead(id);
        if let Some(context) = self.owned.contexts.get_mut(id.0) {
            context.replace_last(&mut self.device.store, n_before, tokens);
        }
    }
}

fn nothing_to_replace() -> Error {
    Error::new(
        ErrorCode::StepPending,
        "no step of this generator can be replaced: none was executed, or what it accepted is final, since the program \
         has gone on; accept right after the step",
    )
}
