//! Evaluates probes. Everything is a fixed sequence of additions and multiplications of IEEE doubles, so that a row has
//! the same readings on every machine.

use std::sync::Arc;

use super::probe::{Probe, Reading};
use super::sampler::{Scratch, greatest, most_probable};
use super::weight::{exponential, exponentials, logarithm};
use super::wide::widest;

/// Sums that run side by side, so that the compiler can use vectors; they are added up in one order.
const LANES: usize = 16;

/// The sums of the softmax of a row.
#[derive(Clone, Copy, Debug)]
struct Sums {
    /// The greatest logit.
    top: f64,
    /// What logits are divided by.
    temperature: f64,
    /// Of `exp((logit - top) / temperature)`, and its logarithm.
    total: f64,
    log_total: f64,
    /// Of the same times `(top - logit) / temperature`.
    distance: f64,
}

/// What each of the probes reads of a row, float32 `[V]`, all of it finite; `embedding` is the hidden state behind its
/// token, where that was asked for.
pub fn read_row(
    logits: &[f32],
    embedding: &[f32],
    probes: &[Probe],
    scratch: &mut Scratch,
) -> Arc<[Reading]> {
    // Summed once for all that read at temperature 1.
    let mut plain = None;
    let mut sums_at = |temperature: f32| {
        if temperature == 1.0 {
            *plain.get_or_insert_with(|| sums_of(logits, 1.0))
        } else {
            sums_of(logits, temperature)
        }
    };
    let readings = probes.iter().map(|probe| match probe {
        Probe::Logits => Reading::Logits(Arc::from(logits)),
        Probe::Distribution { temperature, k } => {
            distribution(logits, &sums_at(*temperature), *k as usize, scratch)
        }
        Probe::Logprobs(tokens) => {
            let sums = sums_at(1.0);
            let of = |&token: &u32| {
                logits
                    .get(token as usize)
                    .map_or(f32::NAN, |&it| sums.logprob(it))
            };
            Reading::Logprobs(tokens.iter().map(of).collect())
        }
        Probe::Entropy => Reading::Entropy(sums_at(1.0).entropy()),
        Probe::Embedding => Reading::Embedding(Arc::from(embedding)),
    });
    readings.collect()
}

widest! {
    /// Those of a row at a temperature.
    fn sums_of(logits: &[f32], temperature: f32) -> Sums {
        let top = f64::from(greatest(logits).unwrap_or(0.0));
        let temperature = f64::from(temperature);
        let (mut totals, mut distances) = ([0.0; LANES], [0.0; LANES]);
        let (blocks, rest) = logits.as_chunks::<LANES>();
        for block in blocks {
            let mut x = block.map(|logit| f64::from(logit) - top);
            // A division by 1 changes nothing, and takes as long as any other.
            if temperature != 1.0 {
                x = x.map(|x| x / temperature);
            }
            let parts = exponentials(x);
            let sums = totals.iter_mut().zip(&mut distances);
            for ((total, distance), (part, x)) in sums.zip(parts.into_iter().zip(x)) {
                *total += part;
                *distance += part * distant(x);
            }
        }
        for ((total, distance), &logit) in totals.iter_mut().zip(&mut distances).zip(rest) {
            let x = (f64::from(logit) - top) / temperature;
            let part = exponential(x);
            *total += part;
            *distance += part * distant(x);
        }
        let total = totals.iter().sum();
        Sums {
            top,
            temperature,
            total,
            log_total: logarithm(total),
            distance: distances.iter().sum(),
        }
    }
}

impl Sums {
    /// Finite, though the difference of two logits may not be a float.
    fn logprob(&self, logit: f32) -> f32 {
        let x = (f64::from(logit) - self.top) / self.temperature;
        ((x - self.log_total) as f32).max(f32::MIN)
    }

    fn probability(&self, logit: f32) -> f32 {
        (exponential((f64::from(logit) - self.top) / self.temperature) / self.total) as f32
    }

    fn entropy(&self) -> f32 {
        (self.log_total + self.distance / self.total) as f32
    }
}

/// The distance of a logit to the greatest one. Where it is beyond all that has a probability it is cut, so that no
/// product of zero and infinity comes of it.
#[inline(always)]
fn distant(x: f64) -> f64 {
    if x > -1e3 { -x } else { 1e3 }
}

fn distribution(logits: &[f32], sums: &Sums, k: usize, scratch: &mut Scratch) -> Reading {
    if k == 0 {
        return Reading::Distribution {
            tokens: (0..logits.len() as u32).collect(),
            probabilities: logits.iter().map(|&it| sums.probability(it)).collect(),
        };
    }
    let chosen = most_probable(logits, k, scratch);
    Reading::Distribution {
        tokens: chosen.clone().map(|(token, _)| token).collect(),
        probabilities: chosen.map(|(_, logit)| sums.probability(logit)).collect(),
    }
}
