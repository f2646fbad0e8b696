//! The sampler against a naive one in doubles, and against the distribution that it should draw from.

use proptest::prelude::*;

use super::*;
use crate::brle;

const KEY: Key = Key {
    seed: 1,
    position: 0,
    slot: 0,
    draw: 0,
};

/// The probabilities that the definition asks for: full sorts, the platform's `exp`, no whole numbers.
fn naive(logits: &[f32], params: &Params, mask: &[u32]) -> Vec<f64> {
    let n = logits.len();
    let mut order: Vec<usize> = (0..n)
        .filter(|&id| brle::is_allowed(mask, n as u32, id as u32))
        .collect();
    order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]).then(a.cmp(&b)));
    if params.temperature == 0.0 {
        order.truncate(1);
    }
    let scale = if params.temperature == 0.0 {
        1.0
    } else {
        f64::from(params.temperature)
    };
    let mut p = vec![0.0; n];
    let top = f64::from(logits[order[0]]);
    for &id in &order {
        p[id] = ((f64::from(logits[id]) - top) / scale).exp();
    }
    if params.top_k > 0 {
        order.truncate(params.top_k as usize);
    }
    let total: f64 = order.iter().map(|&id| p[id]).sum();
    let mut sum = 0.0;
    let reached = order.iter().position(|&id| {
        sum += p[id] / total;
        sum >= f64::from(params.top_p)
    });
    order.truncate(reached.map_or(n, |last| last + 1));
    order.retain(|&id| p[id] >= f64::from(params.min_p));
    let total: f64 = order.iter().map(|&id| p[id]).sum();
    (0..n)
        .map(|id| {
            if order.contains(&id) {
                p[id] / total
            } else {
                0.0
            }
        })
        .collect()
}

fn rows() -> impl Strategy<Value = Vec<f32>> {
    // Multiples of 1/8 make ties; the finer ones make nearly equal probabilities.
    prop_oneof![
        prop::collection::vec((-40i32..40).prop_map(|n| n as f32 / 8.0), 1..80),
        prop::collection::vec(-6.0f32..6.0, 1..80),
    ]
}

fn params() -> impl Strategy<Value = Params> {
    let (k, p, min) = (
        prop_oneof![Just(0u32), 1u32..90],
        prop_oneof![Just(1.0f32), 0.01f32..1.0],
        prop_oneof![Just(0.0f32), 0.0f32..=1.0],
    );
    (prop_oneof![Just(0.0f32), 0.05f32..3.0], k, p, min).prop_map(
        |(temperature, top_k, top_p, min_p)| Params {
            temperature,
            top_k,
            top_p,
            min_p,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// The drawn token is the one whose interval of the naive cumulative distribution holds the random number, unless
    /// it lies closer to a bound than the two ways of rounding can tell apart.
    // rows: RS-110 RS-112..117
    #[test]
    fn draws_as_the_naive_sampler(logits in rows(), params in params(), runs in prop::collection::vec(0u32..20, 0..6), seed: u64) {
        let (len, key) = (logits.len() as u32, Key { seed, ..KEY });
        let drawn = sample(&logits, &params, &runs, key, &mut Scratch::default());
        if brle::allowed(&runs, len).next().is_none() {
            prop_assert_eq!(drawn, Err(RowFault::NothingAllowed));
            return Ok(());
        }
        let drawn = drawn.unwrap() as usize;
        let p = naive(&logits, &params, &runs);
        let u = key.bits() as f64 / 2f64.powi(64);
        let below: f64 = p[..drawn].iter().sum();
        // A nucleus whose bound falls on `top_p` to within rounding may hold one token more or less;
        // `tests/sampling.rs` says which.
        let margin = 1e-6;
        let moved = |by: f32| naive(&logits, &Params { top_p: params.top_p + by, ..params }, &runs);
        let (narrow, wide) = (moved(-margin as f32), moved(margin as f32));
        let near_p = params.top_p < 1.0 && narrow != wide;
        if near_p {
            prop_assert!(wide[drawn] > 0.0, "token {drawn} lies outside what a wider nucleus keeps");
        } else {
            prop_assert!(p[drawn] > 0.0, "token {drawn} lies outside what the filters keep");
            prop_assert!(below - margin <= u && u <= below + p[drawn] + margin, "{u} outside [{below}, {}]", below + p[drawn]);
        }
    }

    // rows: RS-116
    #[test]
    fn large_vocabularies_take_the_same_token(
        seed: u64,
        k in prop_oneof![Just(0u32), 1u32..3000],
        p in prop_oneof![Just(1.0f32), 0.01f32..1.0],
        // Ties, a spread as that of a model, and one that leaves most tokens without a weight.
        scale in prop_oneof![Just(0.01f32), Just(1.0), Just(40.0)],
        temperature in prop_oneof![Just(0.7f32), Just(1e-37), Just(3e38)],
        runs in prop::collection::vec(0u32..2000, 0..9),
    ) {
        // Values from a hash over 20,000 tokens: selection runs through every stage of halving and of cutting back.
        let value = |id: u64| (crate::hash::mix(seed ^ id) >> 45) as f32 / 65_536.0;
        let logits: Vec<f32> = (0..20_000u64).map(|id| (value(id) * 100.0 * scale).round() / 100.0).collect();
        let params = Params { temperature, top_k: k, top_p: p, min_p: 0.0 };
        let mut order: Vec<u32> = brle::allowed(&runs, 20_000).flatten().collect();
        prop_assume!(!order.is_empty());
        order.sort_by(|&a, &b| logits[b as usize].total_cmp(&logits[a as usize]).then(a.cmp(&b)));
        order.truncate(if k == 0 { 20_000 } else { k as usize });
        let top = f64::from(logits[order[0] as usize]);
        let weigh = |id: u32| weight((f64::from(logits[id as usize]) - top) / f64::from(temperature));
        let total: u64 = order.iter().map(|&id| weigh(id)).sum();
        let wanted = if p < 1.0 { (f64::from(p) * total as f64).ceil() as u64 } else { total };
        let mut sum = 0;
        let reached = order.iter().position(|&id| { sum += weigh(id); sum >= wanted });
        order.truncate(reached.unwrap() + 1);
        order.sort_unstable();
        let total: u64 = order.iter().map(|&id| weigh(id)).sum();
        let expected = |draw: u32| {
            let bits = Key { seed, draw, ..KEY }.bits();
            let target = ((u128::from(bits) * u128::from(total)) >> 64) as u64;
            let mut sum = 0;
            *order.iter().find(|&&id| { sum += weigh(id); sum > target }).unwrap()
        };
        let (key, mut scratch) = (Key { seed, ..KEY }, Scratch::default());
        prop_assert_eq!(sample(&logits, &params, &runs, key, &mut scratch), Ok(expected(0)));
        for n_draws in 0..4 {
            let mut drawn = Vec::new();
            sample_many(&logits, &params, &runs, key, n_draws, &mut scratch, &mut drawn).unwrap();
            prop_assert_eq!(drawn, (0..n_draws).map(expected).collect::<Vec<u32>>());
        }
    }
}

// rows: RS-112..117
#[test]
fn temperature_0_is_argmax_and_ties_go_to_the_lowest_id() {
    let logits = [1.0, 3.0, -0.0, 3.0, 2.0];
    for (top_k, top_p, min_p) in [(0, 1.0, 0.0), (3, 0.5, 0.0), (0, 0.1, 1.0)] {
        let params = Params {
            temperature: 0.0,
            top_k,
            top_p,
            min_p,
        };
        assert_eq!(
            sample(&logits, &params, &[], KEY, &mut Scratch::default()),
            Ok(1)
        );
    }
    assert_eq!(
        sample(
            &[-0.0, 0.0],
            &Params::ARGMAX,
            &[],
            KEY,
            &mut Scratch::default()
        ),
        Ok(0)
    );
    assert_eq!(
        sample(
            &logits,
            &Params::ARGMAX,
            &[2, 3],
            KEY,
            &mut Scratch::default()
        ),
        Ok(3)
    );
}

// rows: RS-112
#[test]
fn a_logit_that_is_not_finite_is_named() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let logits = [0.0, 1.0, bad];
        assert_eq!(
            sample(
                &logits,
                &Params::ARGMAX,
                &[0, 2],
                KEY,
                &mut Scratch::default()
            ),
            Err(RowFault::NotFinite(2))
        );
    }
}

// rows: RS-117
#[test]
fn frequencies_follow_the_distribution() {
    let logits = [0.0f32, 1.0, 2.0, 0.5];
    let params = Params {
        temperature: 1.0,
        ..Params::ARGMAX
    };
    let p = naive(&logits, &params, &[]);
    let (n, mut counts, mut scratch) = (40_000u32, [0u32; 4], Scratch::default());
    for position in 0..n {
        counts[sample(&logits, &params, &[], Key { position, ..KEY }, &mut scratch).unwrap()
            as usize] += 1;
    }
    for (count, p) in counts.iter().zip(p) {
        let sigma = (f64::from(n) * p * (1.0 - p)).sqrt();
        assert!(
            (f64::from(*count) - f64::from(n) * p).abs() < 5.0 * sigma,
            "{counts:?}"
        );
    }
}
