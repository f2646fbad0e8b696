//! The sampler against a naive one that shares no code with it, with parameters that lie on the bounds of its filters.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod support;

use std::collections::BTreeSet;

use pie_core::sampling::{Key, ONE, Params, RowFault, Scratch, sample, sample_many};
use proptest::prelude::*;
use support::sampling::{drawn, kept};

const KEY: Key = Key {
    seed: 1,
    position: 0,
    slot: 0,
    draw: 0,
};

/// Everything is drawn that may be, at a temperature of 1.
const ALL: Params = Params {
    temperature: 1.0,
    top_k: 0,
    top_p: 1.0,
    min_p: 0.0,
};

/// The whole part of a weight that a float32 can say, where it can say all of it.
fn as_share(weight: u64) -> Option<f32> {
    let share = weight as f64 / ONE as f64;
    let rounded = share as f32;
    (weight > 0 && f64::from(rounded) == share).then_some(rounded)
}

/// Logits whose weights are exactly a share of the greatest one's that a float32 can say, with that share.
fn on_the_bound() -> Vec<(f32, f32)> {
    let exact = |n: i32| {
        let logit = -(n as f32) / 524_288.0;
        let (_, weight) = kept(&[0.0, logit], &ALL, &[])[1];
        as_share(weight).map(|share| (logit, share))
    };
    (1..2_000_000).filter_map(exact).collect()
}

/// The tokens that come up in many draws.
fn all_drawn(logits: &[f32], params: &Params) -> BTreeSet<u32> {
    let mut tokens = Vec::new();
    let scratch = &mut Scratch::default();
    sample_many(logits, params, &[], KEY, 3000, scratch, &mut tokens).unwrap();
    tokens.into_iter().collect()
}

/// The tokens *at least* `p` times as probable as the most probable one.
// rows: RS-115
#[test]
fn min_p_keeps_what_lies_on_its_bound() {
    // With p = 1 those as probable as the most probable one stay.
    let equals = Params { min_p: 1.0, ..ALL };
    let logits = [2.0, 1.0, 2.0, 2.0 - 1e-6];
    assert_eq!(all_drawn(&logits, &equals), BTreeSet::from([0, 2]));
    let found = on_the_bound();
    let likely = |&&(_, share): &&(f32, f32)| share > 0.02;
    let cases: Vec<_> = found.iter().filter(likely).collect();
    assert!(cases.len() > 4, "{found:?}");
    for &&(logit, share) in &cases {
        let params = Params {
            min_p: share,
            ..ALL
        };
        assert_eq!(all_drawn(&[logit, 0.0], &params), BTreeSet::from([0, 1]));
        let above = Params {
            min_p: share.next_up(),
            ..ALL
        };
        assert_eq!(all_drawn(&[logit, 0.0], &above), BTreeSet::from([1]));
    }
}

/// The *fewest* most probable tokens whose probabilities *reach* `p`: no more are kept than reach it exactly.
// rows: RS-113
#[test]
fn top_p_ends_where_its_bound_is_reached() {
    for n in [2u32, 4, 8, 16, 64] {
        let logits = vec![1.0; n as usize];
        for n_kept in 1..n {
            let p = n_kept as f32 / n as f32;
            let at = Params { top_p: p, ..ALL };
            let above = Params {
                top_p: p.next_up(),
                ..ALL
            };
            assert_eq!(all_drawn(&logits, &at), (0..n_kept).collect());
            assert_eq!(all_drawn(&logits, &above), (0..=n_kept).collect());
        }
    }
}

/// Of equals those with the lowest ids are kept.
// rows: RS-114
#[test]
fn top_k_keeps_the_lowest_ids_of_equals() {
    let logits = [1.0, 3.0, 2.0, 2.0, 2.0, 0.0];
    for (top_k, tokens) in [
        (1, vec![1]),
        (2, vec![1, 2]),
        (3, vec![1, 2, 3]),
        (4, vec![1, 2, 3, 4]),
    ] {
        let params = Params { top_k, ..ALL };
        assert_eq!(
            all_drawn(&logits, &params),
            tokens.into_iter().collect::<BTreeSet<u32>>()
        );
    }
}

fn rows() -> impl Strategy<Value = Vec<f32>> {
    // Multiples of 1/8 and of 2 make ties; the finer ones make nearly equal probabilities; the wide ones weights of 0.
    prop_oneof![
        prop::collection::vec((-40i32..40).prop_map(|n| n as f32 / 8.0), 1..80),
        prop::collection::vec((-2i32..2).prop_map(|n| n as f32 * 2.0), 1..80),
        prop::collection::vec(-6.0f32..6.0, 1..80),
        prop::collection::vec(-60.0f32..60.0, 1..80),
    ]
}

/// Where a bound is put: anywhere, at an end, or as near as a float32 comes to what one of the tokens has.
#[derive(Clone, Copy, Debug)]
enum Bound {
    At(f32),
    OfToken(prop::sample::Index),
}

fn bound() -> impl Strategy<Value = Bound> {
    prop_oneof![
        1 => Just(Bound::At(1.0)),
        1 => Just(Bound::At(0.0)),
        1 => (0.0f32..1.0).prop_map(Bound::At),
        3 => any::<prop::sample::Index>().prop_map(Bound::OfToken),
    ]
}

/// The bounds as numbers: a share of the greatest weight for min-p, a share of the sum of weights for top-p.
fn place(logits: &[f32], params: Params, mask: &[bool], top_p: Bound, min_p: Bound) -> Params {
    let mut ranked: Vec<u64> = kept(logits, &params, mask)
        .iter()
        .map(|&(_, weight)| weight)
        .collect();
    ranked.sort_unstable_by(|a, b| b.cmp(a));
    let total: u64 = ranked.iter().sum();
    let top_p = match top_p {
        Bound::At(p) => p,
        Bound::OfToken(index) => {
            let n = 1 + index.index(ranked.len().max(1));
            (ranked.iter().take(n).sum::<u64>() as f64 / total as f64) as f32
        }
    };
    let min_p = match min_p {
        Bound::At(p) => p,
        Bound::OfToken(index) if !ranked.is_empty() => {
            (*index.get(&ranked) as f64 / ONE as f64) as f32
        }
        Bound::OfToken(_) => 0.0,
    };
    Params {
        top_p: if top_p > 0.0 { top_p } else { 1.0 },
        min_p: min_p.min(1.0),
        ..params
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// The same token to the bit, also where the bounds of the filters fall on tokens.
    // rows: RS-112..117
    #[test]
    fn draws_what_the_naive_sampler_draws(
        logits in rows(),
        temperature in prop_oneof![1 => Just(0.0f32), 2 => Just(1.0f32), 5 => 0.05f32..3.0],
        top_k in prop_oneof![Just(0u32), 1u32..90],
        (top_p, min_p) in (bound(), bound()),
        runs in prop::collection::vec(0u32..20, 0..6),
        (seed, position, slot) in (any::<u64>(), any::<u32>(), 0u32..4),
    ) {
        let n = logits.len();
        let mut mask: Vec<bool> = Vec::new();
        for (index, &run) in runs.iter().enumerate() {
            mask.extend(std::iter::repeat_n(index % 2 == 1, run as usize));
        }
        mask.resize(if runs.is_empty() { 0 } else { n.max(mask.len()) }, false);
        mask.truncate(n);
        let open = Params { temperature, top_k, ..ALL };
        let params = place(&logits, open, &mask, top_p, min_p);
        let key = Key { seed, position, slot, draw: 0 };
        let mut scratch = Scratch::default();
        let one = sample(&logits, &params, &runs, key, &mut scratch);
        prop_assert_eq!(one, drawn(&logits, &params, &mask, key).ok_or(RowFault::NothingAllowed));
        let mut many = Vec::new();
        let drew = sample_many(&logits, &params, &runs, key, 5, &mut scratch, &mut many);
        prop_assert_eq!(drew.is_ok(), one.is_ok());
        for (draw, token) in (0..).zip(many) {
            prop_assert_eq!(Some(token), drawn(&logits, &params, &mask, Key { draw, ..key }));
        }
    }
}
