//! What is read of a row of logits besides what is drawn from it.

use std::sync::Arc;

use crate::errors::{Error, ErrorCode, Result};

/// The most tokens that one probe may name.
pub const MAX_PROBED_TOKENS: usize = 65_536;

/// What is read of a row. It reads the raw distribution: no mask and no sampler changes it.
#[derive(Clone, Debug, PartialEq)]
pub enum Probe {
    /// The row itself, before softmax.
    Logits,
    /// Probabilities over the whole vocabulary.
    Distribution {
        /// Above 0.
        temperature: f32,
        /// So many of the most probable tokens, the most probable first, among equals the lower id; 0: all, in the
        /// order of their ids.
        k: u32,
    },
    /// The natural logarithms of the probabilities of these tokens at temperature 1, in their order.
    Logprobs(Arc<[u32]>),
    /// Of the distribution at temperature 1, in nats.
    Entropy,
    /// The final hidden state behind the token, float32.
    Embedding,
}

/// What a probe read.
#[derive(Clone, Debug, PartialEq)]
pub enum Reading {
    /// Float32 `[V]`.
    Logits(Arc<[f32]>),
    /// Tokens and their probabilities, as long as each other.
    Distribution {
        /// In the order that the probe asked for.
        tokens: Arc<[u32]>,
        /// Of all tokens together they add up to 1.
        probabilities: Arc<[f32]>,
    },
    /// One for each token of the probe.
    Logprobs(Arc<[f32]>),
    /// In nats.
    Entropy(f32),
    /// Float32 `[hidden size]`.
    Embedding(Arc<[f32]>),
}

impl Probe {
    /// Checks what it asks for.
    ///
    /// # Errors
    /// `invalid-probe`, naming the parameter, its value and the range; `invalid-token` for a token outside the
    /// vocabulary.
    pub fn check(&self, vocab_size: u32) -> Result<()> {
        match self {
            Self::Logits | Self::Entropy | Self::Embedding => Ok(()),
            Self::Distribution { temperature, k } => {
                if !(temperature.is_finite() && *temperature > 0.0) {
                    let remedy = "give a finite number above 0";
                    return Err(refused("temperature", temperature, remedy));
                }
                if *k > vocab_size {
                    let remedy = format!("give 0 to {vocab_size}, the size of the vocabulary");
                    return Err(refused("k", k, &remedy));
                }
                Ok(())
            }
            Self::Logprobs(tokens) => {
                if !(1..=MAX_PROBED_TOKENS).contains(&tokens.len()) {
                    let remedy = format!("give 1 to {MAX_PROBED_TOKENS} tokens");
                    return Err(refused("number of tokens", tokens.len(), &remedy));
                }
                match tokens.iter().find(|&&token| token >= vocab_size) {
                    Some(token) => Err(Error::with_values(
                        ErrorCode::InvalidToken,
                        format!(
                            "token {token} is outside the vocabulary of {vocab_size}; probe tokens below it"
                        ),
                        &[
                            ("token", u64::from(*token)),
                            ("vocab_size", u64::from(vocab_size)),
                        ],
                    )),
                    None => Ok(()),
                }
            }
        }
    }

    /// What it and its reading keep in memory, in bytes, on a vocabulary of `vocab_size` tokens and hidden states of
    /// `hidden_size` values.
    pub fn n_bytes(&self, vocab_size: u32, hidden_size: u32) -> usize {
        let (vocab_size, hidden_size) = (vocab_size as usize, hidden_size as usize);
        let word = size_of::<f32>();
        match self {
            Self::Logits => word * vocab_size,
            Self::Distribution { k: 0, .. } => 2 * word * vocab_size,
            // More is refused by its range, and not for the memory that it would take.
            Self::Distribution { k, .. } => 2 * word * vocab_size.min(*k as usize),
            Self::Logprobs(tokens) => 2 * word * tokens.len(),
            Self::Entropy => word,
            Self::Embedding => word * hidden_size,
        }
    }

    /// Bytes of the list that it names.
    pub(crate) fn list_bytes(&self) -> usize {
        match self {
            Self::Logprobs(tokens) => size_of_val(&**tokens),
            _ => 0,
        }
    }

    /// Whether it is read of the logits.
    pub(crate) const fn reads_logits(&self) -> bool {
        !matches!(self, Self::Embedding)
    }
}

fn refused(name: &str, value: impl std::fmt::Display, remedy: &str) -> Error {
    Error::new(
        ErrorCode::InvalidProbe,
        format!("probe parameter {name} = {value} is out of range; {remedy}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    // rows: RS-122..124
    #[test]
    fn what_cannot_be_read_is_refused_by_name() {
        let distribution = |temperature, k| Probe::Distribution { temperature, k };
        let logprobs = |tokens: &[u32]| Probe::Logprobs(Arc::from(tokens));
        let many = vec![1; MAX_PROBED_TOKENS + 1];
        let invalid = [
            (distribution(0.0, 1), "temperature = 0 "),
            (distribution(-1.0, 1), "temperature = -1 "),
            (distribution(f32::NAN, 1), "temperature = NaN "),
            (distribution(f32::INFINITY, 1), "temperature = inf "),
            (distribution(1.0, 51), "k = 51 "),
            (logprobs(&[]), "number of tokens = 0 "),
            (logprobs(&many), "number of tokens = 65537 "),
        ];
        for (probe, part) in invalid {
            let error = probe.check(50).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidProbe);
            assert!(error.message.contains(part), "{error} lacks {part}");
        }
        let foreign = logprobs(&[0, 50]).check(50).unwrap_err();
        assert_eq!(foreign.code, ErrorCode::InvalidToken);
        let valid = [
            Probe::Logits,
            Probe::Entropy,
            Probe::Embedding,
            distribution(f32::MIN_POSITIVE, 0),
            distribution(1e30, 50),
            logprobs(&[49, 0, 49]),
        ];
        for probe in valid {
            assert!(probe.check(50).is_ok(), "{probe:?}");
        }
    }

    #[test]
    fn what_is_kept_is_counted() {
        let distribution = |k| Probe::Distribution {
            temperature: 1.0,
            k,
        };
        let sizes = [
            (Probe::Logits, 400),
            (distribution(0), 800),
            (distribution(3), 24),
            (distribution(u32::MAX), 800),
            (Probe::Logprobs(Arc::from([1, 2])), 16),
            (Probe::Entropy, 4),
            (Probe::Embedding, 28),
        ];
        for (probe, n_bytes) in sizes {
            assert_eq!(probe.n_bytes(100, 7), n_bytes, "{probe:?}");
        }
    }
}
