//! What was written into consecutive slots: everything that their keys and values depend on, besides the slots before
//! them.

use std::ops::Range;
use std::sync::Arc;

use crate::batch::Adapter;

/// Runs of the masks of tokens, of one on average, that a page may have and be kept for whoever comes.
const MAX_RUNS_OF_TOKEN: usize = 16;

/// What a slot's keys and values depend on, besides its token and the slots before it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Traits {
    /// The position of the rotary embedding.
    pub(crate) position: u32,
    /// The slots that the token sees, as run lengths over `[0, own slot]`, in the shortest form; empty: all of them.
    pub(crate) mask: Arc<[u32]>,
    pub(crate) adapter: Adapter,
    /// Digest of the medium that the token stands for; 0 is none.
    pub(crate) media: u64,
}

impl Traits {
    /// Those of a token at its own position, that sees all before it, without an adapter.
    pub(crate) fn plain(slot: u32) -> Self {
        Self {
            position: slot,
            mask: Arc::default(),
            adapter: Adapter::default(),
            media: 0,
        }
    }

    fn is_plain(&self, slot: u32) -> bool {
        self.position == slot
            && self.mask.is_empty()
            && self.adapter == Adapter::default()
            && self.media == 0
    }
}

/// The content of consecutive slots. Two contents are equal exactly when, behind equal slots, their keys and values
/// are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Content {
    tokens: Vec<u32>,
    /// One for each token; none where all are plain.
    traits: Option<Vec<Traits>>,
}

impl Content {
    /// Tokens at their own positions, that see all before them.
    pub(crate) const fn plain(tokens: Vec<u32>) -> Self {
        Self {
            tokens,
            traits: None,
        }
    }

    /// Tokens with their traits, as many as tokens. The first of them lies at `slot`.
    pub(crate) fn new(tokens: Vec<u32>, traits: Vec<Traits>, slot: u32) -> Self {
        debug_assert_eq!(tokens.len(), traits.len());
        let plain = traits
            .iter()
            .zip(slot..)
            .all(|(traits, slot)| traits.is_plain(slot));
        Self {
            tokens,
            traits: (!plain).then_some(traits),
        }
    }

    pub(crate) fn len(&self) -> u32 {
        self.tokens.len() as u32
    }

    pub(crate) fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// The traits of the token at `index`, whose slot is `slot`.
    pub(crate) fn traits(&self, index: u32, slot: u32) -> Traits {
        let given = self.traits.as_ref().and_then(|all| all.get(index as usize));
        given.cloned().unwrap_or_else(|| Traits::plain(slot))
    }

    /// The traits of those of its tokens that are not plain, with their slots. The first of all lies at `slot`.
    pub(crate) fn special(&self, slot: u32) -> impl Iterator<Item = (u32, &Traits)> {
        let traits = (slot..).zip(self.traits.iter().flatten());
        traits.filter(|(slot, traits)| !traits.is_plain(*slot))
    }

    /// Whether its masks take much more than its tokens do.
    pub(crate) fn has_long_masks(&self) -> bool {
        let traits = self.traits.iter().flatten();
        let n_runs: usize = traits.map(|traits| traits.mask.len()).sum();
        n_runs > MAX_RUNS_OF_TOKEN * self.tokens.len()
    }

    /// Whether every token is at its own position, sees all before it, and has no adapter.
    pub(crate) const fn is_plain(&self) -> bool {
        self.traits.is_none()
    }

    /// Adds a token at `slot`, its own position, that sees all before it.
    pub(crate) fn push(&mut self, token: u32, adapter: Adapter, slot: u32) {
        if self.traits.is_some() || adapter != Adapter::default() {
            let first = slot - self.len();
            let traits = self
                .traits
                .get_or_insert_with(|| (first..slot).map(Traits::plain).collect());
            traits.push(Traits {
                adapter,
                ..Traits::plain(slot)
            });
        }
        self.tokens.push(token);
    }

    /// The same tokens, computed with another adapter. The first of them lies at `slot`.
    pub(crate) fn with_adapter(self, adapter: Adapter, slot: u32) -> Self {
        if self.traits.is_none() && adapter == Adapter::default() {
            return self;
        }
        let n = self.len();
        let all = (0..n).map(|index| Traits {
            adapter,
            ..self.traits(index, slot + index)
        });
        let traits = all.collect();
        Self::new(self.tokens, traits, slot)
    }

    /// How many of its first tokens are computed with one adapter and stand for one medium.
    pub(crate) fn n_alike(&self) -> u32 {
        let Some(traits) = &self.traits else {
            return self.len();
        };
        let alike = traits
            .iter()
            .take_while(|it| (it.adapter, it.media) == (traits[0].adapter, traits[0].media));
        alike.count() as u32
    }

    /// Adds a part of another content. The first token of `self` lies at `slot`, and `other` begins where `self` ends
    /// once `range.start` of it are skipped.
    pub(crate) fn extend(&mut self, other: &Self, range: Range<u32>, slot: u32) {
        let (start, end) = (
            range.start as usize,
            (range.end as usize).min(other.tokens.len()),
        );
        if start >= end {
            return;
        }
        if self.traits.is_some() || other.traits.is_some() {
            let n_own = self.len();
            let own = self
                .traits
                .get_or_insert_with(|| (slot..slot + n_own).map(Traits::plain).collect());
            let first = slot + n_own;
            own.extend(
                (first..)
                    .zip(range.start..end as u32)
                    .map(|(slot, index)| other.traits(index, slot)),
            );
            if own
                .iter()
                .zip(slot..)
                .all(|(traits, slot)| traits.is_plain(slot))
            {
                self.traits = None;
            }
        }
        self.tokens.extend_from_slice(&other.tokens[start..end]);
    }

    /// A part of it. The first token of `self` lies at `slot`.
    pub(crate) fn part(&self, range: Range<u32>, slot: u32) -> Self {
        let (start, end) = (
            range.start as usize,
            (range.end as usize).min(self.tokens.len()),
        );
        let tokens = self.tokens[start..end].to_vec();
        match &self.traits {
            None => Self::plain(tokens),
            Some(traits) => Self::new(tokens, traits[start..end].to_vec(), slot + range.start),
        }
    }

    /// Keeps the first `n` tokens. The first of them lies at `slot`.
    pub(crate) fn truncate(&mut self, n: u32, slot: u32) {
        *self = self.part(0..n.min(self.len()), slot);
    }
}
