//! The judge of tokens: of those that were drawn, which a generation accepts, and what comes next.

use super::{Generator, Next, Standing, Verdict};

/// What the rows of a generation drew, in the order of the tokens that they are read behind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drawn<'a> {
    /// Tokens that were computed before anybody knew whether they would be drawn. Row 0 is read behind the last token
    /// that is certain, row `n` behind draft `n - 1`.
    pub(crate) drafts: &'a [u32],
    /// The token of each row.
    pub(crate) tokens: &'a [u32],
}

/// Judges what was drawn. A token counts where every draft before it is what was drawn in its place, up to the first
/// that ends the generation.
pub(crate) fn fold(generator: &Generator, drawn: Drawn<'_>, standing: &Standing<'_>) -> Verdict {
    if let ([], &[token]) = (drawn.drafts, drawn.tokens) {
        // Most steps of most generations.
        return Verdict {
            n_accepted: 1,
            n_rejected: 0,
            next: generator.judge(token, 1, standing),
        };
    }
    let alike = drawn.drafts.iter().zip(drawn.tokens);
    let n_alike = alike.take_while(|(draft, token)| draft == token).count();
    let (mut n_accepted, mut next) = (0, Next::Go);
    for &token in drawn.tokens.iter().take(n_alike + 1) {
        n_accepted += 1;
        next = generator.judge(token, n_accepted, standing);
        if next != Next::Go {
            break;
        }
    }
    // Of what is accepted all but the last was computed as a draft.
    let n_kept = n_accepted.saturating_sub(1);
    Verdict {
        n_accepted,
        n_rejected: (drawn.drafts.len() as u32).saturating_sub(n_kept),
        next,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{FinishReason, StopSet};
    use super::*;
    use crate::ids::{ContextId, ProcessId};
    use crate::sampling::Params;

    const STOP: u32 = 8;
    const END: u32 = 7;

    fn generator(max_tokens: Option<u32>) -> Generator {
        let stop = StopSet::new(vec![STOP], Vec::new());
        let mut generator = Generator::new(ProcessId(1), ContextId(1), Params::ARGMAX, stop);
        generator.max_tokens = max_tokens;
        generator
    }

    const STANDING: Standing<'_> = Standing {
        n_replaced: 0,
        n_drawn: 0,
        length: 10,
        max_context: 100,
        end_tokens: &[END],
        budget: None,
    };

    fn verdict(n_accepted: u32, n_rejected: u32, next: Next) -> Verdict {
        Verdict {
            n_accepted,
            n_rejected,
            next,
        }
    }

    // rows: RS-068..069 RS-079
    #[test]
    fn one_token() {
        let judge = |token: u32, max_tokens, standing: Standing<'_>| {
            let drawn = Drawn {
                drafts: &[],
                tokens: &[token],
            };
            fold(&generator(max_tokens), drawn, &standing)
        };
        let one = |next| verdict(1, 0, next);
        assert_eq!(judge(1, None, STANDING), one(Next::Go));
        for stop in [STOP, END] {
            let stopped = one(Next::Done(FinishReason::Stop));
            assert_eq!(judge(stop, None, STANDING), stopped);
            // It ends with a stop token where the room or the budget is at its end as well.
            let full = Standing {
                max_context: 11,
                budget: Some(1),
                ..STANDING
            };
            assert_eq!(judge(stop, Some(1), full), stopped);
        }
        let full = one(Next::Done(FinishReason::Length));
        assert_eq!(judge(1, Some(1), STANDING), full);
        let short = |max_context, budget| Standing {
            max_context,
            budget,
            ..STANDING
        };
        assert_eq!(judge(1, None, short(11, Some(1))), full);
        assert_eq!(judge(1, None, short(12, None)), one(Next::Go));
        let later = |n_drawn, budget| Standing {
            n_drawn,
            budget: Some(budget),
            ..STANDING
        };
        assert_eq!(judge(1, None, later(0, 1)), one(Next::OverBudget));
        assert_eq!(judge(1, None, later(0, 2)), one(Next::Go));
        assert_eq!(judge(1, None, later(4, 5)), one(Next::OverBudget));
        assert_eq!(judge(1, Some(5), later(4, 9)), full);
    }

    // rows: RS-073..074
    #[test]
    fn drafts_count_while_they_are_what_is_drawn() {
        let judge = |drafts: &[u32], tokens: &[u32]| {
            fold(&generator(None), Drawn { drafts, tokens }, &STANDING)
        };
        assert_eq!(judge(&[1, 2], &[1, 2, 3]), verdict(3, 0, Next::Go));
        assert_eq!(judge(&[1, 2], &[1, 4, 3]), verdict(2, 1, Next::Go));
        assert_eq!(judge(&[1, 2], &[4, 2, 3]), verdict(1, 2, Next::Go));
        let stop = Next::Done(FinishReason::Stop);
        assert_eq!(judge(&[1, STOP], &[1, STOP, 3]), verdict(2, 1, stop));
    }

    proptest! {
        /// Whatever is drafted, the tokens that count are those that single rows would draw one after the other. Drafts
        /// change how many there are, and nothing else.
        // rows: RS-073..074
        #[test]
        fn drafts_change_no_token(
            drawn in prop::collection::vec(0u32..10, 1..8),
            drafts in prop::collection::vec(0u32..10, 0..7),
            n_alike in 0usize..8,
            max_tokens in prop::option::of(1u32..8),
            room in 1u32..12,
            budget in prop::option::of(1u64..12),
        ) {
            let generator = generator(max_tokens);
            let mut drafts = drafts;
            drafts.truncate(drawn.len() - 1);
            let n_alike = n_alike.min(drafts.len());
            drafts[..n_alike].copy_from_slice(&drawn[..n_alike]);
            let tokens = &drawn[..=drafts.len()];
            let standing = Standing { max_context: STANDING.length + room, budget, ..STANDING };
            let found = fold(&generator, Drawn { drafts: &drafts, tokens }, &standing);
            // One after the other, each behind those before it.
            let (mut n, mut next) = (0, Next::Go);
            while next == Next::Go && n < tokens.len() && (n == 0 || drafts[n - 1] == tokens[n - 1]) {
                let n_before = n as u32;
                let one = Standing { n_drawn: n_before, length: STANDING.length + n_before, ..standing };
                let of_one = fold(&generator, Drawn { drafts: &[], tokens: &tokens[n..=n] }, &one);
                prop_assert_eq!((of_one.n_accepted, of_one.n_rejected), (1, 0));
                next = of_one.next;
                n += 1;
            }
            prop_assert_eq!(found, verdict(n as u32, (drafts.len() + 1 - n) as u32, next));
        }
    }
}
