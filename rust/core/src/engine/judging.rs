//! What a generation drew is judged, and its pass goes on by the verdict: a step, a run to the end, and what ran ahead
//! alike.

use crate::budget::TokenBudget;
use crate::config::EngineConfig;
use crate::context::{Context, Pass, PassKind};
use crate::errors::Error;
use crate::faults::Faults;
use crate::generation::{Drawn, FinishReason, Generator, Next, Standing, fold};
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
        n_replaced: 0,
        n_drawn: pass.drawn().len() as u32,
        length: context.end() - pass.drafts().len() as u32,
        max_context: config.max_context(),
        end_tokens: &config.end_tokens,
        budget: budget
            .filter(|_| matches!(pass.kind, PassKind::Run(_)))
            .map(TokenBudget::left),
    }
}

/// Whether the next token of a generator is computed and drawn before its program asks.
pub(super) const fn runs_ahead(config: &EngineConfig, generator: &Generator) -> bool {
    config.run_ahead && generator.runs_ahead()
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
    /// The next token is computed and drawn before its program asks.
    pub(super) runs_ahead: bool,
    /// The engine may make drafts for it.
    pub(super) is_drafted: bool,
}

/// The verdict on what was drawn from the rows of the pass of a context; none where nothing was, or it is no
/// generation. `n_pushed` of the tokens are among those of the pass.
pub(super) fn verdict(
    config: &EngineConfig,
    generators: &Slab<Generator>,
    context: &Context,
    n_pushed: u32,
) -> Option<Judged> {
    let pass = context.pass.as_ref()?;
    let generator = generators.get(pass.kind.generator()?.0)?;
    let tokens = Some(pass.rows_drawn()).filter(|tokens| !tokens.is_empty())?;
    let standing = standing(config, context, pass);
    let before = Standing {
        n_drawn: standing.n_drawn - n_pushed,
        length: standing.length - n_pushed,
        ..standing
    };
    let drawn = Drawn {
        drafts: pass.drafts(),
        tokens,
    };
    let verdict = fold(generator, drawn, &before);
    Some(Judged {
        n_accepted: verdict.n_accepted,
        n_rejected: verdict.n_rejected,
        next: Some(verdict.next),
        runs_ahead: matches!(pass.kind, PassKind::Step(_)) && runs_ahead(config, generator),
        is_drafted: generator.has_drafter(),
    })
}

/// Judges what a batch drew for the pass of a context. What runs ahead is judged when it is asked for: options may
/// change until then.
pub(super) fn judge(
    config: &EngineConfig,
    generators: &Slab<Generator>,
    context: &Context,
) -> Judged {
    let pass = context.pass.as_ref();
    let asked = pass.filter(|pass| !pass.is_ahead());
    let judged = asked.and_then(|_| verdict(config, generators, context, 0));
    judged.unwrap_or_else(|| Judged {
        n_accepted: pass.map_or(0, Pass::n_drawn_ahead),
        n_rejected: 0,
        next: None,
        runs_ahead: false,
        is_drafted: false,
    })
}

/// What became of a pass.
#[derive(Debug)]
pub(super) enum Became {
    /// It goes on.
    Going,
    /// Its answer is ready, with the end of the generation where it ended. It may go on ahead of its program.
    Answered {
        finish: Option<FinishReason>,
        runs_ahead: bool,
    },
    /// It goes no further until a program asks, or gives a token mask.
    Resting,
    Failed(Error),
}

/// A generation goes on by what was judged. The pass has the tokens that were drawn. A step goes on ahead of its
/// program, unless it ended.
pub(super) fn follow_verdict(
    pass: &mut Pass,
    next: Next,
    runs_ahead: bool,
    faults: &mut Faults,
) -> Became {
    let finish = match next {
        Next::Go => None,
        Next::Done(reason) => Some(reason),
        Next::OverBudget => {
            let n = pass.drawn().len() as u64 + 1;
            return match &pass.budget {
                Some(budget) => Became::Failed(budget.exhausted(n)),
                None => {
                    faults.count("a pass without a budget is beyond it");
                    Became::Resting
                }
            };
        }
    };
    let is_step = matches!(pass.kind, PassKind::Step(_));
    let goes_on = finish.is_none() && (runs_ahead || !is_step);
    let is_answered = finish.is_some() || is_step;
    if is_answered {
        let answers = pass.answer(finish, goes_on);
        faults.expect(answers, "what was judged is answered already");
    }
    if goes_on {
        let wants = pass.want_following();
        faults.expect(wants, "a generation has no row");
    }
    if is_answered {
        Became::Answered {
            finish,
            runs_ahead: goes_on,
        }
    } else {
        Became::Going
    }
}
