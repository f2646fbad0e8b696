//! What a generation drew is judged, and its pass goes on by the verdict: a step, a run to the end, and what ran ahead
//! alike.

use super::Engine;
use super::ahead::runs_ahead;
use crate::budget::TokenBudget;
use crate::config::EngineConfig;
use crate::context::{Context, Pass, PassKind};
use crate::generation::{Drawn, FinishReason, Generator, Next, Standing, Verdict, fold};
use crate::ids::ContextId;
use crate::slab::Slab;

/// Where the generation of a pass stands, behind all the tokens that it drew. What a step draws is charged when it is
/// taken, and one more fitted when it was entered; a run may draw as many as fit.
pub(super) fn standing<'a>(
    config: &'a EngineConfig,
    context: &Context,
    pass: &Pass,
) -> Standing<'a> {
    let budget = pass.budget.as_ref();
    Standing {
        n_drawn: pass.drawn().len() as u32,
        length: context.end(),
        max_context: config.max_context,
        end_tokens: &config.end_tokens,
        budget: budget
            .filter(|_| matches!(pass.kind, PassKind::Run(_)))
            .map(TokenBudget::left),
    }
}

/// The verdict on what was drawn from the rows of the pass of a context; none where nothing was, or it is no
/// generation. `n_pushed` of the tokens are among those of the pass.
pub(super) fn verdict(
    config: &EngineConfig,
    generators: &Slab<Generator>,
    context: &Context,
    n_pushed: u32,
) -> Option<Verdict> {
    let pass = context.pass.as_ref()?;
    let generator = generators.get(pass.kind.generator()?.0)?;
    let tokens = Some(pass.rows_drawn()).filter(|tokens| !tokens.is_empty())?;
    let standing = standing(config, context, pass);
    let before = Standing {
        n_drawn: standing.n_drawn - n_pushed,
        length: standing.length - n_pushed,
        ..standing
    };
    Some(fold(
        generator,
        Drawn {
            drafts: &[],
            tokens,
        },
        &before,
    ))
}

/// What comes of the rows that a batch answered of a pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judged {
    /// So many of the tokens that were drawn are its own.
    pub(super) n_accepted: u32,
    /// So many of the last that were computed do not count.
    pub(super) n_rejected: u32,
    /// None: nothing was drawn, or it is not judged yet.
    pub(super) next: Option<Next>,
}

/// Judges what a batch drew for the pass of a context. What runs ahead is judged when it is asked for: options may
/// change until then.
pub(super) fn judge(
    config: &EngineConfig,
    generators: &Slab<Generator>,
    context: &Context,
) -> Judged {
    let pass = context.pass.as_ref();
    let verdict = pass
        .filter(|pass| !pass.is_ahead())
        .and_then(|_| verdict(config, generators, context, 0));
    match verdict {
        Some(verdict) => Judged {
            n_accepted: verdict.n_accepted,
            n_rejected: verdict.n_rejected,
            next: Some(verdict.next),
        },
        None => Judged {
            n_accepted: pass.map_or(0, Pass::n_drawn_ahead),
            n_rejected: 0,
            next: None,
        },
    }
}

/// What became of a pass by a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Became {
    /// Its answer is ready, with the end of the generation where it ended.
    Answered(Option<FinishReason>),
    /// It goes on.
    Going,
    Failed,
}

impl Engine {
    /// A generation goes on by its verdict. `batch` drew the last token, which the pass has. A step goes on ahead of
    /// its program, unless it ended.
    pub(super) fn follow_verdict(&mut self, id: ContextId, next: Next, batch: u64) -> Became {
        let pass = self.contexts.get_mut(id.0).map(|context| &mut context.pass);
        let Some(Some(pass)) = pass else {
            self.totals.faults.count("what was judged has no pass");
            return Became::Failed;
        };
        let (is_step, goes_ahead) = match pass.kind {
            PassKind::Step(id) => {
                let generator = self.generators.get(id.0);
                (
                    true,
                    generator.is_some_and(|it| runs_ahead(&self.config, it)),
                )
            }
            _ => (false, false),
        };
        let finish = match next {
            Next::Done(reason) => Some(reason),
            Next::OverBudget => {
                let n = pass.drawn().len() as u64 + 1;
                let error = pass.budget.as_ref().map(|budget| budget.exhausted(n));
                let pass = pass.id;
                error
                    .into_iter()
                    .for_each(|error| self.fail(id, pass, error));
                return Became::Failed;
            }
            Next::Go => None,
        };
        let goes_on = finish.is_none() && (goes_ahead || !is_step);
        if finish.is_some() || is_step {
            let answers = pass.answer(finish, goes_on);
            let faults = &mut self.totals.faults;
            faults.expect(answers, "what was judged is answered already");
        }
        if goes_on {
            let wants = pass.want_following();
            let faults = &mut self.totals.faults;
            faults.expect(wants, "a generation has no row");
            let served = if is_step {
                self.totals.n_batches
            } else {
                batch
            };
            self.go_on(id, served);
        }
        if finish.is_some() || is_step {
            Became::Answered(finish)
        } else {
            Became::Going
        }
    }
}
