//! Probes once more, naively, from their definitions in plain doubles.

use std::sync::Arc;

use pie_core::{Probe, Reading};

/// What a probe reads of a row, and of the hidden state behind it.
pub fn read(logits: &[f32], state: &[f32], probe: &Probe) -> Reading {
    let plain = softmax(logits, 1.0);
    match probe {
        Probe::Logits => Reading::Logits(Arc::from(logits)),
        Probe::Distribution { temperature, k } => {
            let p = softmax(logits, *temperature);
            let mut tokens: Vec<u32> = (0..logits.len() as u32).collect();
            if *k > 0 {
                let logit = |token: u32| logits[token as usize];
                tokens.sort_by(|&a, &b| logit(b).partial_cmp(&logit(a)).unwrap().then(a.cmp(&b)));
                tokens.truncate(*k as usize);
            }
            Reading::Distribution {
                probabilities: tokens
                    .iter()
                    .map(|&token| p[token as usize] as f32)
                    .collect(),
                tokens: tokens.into(),
            }
        }
        Probe::Logprobs(tokens) => {
            let of = |&token: &u32| plain[token as usize].ln() as f32;
            Reading::Logprobs(tokens.iter().map(of).collect())
        }
        Probe::Entropy => {
            let parts = plain.iter().filter(|&&p| p > 0.0).map(|p| -p * p.ln());
            Reading::Entropy(parts.sum::<f64>() as f32)
        }
        Probe::Embedding => Reading::Embedding(Arc::from(state)),
    }
}

/// Whether two readings are the same, but for the last digits of what is computed.
pub fn near(left: &Reading, right: &Reading) -> bool {
    let close = |a: &[f32], b: &[f32]| {
        let mut both = a.iter().zip(b);
        a.len() == b.len() && both.all(|(a, b)| (a - b).abs() <= 1e-5 * a.abs() + 1e-6)
    };
    match (left, right) {
        (
            Reading::Distribution {
                tokens,
                probabilities,
            },
            Reading::Distribution {
                tokens: others,
                probabilities: wanted,
            },
        ) => tokens == others && close(probabilities, wanted),
        (Reading::Logprobs(a), Reading::Logprobs(b)) => close(a, b),
        (Reading::Entropy(a), Reading::Entropy(b)) => close(&[*a], &[*b]),
        (left, right) => left == right,
    }
}

/// Probabilities by the definition.
fn softmax(logits: &[f32], temperature: f32) -> Vec<f64> {
    let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let scaled = |&logit: &f32| (f64::from(logit) - f64::from(top)) / f64::from(temperature);
    let powers: Vec<f64> = logits.iter().map(|logit| scaled(logit).exp()).collect();
    let total: f64 = powers.iter().sum();
    powers.iter().map(|power| power / total).collect()
}
