//! What is read of a row of logits beside its token. No mask and no sampler changes what a probe reads.

use crate::bindings::pie::core::sampling as raw;

/// Reads the distribution at a position without choosing a token. Values out of range are the error `invalid-probe`.
pub trait Probe {
    /// What the engine takes of it.
    fn to_raw(&self) -> raw::Probe;
}

/// The row itself, before softmax: [`Output::logits`](crate::Output::logits).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Logits;

/// Tokens and their probabilities, over the whole vocabulary: [`Output::distribution`](crate::Output::distribution).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Distribution {
    /// Above 0.
    pub temperature: f32,
    /// How many tokens, the likeliest first; 0: all, in the order of their ids.
    pub k: u32,
}

/// The natural logarithm of the probability of a token at temperature 1:
/// [`Output::logprobs`](crate::Output::logprobs), one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Logprob(pub u32);

/// The natural logarithms of the probabilities of tokens at temperature 1, in their order:
/// [`Output::logprobs`](crate::Output::logprobs).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logprobs(pub Vec<u32>);

/// The entropy of the distribution at temperature 1, in nats: [`Output::entropy`](crate::Output::entropy).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entropy;

/// The final hidden state behind the token, where the driver has it: [`Output::embedding`](crate::Output::embedding).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Embedding;

impl Probe for Logits {
    fn to_raw(&self) -> raw::Probe {
        raw::Probe::Logits
    }
}

impl Probe for Distribution {
    fn to_raw(&self) -> raw::Probe {
        raw::Probe::Distribution(raw::Distribution {
            temperature: self.temperature,
            k: self.k,
        })
    }
}

impl Probe for Logprob {
    fn to_raw(&self) -> raw::Probe {
        raw::Probe::Logprobs(vec![self.0])
    }
}

impl Probe for Logprobs {
    fn to_raw(&self) -> raw::Probe {
        raw::Probe::Logprobs(self.0.clone())
    }
}

impl Probe for Entropy {
    fn to_raw(&self) -> raw::Probe {
        raw::Probe::Entropy
    }
}

impl Probe for Embedding {
    fn to_raw(&self) -> raw::Probe {
        raw::Probe::Embedding
    }
}

/// A probe that is chosen while the program runs.
impl Probe for raw::Probe {
    fn to_raw(&self) -> raw::Probe {
        self.clone()
    }
}
