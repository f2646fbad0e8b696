//! What is written into an arena is read back; damage is noticed.

use proptest::prelude::*;

use super::layout::{Field, HEADER_WORDS};
use super::*;
use crate::ids::{BatchId, ContextId, HostSlot, PageId, RequestId};
use crate::sampling::{Key, Params};

#[derive(Clone, Debug)]
struct Plan {
    tokens: Vec<u32>,
    n_before: u32,
    /// One for each token, or none: they follow each other.
    positions: Option<Vec<u32>>,
    /// One for each token, or none: all causal.
    masks: Option<Vec<Vec<u32>>>,
    adapter: Adapter,
    media: u64,
    context: u64,
    reread: bool,
    rows: Vec<RowPlan>,
    replaced: bool,
}

#[derive(Clone, Debug)]
struct RowPlan {
    token_idx: u32,
    n_draws: u32,
    mask: Vec<u32>,
    keep: Keep,
}

/// Pages and slots of `n` copies, swap-outs and swap-ins, none of which gets in the way of another.
#[derive(Clone, Copy, Debug, Default)]
struct Copies {
    n_copies: u32,
    n_outs: u32,
    n_ins: u32,
}

fn plan() -> impl Strategy<Value = Plan> {
    let rows = prop::collection::vec(
        (
            0u32..8,
            0u32..4,
            prop::collection::vec(0u32..9, 0..4),
            any::<bool>(),
        ),
        0..4,
    );
    let masks = prop::collection::vec(prop::collection::vec(0u32..4, 0..6), 8);
    let adapter = (any::<u64>(), any::<u32>(), any::<Option<u64>>());
    (
        prop::collection::vec(any::<u32>(), 1..8),
        (0u32..20, any::<u64>(), any::<u64>()),
        (any::<bool>(), any::<bool>()),
        prop::option::of(prop::collection::vec(any::<u32>(), 8)),
        prop::option::of(masks),
        adapter,
        rows,
    )
        .prop_map(
            |(
                mut tokens,
                (n_before, context, media),
                (reread, replaced),
                positions,
                masks,
                (id, version, zo_seed),
                rows,
            )| {
                if reread {
                    tokens.truncate(1);
                }
                let n = tokens.len();
                let mut rows: Vec<RowPlan> = rows
                    .into_iter()
                    .map(|(token_idx, n_draws, mask, keep)| RowPlan {
                        token_idx: token_idx % n as u32,
                        n_draws,
                        mask,
                        keep: match (keep, n_draws) {
                            (false, _) => Keep::Draws,
                            (true, 0) if token_idx % 2 == 0 => Keep::Embedding,
                            (true, _) => Keep::Logits,
                        },
                    })
                    .collect();
                rows.sort_by_key(|row| row.token_idx);
                Plan {
                    positions: positions.map(|list| list[..n].to_vec()),
                    masks: masks.map(|list| {
                        let fit = |runs: &Vec<u32>| fitting(runs, n_before + n as u32);
                        list[..n].iter().map(fit).collect()
                    }),
                    adapter: Adapter {
                        id,
                        version,
                        zo_seed,
                    },
                    tokens,
                    n_before,
                    media,
                    context,
                    reread,
                    rows,
                    replaced,
                }
            },
        )
}

/// A mask of these runs that shows at least the first slot and covers no more than `length`; none of none.
fn fitting(runs: &[u32], length: u32) -> Vec<u32> {
    if runs.is_empty() {
        return Vec::new();
    }
    let mut mask = vec![0, 1];
    for &run in runs {
        let covered: u32 = mask.iter().sum();
        mask.push(run.min(length - covered));
    }
    mask
}

fn plans() -> impl Strategy<Value = Vec<Plan>> {
    prop::collection::vec(plan(), 0..6)
}

fn copies() -> impl Strategy<Value = Copies> {
    (0u32..4, 0u32..4, 0u32..4).prop_map(|(n_copies, n_outs, n_ins)| Copies {
        n_copies,
        n_outs,
        n_ins,
    })
}

const PARAMS: Params = Params {
    temperature: 0.8,
    top_k: 5,
    top_p: 0.9,
    min_p: 0.1,
};

fn write(plans: &[Plan], page_size: u32, copies: Copies) -> Arc<[u32]> {
    let mut builder = ArenaBuilder::new(page_size);
    for (index, plan) in plans.iter().enumerate() {
        let length = plan.n_before + plan.tokens.len() as u32;
        let pages: Vec<PageId> = (0..length.div_ceil(page_size))
            .map(|page| PageId(100 * index as u32 + page))
            .collect();
        let masks: Option<Vec<&[u32]>> = plan
            .masks
            .as_ref()
            .map(|masks| masks.iter().map(Vec::as_slice).collect());
        let n_full = plan.context as usize % (pages.len() + 1);
        builder.add_sequence(&Sequence {
            context: ContextId(plan.context),
            request: RequestId(!plan.context),
            tokens: &plan.tokens,
            positions: match &plan.positions {
                None => Positions::From(plan.n_before),
                Some(list) => Positions::List(list),
            },
            masks: masks.as_deref().map_or(Masks::Causal, Masks::List),
            adapter: plan.adapter,
            media: plan.media,
            pages: Pages {
                list: 0,
                ids: &pages,
                n: n_full,
            },
            last_pages: &pages[n_full..],
            replaced: plan.replaced.then_some((0, PageId(9999))),
            length,
            reread: plan.reread,
            follows: None,
        });
        for (slot, row) in plan.rows.iter().enumerate() {
            builder.add_row(&Row {
                token_idx: row.token_idx,
                params: PARAMS,
                key: Key {
                    seed: plan.context,
                    position: length,
                    slot: slot as u32,
                    draw: 0,
                },
                n_draws: row.n_draws,
                mask: &row.mask,
                keep: row.keep,
            });
        }
    }
    for copy in 0..copies.n_copies {
        builder.add_copy(PageId(copy), PageId(1000 + copy));
    }
    for out in 0..copies.n_outs {
        builder.add_swap_out(PageId(1000 + out), HostSlot(50 + out));
    }
    for back in 0..copies.n_ins {
        builder.add_swap_in(HostSlot(back), PageId(back));
    }
    builder.finish(BatchId(u64::MAX - 5))
}

proptest! {
    #[test]
    fn round_trip(plans in plans(), page_size in 1u32..6, copies in copies()) {
        let words = write(&plans, page_size, copies);
        let view = ArenaView::parse(&words).unwrap();
        prop_assert_eq!(view.batch_id(), u64::MAX - 5);
        prop_assert_eq!(view.page_size(), page_size);
        prop_assert_eq!(view.n_sequences(), plans.len());
        let mut n_tokens = 0;
        let mut rows = view.rows();
        for ((index, plan), sequence) in plans.iter().enumerate().zip(view.sequences()) {
            prop_assert_eq!(sequence.first_token, n_tokens);
            prop_assert_eq!(sequence.tokens, &plan.tokens[..]);
            let length = plan.n_before as usize + plan.tokens.len();
            prop_assert_eq!(sequence.length, length);
            let consecutive: Vec<u32> = (plan.n_before..length as u32).collect();
            prop_assert_eq!(sequence.positions, &plan.positions.as_ref().unwrap_or(&consecutive)[..]);
            prop_assert_eq!(sequence.pages.len(), length.div_ceil(page_size as usize));
            for (page_idx, &page) in sequence.pages.iter().enumerate() {
                let expected = if plan.replaced && page_idx == 0 { 9999 } else { 100 * index + page_idx };
                prop_assert_eq!(page as usize, expected);
            }
            prop_assert_eq!(sequence.reread, plan.reread);
            prop_assert_eq!((sequence.adapter, sequence.adapter_version), (plan.adapter.id, plan.adapter.version));
            prop_assert_eq!((sequence.media, sequence.zo_seed), (plan.media, plan.adapter.zo_seed));
            let context = &view.field(Field::SeqContext)[2 * index..];
            prop_assert_eq!(u64::from(context[0]) | u64::from(context[1]) << 32, plan.context);
            for token_idx in 0..plan.tokens.len() {
                let expected = plan.masks.as_ref().map_or(&[][..], |masks| &masks[token_idx]);
                prop_assert_eq!(view.mask(n_tokens + token_idx), expected);
            }
            for (slot, row) in plan.rows.iter().enumerate() {
                let found = rows.next().unwrap();
                prop_assert_eq!(found.token, n_tokens + row.token_idx as usize);
                prop_assert_eq!(found.params, PARAMS);
                prop_assert_eq!((found.key.seed, found.key.position, found.key.slot, found.key.draw), (plan.context, length as u32, slot as u32, 0));
                prop_assert_eq!((found.n_draws, found.keep, found.embeds), (row.n_draws, row.keep != Keep::Draws, row.keep == Keep::Embedding));
                prop_assert_eq!(found.mask, &row.mask[..]);
            }
            n_tokens += plan.tokens.len();
        }
        prop_assert!(rows.next().is_none());
        prop_assert_eq!(view.n_tokens(), n_tokens);
        let pairs = |n: u32, src: u32, dst: u32| (0..n).map(move |index| (src + index, dst + index));
        prop_assert!(view.copies().eq(pairs(copies.n_copies, 0, 1000)));
        prop_assert!(view.swap_outs().eq(pairs(copies.n_outs, 1000, 50)));
        prop_assert!(view.swap_ins().eq(pairs(copies.n_ins, 0, 0)));
    }

    /// Whatever words an arena holds, reading it answers or refuses, and never indexes outside of it.
    #[test]
    fn damage_never_panics(plans in plans(), at in any::<prop::sample::Index>(), word in prop_oneof![any::<u32>(), 0u32..200], cut in any::<prop::sample::Index>()) {
        let copies = Copies { n_copies: 1, n_outs: 2, n_ins: 1 };
        let mut words = write(&plans, 4, copies).to_vec();
        let at = at.index(words.len());
        words[at] = word;
        if let Ok(view) = ArenaView::parse(&words) {
            let n: usize = view.sequences().map(|sequence| sequence.tokens.len()).sum();
            prop_assert_eq!(n, view.n_tokens());
            for token in 0..view.n_tokens() {
                view.mask(token);
            }
            prop_assert_eq!(view.rows().filter(|row| row.token < n).count(), view.n_rows());
        }
        let cut = cut.index(words.len());
        prop_assert!(ArenaView::parse(&words[..cut]).is_err());
    }
}

#[test]
fn a_batch_may_consist_of_copies_alone() {
    let mut builder = ArenaBuilder::new(4);
    assert!(builder.is_empty());
    builder.add_swap_out(PageId(1), HostSlot(2));
    assert!(!builder.is_empty());
    let words = builder.finish(BatchId(1));
    assert!(builder.is_empty());
    let view = ArenaView::parse(&words).unwrap();
    assert_eq!(
        (view.n_tokens(), view.n_sequences(), view.n_rows()),
        (0, 0, 0)
    );
    assert!(view.swap_outs().eq([(1, 2)]));
    let driver = Capabilities {
        vocab_size: 10,
        ..Capabilities::default()
    };
    let sampled = SampleJobs::new(words, &driver, Vec::new()).sample(&[], &[]);
    assert_eq!(sampled.n_sequences(), 0);
}

#[test]
fn each_kind_of_damage_is_named() {
    let plan = Plan {
        tokens: vec![1, 2],
        n_before: 3,
        positions: None,
        masks: Some(vec![vec![], vec![1, 2]]),
        adapter: Adapter::default(),
        media: 0,
        context: 1,
        reread: false,
        rows: vec![RowPlan {
            token_idx: 1,
            n_draws: 1,
            mask: vec![],
            keep: Keep::Draws,
        }],
        replaced: false,
    };
    let copies = Copies {
        n_copies: 2,
        n_outs: 2,
        n_ins: 2,
    };
    let good = write(&[plan.clone(), plan], 4, copies);
    let at = |field: Field| good[16 + 2 * field as usize] as usize;
    let cases = [
        (0, 7, "magic"),
        (1, 1, "version"),
        (2, 9, "number of words"),
        (5, 0, "page size"),
        (6, 3, "Tokens has 4 words"),
        (16, 3, "Tokens spans"),
        (at(Field::QoIndptr) + 1, 4, "QoIndptr does not ascend"),
        (at(Field::KvLastPageLen), 5, "5 slots of its last page of 4"),
        (at(Field::RowToken) + 1, 99, "RowToken holds 99"),
        (at(Field::RowToken), 4, "RowToken descends"),
        (at(Field::RowKeep), 3, "RowKeep of row 0 is 3"),
        (
            at(Field::RowKeep) + 1,
            2,
            "row 1 is a hidden state, and drawn from",
        ),
        (at(Field::SeqReread), 1, "re-reads 2 tokens"),
        (at(Field::SeqFollows), 1, "follows row 0 of no batch"),
        (
            at(Field::MaskRuns) + 1,
            5,
            "the mask of token 1 covers more than the 5 slots",
        ),
        (
            at(Field::MaskRuns) + 3,
            0,
            "the mask of token 3 allows no slot",
        ),
        (
            at(Field::CopyDst),
            1,
            "page 1 is copied or swapped in to twice",
        ),
        (at(Field::CopySrc), 1001, "both source and destination"),
        (
            at(Field::SwapInDst),
            1001,
            "page 1001 is copied or swapped in to twice",
        ),
        (
            at(Field::SwapOutDst),
            51,
            "host slot 51 is swapped out to twice",
        ),
        (
            at(Field::SwapInSrc),
            50,
            "host slot 50 is swapped out to and in from",
        ),
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
