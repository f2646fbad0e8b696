//! Probes against their definitions in plain doubles.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;

/// Probabilities by the definition, in the order of ids.
fn softmax(logits: &[f32], temperature: f32) -> Vec<f64> {
    let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let scaled = |&logit: &f32| (f64::from(logit) - f64::from(top)) / f64::from(temperature);
    let powers: Vec<f64> = logits.iter().map(|logit| scaled(logit).exp()).collect();
    let total: f64 = powers.iter().sum();
    powers.iter().map(|power| power / total).collect()
}

fn logprob(logits: &[f32], token: u32) -> f64 {
    let top = f64::from(logits.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    let powers = logits.iter().map(|&logit| (f64::from(logit) - top).exp());
    let exact = f64::from(logits[token as usize]) - top - powers.sum::<f64>().ln();
    exact.max(f64::from(f32::MIN))
}

fn near(found: f32, expected: f64) -> bool {
    (f64::from(found) - expected).abs() <= 1e-6 * expected.abs() + 1e-12
}

fn rows() -> impl Strategy<Value = Vec<f32>> {
    prop_oneof![
        prop::collection::vec((-40i32..40).prop_map(|n| n as f32 / 8.0), 1..80),
        prop::collection::vec(-6.0f32..6.0, 1..80),
        prop::collection::vec(-1e4f32..1e4, 1..80),
        // Large and small beside each other.
        prop::collection::vec(
            prop_oneof![Just(0.0f32), Just(-1e30), -3e38f32..3e38],
            1..20
        ),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    // rows: RS-119 RS-121..125
    #[test]
    fn readings_are_those_of_the_definition(
        logits in rows(),
        temperature in 0.05f32..4.0,
        k in 0u32..90,
        tokens in prop::collection::vec(any::<prop::sample::Index>(), 1..9),
    ) {
        let n = logits.len();
        let k = k.min(n as u32);
        let tokens: Arc<[u32]> = tokens.iter().map(|index| index.index(n) as u32).collect();
        let probes = [
            Probe::Distribution { temperature, k },
            Probe::Logits,
            Probe::Entropy,
            Probe::Logprobs(tokens.clone()),
            Probe::Embedding,
        ];
        let read = read_row(&logits, &[0.5, 2.0], &probes, &mut Scratch::default());
        let [
            Reading::Distribution { tokens: ids, probabilities },
            Reading::Logits(kept),
            Reading::Entropy(entropy),
            Reading::Logprobs(logprobs),
            Reading::Embedding(embedding),
        ] = &*read else { panic!("{read:?}") };
        prop_assert_eq!((&kept[..], &embedding[..]), (&logits[..], &[0.5f32, 2.0][..]));
        let mut order: Vec<u32> = (0..n as u32).collect();
        if k > 0 {
            order.sort_by(|&a, &b| logits[b as usize].partial_cmp(&logits[a as usize]).unwrap().then(a.cmp(&b)));
            order.truncate(k as usize);
        }
        prop_assert_eq!(&ids[..], &order[..]);
        let p = softmax(&logits, temperature);
        for (&id, &found) in order.iter().zip(probabilities.iter()) {
            prop_assert!(near(found, p[id as usize]), "{id}: {found} against {}", p[id as usize]);
        }
        let p = softmax(&logits, 1.0);
        let expected: f64 = p.iter().filter(|&&p| p > 0.0).map(|p| -p * p.ln()).sum();
        prop_assert!((f64::from(*entropy) - expected).abs() < 1e-6, "{entropy} against {expected}");
        for (&token, &found) in tokens.iter().zip(logprobs.iter()) {
            prop_assert!(near(found, logprob(&logits, token)), "{token}: {found}");
        }
    }
}

// rows: RS-119 RS-122..125
#[test]
fn the_ends_of_what_can_be_read() {
    let even = [2.5f32; 1000];
    let read = |logits: &[f32], probe: Probe| {
        let read = read_row(logits, &[], &[probe], &mut Scratch::default());
        read[0].clone()
    };
    assert_eq!(read(&even, Probe::Entropy), Reading::Entropy(1000f32.ln()));
    let first = Probe::Distribution {
        temperature: 0.7,
        k: 3,
    };
    let expected = Reading::Distribution {
        tokens: Arc::from([0, 1, 2]),
        probabilities: Arc::from([1e-3; 3]),
    };
    assert_eq!(read(&even, first), expected);
    // A row that leaves no doubt: what has no probability has a logprob nevertheless.
    let certain = [-1e30, 0.0, -1e30];
    assert_eq!(read(&certain, Probe::Entropy), Reading::Entropy(0.0));
    let both = Probe::Logprobs(Arc::from([0, 1]));
    assert_eq!(
        read(&certain, both),
        Reading::Logprobs(Arc::from([-1e30, 0.0]))
    );
    // The least temperature.
    let coldest = Probe::Distribution {
        temperature: f32::from_bits(1),
        k: 0,
    };
    let expected = Reading::Distribution {
        tokens: Arc::from([0, 1, 2]),
        probabilities: Arc::from([0.0, 1.0, 0.0]),
    };
    assert_eq!(read(&[0.5, 0.75, 0.5], coldest), expected);
}
