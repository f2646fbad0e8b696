//! How a token is chosen, and what else is read of a row of logits.

use crate::bindings::pie::core::sampling as raw;
/// What is read of an output.
pub use crate::bindings::pie::core::sampling::{Probabilities, Slot, Speculation};
pub use crate::handle::{Handle, ProbeHandle, SampleHandle};
pub use crate::probe::{Distribution, Embedding, Entropy, Logits, Logprob, Logprobs, Probe};

/// Chooses one token per slot. In each: temperature, softmax, top-k, top-p or min-p over what is left, draw.
/// Temperature 0 is argmax, and ties go to the lowest id. Parameters out of range are the error `invalid-sampler` of
/// the call that the sampler is given to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sampler {
    /// The likeliest token; ties go to the lowest id.
    Argmax,
    /// From the fewest tokens whose probabilities reach `p`.
    TopP {
        /// At least 0.
        temperature: f32,
        /// In (0, 1].
        p: f32,
    },
    /// From the `k` likeliest tokens.
    TopK {
        /// At least 0.
        temperature: f32,
        /// At least 1.
        k: u32,
    },
    /// From the tokens at least `p` times as likely as the likeliest.
    MinP {
        /// At least 0.
        temperature: f32,
        /// In [0, 1].
        p: f32,
    },
    /// From the `k` likeliest tokens, then from the fewest of them whose probabilities reach `p`.
    TopKTopP {
        /// At least 0.
        temperature: f32,
        /// At least 1.
        k: u32,
        /// In (0, 1].
        p: f32,
    },
    /// From all tokens.
    Multinomial {
        /// At least 0.
        temperature: f32,
        /// Independent draws in the slot; a generator needs 1.
        draws: u32,
    },
}

impl Sampler {
    /// Makes [`Sampler::Argmax`].
    pub const fn argmax() -> Self {
        Self::Argmax
    }

    /// Makes [`Sampler::TopP`].
    pub const fn top_p(temperature: f32, p: f32) -> Self {
        Self::TopP { temperature, p }
    }

    /// Makes [`Sampler::TopK`].
    pub const fn top_k(temperature: f32, k: u32) -> Self {
        Self::TopK { temperature, k }
    }

    /// Makes [`Sampler::MinP`].
    pub const fn min_p(temperature: f32, p: f32) -> Self {
        Self::MinP { temperature, p }
    }

    /// Makes [`Sampler::TopKTopP`].
    pub const fn top_k_top_p(temperature: f32, k: u32, p: f32) -> Self {
        Self::TopKTopP { temperature, k, p }
    }

    /// Makes [`Sampler::Multinomial`].
    pub const fn multinomial(temperature: f32, draws: u32) -> Self {
        Self::Multinomial { temperature, draws }
    }

    /// This sampler with a seed of its own, used as given, 0 included, before the seed of the generator.
    pub const fn seed(self, seed: u64) -> Seeded {
        Seeded {
            sampler: self,
            seed: Some(seed),
        }
    }
}

/// A sampler and, where it was given one, its own seed. Wherever one is taken a plain [`Sampler`] fits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seeded {
    sampler: Sampler,
    seed: Option<u64>,
}

impl From<Sampler> for Seeded {
    fn from(sampler: Sampler) -> Self {
        Self {
            sampler,
            seed: None,
        }
    }
}

impl From<Seeded> for raw::Sampler {
    fn from(seeded: Seeded) -> Self {
        let all = Self {
            temperature: 0.0,
            top_k: None,
            top_p: None,
            min_p: None,
            draws: 1,
            seed: seeded.seed,
        };
        match seeded.sampler {
            Sampler::Argmax => all,
            Sampler::TopP { temperature, p } => Self {
                temperature,
                top_p: Some(p),
                ..all
            },
            Sampler::TopK { temperature, k } => Self {
                temperature,
                top_k: Some(k),
                ..all
            },
            Sampler::MinP { temperature, p } => Self {
                temperature,
                min_p: Some(p),
                ..all
            },
            Sampler::TopKTopP { temperature, k, p } => Self {
                temperature,
                top_k: Some(k),
                top_p: Some(p),
                ..all
            },
            Sampler::Multinomial { temperature, draws } => Self {
                temperature,
                draws,
                ..all
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // rows: RS-112..118
    #[test]
    fn helpers_build_the_variants() {
        assert_eq!(Sampler::argmax(), Sampler::Argmax);
        const NUCLEUS: Sampler = Sampler::top_p(0.6, 0.95);
        assert_eq!(
            NUCLEUS,
            Sampler::TopP {
                temperature: 0.6,
                p: 0.95
            }
        );
        assert_eq!(
            Sampler::top_k(1.0, 5),
            Sampler::TopK {
                temperature: 1.0,
                k: 5
            }
        );
        assert_eq!(
            Sampler::min_p(1.0, 0.1),
            Sampler::MinP {
                temperature: 1.0,
                p: 0.1
            }
        );
        assert_eq!(
            Sampler::top_k_top_p(1.0, 5, 0.9),
            Sampler::TopKTopP {
                temperature: 1.0,
                k: 5,
                p: 0.9
            }
        );
        assert_eq!(
            Sampler::multinomial(1.0, 2),
            Sampler::Multinomial {
                temperature: 1.0,
                draws: 2
            }
        );
    }

    #[test]
    fn a_seed_of_zero_is_a_seed() {
        assert_eq!(
            raw::Sampler::from(Sampler::top_k(1.0, 5).seed(0)).seed,
            Some(0)
        );
        assert_eq!(raw::Sampler::from(Seeded::from(Sampler::Argmax)).seed, None);
    }
}
