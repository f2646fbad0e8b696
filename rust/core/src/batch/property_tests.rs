//! What is written into an arena is read back; damage is noticed.

use proptest::prelude::*;

use super::layout::{Field, HEADER_WORDS};
use super::*;
use crate::ids::{BatchId, ContextId, PageId, RequestId};
use crate::sampling::{Key, Params};

#[derive(Clone, Debug)]
struct Plan {
    tokens: Vec<u32>,
    n_before: u32,
    context: u64,
    reread: bool,
    row: bool,
    replaced: bool,
}

fn plans() -> impl Strategy<Value = Vec<Plan>> {
    let plan = (
        prop::collection::vec(any::<u32>(), 1..8),
        0u32..20,
        any::<u64>(),
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
    );
    let plan = plan.prop_map(|(mut tokens, n_before, context, reread, row, replaced)| {
        if reread {
            tokens.truncate(1);
        }
        Plan {
            tokens,
            n_before,
            context,
            reread,
            row,
            replaced,
        }
    });
    prop::collection::vec(plan, 0..6)
}

const PARAMS: Params = Params {
    temperature: 0.8,
    top_k: 5,
    top_p: 0.9,
    min_p: 0.1,
};

fn write(plans: &[Plan], page_size: u32, copies: u32) -> Arc<[u32]> {
    let mut builder = ArenaBuilder::new(page_size);
    for (index, plan) in plans.iter().enumerate() {
        let length = plan.n_before + plan.tokens.len() as u32;
        let pages: Vec<PageId> = (0..length.div_ceil(page_size))
            .map(|page| PageId(100 * index as u32 + page))
            .collect();
        builder.add_sequence(&Sequence {
            context: ContextId(plan.context),
            request: RequestId(!plan.context),
            tokens: &plan.tokens,
            first_position: plan.n_before,
            pages: &pages,
            replaced: plan.replaced.then_some((0, PageId(9999))),
            length,
            reread: plan.reread,
        });
        if plan.row {
            builder.add_row(
                &PARAMS,
                Key {
                    seed: plan.context,
                    position: length,
                    slot: 0,
                    draw: 0,
                },
            );
        }
    }
    for copy in 0..copies {
        builder.add_copy(PageId(copy), PageId(1000 + copy));
    }
    builder.finish(BatchId(u64::MAX - 5))
}

proptest! {
    #[test]
    fn round_trip(plans in plans(), page_size in 1u32..6, copies in 0u32..4) {
        let words = write(&plans, page_size, copies);
        let view = ArenaView::parse(&words).unwrap();
        prop_assert_eq!(view.batch_id(), u64::MAX - 5);
        prop_assert_eq!(view.page_size(), page_size);
        prop_assert_eq!(view.n_sequences(), plans.len());
        let mut n_tokens = 0;
        let mut rows = Vec::new();
        for ((index, plan), sequence) in plans.iter().enumerate().zip(view.sequences()) {
            prop_assert_eq!(sequence.first_token, n_tokens);
            prop_assert_eq!(sequence.tokens, &plan.tokens[..]);
            let length = plan.n_before as usize + plan.tokens.len();
            prop_assert_eq!(sequence.length, length);
            let positions: Vec<u32> = (plan.n_before..length as u32).collect();
            prop_assert_eq!(sequence.positions, &positions[..]);
            prop_assert_eq!(sequence.pages.len(), length.div_ceil(page_size as usize));
            for (page_idx, &page) in sequence.pages.iter().enumerate() {
                let expected = if plan.replaced && page_idx == 0 { 9999 } else { 100 * index + page_idx };
                prop_assert_eq!(page as usize, expected);
            }
            prop_assert_eq!(sequence.reread, plan.reread);
            prop_assert_eq!((sequence.adapter, sequence.media, sequence.zo_seed), (0, 0, None));
            let context = &view.field(Field::SeqContext)[2 * index..];
            prop_assert_eq!(u64::from(context[0]) | u64::from(context[1]) << 32, plan.context);
            n_tokens += plan.tokens.len();
            prop_assert!(view.mask(n_tokens - 1).is_empty());
            if plan.row {
                rows.push((n_tokens as u32 - 1, plan.context, length as u32));
            }
        }
        prop_assert_eq!(view.n_tokens(), n_tokens);
        prop_assert_eq!(view.copies().collect::<Vec<_>>(), (0..copies).map(|copy| (copy, 1000 + copy)).collect::<Vec<_>>());
        prop_assert_eq!(view.n_rows(), rows.len());
        for (row, (token, seed, position)) in rows.into_iter().enumerate() {
            prop_assert_eq!(view.field(Field::RowToken)[row], token);
            let sampler = [1, 0.8f32.to_bits(), 5, 0.9f32.to_bits(), 0.1f32.to_bits(), seed as u32, (seed >> 32) as u32, position];
            prop_assert_eq!(&view.field(Field::RowSampler)[8 * row..8 * row + 8], &sampler[..]);
        }
    }

    /// Whatever words an arena holds, reading it answers or refuses, and never indexes outside of it.
    #[test]
    fn damage_never_panics(plans in plans(), at in any::<prop::sample::Index>(), word in prop_oneof![any::<u32>(), 0u32..200], cut in any::<prop::sample::Index>()) {
        let mut words = write(&plans, 4, 1).to_vec();
        let at = at.index(words.len());
        words[at] = word;
        if let Ok(view) = ArenaView::parse(&words) {
            let n: usize = view.sequences().map(|sequence| sequence.tokens.len()).sum();
            prop_assert_eq!(n, view.n_tokens());
            for token in 0..view.n_tokens() {
                view.mask(token);
            }
        }
        let cut = cut.index(words.len());
        prop_assert!(ArenaView::parse(&words[..cut]).is_err());
    }
}

#[test]
fn each_kind_of_damage_is_named() {
    let plan = Plan {
        tokens: vec![1, 2],
        n_before: 3,
        context: 1,
        reread: false,
        row: true,
        replaced: false,
    };
    let good = write(&[plan.clone(), plan], 4, 1);
    let at = |field: Field| good[16 + 2 * field as usize] as usize;
    let cases = [
        (0, 7, "magic"),
        (1, 9, "version"),
        (2, 9, "number of words"),
        (5, 0, "page size"),
        (6, 3, "Tokens has 4 words"),
        (16, 3, "Tokens spans"),
        (at(Field::QoIndptr) + 1, 4, "QoIndptr does not ascend"),
        (at(Field::KvLastPageLen), 5, "5 slots of its last page of 4"),
        (at(Field::RowToken) + 1, 99, "RowToken holds 99"),
        (at(Field::RowToken), 3, "RowToken does not ascend"),
        (at(Field::SeqReread), 1, "re-reads 2 tokens"),
        (at(Field::CopyDst), 0, "both source and destination"),
    ];
    for (word, value, part) in cases {
        let mut words = good.to_vec();
        words[word] = value;
        let message = ArenaView::parse(&words).unwrap_err();
        assert!(message.contains(part), "{message} lacks {part}");
    }
    assert!(
        ArenaView::parse(&good[..HEADER_WORDS - 1])
            .unwrap_err()
            .contains("header")
    );
}
