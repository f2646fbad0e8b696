//! `pie:core/sampling`: how tokens are chosen, and what else is read of a row.

use pie_core::{ErrorCode, Method, Reading};
use wasmtime::component::{HasData, Linker};

use super::bindings::pie::core::sampling::{self, Probabilities, Probe, Sampler, Slot};
use crate::Error;
use crate::process::state::ProcessState;

/// What the interface, which has only types, sees of a process: nothing.
struct Nothing;

impl HasData for Nothing {
    type Data<'a> = Self;
}

impl sampling::Host for Nothing {}

/// What the core makes of a sampler. The core checks the values.
///
/// # Errors
/// `invalid-sampler` where the parts do not go together.
pub(super) fn core_sampler(sampler: &Sampler) -> Result<pie_core::Sampler, Error> {
    let Sampler {
        temperature,
        draws,
        seed,
        ..
    } = *sampler;
    let method = match (sampler.top_k, sampler.top_p, sampler.min_p) {
        (None, None, None) => Method::Multinomial { temperature, draws },
        (None, Some(p), None) => Method::TopP { temperature, p },
        (Some(k), None, None) => Method::TopK { temperature, k },
        (Some(k), Some(p), None) => Method::TopKTopP { temperature, k, p },
        (None, None, Some(p)) => Method::MinP { temperature, p },
        (_, _, Some(p)) => {
            let message = format!(
                "sampler parameter min_p = {p} goes with neither top_k nor top_p; give one or the other"
            );
            return Err(Error::new(ErrorCode::InvalidSampler, message));
        }
    };
    if draws != 1 && !matches!(method, Method::Multinomial { .. }) {
        let message =
            format!("sampler parameter draws = {draws} goes with no top_k, top_p or min_p; give 1");
        return Err(Error::new(ErrorCode::InvalidSampler, message));
    }
    Ok(pie_core::Sampler { method, seed })
}

/// What the core makes of a probe. The core checks the values.
pub(super) fn core_probe(probe: Probe) -> pie_core::Probe {
    match probe {
        Probe::Logits => pie_core::Probe::Logits,
        Probe::Distribution(wanted) => pie_core::Probe::Distribution {
            temperature: wanted.temperature,
            k: wanted.k,
        },
        Probe::Logprobs(tokens) => pie_core::Probe::Logprobs(tokens.into()),
        Probe::Entropy => pie_core::Probe::Entropy,
        Probe::Embedding => pie_core::Probe::Embedding,
    }
}

/// A reading as programs get it.
pub(super) fn slot_of(reading: &Reading) -> Slot {
    match reading {
        Reading::Logits(values) => Slot::Logits(bytes_of(values)),
        Reading::Distribution {
            tokens,
            probabilities,
        } => Slot::Distribution(Probabilities {
            tokens: tokens.to_vec(),
            values: probabilities.to_vec(),
        }),
        Reading::Logprobs(values) => Slot::Logprobs(values.to_vec()),
        Reading::Entropy(value) => Slot::Entropy(*value),
        Reading::Embedding(values) => Slot::Embedding(bytes_of(values)),
    }
}

/// Float32, little-endian.
fn bytes_of(values: &[f32]) -> Vec<u8> {
    let bytes = values.iter().flat_map(|value| value.to_le_bytes());
    bytes.collect()
}

/// Adds the interface to the linker.
pub(crate) fn add_to_linker(linker: &mut Linker<ProcessState>) -> wasmtime::Result<()> {
    sampling::add_to_linker::<_, Nothing>(linker, |_| Nothing)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Sampler = Sampler {
        temperature: 0.5,
        top_k: None,
        top_p: None,
        min_p: None,
        draws: 1,
        seed: Some(3),
    };

    #[test]
    fn each_part_restricts_and_what_does_not_go_together_is_refused() {
        let temperature = 0.5;
        let (k, p) = (Some(4), Some(0.25));
        let taken = [
            (
                ALL,
                Method::Multinomial {
                    temperature,
                    draws: 1,
                },
            ),
            (
                Sampler { draws: 9, ..ALL },
                Method::Multinomial {
                    temperature,
                    draws: 9,
                },
            ),
            (
                Sampler { top_p: p, ..ALL },
                Method::TopP {
                    temperature,
                    p: 0.25,
                },
            ),
            (
                Sampler { top_k: k, ..ALL },
                Method::TopK { temperature, k: 4 },
            ),
            (
                Sampler { min_p: p, ..ALL },
                Method::MinP {
                    temperature,
                    p: 0.25,
                },
            ),
            (
                Sampler {
                    top_k: k,
                    top_p: p,
                    ..ALL
                },
                Method::TopKTopP {
                    temperature,
                    k: 4,
                    p: 0.25,
                },
            ),
        ];
        for (given, method) in taken {
            assert_eq!(
                core_sampler(&given),
                Ok(pie_core::Sampler {
                    method,
                    seed: Some(3)
                })
            );
        }
        for refused in [
            Sampler {
                top_k: k,
                min_p: p,
                ..ALL
            },
            Sampler {
                top_p: p,
                min_p: p,
                ..ALL
            },
            Sampler {
                top_p: p,
                draws: 2,
                ..ALL
            },
        ] {
            let error = core_sampler(&refused).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidSampler);
        }
    }
}
