//! What came of a pass or a step.

use std::fmt;

use serde::Serialize;

use crate::bindings::pie::core::forward::PassOutput;
use crate::bindings::pie::core::generation as raw;
use crate::bindings::pie::core::sampling::{Slot, Speculation};
use crate::handle::{Handle, Owner, SampleHandle};

/// What came of a pass or a step. It is read by the handles of that pass or step; another handle, and one of another
/// kind, give nothing.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Output {
    /// What a step of a generator accepted, a stop token included as the last; nothing in a pass of one's own.
    pub tokens: Vec<u32>,
    /// Set when this step ended the generation.
    pub finish_reason: Option<FinishReason>,
    raw: RawOutput,
    slots: Slots,
}

/// The slots as the engine answers them, and what was drafted.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RawOutput {
    /// One for each sampler and probe, in their order.
    pub slots: Vec<Slot>,
    /// How many tokens were drafted and accepted.
    pub speculative: Speculation,
}

/// Tells the slots of an output by their handles.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    /// The sampler of a generator.
    pub(crate) auto_sampler: Option<SampleHandle>,
    /// The owners of handles, and the index of the first slot of each.
    pub(crate) first: Vec<(Owner, usize)>,
}

impl Output {
    pub(crate) fn of_pass(answer: PassOutput, owner: Owner) -> Self {
        let slots = Slots {
            auto_sampler: None,
            first: vec![(owner, 0)],
        };
        Self {
            tokens: Vec::new(),
            finish_reason: None,
            raw: RawOutput::new(answer.slots, answer.speculation),
            slots,
        }
    }

    pub(crate) fn of_step(answer: raw::Output, slots: Slots) -> Self {
        let mut found = answer.slots;
        if found.is_empty() && slots.auto_sampler.is_some() {
            // A step without probes has no slots: its tokens say it all.
            found.push(Slot::Tokens(answer.tokens.clone()));
        }
        Self {
            tokens: answer.tokens,
            finish_reason: answer.finish.map(Into::into),
            raw: RawOutput::new(found, answer.speculation),
            slots,
        }
    }

    /// What the sampler of the generator drew; none after `clear_sampler`, and in a pass of one's own.
    pub fn auto_sampler(&self) -> Option<SampleHandle> {
        self.slots.auto_sampler
    }

    /// The slots as the engine answers them, and what was drafted.
    pub fn raw(&self) -> &RawOutput {
        &self.raw
    }

    /// The token of a sampler; the first one where it has drawn several.
    pub fn token<H: Handle>(&self, handle: H) -> Option<u32> {
        match self.slot(handle)? {
            Slot::Tokens(tokens) => tokens.first().copied(),
            _ => None,
        }
    }

    /// Every token of a sampler: index after index, and draw after draw. Empty for another handle.
    pub fn tokens_at<H: Handle>(&self, handle: H) -> Vec<u32> {
        match self.slot(handle) {
            Some(Slot::Tokens(tokens)) => tokens.clone(),
            _ => Vec::new(),
        }
    }

    /// Tokens and their probabilities, of a [`Distribution`](crate::sample::Distribution): two lists of the same
    /// length.
    pub fn distribution<H: Handle>(&self, handle: H) -> Option<(&[u32], &[f32])> {
        match self.slot(handle)? {
            Slot::Distribution(found) => Some((&found.tokens, &found.values)),
            _ => None,
        }
    }

    /// The row of [`Logits`](crate::sample::Logits): the bytes of `[V]` numbers of float32 in the order of ids, aligned
    /// for `bytemuck::cast_slice`.
    pub fn logits<H: Handle>(&self, handle: H) -> Option<&[u8]> {
        match self.slot(handle)? {
            // The allocator of programs aligns every list for any number.
            Slot::Logits(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The natural logarithms of [`Logprob`](crate::sample::Logprob) or [`Logprobs`](crate::sample::Logprobs), in the
    /// order of the probe's tokens.
    pub fn logprobs<H: Handle>(&self, handle: H) -> Option<&[f32]> {
        match self.slot(handle)? {
            Slot::Logprobs(values) => Some(values),
            _ => None,
        }
    }

    /// The entropy of [`Entropy`](crate::sample::Entropy), in nats.
    pub fn entropy<H: Handle>(&self, handle: H) -> Option<f32> {
        match self.slot(handle)? {
            Slot::Entropy(value) => Some(*value),
            _ => None,
        }
    }

    /// The hidden state of [`Embedding`](crate::sample::Embedding): the bytes of float32 numbers, aligned as those of
    /// `logits`.
    pub fn embedding<H: Handle>(&self, handle: H) -> Option<&[u8]> {
        match self.slot(handle)? {
            Slot::Embedding(bytes) => Some(bytes),
            _ => None,
        }
    }

    fn slot<H: Handle>(&self, handle: H) -> Option<&Slot> {
        let place = handle.place();
        let (_, first) = self
            .slots
            .first
            .iter()
            .find(|(owner, _)| *owner == place.owner)?;
        self.raw.slots.get(first + place.index as usize)
    }
}

impl RawOutput {
    const fn new(slots: Vec<Slot>, speculative: Speculation) -> Self {
        Self { slots, speculative }
    }
}

/// Why a generation ended. As JSON and as text it is its name in lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FinishReason {
    /// A stop token was accepted.
    Stop,
    /// The cap or the length of the model's context was reached.
    Length,
    /// A constraint ended the generation.
    Constraint,
    /// The generator was retired: by a newer one, a truncation, or the end of its context.
    Closed,
}

impl FinishReason {
    /// Its name in lower case, as in the other languages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::Constraint => "constraint",
            Self::Closed => "closed",
        }
    }
}

impl fmt::Display for FinishReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl From<raw::FinishReason> for FinishReason {
    fn from(reason: raw::FinishReason) -> Self {
        match reason {
            raw::FinishReason::Stop => Self::Stop,
            raw::FinishReason::Length => Self::Length,
            raw::FinishReason::Constraint => Self::Constraint,
            raw::FinishReason::Closed => Self::Closed,
        }
    }
}

impl From<FinishReason> for raw::FinishReason {
    fn from(reason: FinishReason) -> Self {
        match reason {
            FinishReason::Stop => Self::Stop,
            FinishReason::Length => Self::Length,
            FinishReason::Constraint => Self::Constraint,
            FinishReason::Closed => Self::Closed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handle::ProbeHandle;
    use crate::probe::{Entropy, Logits};

    fn step(slots: Vec<Slot>, owners: Slots) -> Output {
        let speculation = Speculation {
            drafted: 2,
            accepted: 1,
        };
        let answer = raw::Output {
            tokens: vec![5, 6],
            finish: None,
            slots,
            speculation,
        };
        Output::of_step(answer, owners)
    }

    // rows: RS-101 RS-104..105 RS-109
    #[test]
    fn a_handle_of_another_kind_or_owner_gives_nothing() {
        let (own, other) = (Owner::new(), Owner::new());
        let slots = vec![
            Slot::Tokens(vec![7, 8]),
            Slot::Entropy(0.5),
            Slot::Logprobs(vec![-1.0, -2.0]),
        ];
        let first = vec![(own, 0)];
        let output = step(
            slots,
            Slots {
                auto_sampler: None,
                first,
            },
        );
        let sampler = SampleHandle::new(own, 0);
        let entropy = ProbeHandle::<Entropy>::new(own, 1);
        assert_eq!(output.token(sampler), Some(7));
        assert_eq!(output.tokens_at(sampler), [7, 8]);
        assert_eq!(output.entropy(entropy), Some(0.5));
        let logprobs = ProbeHandle::<Entropy>::new(own, 2);
        assert_eq!(output.logprobs(logprobs), Some(&[-1.0, -2.0][..]));
        assert_eq!(
            (output.entropy(sampler), output.token(entropy)),
            (None, None)
        );
        assert_eq!(output.logits(ProbeHandle::<Logits>::new(own, 1)), None);
        assert_eq!(output.logits(ProbeHandle::<Logits>::new(own, 9)), None);
        assert_eq!(output.token(SampleHandle::new(other, 0)), None);
        assert!(output.tokens_at(SampleHandle::new(other, 0)).is_empty());
    }

    // rows: RS-106..108
    #[test]
    fn the_sampler_of_a_step_without_probes_has_its_tokens() {
        let own = Owner::new();
        let auto_sampler = Some(SampleHandle::new(own, 0));
        let first = vec![(own, 0)];
        let output = step(
            Vec::new(),
            Slots {
                auto_sampler,
                first,
            },
        );
        assert_eq!(output.auto_sampler().and_then(|h| output.token(h)), Some(5));
        assert_eq!(output.tokens, [5, 6]);
        assert_eq!(output.raw().speculative.accepted, 1);
        assert!(matches!(&output.raw().slots[..], [Slot::Tokens(tokens)] if *tokens == [5, 6]));
    }

    #[test]
    fn a_reason_has_one_name_as_text_and_as_json() {
        for reason in [
            FinishReason::Stop,
            FinishReason::Length,
            FinishReason::Constraint,
            FinishReason::Closed,
        ] {
            assert_eq!(
                serde_json::to_value(reason).unwrap(),
                serde_json::Value::from(reason.to_string())
            );
        }
    }
}
