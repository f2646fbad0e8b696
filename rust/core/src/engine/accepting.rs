//! What a step accepted is replaced by what its program says.
//!
//! What a step accepted can be replaced until the program goes on: until the next step is opened, or the context is
//! filled, passed through the model, forked, saved, truncated or given another generator. Tokens whose keys and values
//! are not there wait as the pending ones do, and the next pass computes them.

use super::Engine;
use super::folding::spend;
use super::requests::{Entering, RequestState};
use crate::context::{Context, Pass, PassKind, Provisional};
use crate::errors::{Error, ErrorCode, Result};
use crate::generation::{Drawn, FinishReason, Next, Standing, fold};
use crate::ids::{ContextId, GeneratorId, RequestId};

/// What would come of tokens that a program puts in place of others.
struct Acceptable {
    context: ContextId,
    /// What stands there.
    before: Provisional,
    /// What is kept of the tokens.
    entering: Entering,
    /// Whether they end the generation.
    finish: Option<FinishReason>,
}

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
        let Acceptable {
            context,
            before,
            entering,
            finish,
        } = self.acceptable(id, tokens)?;
        let n_before = before.n_tokens;
        let kept = &tokens[..entering.n_tokens];
        let n_charged = before.n_charged.max(kept.len().max(1) as u32);
        let n_more = (n_charged - before.n_charged) as usize;
        let state = self.owned.live(context)?;
        spend(self.owned.budget_of(state), n_more, || pay(entering))?;
        if let Some(generator) = self.owned.generators.get_mut(id.0) {
            generator.refold(n_before, kept.len() as u32, finish);
        }
        self.replace_accepted(context, n_before, kept);
        if let Some(state) = self.owned.contexts.get_mut(context.0) {
            state.note_charged(n_more);
            state.provisional = Some(Provisional {
                n_tokens: kept.len() as u32,
                n_charged,
            });
        }
        Ok(kept.to_vec())
    }

    /// How many of these tokens [`Engine::accept`] would keep. Nothing changes.
    ///
    /// # Errors
    /// Those of [`Engine::accept`], but for the token budget.
    pub fn n_acceptable(&self, id: GeneratorId, tokens: &[u32]) -> Result<usize> {
        Ok(self.acceptable(id, tokens)?.entering.n_tokens)
    }

    /// What the step of a request drew, and whether that ended the generation; none where its answer cannot be taken
    /// yet, or is an error.
    pub fn drawn(&self, request: RequestId) -> Option<(&[u32], Option<FinishReason>)> {
        let (_, pass) = self.answered_step(request)?;
        Some((pass.drawn(), pass.finish()))
    }

    /// How many of `tokens` would be kept by [`Engine::accept`] behind what the step of a request drew, once its answer
    /// was taken. None are where one is not a token of the model, and where the token budget has no room for those that
    /// would be.
    pub fn n_to_follow(&self, request: RequestId, tokens: &[u32]) -> usize {
        let Some((state, pass)) = self.answered_step(request) else {
            return 0;
        };
        let generator = pass.kind.generator();
        let generator = generator.and_then(|id| self.owned.generators.get(id.0));
        let Some(generator) = generator.filter(|_| pass.finish().is_none()) else {
            return 0;
        };
        if self.check_tokens(tokens).is_err() {
            return 0;
        }
        let all = [pass.drawn(), tokens].concat();
        let standing = Standing {
            n_replaced: 0,
            n_drawn: 0,
            length: state.length(),
            max_context: self.config.max_context(),
            end_tokens: &self.config.end_tokens,
            budget: None,
        };
        let drafts = all.split_last().map_or(&all[..], |(_, before)| before);
        let drawn = Drawn {
            drafts,
            tokens: &all,
        };
        let n_kept = fold(generator, drawn, &standing).n_accepted as usize;
        let budget = self.owned.budget_of(state);
        if budget.is_some_and(|budget| budget.left() < n_kept as u64) {
            return 0;
        }
        n_kept.saturating_sub(pass.drawn().len())
    }

    /// A step whose answer can be taken, and its context.
    fn answered_step(&self, request: RequestId) -> Option<(&Context, &Pass)> {
        let RequestState::Active(context) = self.owned.requests.get(&request)? else {
            return None;
        };
        let state = self.owned.contexts.get(context.0)?;
        let is_answered = |pass: &&Pass| pass.is_ready() && pass.error().is_none();
        let pass = state.pass.as_ref().filter(is_answered)?;
        matches!(pass.kind, PassKind::Step(_)).then_some((state, pass))
    }

    /// What would come of `tokens` in place of those that the last step accepted.
    fn acceptable(&self, id: GeneratorId, tokens: &[u32]) -> Result<Acceptable> {
        self.check_tokens(tokens)?;
        let generator = self.owned.generator(id)?;
        generator.check_idle()?;
        let context = generator.context;
        let state = self.owned.live(context)?;
        let provisional = state.provisional.filter(|_| state.generator == Some(id));
        let before = provisional.ok_or_else(nothing_to_replace)?;
        let standing = Standing {
            n_replaced: before.n_tokens,
            n_drawn: 0,
            length: state.length() - before.n_tokens,
            max_context: self.config.max_context(),
            end_tokens: &self.config.end_tokens,
            budget: None,
        };
        let drafts = tokens.split_last().map_or(tokens, |(_, before)| before);
        let verdict = fold(generator, Drawn { drafts, tokens }, &standing);
        let n_tokens = verdict.n_accepted as usize;
        Ok(Acceptable {
            context,
            before,
            entering: Entering {
                n_tokens,
                length: standing.length as usize + n_tokens,
            },
            finish: match verdict.next {
                Next::Done(reason) => Some(reason),
                Next::Go | Next::OverBudget => None,
            },
        })
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
