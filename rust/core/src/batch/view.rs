//! Reads an arena. Everything is checked once, when the view is made.

use super::layout::{FIELDS_AT, Field, HEADER_WORDS, Head, Keep, MAGIC, SAMPLER_WORDS, VERSION};
use crate::sampling::{Key, Params};

/// A checked arena.
#[derive(Clone, Copy, Debug)]
pub struct ArenaView<'a> {
    words: &'a [u32],
}

/// One sequence of a checked arena.
#[derive(Clone, Copy, Debug)]
pub struct SequenceView<'a> {
    /// Index of its first token among the tokens of the batch.
    pub first_token: usize,
    /// Its tokens, `[n]`.
    pub tokens: &'a [u32],
    /// Their positions, `[n]`.
    pub positions: &'a [u32],
    /// Its pages, in the order of storage.
    pub pages: &'a [u32],
    /// Tokens in its pages after the batch; the new ones are the last.
    pub length: usize,
    /// Identity of the adapter; 0 is none.
    pub adapter: u64,
    /// Version of the adapter.
    pub adapter_version: u32,
    /// Seed that perturbs the adapter.
    pub zo_seed: Option<u64>,
    /// Digest of its media; 0 is none.
    pub media: u64,
    /// Its only token is in its slot already and must not be written.
    pub reread: bool,
    /// Its only token is what is drawn from this row of the batch before.
    pub follows: Option<u32>,
}

/// One row of logits that a checked arena wants, and what is drawn from it.
#[derive(Clone, Copy, Debug)]
pub struct RowView<'a> {
    /// Index of its token among the tokens of the batch.
    pub token: usize,
    /// How tokens are drawn.
    pub params: Params,
    /// The key of the first draw.
    pub key: Key,
    /// Independent draws.
    pub n_draws: u32,
    /// Token mask, as run lengths over the vocabulary; empty: no restriction.
    pub mask: &'a [u32],
    /// The row itself is wanted too.
    pub keep: bool,
    /// It holds the hidden state of its token, and no logits.
    pub embeds: bool,
}

impl<'a> ArenaView<'a> {
    /// The view of an arena that an [`ArenaBuilder`](super::ArenaBuilder) made: it needs no check.
    pub(super) const fn built(words: &'a [u32]) -> Self {
        Self { words }
    }

    /// Checks an arena.
    ///
    /// # Errors
    /// A sentence that names what does not fit.
    pub fn parse(words: &'a [u32]) -> Result<Self, String> {
        if words.len() < HEADER_WORDS {
            return Err(format!(
                "the arena has {} words and its header needs {HEADER_WORDS}",
                words.len()
            ));
        }
        expect("magic", words[Head::Magic as usize], MAGIC)?;
        expect("version", words[Head::Version as usize], VERSION)?;
        expect(
            "number of words",
            words[Head::Words as usize],
            words.len() as u32,
        )?;
        let view = Self { words };
        if view.page_size() == 0 {
            return Err("the page size is 0".to_owned());
        }
        for field in Field::ALL {
            let (offset, length) = view.span(field);
            if offset < HEADER_WORDS || offset.saturating_add(length) > words.len() {
                return Err(format!(
                    "{field:?} spans words {offset} to {} of {}",
                    offset.saturating_add(length),
                    words.len()
                ));
            }
        }
        view.check()?;
        Ok(view)
    }

    fn head(&self, word: Head) -> u32 {
        self.words[word as usize]
    }

    fn span(&self, field: Field) -> (usize, usize) {
        let at = FIELDS_AT + 2 * field as usize;
        (self.words[at] as usize, self.words[at + 1] as usize)
    }

    /// The words of a field.
    pub fn field(&self, field: Field) -> &'a [u32] {
        let (offset, length) = self.span(field);
        &self.words[offset..offset + length]
    }

    /// The batch id.
    pub fn batch_id(&self) -> u64 {
        wide(&self.words[Head::BatchId as usize..])
    }

    /// Tokens that a page holds.
    pub fn page_size(&self) -> u32 {
        self.head(Head::PageSize)
    }

    /// T.
    pub fn n_tokens(&self) -> usize {
        self.head(Head::Tokens) as usize
    }

    /// B.
    pub fn n_sequences(&self) -> usize {
        self.head(Head::Sequences) as usize
    }

    /// R.
    pub fn n_rows(&self) -> usize {
        self.head(Head::Rows) as usize
    }

    /// The batch whose rows its sequences follow; none where no sequence does.
    pub fn before(&self) -> Option<u64> {
        Some(wide(&self.words[Head::Before as usize..])).filter(|&id| id != 0)
    }

    /// The sequences, in order.
    pub fn sequences(&self) -> impl Iterator<Item = SequenceView<'a>> + '_ {
        (0..self.n_sequences()).map(|index| self.sequence(index))
    }

    fn sequence(&self, index: usize) -> SequenceView<'a> {
        let tokens = slice(self.field(Field::QoIndptr), index);
        let pages = &self.field(Field::KvIndices)[slice(self.field(Field::KvIndptr), index)];
        let last_page_len = self.field(Field::KvLastPageLen)[index] as usize;
        let zo_seed = &self.field(Field::SeqZoSeed)[3 * index..];
        SequenceView {
            first_token: tokens.start,
            tokens: &self.field(Field::Tokens)[tokens.clone()],
            positions: &self.field(Field::Positions)[tokens],
            pages,
            length: (pages.len() - 1) * self.page_size() as usize + last_page_len,
            adapter: wide(&self.field(Field::SeqAdapter)[2 * index..]),
            adapter_version: self.field(Field::SeqAdapterVersion)[index],
            zo_seed: (zo_seed[0] != 0).then(|| wide(&zo_seed[1..])),
            media: wide(&self.field(Field::SeqMedia)[2 * index..]),
            reread: self.field(Field::SeqReread)[index] != 0,
            follows: self.field(Field::SeqFollows)[index].checked_sub(1),
        }
    }

    /// The attention mask of a token, as run lengths over the slots of its sequence; empty: causality alone.
    pub fn mask(&self, token: usize) -> &'a [u32] {
        &self.field(Field::MaskRuns)[slice(self.field(Field::MaskIndptr), token)]
    }

    /// The pages to copy, as pairs of source and destination.
    pub fn copies(&self) -> impl Iterator<Item = (u32, u32)> + 'a {
        self.pairs(Field::CopySrc, Field::CopyDst)
    }

    /// The pages to copy to host memory, as pairs of page and host slot.
    pub fn swap_outs(&self) -> impl Iterator<Item = (u32, u32)> + 'a {
        self.pairs(Field::SwapOutSrc, Field::SwapOutDst)
    }

    /// The pages to copy back, as pairs of host slot and page.
    pub fn swap_ins(&self) -> impl Iterator<Item = (u32, u32)> + 'a {
        self.pairs(Field::SwapInSrc, Field::SwapInDst)
    }

    fn pairs(&self, src: Field, dst: Field) -> impl Iterator<Item = (u32, u32)> + 'a {
        let (sources, destinations) = (self.field(src), self.field(dst));
        sources
            .iter()
            .zip(destinations)
            .map(|(&src, &dst)| (src, dst))
    }

    /// The rows of logits wanted, in order.
    pub fn rows(&self) -> impl Iterator<Item = RowView<'a>> + 'a {
        // Each array is found once, and gone over without looking for its end: a batch may want a thousand rows.
        let (samplers, _) = self.field(Field::RowSampler).as_chunks::<SAMPLER_WORDS>();
        let rows = self.field(Field::RowToken).iter().zip(samplers);
        let draws = self
            .field(Field::RowSlot)
            .iter()
            .zip(self.field(Field::RowDraws));
        let spans = self.field(Field::RowMaskIndptr).windows(2);
        let (runs, kept) = (self.field(Field::RowMaskRuns), self.field(Field::RowKeep));
        let others = draws.zip(kept.iter().zip(spans));
        rows.zip(others).map(
            move |((&token, sampler), ((&slot, &n_draws), (&keep, span)))| {
                let [
                    _,
                    temperature,
                    top_k,
                    top_p,
                    min_p,
                    seed_low,
                    seed_high,
                    position,
                ] = *sampler;
                RowView {
                    token: token as usize,
                    params: Params {
                        temperature: f32::from_bits(temperature),
                        top_k,
                        top_p: f32::from_bits(top_p),
                        min_p: f32::from_bits(min_p),
                    },
                    key: Key {
                        seed: wide(&[seed_low, seed_high]),
                        position,
                        slot,
                        draw: 0,
                    },
                    n_draws,
                    mask: &runs[slice(span, 0)],
                    keep: keep != 0,
                    embeds: keep == Keep::Embedding as u32,
                }
            },
        )
    }
}

fn slice(indptr: &[u32], index: usize) -> std::ops::Range<usize> {
    indptr[index] as usize..indptr[index + 1] as usize
}

fn wide(words: &[u32]) -> u64 {
    u64::from(words[0]) | u64::from(words[1]) << 32
}

fn expect(name: &str, found: u32, expected: u32) -> Result<(), String> {
    if found == expected {
        Ok(())
    } else {
        Err(format!(
            "the {name} of the arena is {found} and should be {expected}"
        ))
    }
}
